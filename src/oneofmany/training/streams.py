"""Random streams: the random numbers of an update depend only on the seed, the phase's stream and the update number.

So no generator state is saved, a resumed run draws the same numbers as an uninterrupted one, and every process of a
distributed run draws for the whole batch and keeps its slice.
"""

from __future__ import annotations

import hashlib

import torch


def seed_of(seed: int, *names: str | int) -> int:
    """A 62-bit seed for one purpose; different names give different seeds."""
    text = "/".join(str(part) for part in (seed, *names))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 2


def generator_of(device: torch.device | str, seed: int, *names: str | int) -> torch.Generator:
    """A new generator on a device, seeded for one purpose."""
    return torch.Generator(device).manual_seed(seed_of(seed, *names))


def curriculum_at(curriculum: tuple[float, float] | None, update: int, updates: int) -> float | None:
    """The place of a curriculum at an update: a straight line from its first to its last place; None without one."""
    if curriculum is None:
        return None
    first, last = curriculum
    return first + (last - first) * min(1.0, update / max(1, updates - 1))
