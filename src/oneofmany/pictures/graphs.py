"""Where the nodes of a graph are drawn: neighbours close together, others apart; always the same for a graph."""

from __future__ import annotations

from collections import deque

import numpy as np

from oneofmany.problems.tasks.colouring import neighbours_of

ROUNDS = 300
STILL = 1e-4
FAR = 1.5
"""Nodes without a path between them are this many edges further apart than the farthest others."""


def node_places(nodes: int, relations: np.ndarray) -> np.ndarray:
    """Return the places of the nodes, float64 [N, 2], with distances of about 1 between neighbours.

    From a circle, the stress between distances in the picture and in the graph is reduced until nothing moves
    (majorisation, de Leeuw 1977). It needs no random numbers, and each step only averages, so rounding differences
    between machines do not grow.

    Args:
        nodes: their number.
        relations: int16 [M, 2] edges, -1 for padding.
    """
    wanted = _distances(nodes, relations)
    angle = 2 * np.pi * np.arange(nodes) / nodes
    places = nodes / (2 * np.pi) * np.stack([np.sin(angle), -np.cos(angle)], 1)
    if nodes < 3:
        return places - places.min(0)
    np.fill_diagonal(wanted, 1.0)
    weights = wanted**-2.0
    np.fill_diagonal(weights, 0.0)
    sums = weights.sum(1, keepdims=True)
    for _ in range(ROUNDS):
        apart = places[:, None] - places[None]
        length = np.sqrt((apart**2).sum(-1))
        ratio = np.divide(wanted, length, out=np.zeros_like(length), where=length > 1e-9)
        moved = (weights[..., None] * (places[None] + apart * ratio[..., None])).sum(1) / sums
        still = np.abs(moved - places).max() < STILL
        places = moved
        if still:
            break
    return places - places.min(0)


def _distances(nodes: int, relations: np.ndarray) -> np.ndarray:
    """The numbers of edges between all nodes, float64 [N, N]."""
    near = neighbours_of(nodes, relations)
    found = np.full((nodes, nodes), np.inf)
    for start in range(nodes):
        found[start, start] = 0
        queue = deque([start])
        while queue:
            node = queue.popleft()
            for other in near[node]:
                if np.isinf(found[start, other]):
                    found[start, other] = found[start, node] + 1
                    queue.append(other)
    farthest = found[np.isfinite(found)].max()
    return np.where(np.isinf(found), farthest + FAR, found)
