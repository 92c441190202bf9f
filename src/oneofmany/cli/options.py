"""How the help of a command shows its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import tyro

Flag = Annotated[bool, tyro.conf.arg(help_behavior_hint="")]
Json = Annotated[bool, tyro.conf.arg(name="json", help_behavior_hint="")]


TaskFile = Annotated[
    Path | None,
    tyro.conf.arg(
        metavar="FILE",
        help="the Python file of a task of your own; its code runs.",
        help_behavior_hint="(default: a task of the package or of an installed one)",
    ),
]
"""The option --task-file of commands that name a task or read its files."""


def use_task(file: Path | None) -> None:
    """Make the task of a file known to this command."""
    if file is not None:
        from oneofmany.problems import use_task_file

        use_task_file(file)


def option(metavar: str, default: str, *aliases: str) -> Any:
    """An option whose default is None; its help shows ``metavar`` and says what None means."""
    return tyro.conf.arg(metavar=metavar, help_behavior_hint=f"(default: {default})", aliases=aliases or None)
