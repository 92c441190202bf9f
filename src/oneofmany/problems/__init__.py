"""Problems: choices, rules, the checker, and the tasks: three of the paper, and graph colouring."""

from oneofmany.problems.batch import Batch
from oneofmany.problems.givens import Conflict, conflicts, rules_kept
from oneofmany.problems.own_rules import OwnRules
from oneofmany.problems.problem import Problem
from oneofmany.problems.rules import Rule, all_different, cage, domain, forbid, implies, table, total
from oneofmany.problems.sequences import SequenceBatch, SequenceProblem
from oneofmany.problems.tasks import (
    TASKS,
    Query,
    Task,
    TextError,
    check_source,
    find_task,
    grid_task,
    named_task,
    read_queries,
    source_of,
    task_named,
    use_task_file,
)
from oneofmany.problems.tasks.colouring import colouring
from oneofmany.problems.tasks.futoshiki import futoshiki
from oneofmany.problems.tasks.nqueens import nqueens
from oneofmany.problems.tasks.sudoku import sudoku

__all__ = [
    "TASKS",
    "Batch",
    "Conflict",
    "OwnRules",
    "Problem",
    "Query",
    "Rule",
    "SequenceBatch",
    "SequenceProblem",
    "Task",
    "TextError",
    "all_different",
    "cage",
    "check_source",
    "colouring",
    "conflicts",
    "domain",
    "find_task",
    "forbid",
    "futoshiki",
    "grid_task",
    "implies",
    "named_task",
    "nqueens",
    "read_queries",
    "rules_kept",
    "source_of",
    "sudoku",
    "table",
    "task_named",
    "total",
    "use_task_file",
]
