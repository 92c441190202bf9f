"""Tables of rules that differ from query to query: the queries of a batch as blocks of one large problem.

Choice c of query b is row b * C + c, and variable r is row b * R + r. Queries with fewer rules than others are padded,
so shapes depend on the data and the size of the batch only, and the host does not wait for the device: an update can be
captured. Relations are rules too. A batch of a data set knows the largest number of them at a variable of the
data; for any other batch the host waits for that of its queries.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from oneofmany.networks.equivariant.rules import ordered_kind, sum_arrays, sum_kinds, used_kinds
from oneofmany.networks.equivariant.tables import Incidence, RuleTables, SumTables, neighbourhoods, rule_tables, spans
from oneofmany.problems import Batch, OwnRules, Problem
from oneofmany.problems.batch import most_related

DEGREES = 4
"""Of a batch of unknown data, the number of rules at a choice is rounded up to a multiple: few shapes are compiled."""


@dataclass(frozen=True, eq=False)
class _Lists:
    """Lists of all queries, one after the other; the last list is that of what all queries share.

    Args:
        offsets: int64 [Q+2], the entries of query q are offsets[q] to offsets[q+1].
        most: the largest number of entries of a query.
        first: the first entry that all queries share; they are the last ones.
        shared: the number of entries that all queries share.
    """

    offsets: Tensor
    most: int
    first: int
    shared: int

    def slots(self, rows: Tensor | None, blocks: int) -> tuple[Tensor, Tensor]:
        """Return the entries of the queries rows [B], padded: int64 [B, most + shared], and which are real.

        Without rows, what all queries share, in B = ``blocks`` copies.
        """
        device = self.offsets.device
        shared = torch.arange(self.first, self.first + self.shared, device=device).repeat(blocks, 1)
        present = torch.ones_like(shared, dtype=torch.bool)
        if rows is None:
            return shared, present
        entries = self.offsets[rows][:, None] + torch.arange(self.most, device=device)
        real = entries < self.offsets[rows + 1][:, None]
        return torch.cat([torch.where(real, entries, 0), shared], 1), torch.cat([real, present], 1)


def _lists(counts: np.ndarray, device: torch.device) -> _Lists:
    """Lists of these lengths, int64 [Q+1]."""
    offsets = np.concatenate([[0], np.cumsum(counts)])
    most = int(counts[:-1].max(initial=0))
    return _Lists(torch.as_tensor(offsets, device=device), most, int(offsets[-2]), int(counts[-1]))


class _Prepared:
    """The rules of a data set and of its problem on one device, by kind and by query."""

    def __init__(self, problem: Problem, own: OwnRules | None, device: torch.device) -> None:
        self.device = device
        # What all queries share comes last, as the rules of one more query.
        shared = OwnRules.of([problem.rules])
        every = [shared] if own is None else [own.on_host(), shared]
        Q = sum(map(len, every))
        query = np.concatenate([np.repeat(np.arange(len(o)), np.diff(o.offsets)) for o in every])
        query[len(query) - len(shared.kind) :] = Q - 1
        kind = np.concatenate([np.array([*o.kinds, ""])[o.kind] for o in every])
        linear = np.concatenate([o.linear for o in every])
        sizes, choices, weights, low, high = (
            np.concatenate(parts)
            for parts in zip(*((np.diff(o.first), o.choices, o.weights, o.low, o.high) for o in every), strict=True)
        )
        rule = np.repeat(np.arange(len(kind)), sizes)
        self._ones(problem, query, kind, ~linear, rule, sizes, choices, Q)
        self.sums = (
            _Sums(problem, device, query, kind, linear, rule, choices, weights, low, high, Q) if linear.any() else None
        )

    def _ones(
        self,
        problem: Problem,
        query: np.ndarray,
        kind: np.ndarray,
        ones: np.ndarray,
        rule: np.ndarray,
        sizes: np.ndarray,
        choices: np.ndarray,
        Q: int,
    ) -> None:
        own = ones[rule]
        slot = np.arange(len(rule)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        table = np.full((len(kind), slot[own].max(initial=0) + 1), -1)
        table[rule[own], slot[own]] = choices[own]
        self.kinds: list[tuple[str, Tensor, _Lists]] = []
        for name in used_kinds(problem, "flags")[0]:
            of_kind = np.flatnonzero(ones & (kind == name))
            of_kind = of_kind[np.argsort(query[of_kind], kind="stable")]
            width = int(sizes[of_kind].max(initial=1))
            members = torch.as_tensor(table[of_kind if len(of_kind) else [0], :width], device=self.device)
            self.kinds.append((name, members, _lists(np.bincount(query[of_kind], minlength=Q), self.device)))
        self.degree = _largest_degree(query[rule[own]], choices[own], Q)


class _Sums:
    """The rules with weights and bounds: their variables (groups) by query."""

    def __init__(
        self,
        problem: Problem,
        device: torch.device,
        query: np.ndarray,
        kind: np.ndarray,
        linear: np.ndarray,
        rule: np.ndarray,
        choices: np.ndarray,
        weights: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
        Q: int,
    ) -> None:
        self.kinds = sum_kinds(problem)
        rules = np.flatnonzero(linear)
        rules = rules[np.argsort(query[rules], kind="stable")]
        place = np.zeros(len(kind), np.int64)
        place[rules] = np.arange(len(rules))
        own, owner = linear[rule], query[rules]
        sums = sum_arrays(problem, place[rule[own]], choices[own], weights[own], low[rules], high[rules])

        def placed(array: np.ndarray) -> Tensor:
            return torch.as_tensor(array.astype(np.float32) if array.dtype.kind == "f" else array, device=device)

        self.weights, self.low, self.high = placed(sums.weights), placed(sums.low), placed(sums.high)
        self.kind = placed(np.array([self.kinds.index(name) for name in kind[rules]], np.int64))
        self.variable, self.rule = placed(sums.variable), placed(sums.rule)
        sizes = np.bincount(sums.rule, minlength=len(rules))
        self.first_group, self.size = placed(np.cumsum(sizes) - sizes), placed(sizes)
        self.rules = _lists(np.bincount(owner, minlength=Q), device)
        self.groups = _lists(np.bincount(owner[sums.rule], minlength=Q), device)
        self.widest = int(sizes.max())
        self.degree = _largest_degree(owner[sums.rule], sums.variable, Q)
        self.variables = problem.variables

    def tables(self, rows: Tensor | None, blocks: int) -> SumTables:
        """Return the tables of the queries rows [B]; without rows, of what all share, in B = ``blocks`` copies."""
        groups, real = self.groups.slots(rows, blocks)
        rules, present = self.rules.slots(rows, blocks)
        B, N = groups.shape
        L, device = rules.shape[1], groups.device
        block = torch.arange(B, device=device)[:, None]
        variable = torch.where(real, self.variable[groups] + block * self.variables, -1).view(-1, 1)
        # The place of a rule or a group inside its block: a query's own come first, then those that all share.
        rule = self._local(self.rule[groups], self.rules, rows) + block * L
        start = self._local(self.first_group[rules], self.groups, rows) + block * N
        slot = torch.arange(self.widest, device=device)
        inside = (slot < self.size[rules][..., None]) & present[..., None]
        of_rule = torch.where(inside, start[..., None] + slot, 0).view(B * L, -1)
        inside, kept = inside.view(B * L, -1).float(), real.view(-1, 1).float()
        rule = torch.where(real, rule, 0).view(-1, 1)
        kind = self.kind[self.rule[groups]].view(-1)
        listed, where, share = _reversed(variable, kind, B * self.variables, self.degree, len(self.kinds))
        source, exists = variable.clamp_min(0), (where >= 0).float()
        own_share = torch.zeros(len(variable) + 1, device=device)
        own_share[torch.where(where >= 0, listed, len(variable))] = share
        spread = tuple(
            Incidence(listed, share * (kind[listed] == k), source, own_share[:-1, None] * (kind == k)[:, None])
            for k in range(len(self.kinds))
        )
        of_rules = Incidence(of_rule, inside, rule, kept)
        return SumTables(
            of_groups=Incidence(source, kept, listed, exists),
            of_rules=of_rules,
            to_groups=Incidence(rule, kept, of_rule, inside),
            spread=spread,
            kinds=self.kinds,
            weights=(self.weights[groups] * real[..., None]).view(B * N, 1, -1),
            low=self.low[self.rule[groups]].view(-1, 1, 1),
            high=self.high[self.rule[groups]].view(-1, 1, 1),
        )

    def _local(self, places: Tensor, lists: _Lists, rows: Tensor | None) -> Tensor:
        """Turn places among all rules or groups, [B, slots], into places inside the block of their query."""
        if rows is None:
            return places - lists.first
        own = places - lists.offsets[rows][:, None]
        return torch.where(places >= lists.first, places - lists.first + lists.most, own)


# By problem, by whose rules they are, by device: none replaces another one that a captured graph still reads.
_PREPARED: WeakKeyDictionary[Problem, WeakKeyDictionary[OwnRules | Problem, dict[torch.device, _Prepared]]]
_PREPARED = WeakKeyDictionary()
_SHARED: WeakKeyDictionary[Problem, dict[torch.device, RuleTables]] = WeakKeyDictionary()
_BLOCKS: dict[bool, WeakKeyDictionary[Batch, RuleTables]] = {True: WeakKeyDictionary(), False: WeakKeyDictionary()}


def block_tables(batch: Batch, relations_as_rules: bool = True) -> RuleTables:
    """Return the tables of a batch whose queries bring rules of their own, or relations a != b.

    They are built once for a batch and for what is made of it with other givens or other listed solutions. Relations
    are among the rules, unless the network has another input form of them.
    """
    blocks = _BLOCKS[relations_as_rules]
    if batch not in blocks:
        blocks[batch] = _alike(batch, blocks) or _build(batch, relations_as_rules)
    return blocks[batch]


def _alike(batch: Batch, blocks: WeakKeyDictionary[Batch, RuleTables]) -> RuleTables | None:
    """The tables of a batch with the very same structures; None if none is known."""
    for known in blocks.keyrefs():  # a list, so threads do not disturb each other
        other = known()
        parts = ("problem", "relations", "own", "rows", "most_related")
        if other is not None and all(getattr(other, part) is getattr(batch, part) for part in parts):
            return blocks.get(other)
    return None


def shared_tables(problem: Problem, device: torch.device) -> RuleTables:
    """Return the tables of a problem whose rules all queries share; they are built once."""
    if problem.linear is None:
        return rule_tables(problem, device)
    known = _SHARED.setdefault(problem, {})
    if device not in known:
        sums = _Prepared(problem, None, device).sums
        known[device] = replace(rule_tables(problem, device), sums=None if sums is None else sums.tables(None, 1))
    return known[device]


def _prepared(batch: Batch) -> _Prepared:
    problem, own, device = batch.problem, batch.own, batch.query.device
    known = _PREPARED.setdefault(problem, WeakKeyDictionary()).setdefault(problem if own is None else own, {})
    if device not in known:
        known[device] = _Prepared(problem, own, device)
    return known[device]


def _build(batch: Batch, relations_as_rules: bool) -> RuleTables:
    problem, prepared = batch.problem, _prepared(batch)
    rows = None if batch.own is None else batch.rows
    C, B, device = problem.choices, len(batch), batch.query.device
    shift = C * torch.arange(B, device=device)[:, None, None]
    of_kinds: dict[str, list[Tensor]] = {}
    degree = prepared.degree
    for name, members, lists in prepared.kinds:
        places, real = lists.slots(rows, B)
        of_kinds.setdefault(name, []).append(torch.where(real[..., None], members[places], -1))
    near = 0  # how many of a query's rules are neighbourhoods: the last ones of their kind
    if relations_as_rules and batch.relations is not None and batch.relations.shape[1]:
        most = batch.most_related
        related = most_related(batch.relations, problem.variables) if most is None else most
        if problem.relation == "!=":
            made = neighbourhoods(batch.relations, problem.variables, problem.values, related)
            near, degree = made.shape[1], degree + related + 1
        else:  # a choice is in up to V rules of a relation
            made = problem.relation_members(batch.relations).flatten(1, 2)
            degree += related * problem.values
        of_kinds.setdefault(str(problem.relation_kind), []).append(made)
        degree += 0 if most is not None else -degree % DEGREES
    widths = [max(part.shape[2] for part in parts) for parts in of_kinds.values()]
    W = max(widths)
    parts = [
        torch.cat([torch.nn.functional.pad(part, (0, W - part.shape[2]), value=-1) for part in parts], 1)
        for parts in of_kinds.values()
    ]
    kinds = [torch.full(part.shape[:2], k, device=device) for k, part in enumerate(parts)]
    if near:  # a kind of their own, as far as shares are concerned
        kinds[list(of_kinds).index(str(problem.relation_kind))][:, -near:].fill_(len(parts))
    kind = torch.cat([part.flatten() for part in kinds])
    parts = [torch.where(part >= 0, part + shift, -1).flatten(0, 1) for part in parts]
    members = torch.cat(parts)
    rules, slot, share = _reversed(members, kind, B * C, degree, len(parts) + 1)
    if near:
        share = torch.where(kind[rules] == len(parts), (slot == 0).to(share.dtype), share)
    if (ordered := ordered_kind(problem)) in of_kinds:
        of_ordered = (kind[rules] == list(of_kinds).index(ordered)) & (slot >= 0)
        share = torch.where(of_ordered, 1 / problem.values, share)
    real = members >= 0
    back = torch.zeros(members.numel() + 1, device=device)
    back[torch.where(slot >= 0, rules * W + slot, members.numel())] = share
    filled = torch.where(real, members, members[:, :1]).clamp_min(0)
    real[:, 0].fill_(True)  # of padding, too: nothing of a rule without choices would be infinite
    return RuleTables(
        filled,
        real,
        rules,
        slot.to(torch.int8 if W <= 127 else torch.int16),
        Incidence(rules, share, filled, back[:-1].view_as(members)),
        tuple((name, len(part)) for name, part in zip(of_kinds, parts, strict=True) if len(part)),
        spans([len(part) for part in parts], widths),
        None if prepared.sums is None else prepared.sums.tables(rows, B),
        shared=False,
        blocks=B,
    )


def _reversed(members: Tensor, kind: Tensor, rows: int, degree: int, kinds: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return, for every row, the rules that list it: rules, slots (-1 for padding) and shares, each [rows, degree].

    A share is 1 over the number of the row's rules of the same kind. members: int64 [G, W], -1 for padding. kind: [G].
    """
    G, W = members.shape
    device = members.device
    row = torch.where(members >= 0, members, rows).flatten()  # padding goes to one more row, which is cut off
    order = row.argsort(stable=True)
    row, rule, slot = row[order], order // W, order % W
    count = torch.zeros(rows + 1, dtype=torch.int64, device=device).index_add(0, row, torch.ones_like(row))
    column = (torch.arange(G * W, device=device) - (count.cumsum(0) - count)[row]).clamp_max(degree - 1)
    pair = row * kinds + kind[rule]
    siblings = torch.zeros((rows + 1) * kinds, dtype=torch.int64, device=device).index_add(
        0, pair, torch.ones_like(row)
    )

    def table(values: Tensor, padding: int) -> Tensor:
        made = torch.full((rows + 1, degree), padding, dtype=values.dtype, device=device)
        made[row, column] = values
        return made[:-1]

    return table(rule, 0), table(slot, -1), table(1 / siblings[pair], 0)


def _largest_degree(query: np.ndarray, row: np.ndarray, Q: int) -> int:
    """The largest number of entries of one row (a choice or a variable) of one query, with those that all share."""
    if not len(row):
        return 1
    stride = int(row.max()) + 1
    shared = np.bincount(row[query == Q - 1], minlength=stride)
    pairs, counts = np.unique(query.astype(np.int64) * stride + row, return_counts=True)
    own = pairs // stride < Q - 1
    return int(max(shared.max(), (counts[own] + shared[pairs[own] % stride]).max(initial=0)))
