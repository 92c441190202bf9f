"""The conformance test for tasks: call ``check_task`` in your own tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from oneofmany.exact import solve
from oneofmany.problems import Problem, Task
from oneofmany.problems.tasks.task import NO_RELATIONS, plain


def check_task(task: Task, sizes: Sequence[int], *, seed: int = 0, limit: int = 200) -> None:
    """Check that a task is consistent at these sizes; raises AssertionError with what is wrong.

    The vectorised checker, the enumerator and a literal reading of the rules must agree, ``parse`` must read back what
    ``format`` writes, and boards must be drawn.

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
            text = task.format(problem, query, NO_RELATIONS)
            again = task.parse(text)
            assert again.problem.same_as(problem), f"{where}: {text!r} is read as another problem"
            assert (again.values == query).all(), f"{where}: {text!r} is read as other values"
            assert task.draw(problem, query, NO_RELATIONS, shown, plain), f"{where}: nothing is drawn"
        if len(solutions):
            broken = np.where(changed == 0, 1, changed)[:50]
            totals = solve(problem, broken).total
            valid = problem.check(torch.as_tensor(broken.astype(np.int64)) - 1).numpy()
            assert (totals == valid).all(), f"{where}: a fully given query does not have 1 solution if valid, else 0"


def _keeps_rules(problem: Problem, answer: np.ndarray) -> bool:
    """Check the rules one by one: answer int64 [R], values 0..V-1."""
    taken = {variable * problem.values + int(value) for variable, value in enumerate(answer)}
    sums = [sum(weight for choice, weight in rule.weighed() if choice in taken) for rule in problem.rules]
    return all(low <= s <= high for s, (low, high) in zip(sums, (r.bounds for r in problem.rules), strict=True))
