"""The tasks of the paper, one module each, with the same functions."""

from oneofmany.problems.tasks import futoshiki, nqueens, sudoku
from oneofmany.problems.tasks.task import Query, Task

TASKS: dict[str, Task] = {task.name: task for task in (nqueens.TASK, futoshiki.TASK, sudoku.TASK)}
"""The tasks that come with the package, by name."""

__all__ = ["TASKS", "Query", "Task"]
