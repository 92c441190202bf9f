"""Answer queries with a network, with the exact enumerator, or with both::

    reply = oneofmany.solve("nqueens", "3 . . . . . 2 .")
    print(reply)                                       # a board
    print(reply.valid, reply.unique, reply.source)     # checked; whether there is one solution; who answered

    solver = Solver(oneofmany.load("sudoku"))
    replies = solve_queries(TASKS["sudoku"], queries, solver)   # queries from a task's ``parse``, of any sizes
    for answer in solver.answer(queries):              # the network alone
        print(answer.values, answer.valid, answer.confidence)
    found = solver.weigh(queries, solve_exactly(queries, limit=100))   # all solutions, most likely first
    totals = count_solutions(queries, limit=1000).total

Answers come in the order of the queries. ``Answer.source`` tells who answered.
"""

from oneofmany.solving.answers import Answer, Reply
from oneofmany.solving.asking import solve
from oneofmany.solving.exactly import Counts, count_solutions, fall_back, prepare, solve_exactly
from oneofmany.solving.replying import solve_queries
from oneofmany.solving.running import bundled, load_network, threads_for
from oneofmany.solving.solver import MOST_STARTS, PATIENCE, TRIES, Solver

__all__ = [
    "MOST_STARTS",
    "PATIENCE",
    "TRIES",
    "Answer",
    "Counts",
    "Reply",
    "Solver",
    "bundled",
    "count_solutions",
    "fall_back",
    "load_network",
    "prepare",
    "solve",
    "solve_exactly",
    "solve_queries",
    "threads_for",
]
