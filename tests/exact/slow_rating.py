"""The rating's search, written plainly with sets: the oracle of the compiled one."""

from itertools import combinations
from random import Random

UNITS = [
    *([9 * r + c for c in range(9)] for r in range(9)),
    *([9 * r + c for r in range(9)] for c in range(9)),
    *([9 * (r + i) + c + j for i in range(3) for j in range(3)] for r in (0, 3, 6) for c in (0, 3, 6)),
]
PEERS = [set().union(*(unit for unit in UNITS if cell in unit)) - {cell} for cell in range(81)]


class Xorshift:
    """The generator of the compiled functions, with Python's integers."""

    def __init__(self, state):
        self.state = state

    def __call__(self, n):
        x = self.state
        x ^= x >> 12
        x = (x ^ x << 25) % 2**64
        x ^= x >> 27
        self.state = x
        drawn = x * 0x2545F4914F6CDD1D % 2**64
        return (drawn >> 32) * n >> 32


def seeded(seed, puzzle):
    """The generator's state for a puzzle: its cells are mixed into the seed."""
    state = seed
    for value in [0, *puzzle]:
        z = (state + value + 0x9E3779B97F4A7C15) % 2**64
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        state = max(z ^ z >> 31, 1)
    return Xorshift(state)


def own_draws(seed):
    return Random(seed).randrange


def candidates_of(puzzle):
    return [{value} if value else set(range(1, 10)) for value in puzzle]


def singles(candidates):
    """Remove what naked and hidden singles exclude, in place; False if a cell or a unit has no place left."""
    changed = True
    while changed:
        changed = False
        for cell in range(81):
            if not candidates[cell]:
                return False
            if len(candidates[cell]) == 1:
                for peer in PEERS[cell]:
                    if candidates[cell] & candidates[peer]:
                        candidates[peer] -= candidates[cell]
                        changed = True
        for unit in UNITS:
            for value in range(1, 10):
                places = [cell for cell in unit if value in candidates[cell]]
                if not places:
                    return False
                if len(places) == 1 and len(candidates[places[0]]) > 1:
                    candidates[places[0]] = {value}
                    changed = True
    return True


def locked_and_pairs(candidates):
    """Remove what locked candidates, naked pairs and hidden pairs exclude, in place; whether anything was removed."""
    before = sum(map(len, candidates))
    for unit in UNITS:
        for value in range(1, 10):
            places = {cell for cell in unit if value in candidates[cell]}
            for other in UNITS:
                if places <= set(other):
                    for cell in set(other) - set(unit):
                        candidates[cell].discard(value)
        for a, b in combinations(unit, 2):
            if len(candidates[a] | candidates[b]) == 2:
                for cell in set(unit) - {a, b}:
                    candidates[cell] -= candidates[a] | candidates[b]
        for pair in combinations(range(1, 10), 2):
            places = [cell for cell in unit if candidates[cell] & set(pair)]
            if len(places) == 2:
                for cell in places:
                    candidates[cell] &= set(pair)
    return sum(map(len, candidates)) < before


def search(candidates, draw, limit=2, pairs=False):
    """The number of values tried and of solutions found."""
    while True:
        if not singles(candidates):
            return 0, 0
        if not pairs or not locked_and_pairs(candidates):
            break
    blank = [cell for cell in range(81) if len(candidates[cell]) > 1]
    if not blank:
        return 0, 1
    fewest = min(len(candidates[cell]) for cell in blank)
    cells = [cell for cell in blank if len(candidates[cell]) == fewest]
    cell = cells[draw(len(cells))]
    left = sorted(candidates[cell])
    tried = found = 0
    while left and found < limit:
        value = left.pop(draw(len(left)))
        branch = [set(values) for values in candidates]
        branch[cell] = {value}
        more, solutions = search(branch, draw, limit - found, pairs)
        tried, found = tried + 1 + more, found + solutions
    return tried, found
