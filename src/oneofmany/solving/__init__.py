"""Answer queries with a network, with the exact enumerator, or with both::

    solver = Solver(oneofmany.load("sudoku"))
    for answer in solver.answer(queries):              # queries from a task's ``parse``, of any sizes
        print(answer.values, answer.valid, answer.confidence)

    found = [[answer] for answer in solver.answer(queries)]
    found = fall_back(queries, found)                  # the enumerator if the network's answer is not valid
    found = solver.weigh(queries, solve_exactly(queries, limit=100))   # all solutions, most likely first
    totals = count_solutions(queries, limit=1000)

Answers come in the order of the queries. ``Answer.source`` tells who answered.
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
