"""Small data sets whose queries bring their own rules: graphs of different sizes to colour, and boards with cages."""

from dataclasses import replace

import numpy as np

from oneofmany.data.colouring import build_colouring
from oneofmany.data.listing import list_solutions
from oneofmany.problems import OwnRules, Problem, Rule, cage, futoshiki, total


def edges(pairs, colours):
    return [Rule("edge", (a * colours + c, b * colours + c), exact=False) for a, b in pairs for c in range(colours)]


def graphs(number, seed, largest=6, colours=3):
    """Graphs of 3 to ``largest`` nodes with some nodes given; nodes that a graph does not have are given, too."""
    rng = np.random.default_rng(seed)
    problem = Problem("graph", largest, largest, colours, (), own_kinds=("edge",))
    query, rules = np.zeros((number, largest), np.uint8), []
    for row in query:
        nodes = int(rng.integers(3, largest + 1))
        pairs = [(a, b) for a in range(nodes) for b in range(a) if rng.random() < 0.4]
        row[0] = rng.integers(1, colours + 1)
        row[nodes:] = 1
        rules.append(edges(pairs, colours))
    return list_solutions(problem, query, None, {"builder": "graphs"}, seed=seed, own=OwnRules.of(rules))


def coloured(number, seed, sizes=(4, 6, 7)):
    """Graphs of different sizes as relations a != b, as the task colouring has them."""
    return build_colouring(number, sizes, seed=seed, threads=1)


def cages(number, seed, size=4, relation=None):
    """Latin squares cut into cages, each with its own cages and up to three relations; some cells are given."""
    rng = np.random.default_rng(seed)
    plain = futoshiki(size)
    problem = Problem("cages", size, size * size, size, plain.rules, own_kinds=("cage-different",), own_sums=("cage",))
    if relation is not None:
        problem = replace(problem, relation_kind="pair", relation=relation)
    query, rules = np.zeros((number, size * size), np.uint8), []
    relations = np.full((number, 3 if relation else 0, 2), -1, np.int16)
    shift = np.array([[(r + c) % size for c in range(size)] for r in range(size)])
    for row, pairs in zip(query, relations, strict=True):
        grid = (rng.permutation(size)[shift[rng.permutation(size)]] + 1).ravel()
        cells = [(r * size + c, r * size + c + 1) for r in range(size) for c in range(0, size - 1, 2)]
        rules.append([rule for pair in cells for rule in cage("cage", pair, size, int(grid[list(pair)].sum()))])
        shown = rng.random(size * size) < (0.3 if relation is None else 0.1)
        row[shown] = grid[shown]
        for pair in pairs[: rng.integers(len(pairs) + 1)]:
            pair[:] = sorted(rng.permutation(size * size)[:2], key=lambda cell: grid[cell])
        pairs[grid[pairs[:, 0]] == grid[pairs[:, 1]]] = -1
    return list_solutions(problem, query, relations, {"builder": "cages"}, seed=seed, own=OwnRules.of(rules))


def ordered_cages(number, seed):
    """Cages with relations a < b beside them."""
    return cages(number, seed, relation="<")


def unequal_cages(number, seed):
    """Cages with relations a != b beside them."""
    return cages(number, seed, relation="!=")


def sums(number, seed, size=3):
    """Squares of values 1 to 4 whose rows and columns have the same sum: rules with bounds that all queries share."""
    rng = np.random.default_rng(seed)
    lines = [*np.arange(size * size).reshape(size, size), *np.arange(size * size).reshape(size, size).T]
    rules = [rule for line in lines for rule in total("line", line.tolist(), 4, low=7, high=7)]
    problem = Problem("sums", size, size * size, 4, tuple(rules))
    query = np.zeros((number, size * size), np.uint8)
    for row in query:
        shown = rng.permutation(size * size)[:2]
        row[shown] = rng.integers(1, 5, 2)
    return list_solutions(problem, query, None, {"builder": "sums"}, seed=seed)
