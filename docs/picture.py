"""Draw docs/picture.svg: a query with two solutions, and what Naive and MinLoss believe after the same training.

    python docs/picture.py --runs runs/picture

Trains the recipes nqueens/naive/tiny and nqueens/minloss/tiny with seed 42 on the CPU, a few minutes on two cores. Runs
that are already in the folder are used as they are. The query is chosen to show the difference: of the test queries
with two solutions that MinLoss answers right and Naive wrong, the one on which Naive's belief is closest to the average
of the two. The bars count all test queries with several solutions.
"""

import argparse
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

import oneofmany
from oneofmany.data import Dataset, DeviceData
from oneofmany.data.benchmark import find_benchmark
from oneofmany.networks import predict
from oneofmany.recipes import recipe
from oneofmany.training import resume, train

OBJECTIVES = {"naive": "Naive", "minloss": "MinLoss"}
LIGHT = {
    "paper": "#ffffff",
    "edge": "#d5dae1",
    "ink": "#1c2128",
    "muted": "#5d6673",
    "field": "#eef1f5",
    "first": "#0072b2",
    "second": "#d55e00",
    "right": "#00865e",
    "wrong": "#c81e3a",
}
DARK = {
    "paper": "#14181f",
    "edge": "#3a4350",
    "ink": "#e6e9ee",
    "muted": "#9ba5b4",
    "field": "#232a34",
    "first": "#5ab2ee",
    "second": "#ff934a",
    "right": "#3bd4a5",
    "wrong": "#ff6b81",
}
BOARD, GAP, MARGIN, LABEL = 224, 27, 27, 36
QUEEN = "3,22 1,7 7.5,13 12.5,3 17.5,13 24,7 22,22"
"""A crown in a box of 25 by 25."""
TICK, CROSS = "M1 8 L6 13 L15 2", "M2 2 L13 13 M13 2 L2 13"


@dataclass(frozen=True)
class Belief:
    """What a network says about one query, and how often it is right.

    Args:
        name: of the objective that trained it.
        probability: [R, V], of every value of every variable.
        valid: whether its answer keeps the givens and every rule.
        accuracy: share of valid answers to all test queries with several solutions.
    """

    name: str
    probability: np.ndarray
    valid: bool
    accuracy: float


def picture(query: np.ndarray, solutions: np.ndarray, beliefs: list[Belief]) -> str:
    """The SVG of a query ``[R]`` (0 = blank), its two solutions ``[2, R]`` (values from 1) and two beliefs."""
    left = [MARGIN + column * (BOARD + GAP) for column in range(3)]
    top = [MARGIN + LABEL, MARGIN + 2 * LABEL + BOARD + GAP]
    width, height = left[2] + BOARD + MARGIN, top[1] + BOARD + MARGIN
    size = len(query)
    given = [(row, value - 1, "ink", 1.0) for row, value in enumerate(query) if value]
    blank = [row for row in range(size) if not query[row]]
    first, second = (
        [(row, int(solution[row]) - 1, _colour(row, int(solution[row]) - 1, solutions), 1.0) for row in blank]
        for solution in solutions
    )
    parts = [
        _label(left[0], top[0], "query") + _board(left[0], top[0], size, given),
        _label(left[1], top[0], "one answer") + _board(left[1], top[0], size, given + first),
        _label(left[2], top[0], "another answer") + _board(left[2], top[0], size, given + second),
    ]
    for place, belief in zip(left, beliefs, strict=False):
        believed = [
            (row, value, _colour(row, value, solutions), float(belief.probability[row, value]))
            for row in blank
            for value in range(size)
            if belief.probability[row, value] >= 0.02
        ]
        parts += [_label(place, top[1], f"{belief.name}: {_count(believed)}"), _verdict(place, top[1], belief.valid)]
        parts += [_board(place, top[1], size, given + believed)]
    parts += [_label(left[2], top[1], "valid answers"), _bars(left[2], top[1], beliefs)]
    variables = "".join(f"--{name}:{colour};" for name, colour in LIGHT.items())
    dark = "".join(f"--{name}:{colour};" for name, colour in DARK.items())
    fills = "".join(f".{name}{{fill:var(--{name})}}.{name}-line{{stroke:var(--{name})}}" for name in LIGHT)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{_words(beliefs)}">\n'
        f"<style>svg{{{variables}}}@media(prefers-color-scheme:dark){{svg{{{dark}}}}}{fills}"
        "text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;font-size:24px}"
        ".name{font-weight:600}path{fill:none;stroke-width:3.6;stroke-linecap:round;stroke-linejoin:round}</style>\n"
        f'<defs><polygon id="queen" points="{QUEEN}"/></defs>\n'
        f'<rect x="0.75" y="0.75" width="{width - 1.5}" height="{height - 1.5}" rx="14" class="paper edge-line" '
        'stroke-width="1.5"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _colour(row: int, value: int, solutions: np.ndarray) -> str:
    """The colour of the solution that has a queen there; grey for both and for neither."""
    first, second = solutions[:, row] == value + 1
    return "muted" if first == second else "first" if first else "second"


