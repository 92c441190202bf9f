"""What the CUDA kernels read: weights in their order, rules and relations in their types, the rules of a block."""

from __future__ import annotations

from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from oneofmany.networks.equivariant.cuda.compiled import (
    KernelRelations,
    KernelTables,
    KernelWeights,
    WholeQueries,
    Widths,
)
from oneofmany.networks.equivariant.tables import RelationTables, RuleTables

# ---- weights -------------------------------------------------------------------------------------------------------


@torch.no_grad()
def kernel_weights(
    choice: Tensor,
    choice_bias: Tensor,
    rule: Tensor,
    update: Tensor,
    update_bias: Tensor,
    readout: Tensor,
    resident: bool,
) -> KernelWeights:
    """Return the weights of a block and of its readout; ``resident`` for blocks with whole queries."""
    kinds, widths = len(rule), (choice.shape[1], rule.shape[1] // 2, rule.shape[2] // 2)
    flat = torch.cat([choice.flatten(), update.flatten(), rule.flatten()]).to(torch.bfloat16)
    places, sizes = _fragments(widths, kinds, choice.device, resident)
    forward, backward, answering, returning, sums = flat[places].split(sizes)
    numbers = torch.cat([choice_bias, update_bias, readout]).float()
    return KernelWeights(
        forward,
        backward,
        answering.view(kinds, -1),
        returning.view(kinds, -1),
        sums,
        numbers,
    )


@cache
def _fragments(widths: Widths, kinds: int, device: torch.device, resident: bool) -> tuple[Tensor, list[int]]:
    """Where the kernels' numbers are among all weights, int64 [N], and how many each part of ``KernelWeights`` has."""
    D, P, H = widths
    update, rule = (P + 2 * H) * D, (P + 3 * H) * D
    own = 4 if resident else 8  # columns of a lane that follow on each other, among hidden units and channels sent back
    forward = [
        *(fragments(D, H, at, 1, D, own_n=own) for at in (P * D, (P + H) * D)),
        fragments(H, D, update, 1, H, own_k=own),
        fragments(D, P, 0, 1, D),
    ]
    backward = [
        fragments(P, D, 0, D, 1, own_k=own),
        *(fragments(H, D, at, D, 1, own_k=own) for at in (P * D, (P + H) * D)),
        fragments(D, H, update, H, 1, own_n=own),
    ]
    sums = [fragments(P + 2 * H, D, 0, D, 1, own_k=2), fragments(D, H, update, H, 1, own_k=2, own_n=4)]
    halves = [rule + half * 2 * P * H for half in range(2 * kinds)]
    if resident:
        told = [fragments(P, H, at + of, 2 * H, 1, own_k=2, own_n=4) for at in halves for of in (0, H)]
        given = [fragments(H, P, at + of, 1, 2 * H, own_k=2, own_n=4) for at in halves for of in (0, H)]
        # From [kind, largest or second, gates or values, 16 of K, 16 of N, ..].
        answering = [np.reshape(told, (kinds, 2, 2, P // 16, H // 16, -1)).transpose(0, 4, 1, 3, 2, 5).ravel()]
        returning = [np.reshape(given, (kinds, 2, 2, H // 16, P // 16, -1)).transpose(0, 4, 2, 3, 1, 5).ravel()]
    else:
        answering = [fragments(P, 2 * H, at, 2 * H, 1) for at in halves]
        returning = [fragments(2 * H, P, at, 1, 2 * H) for at in halves]
    parts = [np.concatenate(part) for part in (forward, backward, answering, returning, sums)]
    return torch.from_numpy(np.concatenate(parts).astype(np.int64)).to(device), [len(part) for part in parts]


def fragments(K: int, N: int, first: int, of_k: int, of_n: int, *, own_k: int = 8, own_n: int = 8) -> np.ndarray:
    """Return where the numbers of a matrix [K, N] are, in the order in which the matrix units read them: int64 [K * N].

    Entry (k, n) is at first + k * of_k + n * of_n. The order is that of ``Weights`` in the kernels: pairs of parts of
    16 x 8, the 32 lanes, for each of both parts two halves of two numbers. ``own_k`` and ``own_n`` are how many rows
    and columns of a lane follow on each other, at most.
    """
    k16, n16, lane, part, half, j = np.indices((K // 16, N // 16, 32, 2, 2, 2))
    k = _column(K, 2 * k16 + half, lane % 4, j, own_k)
    n = _column(N, 2 * n16 + part, lane // 8, lane // 4 % 2, own_n)
    return (first + k * of_k + n * of_n).ravel()


def _column(width: int, pair: np.ndarray, t: np.ndarray, j: np.ndarray, most: int) -> np.ndarray:
    """The column of a lane's register pair, as in the kernels."""
    own = min(width // 4, most)
    return pair // (own // 2) * 4 * own + t * own + pair % (own // 2) * 2 + j


# ---- rules and relations -------------------------------------------------------------------------------------------


FOUR = 4
"""Rules of a choice that blocks with whole queries can have, at most."""
_TABLES: WeakKeyDictionary[RuleTables, dict[tuple[str, ...], KernelTables]] = WeakKeyDictionary()


def kernel_tables(tables: RuleTables, kinds: tuple[str, ...]) -> KernelTables:
    """Return the tables of rules, made once; ``kinds`` are those of the network."""
    known = _TABLES.setdefault(tables, {})
    if kinds not in known:
        known[kinds] = KernelTables(
            tables.members.int().contiguous(),
            tables.real.int().contiguous(),
            tables.rules.int().contiguous(),
            tables.slot.int().contiguous(),
            tables.spread.weight.float().contiguous(),
            tables.spread.back_weight.float().contiguous(),
            _whole_queries(tables),
            tuple((kinds.index(name), count) for name, count in tables.kinds if count),
        )
    return known[kinds]


def _whole_queries(tables: RuleTables) -> WholeQueries | None:
    """The tables of blocks with whole queries; None if every step needs its own kernels.

    A choice has at most four rules, and in every place of its list a rule of the same kind. All choices of a rule have
    the same share of its answer; one that has the share of two is there twice.
    """
    if not tables.shared or tables.rules.shape[1] > FOUR:
        return None
    index, shares = tables.rules.cpu(), tables.spread.weight.float().cpu()
    links, of_links, scales, times = [], [], [], torch.zeros_like(index)
    kind = torch.arange(len(tables.kinds)).repeat_interleave(torch.tensor([count for _, count in tables.kinds]))
    for number, (_, count) in enumerate(tables.kinds):
        here = (kind[index] == number) & (shares > 0)
        if not here.any():
            scales += [0.0] * count
            continue
        share = shares[here].min()
        often = torch.where(here, shares / share, 0)
        each = int(often[0].sum())
        if (often != often.long()).any() or (often.sum(1) != each).any() or share != share.bfloat16():
            return None
        times += often.long()
        links.append(index.flatten().repeat_interleave(often.long().flatten()).view(-1, each))
        of_links += [float(share)] * each
        scales += [float(share)] * count
    if len(of_links) > FOUR:
        return None
    rows = torch.cat(links + [links[0][:, :1]] * (FOUR - len(of_links)), 1)
    own = torch.where(tables.slot < 0, 14, tables.slot).long().cpu()
    slots = F.pad(spots(index) + (own * 0x11 << 24), (0, FOUR - index.shape[1]), value=0xEE << 24)
    of_rules = [[] for _ in range(len(tables.members))]
    for choice, (some, often) in enumerate(zip(index.tolist(), times.tolist(), strict=True)):
        for rule, number in zip(some, often, strict=True):
            of_rules[rule] += [choice] * number
    width = max(map(len, of_rules))
    givers = torch.tensor([of + [-1] * (width - len(of)) for of in of_rules])
    near = tables.members.cpu().where(tables.real.cpu(), -1)
    counts = [count for _, count in tables.kinds]
    homes = [[sum(counts[:number]), count] for number, count in enumerate(counts) for _ in range(count)]
    device = tables.members.device
    return WholeQueries(
        listed(near, len(index)).to(device),
        tables.members.shape[1],
        spots(rows).int().contiguous().to(device),
        torch.tensor(of_links + [0.0] * (FOUR - len(of_links))).bfloat16().to(device),
        ((slots ^ 1 << 31) - (1 << 31)).int().contiguous().to(device),
        listed(givers, len(index)).to(device),
        width,
        torch.tensor(scales).to(device),
        torch.tensor(homes, dtype=torch.int32).to(device),
    )


def spots(rules: Tensor) -> Tensor:
    """Return where the rows of rules begin if a row has 256 bytes, of which 16 change places as in the kernels."""
    pair = rules // 2 % 4
    return 256 * rules + 16 * ((pair | rules % 2 << 2) ^ pair << 2)


def listed(choices: Tensor, C: int) -> Tensor:
    """Return lists of choices as the kernels read them, int16 [G, ..] in whole fours; -1 is padding, and becomes C.

    A number is 4 * choice and, in its two lowest bits, those of the choice in the other order: by these, 32 bytes of
    the choice's row change places.
    """
    rows = F.pad(choices, (0, -choices.shape[1] % FOUR), value=-1).long()
    rows = torch.where(rows < 0, C, rows)
    numbers = 4 * rows + 2 * (rows % 2) + rows // 2 % 2
    return ((numbers + (1 << 15)) % (1 << 16) - (1 << 15)).short().contiguous()


def kernel_relations(tables: RelationTables, block: Any, choices: int) -> KernelRelations:
    """Return the tables of a batch's relations, for a network's block and C choices."""
    at = tables.ends.bool()  # [B, 2M, R]
    present = at.any(2)
    ends = torch.where(present, at.int().argmax(2), -1).int()
    place = (at.cumsum(1) - 1).clamp_min(0)  # number of earlier ends at the same variable
    listed = torch.full((at.shape[2], at.shape[1] + 1, len(at)), -1, dtype=torch.int32, device=ends.device)
    number = torch.arange(at.shape[1], dtype=torch.int32, device=ends.device)[None, :, None].expand(at.shape)
    # Ends at other variables go to an extra last place, which is cut off.
    place = torch.where(at, place, at.shape[1])
    listed.scatter_(1, place.permute(2, 1, 0), number.permute(2, 1, 0))
    most = at.sum(1).amax().int().reshape(1)
    return KernelRelations(
        ends.contiguous(),
        listed[:, :-1].contiguous(),
        most,
        block.kinds.index(block.relation_kind),
        choices // tables.variables,
    )
