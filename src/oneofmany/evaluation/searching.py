"""Accuracy against the numbers of starts and of steps: what a search by noise pays, without rules and by its seconds.

Example::

    from oneofmany.evaluation import search_run

    found = search_run("sudoku", "data/sudoku-extreme-dev.safetensors", starts=(1, 8), steps=(64, 256))
    print(found.points[-1].overall)
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

import oneofmany
from oneofmany.data import Dataset, DeviceData
from oneofmany.evaluation.scores import Score
from oneofmany.files import FileError, check_writable, read_json, write_json
from oneofmany.networks.kernels import Precision, precision_for, running
from oneofmany.networks.protocol import PredictionNetwork
from oneofmany.networks.searching import PATIENCE, SCALE, TOLERANCE, Restart, search
from oneofmany.progress import Progress
from oneofmany.runs.devices import device_named
from oneofmany.runs.environment import environment

FORMAT = 1
STARTS = (1, 2, 4, 8, 16, 32)
STEPS = (64, 256, 1024)
USUAL = {"tolerance": TOLERANCE, "patience": PATIENCE, "scale": SCALE, "seed": 0, "batch_size": 1024}
"""Settings of a search with their defaults."""


@dataclass(frozen=True)
class SearchPoint:
    """What a number of starts, each of at most a number of steps, reaches on a data file.

    Args:
        restart: how queries start again.
        steps: the most steps of a start.
        starts: the most starts of a query.
        os: right answers of OS queries.
        ms: right answers of MS queries.
        overall: right answers of all queries.
        settled: right answers among those that had settled, which ended the search for their queries.
        mean_steps: steps per query, all of its starts together.
        seconds: until these starts of all queries were done.
    """

    restart: Restart
    steps: int
    starts: int
    os: Score
    ms: Score
    overall: Score
    settled: Score
    mean_steps: float
    seconds: float


@dataclass(frozen=True)
class Searched:
    """The points of a search on one data file, and how they were made: data, network, settings, environment."""

    points: tuple[SearchPoint, ...]
    about: dict[str, Any]

    def curves(self) -> dict[str, dict[int, list[tuple[float, float, float | None, float | None]]]]:
        """Return restart -> steps -> (starts, overall accuracy in percent, both ends of its interval), to draw."""
        found: dict[str, dict[int, list[tuple[float, float, float | None, float | None]]]] = {}
        for point in sorted(self.points, key=lambda one: one.starts):
            score = point.overall.as_dict()
            percents = (100 * score[name] for name in ("accuracy", "low", "high"))
            found.setdefault(point.restart, {}).setdefault(point.steps, []).append((point.starts, *percents))
        return found

    @property
    def caption(self) -> str:
        """What a figure of the curves shows."""
        data = self.about["data"]
        return (
            f"The {data['queries']:,} queries of {data['name']}. The first start that settles answers, or else the one "
            "whose belief moved least; the rules are not used. Bars are Wilson's 95 % intervals."
        )

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write a JSON file; an existing one is replaced only with ``force``."""
        points = [asdict(point) for point in self.points]
        write_json(check_writable(path, force), {"format": FORMAT, "about": self.about, "points": points})

    @classmethod
    def load(cls, path: str | Path) -> Searched:
        """Read a file of ``save``; FileError in one sentence if it is not one."""
        content = read_json(path)
        try:
            if content["format"] != FORMAT:
                raise ValueError(f"its format is {content['format']}")
            scores = ("os", "ms", "overall", "settled")
            points = [SearchPoint(**one | {name: Score(**one[name]) for name in scores}) for one in content["points"]]
            return cls(tuple(points), dict(content["about"]))
        except (KeyError, TypeError, ValueError) as error:
            raise FileError(f"{path} does not hold a search ({type(error).__name__}: {error})") from None


