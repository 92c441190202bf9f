"""Tasks whose variables and values have names: ``Spain=red France=blue``."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from oneofmany.problems.givens import Conflict, describe
from oneofmany.problems.problem import Problem
from oneofmany.problems.tasks.task import NO_RELATIONS, Names, Paint, Query, Task, plain


def named_task(
    name: str,
    problem: Callable[..., Problem],
    variables: Sequence[str],
    values: Sequence[str],
    build: Callable[..., object] | None = None,
) -> Task:
    """Return a task whose queries are written with names, ``Spain=red France=blue``, and drawn as a list.

    Args:
        name: of the task.
        problem: builds the problem of the usual size if it is called without arguments.
        variables: a name for each of its variables, without spaces, ``=`` and ``,``.
        values: a name for each of its values.
        build: builds data, see ``Task``.
    """
    names = Names(tuple(variables), tuple(values))
    for words in (names.variables, names.values):
        if bad := [word for word in words if not re.fullmatch(r"[^\s=,.][^\s=,]*", word)]:
            raise ValueError(f"a name of {name}: expected a word without spaces, = and commas, got {bad[0]!r}")
        if len(set(words)) < len(words):
            raise ValueError(f"the names of {name}: expected different ones, got {', '.join(words)}")
    built: list[Problem] = []

    def the_problem() -> Problem:
        if not built:
            one = problem()
            if (one.variables, one.values) != (len(names.variables), len(names.values)):
                raise ValueError(
                    f"the names of {name}: expected {one.variables} variables and {one.values} values, got "
                    f"{len(names.variables)} and {len(names.values)}"
                )
            built.append(one)
        return built[0]

    def parse(text: str) -> Query:
        given = np.zeros(the_problem().variables, np.uint8)
        for word in re.split(r"[\s,]+", text.strip()):
            if word in ("", "."):
                continue
            variable, _, value = word.partition("=")
            if variable not in names.variables or value not in (*names.values, "."):
                raise ValueError(f"{word!r}: expected a form like {names.variables[0]}={names.values[0]}")
            at = names.variables.index(variable)
            number = 0 if value == "." else names.values.index(value) + 1
            if given[at] not in (0, number):
                raise ValueError(f"{variable} is given twice")
            given[at] = number
        return Query(the_problem(), given, NO_RELATIONS)

    def write(problem: Problem, values: np.ndarray, relations: np.ndarray = NO_RELATIONS) -> str:
        given = [f"{names.variables[at]}={names.values[values[at] - 1]}" for at in np.flatnonzero(values)]
        return " ".join(given) or "."

    def draw(
        problem: Problem,
        values: np.ndarray,
        relations: np.ndarray = NO_RELATIONS,
        given: np.ndarray | None = None,
        paint: Paint = plain,
    ) -> str:
        known = np.ones(len(values), bool) if given is None else given
        width, wide = max(map(len, names.variables)), max(map(len, names.values))
        lines = []
        for variable, value, is_given in zip(names.variables, values, known, strict=True):
            word = names.values[value - 1] if value else "·"
            shown = paint(word, bool(is_given)) if value else word
            lines.append(f"{variable:<{width}}  {shown}{' ' * (wide - len(word))}")
        return "\n".join(lines)

    def explain(problem: Problem, conflict: Conflict) -> str:
        if conflict.rule is None or not conflict.taken:
            return describe(problem, conflict)
        each = (divmod(choice, problem.values) for choice in conflict.taken)
        listed = " and ".join(f"{names.variables[variable]}={names.values[value]}" for variable, value in each)
        return f"{listed} break{'s' * (len(conflict.taken) == 1)} a rule of kind {conflict.rule.kind!r}"

    return Task(name, problem, parse, write, draw, None, explain, build, names)
