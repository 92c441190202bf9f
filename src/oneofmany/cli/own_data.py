"""``oneofmany data build``: queries of any task."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from oneofmany.cli.data import SplitOption, save
from oneofmany.cli.options import Flag, TaskFile, option, use_task
from oneofmany.files import check_writable


def build(
    task: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="TASK")],
    queries: int,
    out: Path,
    split: SplitOption = None,
    seed: int = 0,
    size: Annotated[int | None, option("N", "the usual size of the task")] = None,
    blanks: Annotated[tuple[int, int] | None, option("LOW HIGH", "half to seven eighths of them")] = None,
    solutions: Annotated[int | None, option("N", "50")] = None,
    task_file: TaskFile = None,
    force: Flag = False,
) -> None:
    """Build queries of any task, such as one of your own: random solutions with some variables left blank.

    Example: oneofmany data build mytask --task-file mytask.py --split train --queries 2000 --out train.safetensors

    All solutions of a query are listed. A task file may bring its own builder, which then does all of this.

    Args:
        task: the task.
        queries: number of distinct queries.
        out: the file to write (.safetensors).
        split: build only the queries of this split; a hash of the query decides its split.
        seed: random seed; the same seed gives the same file.
        size: of the problem.
        blanks: lowest and highest number of blank variables.
        solutions: leave out queries with more solutions.
        force: overwrite an existing file.
    """
    use_task(task_file)
    from oneofmany.data.own_task import build_own_task
    from oneofmany.problems import task_named

    check_writable(out, force)
    built = build_own_task(task_named(task), queries, split, seed, size=size, blanks=blanks, most=solutions)
    save(built, out, force)
