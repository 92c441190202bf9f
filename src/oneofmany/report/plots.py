"""Figures of the runs that you name: accuracy over training, steps, starts and the number of solutions.

Example::

    from oneofmany.report import plot, read_records

    plot(read_records(["runs/first", "runs/second"], evaluated=False), "training").save("training.svg")
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, get_args

import numpy as np

from oneofmany.evaluation.record import Evaluation, Record, Subset
from oneofmany.evaluation.scores import Score, wilson
from oneofmany.pictures.lines import Line, Point, draw_lines, legend_room, shifted
from oneofmany.pictures.themes import Chart
from oneofmany.report.answer import answer_chart
from oneofmany.report.grid import OBJECTIVES, Grid, commands_of, labels_of, order_of, test_evaluation
from oneofmany.report.results import WAYS, scores_of

Kind = Literal["answer", "training", "steps", "starts", "solutions"]
Tell = Callable[[str], None]
MARKERS: dict[str, str] = dict(zip(OBJECTIVES, "XPsv^Do", strict=True))
DASHES = ("-", "--", "-.", ":")
PANELS: dict[Subset, str] = {"os": "one solution (OS)", "ms": "several solutions (MS)"}
"""The panels of a figure and their titles."""
DEV = {"os": "dev_os", "ms": "dev_ms"}
DASHES_OF = {"chosen": "-", "checked": "--"}

MOST_RECIPES = 24
"""In one figure of lines; more could not be told apart."""
FIRST = (1, 2, 3, 4, 5, 6, 11, 21, 31, 41, 51, 101, 1001)
"""The first number of solutions of each bin."""
FEWEST = 30
"""A bin with fewer MS queries is merged with its neighbour, so that its interval is useful."""


def plot(records: Iterable[Record], kind: Kind = "answer", tell: Tell = lambda sentence: None) -> Chart:
    """Draw runs together in one figure; ``Chart.save`` writes it.

    Args:
        records: the runs, as ``read_records`` returns them.
        kind: ``answer`` (right answers of every recipe), ``training`` (accuracy on the validation set over updates),
            ``steps`` and ``starts`` (over the number of steps or starts at test time) or ``solutions`` (by the number
            of solutions of a query).
        tell: called with a sentence about every run that is left out.

    Raises:
        ValueError: none of the runs has the numbers; the sentence says which command makes them.
    """
    if kind not in get_args(Kind):
        raise ValueError(f"kind: expected one of {', '.join(get_args(Kind))}, got {kind!r}")
    runs = list(records)
    said: list[str] = []
    chart = answer_chart(Grid.of(runs)) if kind == "answer" else _LINES[kind](runs, said.append)
    if chart is None:
        raise ValueError(said[0] if said else "none of the runs has an evaluation: run `oneofmany evaluate RUN DATA`")
    for sentence in said:
        tell(f"left out: {sentence}")
    return chart


def training_chart(runs: Sequence[Record], tell: Tell, name: str = "training", about: str = "") -> Chart | None:
    """Accuracy on the validation (dev) set over the updates of training."""

    def points(record: Record, subset: Subset) -> list[Point]:
        return _joined(record, DEV[subset]) if len(record.history) > 1 else []

    for record in runs:
        if len(record.history) < 2:
            tell(f"{record.name} was evaluated on its dev set fewer than two times, so it has no training curve")
    panels = _panels(lambda subset: _styled(runs, partial(points, subset=subset), marked=False))
    caption = "Accuracy on the validation (dev) set, one trajectory. Phases follow each other with a gap."
    made = commands_of(record for record in runs if len(record.history) > 1)
    return _chart(name, _title(about, "accuracy over training"), caption, panels, "updates", made)


def steps_chart(runs: Sequence[Record], tell: Tell, name: str = "steps", about: str = "") -> Chart | None:
    """Accuracy over the number of steps at test time."""
    how = "run `oneofmany evaluate RUN DATA --steps N` with several N"
    found = _on_shared_data(runs, lambda one: one.starts == 1 and bool(one.steps), "steps", how, tell)
    return _over(found, name, _title(about, "accuracy over steps"), "steps at test time")


def starts_chart(runs: Sequence[Record], tell: Tell, name: str = "starts", about: str = "") -> Chart | None:
    """Accuracy over the number of noisy starts: of the one that is chosen, and of any."""
    how = "run `oneofmany evaluate RUN DATA --starts N` with several N"
    usual = {record.name: one.steps for record in runs if (one := test_evaluation(record))}
    found = _on_shared_data(
        runs, lambda one: one.steps in (None, *usual.values()), "starts", how, tell, lambda one: one.chosen is not None
    )
    return _over(found, name, _title(about, "accuracy over starts"), "starts", tuple(DASHES_OF))


@dataclass(frozen=True)
class Bin:
    """Queries with ``first`` to ``last`` solutions: how many, how many are right, and the mean number of givens."""

    first: int
    last: int
    correct: int
    total: int
    givens: float

    @property
    def label(self) -> str:
        """``3`` or ``6–10``."""
        return str(self.first) if self.first == self.last else f"{self.first}–{self.last}"

    @property
    def accuracy(self) -> float:
        """In percent."""
        return 100 * self.correct / self.total


def bins_of(evaluation: Evaluation) -> list[Bin]:
    """The bins with queries; queries with an unknown number of solutions are left out."""
    totals, valid, givens = evaluation.total, evaluation.valid, evaluation.givens
    members = [
        rows
        for first, end in zip(FIRST, (*FIRST[1:], np.iinfo(np.int32).max), strict=True)
        if len(rows := np.flatnonzero((totals >= first) & (totals < end)))
    ]
    # From the right, since few queries have many solutions. OS queries keep their own bin.
    i = len(members) - 1
    while i > 0:
        if len(members[i]) < FEWEST and totals[members[i - 1]].min() > 1:
            members[i - 1 : i + 1] = [np.concatenate(members[i - 1 : i + 1])]
        i -= 1
    return [
        Bin(
            int(totals[rows].min()),
            int(totals[rows].max()),
            int(valid[rows].sum()),
            len(rows),
            float(givens[rows].mean()),
        )
        for rows in members
    ]


def solutions_chart(runs: Sequence[Record], tell: Tell, name: str = "solutions", about: str = "") -> Chart | None:
    """Accuracy by the number of solutions of the queries."""
    found: dict[str, tuple[Record, Evaluation, list[Bin]]] = {}
    for record in runs:
        evaluation = test_evaluation(record)
        bins = [] if evaluation is None else bins_of(evaluation)
        if evaluation is None or len(bins) < 2:
            tell(f"{record.name} has no evaluation on queries with different, known numbers of solutions")
        # Bins of other data would mean something else at the same place of the axis.
        elif found and evaluation.data.checksum != next(iter(found.values()))[1].data.checksum:
            tell(f"{record.name} was tested on other queries than {next(iter(found))}")
        else:
            found[record.name] = record, evaluation, bins
    if not found:
        return None

    def points(record: Record) -> list[Point]:
        _, _, bins = found[record.name]
        ends = [wilson(b.correct, b.total) for b in bins]
        return [
            (i, b.accuracy, 100 * low, 100 * high) for i, (b, (low, high)) in enumerate(zip(bins, ends, strict=True))
        ]

    lines = shifted(_styled((record for record, *_ in found.values()), points), 0.8 / (5 + len(found)))
    evaluation, bins = next(iter(found.values()))[1:]
    caption = (
        f"The {evaluation.data.queries:,} queries of {evaluation.data.name}, binned by the number of existing "
        "solutions; bars are Wilson's 95 % intervals."
    )
    made = commands_of((record for record, *_ in found.values()), (one for _, one, _ in found.values()))
    ticks = {float(i): b.label for i, b in enumerate(bins)}
    return Chart(
        name,
        _title(about, "accuracy by number of solutions"),
        caption,
        partial(draw_lines, panels=[("", lines)], xlabel="number of solutions", ticks=ticks),
        made,
        size=(4.8, 3.2 + legend_room([("", lines)])),
    )


_LINES = {"training": training_chart, "steps": steps_chart, "starts": starts_chart, "solutions": solutions_chart}


def _styled(records: Iterable[Record], points: Callable[[Record], Sequence[Point]], marked: bool = True) -> list[Line]:
    """One line for every run with points: its objective decides the colour, its recipe the dashes.

    Args:
        records: the runs.
        points: those of a run; without any the run has no line.
        marked: whether every point has a marker.
    """
    lines = [(record, found) for record in records if (found := points(record))]
    lines.sort(key=lambda pair: (*order_of("", pair[0].objective)[2:], pair[0].recipe, pair[0].seed))
    labels = labels_of(record for record, _ in lines)
    if len(labels) > MOST_RECIPES:
        raise ValueError(f"a figure shows at most {MOST_RECIPES} recipes, got {len(labels)}: name fewer runs")
    same: dict[str, list[str]] = {}  # objective -> its recipes
    made = []
    for record, found in lines:
        recipes = same.setdefault(record.objective, [])
        if record.recipe not in recipes:
            recipes.append(record.recipe)
        dashes = DASHES[recipes.index(record.recipe) % len(DASHES)]
        marker = MARKERS.get(record.objective, ".") if marked else ""
        made.append(Line(labels[record.recipe], record.objective, found, marker, dashes))
    return made


def _title(about: str, what: str) -> str:
    return f"{about}: {what}" if about else what.capitalize()


def _panels(lines: Callable[[Subset], list[Line]]) -> list[tuple[str, list[Line]]]:
    return [(title, found) for subset, title in PANELS.items() if (found := lines(subset))]


def _chart(
    name: str, title: str, caption: str, panels: Sequence[tuple[str, Sequence[Line]]], xlabel: str,
    made: tuple[str, ...], log: bool = False,
) -> Chart | None:  # fmt: skip
    if not panels:
        return None
    draw = partial(draw_lines, panels=panels, xlabel=xlabel, log=log)
    return Chart(name, title, caption, draw, made, size=(4.8, 1.2 + 1.7 * len(panels) + legend_room(panels)))


def _joined(record: Record, column: str) -> list[Point]:
    """All phases one after the other: updates add up, and a nan makes a gap between phases; empty without values."""
    history, points = record.history, []
    before, phase = 0.0, None
    for update, now, value in zip(history.update, history.phase, getattr(history, column), strict=True):
        if phase is not None and now != phase:
            before = points[-1][0]
            points.append((before, float("nan"), None, None))
        phase = now
        points.append((before + update, float("nan") if value is None else 100 * value, None, None))
    return points if any(point[1] == point[1] for point in points) else []


Curve = tuple[Record, dict[int, Evaluation]]


def _on_shared_data(
    runs: Sequence[Record],
    counts: Callable[[Evaluation], bool],
    field: Literal["steps", "starts"],
    how: str,
    tell: Tell,
    enough: Callable[[Evaluation], bool] = lambda one: True,
) -> list[Curve]:
    """For every run its evaluations by the field, on the data set for which most runs have several of them."""
    by_data: dict[str, list[Curve]] = {}
    for record in runs:
        own: dict[str, dict[int, Evaluation]] = {}
        for one in record.evaluations.values():
            if counts(one) and not one.patience:
                own.setdefault(one.data.checksum, {})[int(getattr(one, field) or 1)] = one
        several = {data: found for data, found in own.items() if len(found) > 1 and any(map(enough, found.values()))}
        if not several:
            tell(f"{record.name} was not evaluated with several numbers of {field} on the same data: {how}")
        for data, found in several.items():
            by_data.setdefault(data, []).append((record, dict(sorted(found.items()))))
    best = max(by_data.values(), key=len, default=[])
    drawn = {record.name for record, _ in best}
    for record in {record.name: record for curves in by_data.values() for record, _ in curves}.values():
        if record.name not in drawn:
            tell(f"{record.name} was evaluated on other queries than {best[0][0].name}")
    return best


def _over(
    curves: Sequence[Curve], name: str, title: str, xlabel: str, ways: tuple[str | None, ...] = (None,)
) -> Chart | None:
    if not curves:
        return None
    of = {record.name: found for record, found in curves}

    def point(x: int, score: Score) -> list[Point]:
        if score.accuracy is None or score.low is None or score.high is None:
            return []
        shown = ways == (None,)  # several lines of a run would hide each other's intervals
        low, high = (100 * score.low, 100 * score.high) if shown else (None, None)
        return [(x, 100 * score.accuracy, low, high)]

    def lines(subset: Subset) -> list[Line]:
        made: list[Line] = []
        for way in ways:
            own = _styled(
                [record for record, _ in curves],
                lambda r, way=way: [p for x, e in of[r.name].items() for p in point(x, scores_of(e, way).of(subset))],
            )
            if way is not None:
                own = [replace(line, dashes=DASHES_OF[way], way=WAYS[way]) for line in own]
            made += own
        return made

    first = next(iter(curves[0][1].values()))
    caption = f"The {first.data.queries:,} queries of {first.data.name}. "
    if ways == (None,):
        caption += "One trajectory, with Wilson's 95 % intervals."
    else:
        caption += "Without the rules: the start whose belief moved least. With the checker: any start is a solution."
    made = commands_of((r for r, _ in curves), (e for _, found in curves for e in found.values()))
    return _chart(name, title, caption, _panels(lines), xlabel, made, log=True)
