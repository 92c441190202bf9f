"""Answers to queries: from a network in batches, from the exact enumerator, or from both::

    solver = Solver(oneofmany.load("sudoku"))
    for answer in solver.answer(queries):              # queries as a task's ``parse`` gives them, of any sizes
        print(answer.values, answer.valid, answer.confidence)

    found = [[answer] for answer in solver.answer(queries)]
    found = fall_back(queries, found)                  # the enumerator where the network's answer is not valid
    found = solver.weigh(queries, solve_exactly(queries, limit=100))   # all solutions, the likeliest first
    totals = count_solutions(queries, limit=1000)

Every function answers in the order of the queries. Whoever answered is named in ``Answer.source``.
"""

from oneofmany.solving.answers import Answer
from oneofmany.solving.exactly import count_solutions, fall_back, prepare, solve_exactly
from oneofmany.solving.solver import PATIENCE, TRIES, Solver, bundled

__all__ = [
    "PATIENCE",
    "TRIES",
    "Answer",
    "Solver",
    "bundled",
    "count_solutions",
    "fall_back",
    "prepare",
    "solve_exactly",
]
