"""Random graphs: those of the public benchmark RandCSPBench, made again exactly, and graphs of any size and degree."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

SIZES = (16, 32, 64, 128, 256)
"""The numbers of nodes of the benchmark's graphs."""
DEGREES = {3: np.arange(3.32, 4.95, 0.18), 5: np.arange(9.9, 13.51, 0.4)}
"""Colours -> the mean degrees of the benchmark's graphs, ten each."""
Part = Literal["train", "dev", "test"]
PARTS: dict[Part, tuple[int, int]] = {"train": (2, 1200), "dev": (3, 40), "test": (1, 400)}
"""Seed, and number of graphs for every size and mean degree. The benchmark has no dev set: ours is made like it."""


@dataclass(frozen=True, eq=False)
class Graphs:
    """Graphs of one size and mean degree.

    Args:
        nodes: of each.
        degree: the mean degree that was asked for.
        edges: int16 [Q, M, 2].
    """

    nodes: int
    degree: float
    edges: np.ndarray


def benchmark_graphs(colours: int, part: Part, sizes: Sequence[int] = SIZES) -> Iterator[Graphs]:
    """Make the graphs of RandCSPBench again, one size and mean degree after the other."""
    if colours not in DEGREES:
        raise ValueError(f"colours: the benchmark has graphs for 3 and 5 colours, got {colours}")
    if unknown := [size for size in sizes if size not in SIZES]:
        raise ValueError(f"nodes: the benchmark has graphs of {', '.join(map(str, SIZES))} nodes, got {unknown[0]}")
    if len(set(sizes)) < len(sizes):
        raise ValueError(f"nodes: expected different numbers, got {', '.join(map(str, sizes))}")
    seed, number = PARTS[part]
    for nodes in sizes:
        for degree in DEGREES[colours].tolist():
            rng = random.Random(seed)  # the benchmark seeds anew for every size and degree
            edges = [random_graph(nodes, edges_for(nodes, degree), rng) for _ in range(number)]
            yield Graphs(nodes, degree, np.array(edges, np.int16))


def edges_for(nodes: int, degree: float) -> int:
    """Return the number of edges of a graph with a mean degree, as the benchmark rounds it."""
    return round(degree * nodes / 2)


def usual_degrees(colours: int) -> tuple[float, float]:
    """Return a range of mean degrees in which some random graphs can be coloured and some cannot.

    Large graphs can almost never be coloured above about (2 k - 1) ln k; the benchmark's are from 0.6 to 0.93 of it.
    """
    most = (2 * colours - 1) * math.log(colours)
    return 0.6 * most, 0.93 * most


def random_graph(nodes: int, edges: int, rng: random.Random) -> list[tuple[int, int]]:
    """Draw a graph as ``networkx.gnm_random_graph`` does with the same generator: the same graph, edge by edge.

    It is drawn here and not there, so that the data does not depend on the version of another package.
    """
    every = nodes * (nodes - 1) // 2
    if edges >= every:
        return [(a, b) for a in range(nodes) for b in range(a + 1, nodes)]
    drawn: dict[tuple[int, int], None] = {}
    while len(drawn) < edges:
        a, b = rng.choice(range(nodes)), rng.choice(range(nodes))
        if a != b:
            drawn[min(a, b), max(a, b)] = None
    return list(drawn)


def clique_of(nodes: int, edges: np.ndarray, most: int) -> list[int]:
    """Return a clique of up to ``most`` nodes, the largest that a greedy search from every node finds.

    edges: int16 [M, 2], -1 for padding.
    """
    near = [0] * nodes
    for a, b in edges.tolist():
        if a >= 0:
            near[a] |= 1 << b
            near[b] |= 1 << a
    best: list[int] = []
    for start in range(nodes):
        clique, common = [start], near[start]
        while common and len(clique) < most:
            node = (common & -common).bit_length() - 1
            clique.append(node)
            common &= near[node]
        if len(clique) > len(best):
            best = clique
            if len(best) == most:
                break
    return best


def nodes_of(query: np.ndarray, relations: np.ndarray) -> np.ndarray:
    """Return the number of nodes of every graph, int64 [Q].

    The last nodes do not count if they are given and have no neighbours: small graphs have them among larger ones.

    Args:
        query: uint8 [Q, R], 0 = blank.
        relations: int16 [Q, M, 2], -1 for padding.
    """
    used = np.concatenate([query == 0, np.zeros((len(query), 1), bool)], 1)
    np.put_along_axis(used, relations.reshape(len(relations), -1).astype(np.int64), True, 1)  # -1 is the last column
    return np.maximum(query.shape[1] - used[:, -2::-1].argmax(1), 1) * used[:, :-1].any(1)


def degrees_of(query: np.ndarray, relations: np.ndarray) -> np.ndarray:
    """Return the mean degree of every graph, float64 [Q]; the arguments are those of ``nodes_of``."""
    return 2 * (relations[..., 0] >= 0).sum(1) / np.maximum(nodes_of(query, relations), 1)
