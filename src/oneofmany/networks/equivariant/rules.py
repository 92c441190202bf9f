"""The rules of a problem as NumPy index arrays, and the kinds of rules that a network knows. Loads no torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from oneofmany.networks.settings import Inequalities
from oneofmany.problems import Problem

UNEQUAL = "relations a != b need inequalities='rules'"
FEATURES = 5
"""The numbers that a rule with weights and bounds tells a choice (``sums``)."""


@dataclass(frozen=True, eq=False)
class RuleArrays:
    """Index arrays of one problem's exactly-one and at-most-one rules. Rules are sorted by kind.

    Args:
        members: int64 [G, W], each rule's choices, padded with its first choice.
        real: bool [G, W], False for padding.
        rules: int64 [C, D], the rules that answer each choice, padded with 0: all that it is in, and of the
            neighbourhoods its own.
        slot: int64 [C, D], the choice's column in ``members`` of that rule, -1 for padding.
        spread: float32 [C, D], the weight of each rule's answer to the choice, 0 for padding: for each kind the mean
            over the choice's rules of that kind; for the kind of relations a < b the sum divided by V; 1 for the
            choice's own neighbourhood.
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


def rule_arrays(problem: Problem, unequal: np.ndarray | None = None) -> RuleArrays:
    """Build the arrays of a problem; raises ValueError if a kind of rules has two meanings.

    Args:
        problem: the problem.
        unequal: int [M, 2], relations a != b of a query, -1 for padding: their neighbourhoods join the rules of the
            problem.
    """
    places, members = problem.ones
    kind, exact = problem.kind[places], problem.exact[places]
    near = np.zeros(len(kind), bool)
    if unequal is not None and len(unequal := unequal[unequal[:, 0] >= 0]):
        around = neighbourhoods(unequal, problem.variables, problem.values)
        widest = max(around.shape[1], members.shape[1])
        members = np.concatenate(
            [np.pad(part, ((0, 0), (0, widest - part.shape[1])), constant_values=-1) for part in (members, around)]
        )
        kind = np.concatenate([kind, np.full(len(around), problem.kinds.index(str(problem.relation_kind)))])
        exact, near = (
            np.concatenate([part, np.full(len(around), value)]) for part, value in ((exact, False), (near, True))
        )
    order = kind.argsort(kind="stable")
    members, kind, exact, near = members[order], kind[order], exact[order], near[order]
    for k, name in enumerate(problem.kinds):
        # The network knows rules only by the weights of their kind, so a kind must have one meaning.
        meanings = {*exact[kind == k].tolist(), *([False] if name == problem.relation_kind else [])}
        if len(meanings) > 1:
            raise ValueError(
                f"rules of kind {name!r}: expected all exactly-one or all at-most-one, got both; "
                "split them into two kinds"
            )

    # One entry per (rule, choice) pair, sorted by choice, then by rule. A neighbourhood answers its first choice alone.
    real = members >= 0
    rule, slot = real.nonzero()
    answered = ~near[rule] | (slot == 0)
    rule, slot = rule[answered], slot[answered]
    choice = members[rule, slot]
    by_choice = choice.argsort(kind="stable")
    rule, slot, choice = rule[by_choice], slot[by_choice], choice[by_choice]
    degree = np.bincount(choice, minlength=problem.choices)
    column = np.arange(len(choice)) - (degree.cumsum() - degree)[choice]

    def by_choices(values: np.ndarray, padding: int = 0) -> np.ndarray:
        table = np.full((problem.choices, degree.max()), padding, values.dtype)
        table[choice, column] = values
        return table

    pair = (choice * len(problem.kinds) + kind[rule]) * 2 + near[rule]
    siblings = np.bincount(pair)[pair]
    if (ordered := ordered_kind(problem)) is not None:
        siblings[kind[rule] == problem.kinds.index(ordered)] = problem.values
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


def neighbourhoods(unequal: np.ndarray, variables: int, values: int) -> np.ndarray:
    """Return the rules of relations a != b: every choice, first, and those of the same value at its neighbours.

    A rule for each pair would tell a choice the mean over its neighbours, in which a single one that takes the value
    counts less the more of them there are.

    Args:
        unequal: int [M, 2], the relations.
        variables: R, their number.
        values: V, their number.

    Returns:
        int64 [N, W], -1 for padding. Choices of variables without relations have none.
    """
    node, neighbour = np.unique(np.concatenate([unequal, unequal[:, ::-1]]), axis=0).T
    degree = np.bincount(node, minlength=variables)
    table = np.full((variables, 1 + degree.max()), -1)
    table[:, 0] = np.arange(variables)
    table[node, 1 + np.arange(len(node)) - (degree.cumsum() - degree)[node]] = neighbour
    table = table[degree > 0][:, None]
    return np.where(table < 0, -1, table * values + np.arange(values)[:, None]).reshape(-1, table.shape[2])


@dataclass(frozen=True, eq=False)
class SumArrays:
    """Rules with weights and bounds: N groups, each a variable of one of L rules, in the order of the rules.

    All numbers of a rule are divided by its largest weight.

    Args:
        rule: int64 [N], the rule of every group.
        variable: int64 [N].
        weights: float64 [N, V], the weight of every value, 0 for a value that is not in the rule.
        low: float64 [L], the least sum.
        high: float64 [L], the greatest sum.
    """

    rule: np.ndarray
    variable: np.ndarray
    weights: np.ndarray
    low: np.ndarray
    high: np.ndarray


def sum_arrays(
    problem: Problem, rule: np.ndarray, choices: np.ndarray, weights: np.ndarray, low: np.ndarray, high: np.ndarray
) -> SumArrays:
    """Return the groups of rules with weights and bounds.

    Args:
        problem: the problem, for its variables and values.
        rule: int64 [E], the rule 0..L-1 of every entry.
        choices: int [E].
        weights: int [E].
        low: int [L], the least sum of every rule.
        high: int [L], the greatest sum.
    """
    R, V = problem.variables, problem.values
    groups, group = np.unique(rule * R + choices // V, return_inverse=True)
    table = np.zeros((len(groups), V))
    table[group, choices % V] = weights
    scale = np.zeros(len(low))
    np.maximum.at(scale, rule, np.abs(weights.astype(np.float64)))
    return SumArrays(groups // R, groups % R, table / scale[groups // R][:, None], low / scale, high / scale)


def ordered_kind(problem: Problem) -> str | None:
    """Return the kind of relations a < b, whose answers are summed and divided by V; None if there are none."""
    return problem.relation_kind if problem.relation == "<" else None


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
) -> str | None:
    """Return why a network cannot answer queries of a problem, in one sentence; None if it can.

    Args:
        problem: the problem of the queries.
        relations: int [.., 2], the relations of the queries, -1 for padding; None if there are none.
        kinds: the kinds of rules that the network has weights for.
        inequalities: the network's input form of relations.
        trained: the task and size that the network was trained on.
        sums: the kinds of rules with weights and bounds that the network has weights for.
    """
    needed = dict.fromkeys(used_kinds(problem, "flags")[0])
    if relations is not None and (relations >= 0).any():
        if problem.relation != "<" and inequalities != "rules":
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
