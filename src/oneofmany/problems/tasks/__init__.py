"""The tasks of the paper and graph colouring, one module each, with the same functions, and tasks of the user's."""

from oneofmany.problems.tasks.known import TASKS, check_source, find_task, source_of, task_named, use_task_file
from oneofmany.problems.tasks.lines import TextError
from oneofmany.problems.tasks.named import named_task
from oneofmany.problems.tasks.square import grid_task
from oneofmany.problems.tasks.task import Query, Task


def read_queries(task: str, text: str, size: int | None = None) -> list[Query]:
    """Read all queries of a text, in any format that the task knows; the first one that cannot be read is an error.

    ``size`` is needed only if a text can be read in two sizes. ``TASKS[task].read`` goes on after errors::

        read_queries("sudoku", Path("puzzles.sdm").read_text())
    """
    found = [query for _, query in task_named(task).read(text, size)]
    for query in found:
        if isinstance(query, TextError):
            raise query
    return [query for query in found if isinstance(query, Query)]


__all__ = [
    "TASKS",
    "Query",
    "Task",
    "TextError",
    "check_source",
    "find_task",
    "grid_task",
    "named_task",
    "read_queries",
    "source_of",
    "task_named",
    "use_task_file",
]
