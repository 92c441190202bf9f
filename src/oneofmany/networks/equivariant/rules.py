"""The rules of a problem as NumPy index arrays, and the kinds of rules that a network knows. Loads no torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from oneofmany.networks.settings import Inequalities
from oneofmany.problems import Problem

UNEQUAL = "relations a != b need PyTorch and inequalities='rules'"


@dataclass(frozen=True, eq=False)
class RuleArrays:
    """Index arrays of one problem's exactly-one and at-most-one rules. Rules are sorted by kind.

    Args:
        members: int64 [G, W], each rule's choices, padded with its first choice.
        real: bool [G, W], False for padding.
        rules: int64 [C, D], each choice's rules, padded with 0.
        slot: int64 [C, D], the choice's column in ``members`` of that rule, -1 for padding.
        spread: float32 [C, D], the weight of each rule's answer to the choice, 0 for padding: for each kind the mean
            over the choice's rules of that kind; for the relations' kind the sum divided by V.
        back: float32 [G, W], the same weights from the side of the rules.
        kinds: (kind, number of rules) in the order of the rules.
    """

    members: np.ndarray
    real: np.ndarray
    rules: np.ndarray
    slot: np.ndarray
    spread: np.ndarray
    back: np.ndarray
    kinds: tuple[tuple[str, int], ...]


def rule_arrays(problem: Problem) -> RuleArrays:
    """Build the arrays of a problem; raises ValueError if a kind of rules has two meanings."""
    places, members = problem.ones
    order = problem.kind[places].argsort(kind="stable")
    members, kind, exact = members[order], problem.kind[places][order], problem.exact[places][order]
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
    rule, slot = real.nonzero()
    choice = members[real]
    by_choice = choice.argsort(kind="stable")
    rule, slot, choice = rule[by_choice], slot[by_choice], choice[by_choice]
    degree = np.bincount(choice, minlength=problem.choices)
    column = np.arange(len(choice)) - (degree.cumsum() - degree)[choice]

    def by_choices(values: np.ndarray, padding: int = 0) -> np.ndarray:
        table = np.full((problem.choices, degree.max()), padding, values.dtype)
        table[choice, column] = values
        return table

    pair = choice * len(problem.kinds) + kind[rule]
    siblings = np.bincount(pair)[pair]
    if problem.relation_kind is not None:
        siblings[kind[rule] == problem.kinds.index(problem.relation_kind)] = problem.values
    share = np.float32(1) / siblings.astype(np.float32)
    back = np.zeros(members.shape, np.float32)
    back[rule, slot] = share
    counts = np.bincount(kind, minlength=len(problem.kinds)).tolist()
    return RuleArrays(
        members=np.where(real, members, members[:, :1]),
        real=real,
        rules=by_choices(rule),
        slot=by_choices(slot, -1),
        spread=by_choices(share),
        back=back,
        kinds=tuple((name, count) for name, count in zip(problem.kinds, counts, strict=True) if count),
    )


def used_kinds(problem: Problem, inequalities: Inequalities) -> tuple[tuple[str, ...], str | None]:
    """Return the kinds of rules that need weights, and the relations' kind among them: None with flags.

    Rules with other bounds than exactly one and at most one have weights of another form (``sum_kinds``).
    """
    related = problem.relation_kind if inequalities == "rules" else None
    return tuple(kind for kind in problem.kinds if kind in problem.kinds_of_ones or kind == related), related


def sum_kinds(problem: Problem) -> tuple[str, ...]:
    """Return the kinds of rules with weights and bounds."""
    return tuple(kind for kind in problem.kinds if kind in problem.kinds_of_sums)


def refusal(
    problem: Problem,
    relations: np.ndarray | None,
    kinds: Sequence[str],
    inequalities: Inequalities,
    trained: str,
    sums: Sequence[str] = (),
    unequal: bool = False,
) -> str | None:
    """Return why a network cannot answer queries of a problem, in one sentence; None if it can.

    Args:
        problem: the problem of the queries.
        relations: int [.., 2], the relations of the queries, -1 for padding; None if there are none.
        kinds: the kinds of rules that the network has weights for.
        inequalities: the network's input form of relations.
        trained: the task and size that the network was trained on.
        sums: the kinds of rules with weights and bounds that the network has weights for.
        unequal: whether the network takes relations a != b.
    """
    needed = dict.fromkeys(used_kinds(problem, "flags")[0])
    if relations is not None and (relations >= 0).any():
        if problem.relation != "<" and not unequal:
            return UNEQUAL
        if inequalities == "rules":
            needed[str(problem.relation_kind)] = None
    unknown = [kind for kind in needed if kind not in kinds]
    if unknown := list(dict.fromkeys([*unknown, *(kind for kind in sum_kinds(problem) if kind not in sums)])):
        return (
            f"the network was trained on {trained} and has no weights for rules of kind "
            f"{' and '.join(unknown)}, so it cannot answer {problem.task} {problem.size}: "
            f"use a network for {problem.task}"
        )
    return None
