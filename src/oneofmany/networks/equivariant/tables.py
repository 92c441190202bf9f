"""The rules of a problem and the relations of a batch as index tables on a device."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from oneofmany.problems import Problem


@dataclass(frozen=True, eq=False)
class Incidence:
    """A weighted sum of rows, ``out[m] = sum_j weight[m, j] * x[index[m, j]]``, and its transpose.

    Args:
        index: int64 [M, J], rows of x.
        weight: float32 [M, J], 0 for padding.
        back_index: int64 [N, I], the same pairs from the side of the N rows of x.
        back_weight: float32 [N, I].
    """

    index: Tensor
    weight: Tensor
    back_index: Tensor
    back_weight: Tensor


@dataclass(frozen=True, eq=False)
class RuleTables:
    """Index tables of one problem's static rules on one device. Rules are sorted by kind.

    Args:
        members: int64 [G, W], each rule's choices, padded with its first choice.
        real: bool [G, W], False for padding.
        rules: int64 [C, D], each choice's rules, padded with 0.
        slot: int8 or int16 [C, D], the choice's column in ``members`` of that rule, -1 for padding.
        spread: from rules to choices: for each kind the mean over the choice's rules of that kind; for the relations'
            kind the sum divided by V.
        kinds: (kind, number of rules) in the order of the rules.
    """

    members: Tensor
    real: Tensor
    rules: Tensor
    slot: Tensor
    spread: Incidence
    kinds: tuple[tuple[str, int], ...]


_TABLES: WeakKeyDictionary[Problem, dict[torch.device, RuleTables]] = WeakKeyDictionary()


def rule_tables(problem: Problem, device: torch.device) -> RuleTables:
    """Return the tables of a problem on a device; they are built once."""
    return _tables_of(id(problem), device)


def _tables_of(address: int, device: torch.device) -> RuleTables:
    # By address: torch 2.11's compiler cannot pass a dataclass to a constant function. It does guard on id(problem),
    # and the caller keeps the problem alive.
    problem = ctypes.cast(address, ctypes.py_object).value
    known = _TABLES.setdefault(problem, {})
    if device not in known:
        known[device] = _build(problem, device)
    return known[device]


# The same as torch.compiler.assume_constant_result, without importing the compiler, which takes seconds.
vars(_tables_of)["_dynamo_marked_constant"] = True


def _build(problem: Problem, device: torch.device) -> RuleTables:
    order = problem.kind.argsort(kind="stable")
    members = torch.from_numpy(problem.members[order])
    kind = torch.from_numpy(problem.kind[order])
    exact = torch.from_numpy(problem.exact[order])
    for k, name in enumerate(problem.kinds):
        # The network knows rules only by the weights of their kind, so a kind must have one meaning.
        meanings = {*exact[kind == k].tolist(), *([False] if name == problem.relation_kind else [])}
        if len(meanings) > 1:
            raise ValueError(
                f"rules of kind {name!r}: expected all exactly-one or all at-most-one, got both; "
                "split them into two kinds"
            )

    # One entry per (rule, choice) pair, sorted by choice, then by rule.
    real = members >= 0
    rule, slot = real.nonzero(as_tuple=True)
    choice = members[real]
    by_choice = choice.argsort(stable=True)
    rule, slot, choice = rule[by_choice], slot[by_choice], choice[by_choice]
    degree = choice.bincount(minlength=problem.choices)
    column = torch.arange(len(choice)) - (degree.cumsum(0) - degree)[choice]

    def by_choices(values: Tensor, padding: int = 0) -> Tensor:
        table = torch.full((problem.choices, int(degree.max())), padding, dtype=values.dtype)
        return table.index_put_((choice, column), values).to(device)

    def by_rules(values: Tensor) -> Tensor:
        return torch.zeros(members.shape, dtype=values.dtype).index_put_((rule, slot), values).to(device)

    pair = choice * len(problem.kinds) + kind[rule]
    siblings = pair.bincount()[pair]
    if problem.relation_kind is not None:
        siblings[kind[rule] == problem.kinds.index(problem.relation_kind)] = problem.values
    in_spread = 1 / siblings
    index, rules = torch.where(real, members, members[:, :1]).to(device), by_choices(rule)
    counts = kind.bincount(minlength=len(problem.kinds)).tolist()
    return RuleTables(
        members=index,
        real=real.to(device),
        rules=rules,
        slot=by_choices(slot.to(torch.int8 if members.shape[1] <= 127 else torch.int16), -1),
        spread=Incidence(rules, by_choices(in_spread), index, by_rules(in_spread)),
        kinds=tuple((name, count) for name, count in zip(problem.kinds, counts, strict=True) if count),
    )


@dataclass(frozen=True, eq=False)
class RelationTables:
    """A batch's relations a < b as an incidence matrix; the rows of padding are zeros.

    Args:
        ends: float [B, 2 * M, R], 1 if the variable is a (first M rows) or b (other rows).
        variables: R.
    """

    ends: Tensor
    variables: int


def relation_tables(relations: Tensor, problem: Problem) -> RelationTables:
    """Return the tables of relations int64 [B, M, 2], -1 for padding."""
    is_variable = relations.mT.flatten(1)[..., None] == torch.arange(problem.variables, device=relations.device)
    return RelationTables(is_variable.float(), problem.variables)
