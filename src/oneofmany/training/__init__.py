"""Training: run the phases of Algorithm 1 on one or several devices, and resume a run that was stopped."""

from oneofmany.training.distributed import LostProcess
from oneofmany.training.settings import OBJECTIVES, PhaseSettings, SelectorTraining, Settings
from oneofmany.training.starting import resume, train
from oneofmany.training.trainer import Interrupted, TrainingError

__all__ = [
    "OBJECTIVES",
    "Interrupted",
    "LostProcess",
    "PhaseSettings",
    "SelectorTraining",
    "Settings",
    "TrainingError",
    "resume",
    "train",
]
