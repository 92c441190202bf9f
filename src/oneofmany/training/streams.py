"""Random streams: what an update draws is a function of the seed, the phase's stream and the update's number.

So nothing about generators has to be saved, a resumed run draws what the other one would have drawn, and every process
of a distributed run can draw for the whole batch and keep its slice.
"""

from __future__ import annotations

import hashlib

import torch


def seed_of(seed: int, *names: str | int) -> int:
    """A 62-bit seed for one purpose; other names, other numbers."""
    text = "/".join(str(part) for part in (seed, *names))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 2


def generator_of(device: torch.device | str, seed: int, *names: str | int) -> torch.Generator:
    """A generator on a device at the beginning of one stream."""
    return torch.Generator(device).manual_seed(seed_of(seed, *names))
