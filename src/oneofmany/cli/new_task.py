"""``oneofmany new-task``: a starting file for a task of the user's."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import tyro

from oneofmany.cli.options import Flag, option
from oneofmany.cli.terminal import say
from oneofmany.files import check_writable, write_whole

TEMPLATE = '''"""The task NAME: diagonal Latin squares. Change the rules to those of your own task.

Every row, every column and both diagonals hold every value once. Commands to try:

    oneofmany data build NAME --task-file FILE --split test --queries 300 --out NAME-test.safetensors
    oneofmany train NAME/minloss/equivariant --task-file FILE --out runs/NAME
    oneofmany evaluate runs/NAME NAME-test.safetensors --task-file FILE
    oneofmany solve NAME QUERY --task-file FILE --weights runs/NAME
    python FILE     checks that everything in this file fits together
"""

from oneofmany.problems import Problem, Rule, grid_task

# A task is variables with values, and rules about them. Here every cell of the grid is a variable: cell (row, column)
# is variable row * size + column. Its values are 0 to size - 1 in this file, and 1 to size in queries and files.


def problem(size: int = 5) -> Problem:
    """Return the problem of a size. The default is the usual size, for which `oneofmany train` builds data."""
    cells = range(size)

    def choice(row: int, column: int, value: int) -> int:
        """The number of the choice "this cell takes this value"."""
        return (row * size + column) * size + value

    # A rule is a set of choices of which exactly one is taken (or, with exact=False, at most one). That a cell takes
    # one value needs no rule. Rules of one kind look alike to the network: rows and columns are both of kind "line".
    # Rule also takes weights and bounds: low=2, high=3 is a count. oneofmany.problems has all_different, total (sums),
    # implies, forbid, domain and table, which return lists of rules: rules += forbid("pair", [one, other]).
    rules = []
    for value in cells:
        for i in cells:
            rules.append(Rule("line", tuple(choice(i, k, value) for k in cells)))
            rules.append(Rule("line", tuple(choice(k, i, value) for k in cells)))
        rules.append(Rule("diagonal", tuple(choice(k, k, value) for k in cells)))
        rules.append(Rule("diagonal", tuple(choice(k, size - 1 - k, value) for k in cells)))
    return Problem("NAME", size, variables=size * size, values=size, rules=tuple(rules))


# grid_task reads, writes and draws square grids. For variables and values with names there is named_task, for every
# other form Task(name, problem, parse, format, draw) with functions of your own.
TASK = grid_task("NAME", problem)

if __name__ == "__main__":
    from oneofmany.testing import check_task

    check_task(TASK, sizes=[1, 4, 5])
    print("NAME: rules, text form and drawing fit together")
'''
QUERY = "1...." + "." * 20


def new_task(
    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")],
    out: Annotated[Path | None, option("FILE", "NAME.py")] = None,
    force: Flag = False,
) -> None:
    """Write a Python file with a small task, to be changed into one of your own.

    Example: oneofmany new-task mytask

    The file works with all commands as it is: diagonal Latin squares, in at most 60 lines with comments.

    Args:
        name: the name of the task: letters, digits, - and _.
        out: the file to write.
        force: overwrite an existing file.
    """
    from oneofmany.problems.tasks.known import PACKAGE
    from oneofmany.problems.tasks.own import NAME

    if not NAME.fullmatch(name) or name in PACKAGE:
        taken = f" other than {', '.join(PACKAGE)}"
        raise ValueError(f"name: expected letters, digits, - and _, beginning with a letter,{taken}, got {name!r}")
    file = Path(f"{name}.py") if out is None else out
    check_writable(file, force)
    text = TEMPLATE.replace("NAME", name).replace("FILE", shlex.quote(str(file))).replace("QUERY", QUERY)
    write_whole(file, lambda beside: beside.write_text(text, encoding="utf-8"), force)
    say(f"wrote {file}; try: oneofmany show {name} {QUERY} --task-file {shlex.quote(str(file))}")
