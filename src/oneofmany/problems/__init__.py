"""Problems: choices, rules, the checker, and the three tasks of the paper."""

from oneofmany.problems.batch import Batch
from oneofmany.problems.problem import Problem, Rule
from oneofmany.problems.tasks import TASKS, Query, Task
from oneofmany.problems.tasks.futoshiki import futoshiki
from oneofmany.problems.tasks.nqueens import nqueens
from oneofmany.problems.tasks.sudoku import sudoku

__all__ = ["TASKS", "Batch", "Problem", "Query", "Rule", "Task", "futoshiki", "nqueens", "sudoku"]
