"""A loss from the rules alone, without listed solutions: how much the network's belief is expected to break them.

If every variable is drawn on its own from the network's probabilities, the sum of a rule is a random number X. The
loss of a rule is the expected distance of X from its bounds, divided by the rule's largest weight. It is exact:

* exactly one: E|X - 1| = E[X] - 1 + 2 P(X = 0); at most one: E[max(X - 1, 0)] = E[X] - 1 + P(X = 0). For an edge of a
  graph this is the probability that both ends have the colour, the loss of unsupervised graph colouring;
* any other bounds: from the distribution of X, by its Fourier transform;
* relations a != b and a < b: the rules that they imply;
* a given counts as a rule that its value is taken.

It is a baseline beside the objectives, which learn from listed solutions and never see the rules.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor, nn

from oneofmany.problems import Batch, OwnRules, Problem

NEARLY = 1e-6
"""Probabilities of taking none are at least this, so that their logarithm is finite."""
MOST_SUMS = 4096
"""The largest number of different sums that a rule with weights may have."""


class RuleLoss(nn.Module):
    """The expected violation of the rules, summed over the rules of a query; mean over steps and queries."""

    draws = False

    def count(self, mask: Tensor) -> Tensor:
        """Return the number of queries that are trained on, a scalar int64: all, with listed solutions or without.

        Args:
            mask: bool [B, K], not looked at.
        """
        return torch.full((), len(mask), device=mask.device)

    def forward(self, logits: Tensor, batch: Batch, *, normaliser: Tensor | float | None = None) -> Tensor:
        """Return the loss, a scalar.

        Args:
            logits: [B, R, V] or [T, B, R, V].
            batch: the queries; their listed solutions are not used.
            normaliser: the divisor of the mean over queries; B by default.
        """
        belief = (logits if logits.ndim == 4 else logits[None]).float().softmax(-1)
        of_queries = expected_violation(belief, batch).mean(0)
        return of_queries.sum() / (len(batch) if normaliser is None else normaliser)


def expected_violation(belief: Tensor, batch: Batch) -> Tensor:
    """Return the expected violation of the rules of every query: [T, B] from probabilities [T, B, R, V]."""
    with torch.autocast(belief.device.type, enabled=False):
        T, B, R, _ = belief.shape
        given = (batch.query - 1).clamp_min(0)
        kept = belief.gather(3, given.expand(T, B, R)[..., None])[..., 0]
        total = ((1 - kept) * (batch.query > 0)).sum(-1)
        if batch.relations is not None and batch.relations.shape[1]:
            total = total + _of_relations(belief, batch.relations, batch.problem.relation)
        total = total + _terms(batch.problem, batch.problem, belief.device).violation(belief, None)
        if batch.own is not None:
            total = total + _terms(batch.own, batch.problem, belief.device).violation(belief, batch.rows)
        return total


def _of_relations(belief: Tensor, relations: Tensor, relation: str) -> Tensor:
    """The sum over the relations [B, M, 2] of a query, and over the rules that each implies, one for every value."""
    B, R = belief.shape[1:3]
    row = relations.clamp_min(0) + R * torch.arange(B, device=belief.device)[:, None, None]
    a, b = belief.flatten(1, 2)[:, row].unbind(3)  # [T, B, M, V]
    if relation == "<":  # a is at least d, and b is at most d
        a, b = a.flip(-1).cumsum(-1).flip(-1), b.cumsum(-1)
    return ((a * b).sum(-1) * (relations[..., 0] >= 0)).sum(-1)


# ---- the rules of a problem, or of the queries of a data set --------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Terms:
    """The rules of one problem or of Q queries, padded; those of query q are offsets[q] to offsets[q+1] of all.

    Args:
        ones: exactly-one and at-most-one rules.
        sums: the other rules.
    """

    ones: _Ones | None
    sums: _Sums | None

    def violation(self, belief: Tensor, rows: Tensor | None) -> Tensor:
        """Return [T, B] from [T, B, R, V]; ``rows`` [B] are the queries, None if all have the same rules."""
        parts = [part for part in (self.ones, self.sums) if part is not None]
        none = belief.new_zeros(belief.shape[:2])
        return sum(((part.violation(belief, *part.slots(rows))).sum(-1) for part in parts), start=none)


@dataclass(frozen=True, eq=False)
class _Padded:
    offsets: Tensor
    most: int

    def slots(self, rows: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the rules of some queries, int64 [B, most], and which are real; of query 0, [1, most], if None."""
        rows = torch.zeros(1, dtype=torch.int64, device=self.offsets.device) if rows is None else rows
        place = self.offsets[rows][:, None] + torch.arange(self.most, device=self.offsets.device)
        real = place < self.offsets[rows + 1][:, None]
        return torch.where(real, place, 0), real


@dataclass(frozen=True, eq=False)
class _Ones(_Padded):
    """Args: choices int64 [G, n, e], by rule and variable, -1 for padding; exact bool [G]."""

    choices: Tensor
    exact: Tensor

    def violation(self, belief: Tensor, rules: Tensor, real: Tensor) -> Tensor:
        """Return [T, B, most]."""
        choices = self.choices[rules]
        taken = (_picked(belief.flatten(2), choices) * (choices >= 0)).sum(-1)  # [T, B, most, n]
        none = (1 - taken).clamp_min(NEARLY).log().sum(-1).exp()
        return (taken.sum(-1) - 1 + none * (1 + self.exact[rules].float())) * real


