"""Evaluate networks and runs: accuracy by validity, predictions and records on disk, statistics."""

from typing import TYPE_CHECKING, Any

from oneofmany.evaluation.record import DataInfo, Dev, Evaluation, History, Record, Scores
from oneofmany.evaluation.record_file import read_record, save_record
from oneofmany.evaluation.scores import Score, wilson
from oneofmany.evaluation.statistics import (
    Gain,
    McNemar,
    SeedSummary,
    TTest,
    gain,
    holm,
    mcnemar,
    over_seeds,
    p_text,
    t_test,
)

if TYPE_CHECKING:
    from oneofmany.evaluation.accuracy import Readout, evaluate
    from oneofmany.evaluation.comparison import Compared, Comparison, compare_runs
    from oneofmany.evaluation.outcomes import Outcomes, coverage
    from oneofmany.evaluation.predictions import load_predictions, save_predictions
    from oneofmany.evaluation.runs import Evaluated, evaluate_run
    from oneofmany.evaluation.searching import Searched, SearchPoint, search_data, search_run

__all__ = [
    "Compared",
    "Comparison",
    "DataInfo",
    "Dev",
    "Evaluated",
    "Evaluation",
    "Gain",
    "History",
    "McNemar",
    "Outcomes",
    "Readout",
    "Record",
    "Score",
    "Scores",
    "SearchPoint",
    "Searched",
    "SeedSummary",
    "TTest",
    "compare_runs",
    "coverage",
    "evaluate",
    "evaluate_run",
    "gain",
    "holm",
    "load_predictions",
    "mcnemar",
    "over_seeds",
    "p_text",
    "read_record",
    "save_predictions",
    "save_record",
    "search_data",
    "search_run",
    "t_test",
    "wilson",
]


def __getattr__(name: str) -> Any:
    # The report needs the statistics only and should not wait for torch to load.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from oneofmany.evaluation import accuracy, comparison, outcomes, predictions, runs, searching

    modules = (outcomes, accuracy, predictions, runs, comparison, searching)
    return next(getattr(module, name) for module in modules if hasattr(module, name))
