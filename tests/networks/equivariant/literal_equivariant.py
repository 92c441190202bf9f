"""The equivariant network written as plain loops over choices and rules."""

from __future__ import annotations

import torch
from torch import Tensor

from oneofmany.problems import Problem


def rules_of(problem: Problem, relations: list[tuple[int, int]]) -> list[tuple[str, list[int]]]:
    """(kind, choices) of every rule of one query."""
    V = problem.values
    rules = [(rule.kind, list(rule.choices)) for rule in problem.rules]
    for a, b in relations:
        for d in range(V):
            rules.append((problem.relation_kind, [a * V + v for v in range(d, V)] + [b * V + v for v in range(d + 1)]))
    return rules


def flags_of(problem: Problem, relations: list[tuple[int, int]], cell: int) -> list[float]:
    """[the cell comes first in a pair and is the larger one, ... and is the smaller one]."""
    larger = smaller = 0.0
    for a, b in relations:
        if cell == min(a, b):
            larger, smaller = (1.0, smaller) if cell == b else (larger, 1.0)
    return [larger, smaller]


def one_round(
    block: dict[str, Tensor],
    kinds: tuple[str, ...],
    problem: Problem,
    rules: list[tuple[str, list[int]]],
    states: list[Tensor],
    queries: list[Tensor],
) -> list[Tensor]:
    """The next states [width] of all choices of one query."""
    width = len(states[0])
    pooled_channels = block["rule"].shape[1] // 2
    spoken, own = [], []
    for state, query in zip(states, queries, strict=True):
        out = block["choice.weight"] @ (state + query) + block["choice.bias"]
        spoken.append(out[:pooled_channels])
        own.append(out[pooled_channels:])

    answers = []
    for kind, choices in rules:
        said = torch.stack([spoken[c] for c in choices])
        largest = said.sort(0, descending=True).values
        pooled = torch.cat([largest[0], largest[1] if len(choices) > 1 else torch.zeros_like(largest[0])])
        answers.append(pooled @ block["rule"][kinds.index(kind)])

    new = []
    for c in range(problem.choices):
        total = own[c]
        for kind in kinds:
            mine = [answer for answer, (k, choices) in zip(answers, rules, strict=True) if k == kind and c in choices]
            if mine:
                over = problem.values if kind == problem.relation_kind else len(mine)
                total = total + torch.stack(mine).sum(0) / over
        gate, value = total[: len(total) // 2], total[len(total) // 2 :]
        moved = states[c] + block["update.weight"] @ (gate * torch.sigmoid(gate) * value) + block["update.bias"]
        centred = moved - moved.sum() / width
        new.append(centred / torch.sqrt((centred**2).sum() / width + 1e-5))
    return new


def part(parameters: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in parameters.items() if name.startswith(prefix)}


def pairs(relations: Tensor | None, b: int) -> list[tuple[int, int]]:
    return [] if relations is None else [(x, y) for x, y in relations[b].tolist() if x >= 0]


def given(problem: Problem, query: Tensor, c: int) -> float:
    return float(query[c // problem.values] == c % problem.values + 1)


def network_logits(
    parameters: dict[str, Tensor],
    kinds: tuple[str, ...],
    problem: Problem,
    query: Tensor,
    noise: Tensor,
    steps: int,
    relations: Tensor | None = None,
    inequalities: str = "rules",
) -> Tensor:
    """Logits [T, B, R, V] of queries [B, R] with noise [B, C]."""
    out = []
    for b in range(len(query)):
        related = pairs(relations, b)
        rules = rules_of(problem, related if inequalities == "rules" else [])
        queries = []
        for c in range(problem.choices):
            features = [given(problem, query[b], c), float(noise[b, c])]
            if inequalities == "flags":
                features += flags_of(problem, related, c // problem.values)
            queries.append(parameters["embed.weight"] @ noise.new_tensor(features) + parameters["embed.bias"])
        states, logits = queries, []
        for _ in range(steps):
            states = one_round(part(parameters, "step.block."), kinds, problem, rules, states, queries)
            logits.append(torch.stack([state @ parameters["step.readout"] for state in states]))
        out.append(torch.stack(logits).view(steps, problem.variables, problem.values))
    return torch.stack(out, 1)


def selector_scores(
    parameters: dict[str, Tensor],
    kinds: tuple[str, ...],
    problem: Problem,
    query: Tensor,
    logits: Tensor,
    solutions: Tensor,
    rounds: int,
    relations: Tensor | None = None,
    value_offset: int = 0,
) -> Tensor:
    """Scores [B, K] of solutions [B, K, R] from logits [B, R, V + value_offset]."""
    V = problem.values
    scores = []
    for b in range(len(query)):
        rules = rules_of(problem, pairs(relations, b))
        for solution in solutions[b]:
            queries = []
            for c in range(problem.choices):
                belief = logits[b, c // V].softmax(0)[value_offset + c % V]
                taken = float(solution[c // V] == c % V)
                features = [taken, taken * belief, belief, given(problem, query[b], c)]
                queries.append(
                    parameters["embed.weight"] @ torch.stack([torch.as_tensor(f).to(logits) for f in features])
                    + parameters["embed.bias"]
                )
            states = queries
            for _ in range(rounds):
                states = one_round(part(parameters, "step.block."), kinds, problem, rules, states, queries)
            scores.append(parameters["step.readout"] @ (sum(states) / len(states)))
    return torch.stack(scores).view(len(query), -1)