def search_data(
    network: PredictionNetwork,
    data: Dataset | DeviceData,
    *,
    starts: Sequence[int] = STARTS,
    steps: Sequence[int] = STEPS,
    restarts: Sequence[Restart] = ("noise",),
    tolerance: float = TOLERANCE,
    patience: int = PATIENCE,
    scale: float = SCALE,
    seed: int = 0,
    batch_size: int = 1024,
    device: torch.device | str = "cpu",
    precision: Precision = "float32",
    tell: Progress | None = None,
) -> list[SearchPoint]:
    """Search with every number of steps, and count the right answers after every number of starts.

    Answers are chosen without the rules (``networks.searching``); the rules only judge them. Arguments as in ``search``
    and ``evaluate``, and:

    Args:
        network: a network that starts from noise, on the device of the data.
        data: queries of a problem that has rules.
        starts: the numbers of starts to report; the largest is run.
        steps: the numbers of steps, each a search of its own.
        restarts: how queries start again, each a search of its own.
        tell: called with the name of the work, the searches of batches so far and their number.
    """
    for name, numbers in (("starts", starts), ("steps", steps), ("restarts", restarts)):
        if not numbers or len(set(numbers)) < len(numbers):
            raise ValueError(f"{name}: expected different values, at least one, got {list(numbers)}")
    placed = data if isinstance(data, DeviceData) else DeviceData(data, device)
    if not placed.problem.has_rules:
        raise ValueError(f"data: {placed.problem.task} has no rules, so answers cannot be judged")
    multiple = torch.zeros(len(placed), dtype=torch.bool, device=placed.device)
    multiple[placed.rows["ms"]] = True
    points, done = [], 0
    batches = -(-len(placed) // batch_size)
    for restart in restarts:
        for limit in steps:
            kept: dict[int, list[tuple[torch.Tensor, ...]]] = {number: [] for number in sorted(starts)}
            seconds = dict.fromkeys(kept, 0.0)
            generator = torch.Generator().manual_seed(seed)
            for batch in placed.in_order(batch_size):
                began = time.perf_counter()
                with running(placed.device, precision):
                    for found in search(
                        network,
                        batch,
                        starts=max(starts),
                        steps=limit,
                        tolerance=tolerance,
                        patience=patience,
                        restart=restart,
                        scale=scale,
                        generator=generator,
                        together=batch_size,
                    ):
                        if found.starts in kept:
                            right = batch.check(found.answers)
                            kept[found.starts].append((right.cpu(), found.settled.cpu(), found.steps.cpu()))
                            seconds[found.starts] += time.perf_counter() - began
                done += 1
                if tell is not None:
                    tell("searching", done, batches * len(steps) * len(restarts))
            for number, parts in kept.items():
                right, settled, used = map(torch.cat, zip(*parts, strict=True))
                several = multiple.cpu()
                points.append(
                    SearchPoint(
                        restart,
                        limit,
                        number,
                        os=_score(right[~several]),
                        ms=_score(right[several]),
                        overall=_score(right),
                        settled=_score(right[settled]),
                        mean_steps=round(float(used.double().mean()), 2),
                        seconds=round(seconds[number], 3),
                    )
                )
    return points


def search_run(
    run: str | Path,
    data: str | Path,
    *,
    device: str = "auto",
    precision: Precision | None = None,
    **how: Any,
) -> Searched:
    """Search with a trained network on a data file; ``how`` are arguments of ``search_data``.

    Args:
        run: a run folder, a weights file, or the name of a bundled network.
        data: the data file.
        device: auto takes a GPU if there is one.
        precision: of the activations; by default float32 on a CPU and bfloat16 on a GPU.
    """
    place = device_named(device)
    ran_on = environment(place)  # at once: the sources may change while the search runs
    dataset = Dataset.load(data)
    saved = oneofmany.load(run, device=place)
    if why := saved.network.accepts(dataset.problem, dataset.relations):
        raise ValueError(f"{data} holds {dataset.problem.task} {dataset.problem.size}, but {why}")
    kept_in = precision_for(saved.settings.kind, place, precision)
    points = search_data(saved.network, dataset, device=place, precision=kept_in, **how)
    asked = {name: how[name] for name in USUAL if name in how}
    about: dict[str, Any] = {
        "network": str(run),
        "recipe": saved.card.get("recipe"),
        "data": {
            "name": Path(data).stem,
            "checksum": dataset.header()["checksum"],
            "task": dataset.problem.task,
            "size": dataset.problem.size,
            "queries": len(dataset),
        },
        **asked,
        "precision": kept_in,
        "command": _command(run, data, points, asked | ({} if precision is None else {"precision": precision})),
        "environment": ran_on,
    }
    return Searched(tuple(points), about)


def _command(run: str | Path, data: str | Path, points: Sequence[SearchPoint], asked: dict[str, Any]) -> str:
    """The command line that makes these points; options with their usual values are left out."""
    words = ["oneofmany", "search", str(run), str(data)]
    for option, name in (("--starts", "starts"), ("--steps", "steps"), ("--restarts", "restart")):
        words += [option, *(str(value) for value in dict.fromkeys(getattr(point, name) for point in points))]
    for name, value in asked.items():
        if value != USUAL.get(name):
            words += [f"--{name.removesuffix('_size')}", str(value)]
    return shlex.join(words)


def _score(right: torch.Tensor) -> Score:
    return Score(int(right.sum()), len(right))
