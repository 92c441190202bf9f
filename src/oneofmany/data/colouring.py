"""Graph colouring data: graphs with colourings that are far apart, and which graphs have been shown to have one.

Short exhaustive searches count the colourings of a graph, or show that there is none. Where there are too many to
count, and where those searches end early, independent local searches find colourings. What remains is not known.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from oneofmany.data.dataset import Dataset
from oneofmany.data.graphs import (
    DEGREES,
    PARTS,
    SIZES,
    Graphs,
    Part,
    benchmark_graphs,
    clique_of,
    edges_for,
    random_graph,
    usual_degrees,
)
from oneofmany.data.splits import Split, texts_in_split
from oneofmany.exact import colour, solve
from oneofmany.exact.sampling import POOL, far_apart
from oneofmany.files import FileError
from oneofmany.problems import Problem, colouring
from oneofmany.progress import Progress

COUNTED = 1_000
"""Colourings are counted up to this number; the total of a graph with more is not known."""
STATES = ("graphs", "solvable", "unsolvable", "unknown")
FEWEST, FRUITLESS = 64, 20
"""Graphs that are drawn at a time, and times in a row without a new one after which there are taken to be no more."""
STRIDE = 1_000
"""Between the seeds of two builds."""


@dataclass(frozen=True)
class Effort:
    """How long colourings are searched for; another effort may give other data.

    Args:
        listed: list at most this many colourings of a graph.
        branches: of the exhaustive search of a graph.
        moves: of a local search.
        tries: the number of such searches for a graph without a colouring so far.
    """

    listed: int = 10
    branches: int = 20_000
    moves: int = 200_000
    tries: int = 4

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value < 1:
                raise ValueError(f"{name}: expected at least 1, got {value}")


NO_SEARCH = Effort(listed=1, branches=1, moves=1, tries=1)
"""For graphs whose colourings nobody needs: the rules judge the answers."""


def build_benchmark_colouring(
    colours: int,
    part: Part,
    sizes: Sequence[int] = SIZES,
    *,
    clique: bool = True,
    unsolved: bool = False,
    effort: Effort = Effort(),  # noqa: B008 - frozen
    threads: int | None = None,
    folder: str | Path | None = None,
    progress: Progress = lambda what, done, of: None,
) -> Dataset:
    """Build the graphs of RandCSPBench that can be coloured, with colourings.

    Args:
        colours: 3 or 5.
        part: train and test are the benchmark's; dev is made like them with another seed.
        sizes: the numbers of nodes; smaller graphs get isolated nodes with a given colour.
        clique: give the nodes of one clique different colours, which takes away most of the symmetry between colours.
        unsolved: also keep the graphs for which no colouring is known; they list none.
        effort: of the search.
        threads: the number of threads; by default one per core that this process may use.
        folder: keeps the finished parts, so that a build that was stopped goes on there.
        progress: called with the name of the work, the parts done and their number.
    """
    about: dict[str, Any] = {"builder": "colouring", "benchmark": "RandCSPBench", "part": part, "seed": PARTS[part][0]}
    about |= {"colours": colours, "clique": clique, **vars(effort)}
    found = []
    for place, graphs in enumerate(benchmark_graphs(colours, part, sizes)):
        progress("graphs", place, len(sizes) * len(DEGREES[colours]))
        own = about | {"nodes": graphs.nodes, "degree": round(graphs.degree, 2)}
        name = f"{part}-{colours}-{graphs.nodes}-{graphs.degree:.2f}.safetensors"
        file = None if folder is None else Path(folder) / name
        if file is not None and file.exists():
            found.append(Dataset.load(file))
            if found[-1].built != own:
                raise FileError(f"{file} is a part of another build: delete it")
            continue
        # The place of a graph in its own part and the seed decide its search: parts can be built in any order.
        found.append(list_colourings(graphs, colours, own, PARTS[part][0], clique, effort, threads))
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            found[-1].save(file, force=True)
    return together(found, about | {"nodes": list(sizes)}, unsolved)


def build_colouring(
    queries: int,
    sizes: Sequence[int],
    colours: int = 3,
    split: Split | None = None,
    seed: int = 0,
    *,
    degrees: tuple[float, float] | None = None,
    clique: bool = True,
    unsolved: bool = False,
    effort: Effort = Effort(),  # noqa: B008 - frozen
    threads: int | None = None,
) -> Dataset:
    """Build random graphs that can be coloured, of random sizes and mean degrees.

    Args:
        queries: the number of different graphs.
        sizes: the numbers of nodes to draw from.
        colours: the number of colours.
        split: build only graphs of this split; a hash of the graph decides its split.
        seed: the same seed gives the same file.
        degrees: the lowest and the highest mean degree; ``usual_degrees`` by default.
        clique: as in ``build_benchmark_colouring``, and the other arguments too.
        unsolved: see there.
        effort: see there.
        threads: see there.
    """
    if queries < 1 or not sizes or min(sizes) < 1:
        raise ValueError(f"queries and nodes: expected at least 1, got {queries} and {list(sizes)}")
    if seed < 0:
        raise ValueError(f"seed: expected at least 0, got {seed}")
    colouring(max(sizes), colours)  # refuses too many nodes or colours before anything is drawn
    low, high = usual_degrees(colours) if degrees is None else degrees
    if not 0 <= low <= high:
        raise ValueError(f"degree: expected two rising numbers from 0, got {low} and {high}")
    about: dict[str, Any] = {"builder": "colouring", "queries": queries, "nodes": list(sizes), "colours": colours}
    about |= {"degree": [low, high], "split": split, "seed": seed, "clique": clique, **vars(effort)}
    rng, seen, found = random.Random(seed), set(), []
    number = fruitless = rounds = 0
    while number < queries:
        rounds += 1
        drawn: dict[int, list[list[tuple[int, int]]]] = {}
        for _ in range(max(FEWEST, 2 * (queries - number))):
            nodes = rng.choice(list(sizes))
            edges = sorted(random_graph(nodes, edges_for(nodes, rng.uniform(low, high)), rng))
            text = f"{nodes} {edges}"
            if text not in seen and texts_in_split([text], split)[0]:
                drawn.setdefault(nodes, []).append(edges)
            seen.add(text)
        before = number
        for nodes, every in drawn.items():
            relations = np.full((len(every), max(map(len, every)), 2), -1, np.int16)
            for row, edges in zip(relations, every, strict=True):
                row[: len(edges)] = np.array(edges).reshape(-1, 2)
            graphs = Graphs(nodes, 0.0, relations)
            one = list_colourings(graphs, colours, about, STRIDE * seed + rounds, clique, effort, threads)
            found.append(one if unsolved else one.take(np.flatnonzero(one.listed)))
            number += len(found[-1])
        fruitless = 0 if number > before else fruitless + 1
        if fruitless == FRUITLESS:
            raise ValueError(
                f"queries: asked for {queries:,}, but only {number:,} different graphs that can be coloured were "
                "found: ask for fewer, or for other nodes, colours or degrees"
            )
    built = together(found, about, unsolved)
    order = np.random.default_rng(seed).permutation(len(built))[:queries]  # sizes and degrees are mixed
    return replace(built.take(order), built=about | {"unsolved": unsolved}, group=np.arange(queries))


def list_colourings(
    graphs: Graphs, colours: int, about: dict[str, Any], seed: int, clique: bool, effort: Effort, threads: int | None
) -> Dataset:
    """Search the colourings of graphs of one size; keep all graphs, also those without one."""
    problem, relations = colouring(graphs.nodes, colours), graphs.edges
    query = np.zeros((len(relations), graphs.nodes), np.uint8)
    for row, edges in zip(query, relations, strict=True):
        for value, node in enumerate(clique_of(graphs.nodes, edges, colours) if clique else (), 1):
            row[node] = value
    total, listed = search(problem, query, relations, seed, effort, threads)
    offsets = np.concatenate([[0], np.cumsum([len(own) for own in listed])])
    solutions = np.concatenate([query[:0], *listed])
    return Dataset(problem, query, solutions, offsets, total, relations, np.arange(len(query)), about)


def search(
    problem: Problem, query: np.ndarray, relations: np.ndarray, seed: int, effort: Effort, threads: int | None
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the number of colourings of every query, int64 [Q], -1 if it is not known, and those to list."""
    keep = POOL * effort.listed
    counted = solve(
        problem, query, relations, limit=COUNTED, keep=keep, seed=seed, branches=effort.branches, threads=threads
    )
    total = np.where(counted.finished & (counted.total < COUNTED), counted.total, -1)
    pools = [counted.of(row) for row in range(len(query))]

    def add(rows: np.ndarray, tries: int, moves: int, stage: int) -> None:
        """Local searches of some queries; what they find comes first, because one search finds similar colourings."""
        settings = {"number": tries, "tries": tries, "moves": moves, "seed": STRIDE * seed + stage, "threads": threads}
        found = colour(problem, query[rows], relations[rows], **settings)
        for place, row in enumerate(rows.tolist()):
            pools[row] = np.concatenate([found.of(place), pools[row]])

    unknown = np.flatnonzero(total < 0)
    for attempt in range(effort.tries):
        add(_without(unknown, pools), 1, effort.moves, attempt + 1)
    add(np.setdiff1d(unknown, _without(unknown, pools)), 2 * effort.listed, 1 + effort.moves // 4, 0)
    return total, [far_apart(pool, effort.listed) for pool in pools]


def _without(rows: np.ndarray, pools: list[np.ndarray]) -> np.ndarray:
    """The rows without a solution."""
    return rows[[not len(pools[row]) for row in rows.tolist()]] if len(rows) else rows


def together(parts: Iterable[Dataset], built: dict[str, Any], unsolved: bool) -> Dataset:
    """Join data of different sizes; ``built`` then says how many graphs of every size have which state."""
    every = list(parts)
    size = max(part.problem.size for part in every)
    counts: dict[str, list[int]] = {}
    kept = []
    for part in every:
        known = part.listed > 0
        states = np.array([len(part), known.sum(), (part.total == 0).sum(), (~known & (part.total < 0)).sum()])
        before = counts.get(str(part.problem.size), [0] * len(STATES))
        counts[str(part.problem.size)] = (states + before).tolist()
        kept.append(part if unsolved else part.take(np.flatnonzero(known)))
    most = max(part.relations.shape[1] for part in kept)

    def padded(array: np.ndarray) -> np.ndarray:
        # Nodes that a graph does not have are given colour 1; they have no neighbours.
        return np.pad(array, [(0, 0), (0, size - array.shape[1])], constant_values=1)

    ends = np.cumsum([0, *(len(part.solutions) for part in kept)])
    offsets = [part.offsets[:-1] + end for part, end in zip(kept, ends, strict=False)]
    relations = [
        np.pad(p.relations, [(0, 0), (0, most - p.relations.shape[1]), (0, 0)], constant_values=-1) for p in kept
    ]
    number = sum(len(part) for part in kept)
    return Dataset(
        colouring(size, every[0].problem.values),
        np.concatenate([padded(part.query) for part in kept]),
        np.concatenate([padded(part.solutions) for part in kept]),
        np.concatenate([*offsets, ends[-1:]]),
        np.concatenate([part.total for part in kept]),
        np.concatenate(relations),
        np.arange(number),
        built | {"unsolved": unsolved, "counts": dict(sorted(counts.items(), key=lambda item: int(item[0])))},
    )
