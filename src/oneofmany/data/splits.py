"""Splits by a stable hash, so that splits never overlap, whatever the seeds, lists and sizes of their builds."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Literal, get_args

import numpy as np

Split = Literal["train", "dev", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)


def stable_hash(rows: np.ndarray) -> np.ndarray:
    """Return a 64-bit hash of every row of integers [N, W]: uint64 [N], equal on every machine and in every version."""
    state = np.full(len(rows), rows.shape[1], np.uint64)
    with np.errstate(over="ignore"):
        for column in rows.T:
            state += column.astype(np.int64).view(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
            state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            state ^= state >> np.uint64(31)
    return state


def in_split(rows: np.ndarray, split: Split | None) -> np.ndarray:
    """Return which rows [N, W] are in a split: 80 % in train, 10 % each in dev and test; all if it is None."""
    return _tenths(lambda: stable_hash(rows) % np.uint64(10), len(rows), split)


def texts_in_split(texts: Sequence[str], split: Split | None) -> np.ndarray:
    """Return which texts are in a split, by a hash of their own: bool [N], with the shares of ``in_split``."""

    def tenths() -> np.ndarray:
        digests = (hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest() for text in texts)
        return np.array([int.from_bytes(digest, "little") % 10 for digest in digests], np.int64)

    return _tenths(tenths, len(texts), split)


def _tenths(tenths: Callable[[], np.ndarray], number: int, split: Split | None) -> np.ndarray:
    if split is None:
        return np.ones(number, bool)
    if split not in SPLITS:
        raise ValueError(f"split: expected one of {', '.join(SPLITS)}, got {split!r}")
    tenth = tenths()
    return {"train": tenth < 8, "dev": tenth == 8, "test": tenth == 9}[split]


def relation_rows(query: np.ndarray, relations: np.ndarray) -> np.ndarray:
    """Return a query and its relations as one row to hash; relations are sorted, so their order does not matter."""
    if not relations.shape[1]:
        return query
    pairs = np.sort(relations[..., 0].astype(np.int64) * 1000 + relations[..., 1], axis=1)
    return np.concatenate([query.astype(np.int64), pairs], axis=1)