@dataclass(frozen=True, eq=False)
class _Sums(_Padded):
    """Rules with weights and bounds, whose sums are 0..D-1 after a shift of every variable's weights.

    Args:
        variables: int64 [L, n], -1 for padding.
        shifts: int64 [L, n, V], what a value adds.
        costs: complex64 [L, D], the Fourier transform of the distance from the bounds, by sum.
    """

    variables: Tensor
    shifts: Tensor
    costs: Tensor

    def violation(self, belief: Tensor, rules: Tensor, real: Tensor) -> Tensor:
        """Return [T, B, most]: the distribution of a sum of independent numbers is a product of transforms."""
        D = self.costs.shape[1]
        frequency = torch.arange(D, device=belief.device)
        roots = torch.polar(torch.ones(D, device=belief.device), -2 * math.pi / D * frequency.float())
        whole: Any = torch.ones((), device=belief.device)
        variables, shifts = self.variables[rules], self.shifts[rules]
        for j in range(variables.shape[2]):
            p = _picked(belief, variables[..., j])  # [T, B, most, V]
            waves = roots[(shifts[:, :, j, :, None] * frequency) % D]  # [B, most, V, D]
            each = torch.einsum("tbgv,bgvd->tbgd", p.to(waves.dtype), waves.expand(p.shape[1], -1, -1, -1))
            whole = whole * torch.where(variables[..., j, None] >= 0, each, 1)
        return (whole * self.costs[rules]).sum(-1).real * real


def _picked(x: Tensor, index: Tensor) -> Tensor:
    """Return x[t, b, index[b, ..]] of x [T, B, N, ..]; an index with one row serves all queries. -1 picks any."""
    B, N = x.shape[1:3]
    if len(index) == 1:
        return x[:, :, index[0].clamp_min(0)]
    shift = N * torch.arange(B, device=x.device).view(-1, *[1] * (index.ndim - 1))
    return x.flatten(1, 2)[:, index.clamp_min(0) + shift]


_TERMS: WeakKeyDictionary[Problem | OwnRules, dict[torch.device, _Terms]] = WeakKeyDictionary()


def _terms(owner: Problem | OwnRules, problem: Problem, device: torch.device) -> _Terms:
    """The rules of a problem, or of the queries of a data set, on a device; they are made once."""
    known = _TERMS.setdefault(owner, {})
    if device not in known:
        own = OwnRules.of([owner.rules]) if isinstance(owner, Problem) else owner
        known[device] = _made(own.on_host(), problem.variables, problem.values, device)
    return known[device]


def _made(own: OwnRules, R: int, V: int, device: torch.device) -> _Terms:
    sizes = np.diff(own.first)
    rule = np.repeat(np.arange(len(sizes)), sizes)
    query = np.repeat(np.arange(len(own)), np.diff(own.offsets))
    # A group is a variable of a rule.
    groups, group = np.unique(rule * R + own.choices // V, return_inverse=True)
    of_group, variable = groups // R, groups % R
    number = np.bincount(of_group, minlength=len(sizes))
    in_rule = np.arange(len(groups)) - (np.cumsum(number) - number)[of_group]
    order = np.argsort(group, kind="stable")
    before = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=len(groups)))])
    in_group = np.empty_like(order)
    in_group[order] = np.arange(len(order)) - before[group[order]]
    # A variable always takes exactly one of all its values, so such a rule cannot be broken.
    whole = (number == 1) & (sizes == V) & (own.low == 1) & ~own.linear

    def part(of_part: np.ndarray) -> tuple[np.ndarray, np.ndarray, int, tuple[Tensor, int]]:
        """Some of the rules, their places, the most groups of one, and their offsets and largest number."""
        rules = np.flatnonzero(of_part)
        place = np.zeros(len(of_part), np.int64)
        place[rules] = np.arange(len(rules))
        counts = np.bincount(query[rules], minlength=len(own))
        offsets = np.concatenate([[0], np.cumsum(counts)])
        return rules, place, int(number[rules].max()), (torch.as_tensor(offsets, device=device), int(counts.max()))

    def placed(*arrays: np.ndarray) -> list[Tensor]:
        return [torch.as_tensor(array, device=device) for array in arrays]

    ones = sums = None
    if (of_ones := ~own.linear & ~whole).any():
        rules, place, n, padding = part(of_ones)
        here = of_ones[rule]
        choices = np.full((len(rules), n, in_group[here].max() + 1), -1, np.int32)
        choices[place[rule[here]], in_rule[group[here]], in_group[here]] = own.choices[here]
        ones = _Ones(*padding, *placed(choices, own.low[rules] == 1))
    if own.linear.any():
        rules, place, n, padding = part(own.linear)
        here, of_here = own.linear[rule], own.linear[of_group]
        variables, weights = np.full((len(rules), n), -1), np.zeros((len(rules), n, V), np.int64)
        variables[place[of_group[of_here]], in_rule[of_here]] = variable[of_here]
        weights[place[rule[here]], in_rule[group[here]], own.choices[here] % V] = own.weights[here]
        costs = _costs(weights, own.low[rules], own.high[rules])
        sums = _Sums(*padding, *placed(variables, weights - weights.min(2, keepdims=True), costs))
    return _Terms(ones, sums)


def _costs(weights: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The Fourier transform of the distance of every sum from its bounds: complex64 [L, D]; weights are [L, n, V]."""
    least, greatest = weights.min(2).sum(1), weights.max(2).sum(1)
    D = int((greatest - least).max()) + 1
    if D > MOST_SUMS:
        raise ValueError(
            f"objective rules: a rule has {D:,} different sums, expected at most {MOST_SUMS:,}: use smaller weights"
        )
    sums = least[:, None] + np.arange(D)
    distance = np.maximum(np.maximum(low[:, None] - sums, sums - high[:, None]), 0)
    return np.fft.ifft(distance / np.abs(weights).max((1, 2))[:, None], axis=1).astype(np.complex64)
