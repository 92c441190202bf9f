"""The conformance test for tasks: call ``check_task`` in your own tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from oneofmany.exact import solve
from oneofmany.problems import Problem, Query, Task
from oneofmany.problems.tasks.task import NO_RELATIONS, plain

BUILT = 4
"""Queries with relations or rules of their own that are checked."""


def check_task(task: Task, sizes: Sequence[int], *, seed: int = 0, limit: int = 200) -> None:
    """Check that a task is consistent at these sizes; raises AssertionError with what is wrong.

    The vectorised checker, the enumerator and a literal reading of the rules must agree, ``parse`` must read back what
    ``format`` writes, and boards must be drawn. If queries bring relations or rules of their own, this also holds for
    queries that the task builds or, without a builder, for random relations.

    Args:
        task: the task.
        sizes: arguments of ``task.problem``; choose small ones.
        seed: the seed of the random assignments and queries.
        limit: check at most this many solutions.
    """
    rng = np.random.default_rng(seed)
    for size in sizes:
        problem = task.problem(size)
        where = f"{task.name} {size}"
        assert problem.task == task.name, f"{where}: its problem has task {problem.task!r}"
        R, V = problem.variables, problem.values
        brings_own = bool(problem.own_kinds or problem.own_sums)
        found = solve(problem, np.zeros((1, R), np.uint8), limit=limit, seed=seed)
        solutions = found.solutions
        assert len(np.unique(solutions, axis=0)) == len(solutions), f"{where}: the enumerator repeats a solution"
        changed = solutions.copy()
        changed[np.arange(len(changed)), rng.integers(R, size=len(changed))] = rng.integers(1, V + 1, size=len(changed))
        answers = np.concatenate([solutions, changed, rng.integers(1, V + 1, (50, R))]).astype(np.int64) - 1
        literal = np.array([_keeps_rules(problem, answer) for answer in answers])
        assert literal[: len(solutions)].all(), f"{where}: the enumerator finds an assignment that breaks a rule"
        tensor = torch.as_tensor(answers)
        assert (problem.check(tensor).numpy() == literal).all(), f"{where}: checker and literal reading differ"
        choices = torch.nn.functional.one_hot(tensor, V).bool()
        assert (problem.check(choices).numpy() == literal).all(), f"{where}: the checker differs on thresholded choices"
        for solution in solutions[:20]:
            shown = rng.random(R) < rng.random()
            query = np.where(shown, solution, 0).astype(np.uint8)
            completions = solve(problem, query[None]).solutions if len(solutions) < limit else solutions[:1]
            if len(solutions) < limit:
                keeps = ((query == 0) | (solutions == query)).all(1)
                assert len(completions) == keeps.sum(), (
                    f"{where}: the enumerator misses completions of {query.tolist()}"
                )
            if task.build is None or not brings_own:  # some texts need the rules that a query brings
                _check_text(task, where, Query(problem, query, NO_RELATIONS))
        if len(solutions):
            broken = np.where(changed == 0, 1, changed)[:50]
            totals = solve(problem, broken).total
            valid = problem.check(torch.as_tensor(broken.astype(np.int64)) - 1).numpy()
            assert (totals == valid).all(), f"{where}: a fully given query does not have 1 solution if valid, else 0"
        if task.build is not None and (brings_own or problem.relation_kind is not None):
            built = task.build(problem, BUILT, None, seed)
            for row in range(len(built)):
                pairs = built.relations[row][built.relations[row][:, 0] >= 0]
                query = Query(built.problem_of(row), built.query[row], pairs)
                _check_query(task, where, query, built.solutions_of(row), int(built.total[row]), rng, limit)
        elif problem.relation_kind is not None:
            for solution in solutions[:BUILT]:
                rising = [(a, b) for a in range(R) for b in range(R) if solution[a] < solution[b]]
                pairs = rng.permutation(np.array(rising, np.int16).reshape(-1, 2))
                shown = np.where(rng.random(R) < 0.5, solution, 0).astype(np.uint8)
                query = Query(problem, shown, pairs[: rng.integers(1, 4)])
                _check_query(task, where, query, solution[None], -1, rng, limit)


def _check_query(
    task: Task, where: str, query: Query, listed: np.ndarray, total: int, rng: np.random.Generator, limit: int
) -> None:
    """Check a query with relations or rules of its own: listed uint8 [K, R] are some of its solutions."""
    problem, pairs = query.problem, query.relations
    found = solve(problem, query.values[None], pairs[None], limit=limit)
    changed = np.concatenate([listed, found.solutions])
    changed[np.arange(len(changed)), rng.integers(problem.variables, size=len(changed))] = 1
    answers = np.concatenate([listed, found.solutions, changed]).astype(np.int64) - 1
    literal = np.array([_keeps_rules(problem, answer, pairs) for answer in answers])
    literal &= ((query.values == 0) | (answers + 1 == query.values)).all(1)
    right = len(listed) + len(found.solutions)
    assert literal[:right].all(), f"{where}: a listed or enumerated solution breaks a rule"
    given, relations = (torch.as_tensor(np.repeat(x[None], len(answers), 0)) for x in (query.values, pairs))
    checked = problem.check(torch.as_tensor(answers), given, relations).numpy()
    assert (checked == literal).all(), f"{where}: checker and literal reading differ"
    if found.total[0] < limit:
        assert total in (-1, found.total[0]), f"{where}: {total} solutions are named, {found.total[0]} found"
    _check_text(task, where, query)


def _check_text(task: Task, where: str, query: Query) -> None:
    problem, values, pairs = query.problem, query.values, query.relations
    text = task.format(problem, values, pairs)
    again = task.parse(text)
    sizes = [(one.task, one.size, one.variables, one.values) for one in (problem, again.problem)]
    same = sizes[0] == sizes[1] and set(again.problem.rules) == set(problem.rules)
    assert same, f"{where}: {text!r} is read as another problem"
    assert (again.values == values).all(), f"{where}: {text!r} is read as other values"
    read, written = (sorted(map(tuple, one.tolist())) for one in (again.relations, pairs))
    if problem.relation == "!=":
        read, written = ({(min(pair), max(pair)) for pair in one} for one in (read, written))
    assert read == written, f"{where}: {text!r} is read as other relations"
    assert task.draw(problem, values, pairs, values > 0, plain), f"{where}: nothing is drawn"


def _keeps_rules(problem: Problem, answer: np.ndarray, pairs: np.ndarray = NO_RELATIONS) -> bool:
    """Check the rules and the relations int16 [M, 2] one by one: answer int64 [R], values 0..V-1."""
    if any(answer[a] == answer[b] or (answer[a] > answer[b] and problem.relation == "<") for a, b in pairs):
        return False
    taken = {variable * problem.values + int(value) for variable, value in enumerate(answer)}
    sums = [sum(weight for choice, weight in rule.weighed() if choice in taken) for rule in problem.rules]
    return all(low <= s <= high for s, (low, high) in zip(sums, (r.bounds for r in problem.rules), strict=True))
