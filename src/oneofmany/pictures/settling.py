"""A board settling: a network's belief, step by step, as one small animated SVG.

The animation is CSS, so it plays wherever a page shows the picture. Who prefers reduced motion sees the answer.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

import oneofmany
from oneofmany.files import check_writable, write_whole
from oneofmany.networks.equivariant.cpu import load_for_cpu
from oneofmany.networks.equivariant.cpu_inference import log_softmax
from oneofmany.networks.noise import Noise
from oneofmany.pictures.boards import CELL, COLOURS, Board, is_grid, layout, place, symbol_of, text_of
from oneofmany.pictures.shapes import Outline, Shape, Words, rectangle, svg_of
from oneofmany.problems import Problem, Query

LEAST = 0.05
"""A belief that is never larger is not drawn."""
SURE = 0.8
"""From this belief on, the value of a cell is drawn large."""
SECONDS_A_STEP = 0.2
SECONDS_AT_THE_END = 3.0
CLOSE = 0.05
"""Opacities may be this far from the belief, which keeps the file small."""


def beliefs(query: Query, network: str | Path | None = None, steps: int = 64, seed: int = 0) -> np.ndarray:
    """The belief of an equivariant network about a query after each step, float32 [T, R, V].

    Args:
        query: the query.
        network: a weights file, a run folder, or the name of a bundled network; that of the query's task by default.
        steps: at most this many; fewer if the network is sure of its answer and its belief hardly changes.
        seed: of the noise.
    """
    engine = load_for_cpu(oneofmany.weights_file(network or query.problem.task)).network
    arguments = query.problem, query.values[None], query.relations[None] if len(query.relations) else None
    noise = Noise(seed).normal((1, query.problem.choices))
    found: list[np.ndarray] = []
    for step in range(1, steps + 1):
        found.append(np.exp(log_softmax(engine.run(*arguments, noise=noise, steps=step).last[0])))
        if step > 2 and np.abs(found[-1] - found[-2]).max() < 0.02 and found[-1].max(-1).min() > SURE:
            break
    return np.stack(found)


def settling_svg(query: Query, belief: np.ndarray) -> str:
    """An animated SVG of a belief ``[T, R, V]`` about a query, and of the answer that its last step is.

    It follows the reader's light or dark mode.
    """
    problem, given = query.problem, query.values > 0
    answer = np.where(given, query.values, belief[-1].argmax(-1) + 1)
    last = Board(problem, answer, query.relations, given)
    # The bare query comes first. The answer comes last, also if the network is not sure of it, and stays for a while.
    steps = len(belief)
    taken = np.eye(problem.values, dtype=belief.dtype)[answer - 1]
    belief = np.concatenate([np.zeros_like(belief[:1]), belief, taken[None]])
    total = SECONDS_A_STEP * (len(belief) - 1) + SECONDS_AT_THE_END
    times = [SECONDS_A_STEP * step / total for step in range(len(belief))]
    parts: list[Shape | str] = []
    rules: dict[str, str] = {}

    def animated(shape: Shape, opacity: np.ndarray) -> None:
        frames = _keyframes(times, opacity)
        name = rules.setdefault(frames, f"k{len(rules)}")
        parts.append(replace(shape, opacity=float(opacity[-1])).svg(name))

    plan = layout(Board(problem, query.values, query.relations, given))
    parts += plan.fields
    for v in range(problem.variables):
        if v in last.absent:
            continue
        if given[v]:
            parts.append(symbol_of(problem, v, int(query.values[v]), "ink", bold=True))
            continue
        for value in (int(at) + 1 for at in np.flatnonzero(belief[:, v].max(0) > LEAST)):
            own, surest = belief[:, v, value - 1], belief[:, v].max(-1)
            # Digits are small as long as none of them is sure.
            possible = _small(problem, v, value) if is_grid(problem) else symbol_of(problem, v, value, "muted")
            unsure = own * np.clip((SURE + 0.1 - surest) / 0.1, 0, 1)
            if unsure.max() > LEAST:
                animated(possible, unsure)
            if value == answer[v]:
                animated(symbol_of(problem, v, value, last.colour(v)), np.clip((own - SURE) / 0.1, 0, 1))
    parts += plan.over
    settled = np.zeros(len(belief))
    settled[-1] = 1
    frame = rectangle(-4, -4, plan.wide + 8, plan.high + 8)
    frames = _keyframes(times, settled)
    name = rules.setdefault(frames, f"k{len(rules)}")
    parts.append(Outline(frame, stroke="right" if last.solved else "wrong", width=3).svg(name))
    style = "".join(f"@keyframes {name}{{{frames}}}" for frames, name in rules.items())
    each = "".join(f".{name}{{animation:{name} {total:.2f}s linear infinite}}" for name in rules.values())
    style += f"@media(prefers-reduced-motion:no-preference){{{each}}}"
    words = f"A network settles on an answer to a {problem.task} query in {steps} steps; the answer is "
    colours = (*COLOURS, "paper") if last.absent else COLOURS
    return svg_of(parts, plan.wide, plan.high, words + ("right" if last.solved else "wrong"), colours, style)


def save_settling(path: str | Path, query: Query, belief: np.ndarray, *, force: bool = False) -> None:
    """Write ``settling_svg`` to a file, whole or not at all."""
    if Path(path).suffix.lower() != ".svg":
        raise ValueError(f"{path}: expected a file name that ends in .svg")
    check_writable(path, force)
    text = settling_svg(query, belief)
    write_whole(path, lambda beside: beside.write_text(text, encoding="utf-8"), force)


def _small(problem: Problem, v: int, value: int) -> Words:
    """A digit in its own place of a cell."""
    x, y = place(problem, v, value)
    across = int(np.ceil(np.sqrt(problem.values)))
    edge = 4.0
    each = (CELL - 2 * edge) / across
    at, down = (value - 1) % across, (value - 1) // across
    x, y = x + edge + (at + 0.5) * each, y + edge + (down + 0.5) * each
    return Words(x, y, min(12.0, each), text_of(problem, value), "muted")


def _keyframes(times: list[float], opacity: np.ndarray) -> str:
    """The keyframes of an opacity, with as few points as keep it within ``CLOSE``; the last one is held."""
    kept = [0]
    while kept[-1] < len(times) - 1:
        start = kept[-1]
        end = start + 1
        while end + 1 < len(times) and _fits(times, opacity, start, end + 1):
            end += 1
        kept.append(end)
    points = [f"{100 * times[i]:.3g}%{{opacity:{max(0.0, opacity[i]):.2g}}}" for i in kept]
    return "".join([*points, f"to{{opacity:{opacity[-1]:.2g}}}"])


def _fits(times: list[float], opacity: np.ndarray, start: int, end: int) -> bool:
    between = np.interp(times[start : end + 1], [times[start], times[end]], [opacity[start], opacity[end]])
    return bool(np.abs(between - opacity[start : end + 1]).max() <= CLOSE)
