"""Evaluation: accuracy by validity, predictions and records on disk, statistics over seeds and between networks."""

from typing import TYPE_CHECKING, Any

from oneofmany.evaluation.record import DataInfo, Dev, Evaluation, History, Record, Scores
from oneofmany.evaluation.record_file import read_record, save_record
from oneofmany.evaluation.scores import Score, wilson
from oneofmany.evaluation.statistics import Gain, McNemar, SeedSummary, gain, mcnemar, over_seeds

if TYPE_CHECKING:
    from oneofmany.evaluation.accuracy import Outcomes, Readout, evaluate
    from oneofmany.evaluation.predictions import load_predictions, save_predictions

__all__ = [
    "DataInfo",
    "Dev",
    "Evaluation",
    "Gain",
    "History",
    "McNemar",
    "Outcomes",
    "Readout",
    "Record",
    "Score",
    "Scores",
    "SeedSummary",
    "evaluate",
    "gain",
    "load_predictions",
    "mcnemar",
    "over_seeds",
    "read_record",
    "save_predictions",
    "save_record",
    "wilson",
]


def __getattr__(name: str) -> Any:
    # Whoever wants statistics alone, as the report does, does not wait for torch.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from oneofmany.evaluation import accuracy, predictions

    return getattr(predictions if name.endswith("_predictions") else accuracy, name)
