"""Colour large graphs by local search: TabuCol (Hertz and de Werra, 1987), compiled with numba.

All nodes have a colour. As long as two neighbours share one, the best move of a node in such a conflict to another
colour is made, even if it makes things worse, and may not be undone for a while. A search that finds nothing says
nothing about whether there is a colouring.
"""

from __future__ import annotations

import numpy as np

from oneofmany.compiled import njit
from oneofmany.exact.enumerator import Work, seeds_of
from oneofmany.exact.random import below
from oneofmany.exact.relations import relations_by_variable
from oneofmany.exact.sampling import Samples, far_apart, together
from oneofmany.exact.threads import on_threads
from oneofmany.problems import Problem

MOVES = 100_000
LOOK = 1024
"""Moves between two looks at the flag that stops all searches."""


def colour(
    problem: Problem,
    queries: np.ndarray,
    relations: np.ndarray,
    *,
    number: int = 1,
    tries: int = 1,
    moves: int = MOVES,
    seed: int = 0,
    threads: int | None = None,
) -> Samples:
    """Find up to ``number`` far-apart colourings of every graph by independent local searches.

    Args:
        problem: variables are nodes, values are colours, relations are edges a != b; it has no other rules.
        queries: uint8 [Q, R], 0 = blank, 1..V = given.
        relations: int16 [Q, M, 2] edges, -1 for padding.
        number: of colourings to return of a query; fewer if fewer were found.
        tries: the number of searches of a query, from random starts.
        moves: the largest number of moves of one search.
        seed: of the searches; the same seed gives the same result on every machine.
        threads: the number of threads; by default one per core that this process may use.

    Returns:
        the colourings; ``solvable`` is 1 or -1, never 0.
    """
    if problem.relation_kind is None or problem.relation != "!=" or len(problem.rules) != problem.variables:
        raise ValueError(f"problem: expected relations a != b and no rules, got {problem}")
    for name, value in (("number", number), ("tries", tries), ("moves", moves)):
        if value < 1:
            raise ValueError(f"{name}: expected at least 1, got {value}")
    work = Work(problem, queries, relations, 1, None, None, threads)  # checks its arguments
    queries, pairs = work.queries, work.relations
    Q, R = len(queries), problem.variables
    colours = np.zeros((Q, tries, R), np.uint8)
    found = np.zeros((Q, tries), np.bool_)
    seeds = seeds_of(seed, Q * tries).reshape(Q, tries)
    stop = np.zeros(1, np.uint8)

    def part(first: int, end: int) -> None:
        rows = slice(first, end)
        search(queries[rows], pairs[rows], problem.values, moves, seeds[rows], stop, colours[rows], found[rows])

    part(0, 0)  # compile or load the kernel in this thread, where Ctrl-C interrupts it
    on_threads(part, [(row, row + 1) for row in range(Q)], work.threads, stop)
    listed = [far_apart(colours[q][found[q]], number) for q in range(Q)]
    return together(listed, np.where(found.any(1), 1, -1).astype(np.int8), R)


@njit(cache=True, nogil=True)
def search(queries, pairs, values, moves, seeds, stop, colours, found):
    """Search every query ``tries`` times; fills colours uint8 [Q, tries, R] (from 1) and found bool [Q, tries]."""
    variables = queries.shape[1]
    related = np.empty(variables + 1, np.int64)
    relations = np.empty((2 * pairs.shape[1], 2), np.int64)
    random = np.empty(1, np.uint64)
    same = np.empty((variables, values), np.int64)  # neighbours of a node that have a colour
    tabu = np.empty((variables, values), np.int64)  # the move until which a node may not take a colour
    own = np.empty(variables, np.int64)
    clashing = np.empty(variables, np.int64)  # the free nodes that share a colour with a neighbour, and
    place = np.empty(variables, np.int64)  # their places in that list, -1 for others
    for q in range(len(queries)):
        relations_by_variable(pairs[q], variables, True, related, relations)
        for attempt in range(seeds.shape[1]):
            random[0] = seeds[q, attempt]
            for v in range(variables):
                own[v] = queries[q, v] - 1 if queries[q, v] else below(random, values)
            same[:] = 0
            tabu[:] = -1
            for v in range(variables):
                for i in range(related[v], related[v + 1]):
                    same[v, own[relations[i, 0]]] += 1
            conflicts, number = 0, 0
            for v in range(variables):
                conflicts += same[v, own[v]]
                place[v] = -1
                if same[v, own[v]] and not queries[q, v]:
                    place[v] = number
                    clashing[number] = v
                    number += 1
            conflicts //= 2
            fewest = conflicts
            for move in range(moves):
                if conflicts == 0 or number == 0 or (move % LOOK == 0 and stop[0]):
                    break
                best, node, colour, equal = np.int64(1 << 30), np.int64(-1), np.int64(0), 0
                for j in range(number):
                    v = clashing[j]
                    for c in range(values):
                        change = same[v, c] - same[v, own[v]]
                        if c == own[v] or change > best or (tabu[v, c] > move and conflicts + change >= fewest):
                            continue
                        equal = equal + 1 if change == best else 1
                        if equal == 1 or below(random, equal) == 0:
                            best, node, colour = change, v, c
                if node < 0:
                    continue  # every move is forbidden for a while
                before = own[node]
                own[node] = colour
                conflicts += best
                fewest = min(fewest, conflicts)
                tabu[node, before] = move + 1 + 6 * number // 10 + below(random, 10)
                for i in range(related[node], related[node + 1]):
                    other = relations[i, 0]
                    same[other, before] -= 1
                    same[other, colour] += 1
                    number = _list(other, queries[q], same, own, clashing, place, number)
                number = _list(node, queries[q], same, own, clashing, place, number)
            found[q, attempt] = conflicts == 0
            for v in range(variables):
                colours[q, attempt, v] = own[v] + 1


@njit(cache=True, nogil=True)
def _list(v, query, same, own, clashing, place, number):
    """Add a free node to the clashing ones or take it away; returns their new number."""
    clashes = same[v, own[v]] > 0 and query[v] == 0
    if clashes and place[v] < 0:
        place[v] = number
        clashing[number] = v
        return number + 1
    if not clashes and place[v] >= 0:
        last = clashing[number - 1]
        clashing[place[v]] = last
        place[last] = place[v]
        place[v] = -1
        return number - 1
    return number
