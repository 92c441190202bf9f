"""Networks: the paper's NLM and RRN, one equivariant network for all tasks, and the selector networks."""

from oneofmany.networks.equivariant import EquivariantNetwork, EquivariantSelector
from oneofmany.networks.inference import Prediction, draw_noise, predict
from oneofmany.networks.nlm import NLM, NLMSelector, nlm_for, nlm_selector_for
from oneofmany.networks.protocol import PredictionNetwork, SelectorNetwork
from oneofmany.networks.rrn import RRN, CNNSelector, MLPSelector

__all__ = [
    "NLM",
    "RRN",
    "CNNSelector",
    "EquivariantNetwork",
    "EquivariantSelector",
    "MLPSelector",
    "NLMSelector",
    "Prediction",
    "PredictionNetwork",
    "SelectorNetwork",
    "draw_noise",
    "nlm_for",
    "nlm_selector_for",
    "predict",
]
