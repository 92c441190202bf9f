"""Queries of any task: random solutions with some variables left blank."""

from __future__ import annotations

from inspect import Parameter, signature
from typing import Any

import numpy as np

from oneofmany.data.dataset import Dataset
from oneofmany.data.listing import Distinct, list_solutions
from oneofmany.data.splits import Split, in_split
from oneofmany.exact import count, solve
from oneofmany.problems import Problem, Task
from oneofmany.problems.tasks.known import PACKAGE

AT_ONCE = 512
"""Queries that are drawn at a time."""
FRUITLESS = 50
"""After this many draws in a row without a new query, there are taken to be no more."""
MOST_SOLUTIONS = 50
USUAL = {"train": (2_000, 1), "dev": (300, 2), "test": (300, 3)}
"""The number of queries and the seed of the data sets ``TASK-train``, ``TASK-dev`` and ``TASK-test``."""


def problem_of_size(task: Task, size: int | None = None) -> Problem:
    """Return the problem of a task in a size, or in its usual size: the default of the builder's first argument."""
    if size is not None:
        return task.problem(size)
    first = next(iter(signature(task.problem).parameters.values()), None)
    if first is not None and first.default is Parameter.empty and first.kind is not Parameter.VAR_KEYWORD:
        raise ValueError(f"size: {task.name} has no usual size: expected one")
    return task.problem()


def build_own_task(
    task: Task,
    queries: int,
    split: Split | None = None,
    seed: int = 0,
    *,
    size: int | None = None,
    blanks: tuple[int, int] | None = None,
    most: int | None = None,
) -> Dataset:
    """Build queries of a task, by its own builder if it has one.

    Otherwise solutions come from a randomised search, and random variables of each are blanked. All solutions of a
    query are listed. A hash of the query decides its split.

    Args:
        task: the task.
        queries: number of distinct queries.
        split: build only queries of this split.
        seed: the same seed gives the same file.
        size: of the problem; the usual size of the task if None.
        blanks: lowest and highest number of blank variables, drawn uniformly; if None, half to seven eighths of them.
        most: leave out queries with more solutions; 50 if None.
    """
    if queries < 1:
        raise ValueError(f"queries: expected at least 1, got {queries}")
    problem = problem_of_size(task, size)
    if task.build is not None:
        if blanks is not None or most is not None:
            raise ValueError(f"blanks and solutions: {task.name} has a builder of its own, which decides them")
        built = task.build(problem, queries, split, seed)
        if not isinstance(built, Dataset) or built.problem.task != task.name:
            got = f"one of {built.problem.task}" if isinstance(built, Dataset) else type(built).__name__
            raise ValueError(f"build of {task.name}: expected a Dataset of {task.name}, got {got}")
        if len(built) != queries:
            raise ValueError(f"build of {task.name}: expected {queries:,} queries, got {len(built):,}")
        return built
    if problem.relation_kind is not None or problem.own_kinds or problem.own_sums:
        what = "relations" if problem.relation_kind is not None else "rules of each query's own"
        ours = f"use oneofmany data {task.name}" if task.name in PACKAGE else "give its task a build="
        raise ValueError(f"{task.name} has {what}, which only a builder of its own can draw: {ours}")
    R = problem.variables
    low, high = (R // 2, max(1, R - R // 8)) if blanks is None else blanks
    if not 0 <= low <= high <= R:
        raise ValueError(f"blanks: expected two rising numbers from 0 to {R}, got {low} and {high}")
    about: dict[str, Any] = {"builder": "own-task", "size": problem.size, "blanks": [low, high], "queries": queries}
    about |= {"solutions": most or MOST_SOLUTIONS, "split": split, "seed": seed}
    query = _drawn(problem, queries, split, seed, (low, high), most or MOST_SOLUTIONS)
    about["drawn"] = "solutions of a randomised search with random variables blanked"
    return list_solutions(problem, query, None, about, seed=seed)


def _drawn(
    problem: Problem, queries: int, split: Split | None, seed: int, blanks: tuple[int, int], most: int
) -> np.ndarray:
    """Distinct queries uint8 [queries, R] with 1 to ``most`` solutions."""
    rng = np.random.default_rng(seed)
    distinct, kept, found, fruitless = Distinct(), [], 0, 0
    empty = np.zeros((AT_ONCE, problem.variables), np.uint8)
    while found < queries:
        boards = solve(problem, empty, limit=1, seed=int(rng.integers(2**62))).solutions
        if not len(boards):
            raise ValueError(f"{problem.task} {problem.size} has no solution, so there are no queries")
        # The variables with the smallest random numbers are blanked.
        order = np.argsort(np.argsort(rng.random(boards.shape), axis=1), axis=1)
        number = rng.integers(blanks[0], blanks[1] + 1, size=(len(boards), 1))
        drawn = np.where(order < number, 0, boards).astype(np.uint8)
        drawn = drawn[in_split(drawn, split)]
        drawn = drawn[distinct(drawn)]
        drawn = drawn[count(problem, drawn, limit=most + 1) <= most]
        kept.append(drawn)
        found += len(drawn)
        fruitless = 0 if len(drawn) else fruitless + 1
        if fruitless == FRUITLESS:
            raise ValueError(
                f"queries: asked for {queries:,}, but only {found:,} distinct ones with at most {most} solutions were "
                f"found: ask for fewer (oneofmany data build {problem.task} --queries N), or allow other numbers of "
                "blanks or more solutions"
            )
    return np.concatenate(kept)[:queries]
