"""Networks: the paper's NLM and RRN, one equivariant network for every task, and the selectors' networks."""

from oneofmany.networks.cnn_selector import CNNSelector, MLPSelector
from oneofmany.networks.equivariant import EquivariantNetwork
from oneofmany.networks.equivariant_selector import EquivariantSelector
from oneofmany.networks.inference import Prediction, draw_noise, predict
from oneofmany.networks.nlm import NLM, nlm_for
from oneofmany.networks.nlm_selector import NLMSelector, nlm_selector_for
from oneofmany.networks.protocol import PredictionNetwork, SelectorNetwork
from oneofmany.networks.rrn import RRN

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
