"""The seven objectives of one-of-many learning, for any network and any training loop. They need only torch::

    from oneofmany.objectives import MinLoss

    objective = MinLoss()
    loss = objective(logits, solutions, mask)

logits are `[B,R,V]` or `[T,B,R,V]`, solutions int64 `[B,K,R]` with values 0..V-1, mask bool `[B,K]`.
"""

from .base import Objective
from .ccloss import CCLoss
from .iexplr import IExplR
from .lagged_copy import LaggedCopy
from .minloss import MinLoss
from .pair_losses import BinaryNLL, CategoricalNLL, PairLoss
from .rewards import Reward, binary_exact_match_reward, binary_hamming_reward, exact_match_reward, hamming_reward
from .selectr import SelectR
from .simple import Naive, Random, Unique

__all__ = [
    "BinaryNLL",
    "CCLoss",
    "CategoricalNLL",
    "IExplR",
    "LaggedCopy",
    "MinLoss",
    "Naive",
    "Objective",
    "PairLoss",
    "Random",
    "Reward",
    "SelectR",
    "Unique",
    "binary_exact_match_reward",
    "binary_hamming_reward",
    "exact_match_reward",
    "hamming_reward",
]
