"""Networks: the paper's NLM and RRN, one equivariant network for all tasks, networks without rules, and selectors.

The names are loaded when they are first used, because PyTorch takes seconds to load.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oneofmany.networks.equivariant import EquivariantNetwork, EquivariantSelector
    from oneofmany.networks.inference import Prediction, draw_noise, predict
    from oneofmany.networks.nlm import NLM, NLMSelector, nlm_for, nlm_selector_for
    from oneofmany.networks.protocol import PredictionNetwork, SelectorNetwork
    from oneofmany.networks.rrn import RRN, CNNSelector, MLPSelector
    from oneofmany.networks.searching import Found, search
    from oneofmany.networks.sequences import CTCNetwork, Seq2SeqNetwork, TokenSelector
    from oneofmany.networks.transformer import TransformerNetwork, TransformerSelector

__all__ = [
    "NLM",
    "RRN",
    "CNNSelector",
    "CTCNetwork",
    "EquivariantNetwork",
    "EquivariantSelector",
    "Found",
    "MLPSelector",
    "NLMSelector",
    "Prediction",
    "PredictionNetwork",
    "SelectorNetwork",
    "Seq2SeqNetwork",
    "TokenSelector",
    "TransformerNetwork",
    "TransformerSelector",
    "draw_noise",
    "nlm_for",
    "nlm_selector_for",
    "predict",
    "search",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from oneofmany.networks import equivariant, inference, nlm, protocol, rrn, searching, sequences, transformer

        for module in (equivariant, inference, nlm, protocol, rrn, searching, sequences, transformer):
            if hasattr(module, name):
                return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
