"""One module per task, each with the same few functions."""

from oneofmany.problems.tasks import futoshiki, nqueens, sudoku
from oneofmany.problems.tasks.task import Query, Task

TASKS: dict[str, Task] = {task.name: task for task in (nqueens.TASK, futoshiki.TASK, sudoku.TASK)}
"""The tasks that come with the package, by name."""

__all__ = ["TASKS", "Query", "Task"]