def _count(believed: list[tuple[int, int, str, float]]) -> str:
    """Whether queens of one solution or of both are believed in, as far as more than one in four goes."""
    return "both" if {"first", "second"} <= {colour for *_, colour, sure in believed if sure > 0.25} else "one"


def _words(beliefs: list[Belief]) -> str:
    said = "; ".join(f"{b.name} {'is right' if b.valid else 'is wrong'}, {b.accuracy:.0%} overall" for b in beliefs)
    return f"A board with two solutions, and the beliefs of two networks: {said}"


def _label(x: float, y: float, text: str) -> str:
    return f'<text x="{x}" y="{y - 13}" class="ink name">{text}</text>'


def _verdict(x: float, y: float, valid: bool) -> str:
    """A tick or a cross at the right end of the label."""
    kind, mark = ("right", TICK) if valid else ("wrong", CROSS)
    return f'<path d="{mark}" class="{kind}-line" transform="translate({x + BOARD - 17} {y - 29})"/>'


def _board(x: float, y: float, size: int, queens: list[tuple[int, int, str, float]]) -> str:
    """A board with queens: row, column, colour and how sure, 0 to 1."""
    cell = BOARD / size
    dark = "".join(
        f"M{column * cell:g} {row * cell:g}h{cell:g}v{cell:g}h{-cell:g}z"
        for row in range(size)
        for column in range(size)
        if (row + column) % 2
    )
    edge, scale = cell * 0.06, cell * 0.88 / 25
    drawn = "".join(
        f'<use href="#queen" class="{colour}" opacity="{sure:.2f}" '
        f'transform="translate({column * cell + edge:.2f} {row * cell + edge:.2f}) scale({scale:.3f})"/>'
        for row, column, colour, sure in queens
    )
    return (
        f'<g transform="translate({x} {y})"><path d="{dark}" style="fill:var(--field);stroke:none"/>{drawn}'
        f'<rect width="{BOARD}" height="{BOARD}" rx="3" fill="none" class="muted-line" stroke-width="1.5"/></g>'
    )


def _bars(x: float, y: float, beliefs: list[Belief]) -> str:
    """The accuracies as bars, 0 to 100 %."""
    bottom, full, wide = y + BOARD - 34, BOARD - 70, 74
    drawn = [f'<path d="M{x} {bottom}h{BOARD}" class="muted-line" style="stroke-width:1.5"/>']
    for number, belief in enumerate(beliefs):
        middle, high = x + BOARD * (1 + 2 * number) / 4, full * belief.accuracy
        kind = "right" if belief.valid else "wrong"
        drawn += [
            f'<rect x="{middle - wide / 2}" y="{bottom - high:.1f}" width="{wide}" height="{high:.1f}" '
            f'class="{kind}"/>',
            f'<text x="{middle}" y="{bottom - high - 9:.1f}" class="ink name" text-anchor="middle">'
            f"{100 * belief.accuracy:.0f} %</text>",
            f'<text x="{middle}" y="{y + BOARD - 4}" class="muted" text-anchor="middle">{belief.name}</text>',
        ]
    return "".join(drawn)


def trained(folder: Path) -> tuple[np.ndarray, np.ndarray, list[Belief]]:
    """The query, its solutions and the beliefs of the two networks, trained into ``folder`` where they are missing."""
    files = {part: find_benchmark(f"nqueens-tiny-{part}", folder / "data") for part in ("train", "dev", "test")}
    test = Dataset.load(files["test"])
    batch = DeviceData(test).batch(torch.arange(len(test)))
    several = torch.from_numpy(test.multiple)
    predictions, valid = {}, {}
    for objective in OBJECTIVES:
        run = folder / objective
        if run.exists():
            resume(run)
        else:
            settings = replace(recipe(f"nqueens/{objective}/tiny"), device="cpu", threads=1)
            train(settings, files["train"], files["dev"], run)
        saved = oneofmany.load(run)
        generator = torch.Generator().manual_seed(0)
        found = predict(saved.network, batch, steps=saved.settings.test_steps, generator=generator)
        predictions[objective] = found.logits.softmax(-1)
        valid[objective] = batch.problem.check(found.answers, batch.query)
    average = torch.nn.functional.one_hot(batch.solutions[:, :2], batch.problem.values).float().mean(1)
    differ = (batch.solutions[:, 0] != batch.solutions[:, 1]).sum(-1)
    distance = (predictions["naive"] - average).abs().sum((-1, -2)) / differ
    shown = (batch.mask.sum(-1) == 2) & valid["minloss"] & ~valid["naive"]
    row = int(distance.masked_fill(~shown, torch.inf).argmin())
    beliefs = [
        Belief(name, predictions[key][row].numpy(), bool(valid[key][row]), float(valid[key][several].float().mean()))
        for key, name in OBJECTIVES.items()
    ]
    return test.query[row], test.solutions_of(row), beliefs


def main() -> None:
    """Train, where needed, and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, default=Path("runs/picture"), help="folder of the data and the two runs")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("picture.svg"))
    arguments = parser.parse_args()
    arguments.out.write_text(picture(*trained(arguments.runs)))


if __name__ == "__main__":
    main()
