"""Evaluation: accuracy by validity, predictions on disk, statistics over seeds and between networks."""

from oneofmany.evaluation.accuracy import Outcomes, Readout, evaluate
from oneofmany.evaluation.predictions import load_predictions, save_predictions
from oneofmany.evaluation.scores import Score, wilson
from oneofmany.evaluation.statistics import Gain, McNemar, SeedSummary, gain, mcnemar, over_seeds

__all__ = [
    "Gain",
    "McNemar",
    "Outcomes",
    "Readout",
    "Score",
    "SeedSummary",
    "evaluate",
    "gain",
    "load_predictions",
    "mcnemar",
    "over_seeds",
    "save_predictions",
    "wilson",
]
