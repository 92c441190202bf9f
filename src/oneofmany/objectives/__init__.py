"""The seven objectives of one-of-many learning, for any network and any training loop. They need only torch::

    from oneofmany.objectives import MinLoss

    objective = MinLoss()
    loss = objective(logits, solutions, mask)

logits are `[B,R,V]` or `[T,B,R,V]`, solutions int64 `[B,K,R]` with values 0..V-1, mask bool `[B,K]`. Sequences, sets
and real numbers have pair losses of their own: `SequenceNLL`, `CTCNLL`, `SetNLL`, `SquaredError`.
"""

from .base import Objective, Reduction
from .ccloss import CCLoss
from .contract import PairLoss
from .iexplr import IExplR
from .lagged_copy import LaggedCopy
from .minloss import MinLoss
from .on_chosen import LossesOf, OnChosen, train_on_chosen
from .pair_losses import BinaryNLL, CategoricalNLL
from .real_losses import SquaredError
from .rewards import Reward, binary_exact_match_reward, binary_hamming_reward, exact_match_reward, hamming_reward
from .selectr import SelectR
from .sequence_losses import CTCNLL, SequenceNLL
from .set_losses import SetNLL
from .simple import Naive, Random, Unique

__all__ = [
    "CTCNLL",
    "BinaryNLL",
    "CCLoss",
    "CategoricalNLL",
    "IExplR",
    "LaggedCopy",
    "LossesOf",
    "MinLoss",
    "Naive",
    "Objective",
    "OnChosen",
    "PairLoss",
    "Random",
    "Reduction",
    "Reward",
    "SelectR",
    "SequenceNLL",
    "SetNLL",
    "SquaredError",
    "Unique",
    "binary_exact_match_reward",
    "binary_hamming_reward",
    "exact_match_reward",
    "hamming_reward",
    "train_on_chosen",
]
