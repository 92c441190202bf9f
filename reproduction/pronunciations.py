"""Pronunciations of English words (CMUdict): every objective, and what it gains over the first pronunciation only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from oneofmany.evaluation.record import SUBSETS, Subset
from oneofmany.evaluation.statistics import SeedSummary
from oneofmany.pictures.themes import Chart, Theme
from oneofmany.report.cells import SAME_ACCURACY, Runs, commands, count_cell, training_cell, with_interval
from oneofmany.report.grid import OBJECTIVES, Grid, name_of, over_dev, summarise, summary_of
from oneofmany.report.table import Cell, Column, Table, columns
from reproduction.cells import updates_cell
from reproduction.forest import draw_differences, image
from reproduction.ours import on
from reproduction.paired import (
    HIGHER,
    LOWER,
    PAIRED,
    UNDECIDED,
    Measure,
    difference,
    in_points,
    of_recipe,
    paired_cells,
    verdict,
)

TEST = "cmudict-test"
PRACTICE = "random"
"""The usual practice: Random trains on the first listed answer, which is the dictionary's first pronunciation."""
MEASURES: dict[Measure, str] = {
    "os": "words with one",
    "ms": "words with several",
    "overall": "all words",
    "errors": "phoneme error rate",
}
"""What is measured -> its name for readers."""
BETTER = {HIGHER: "better", LOWER: "worse", UNDECIDED: UNDECIDED}


class Kind(NamedTuple):
    """A kind of network: the last part of its recipes, and its title for readers."""

    variant: str
    title: str


KINDS = (
    Kind("ctc/cmudict", "encoder with CTC, all phonemes at once"),
    Kind("cmudict", "encoder-decoder, autoregressive"),
)


def runs_of(grid: Grid, kind: Kind) -> dict[str, Runs]:
    """Objective -> its runs on the test words; objectives without runs are left out."""
    found = {name: on(of_recipe(grid, f"sequences/{name}/{kind.variant}"), TEST) for name in OBJECTIVES}
    return {name: runs for name, runs in found.items() if runs}


def gains(of: Mapping[str, Runs], measure: Measure) -> dict[str, SeedSummary]:
    """Objective -> its measure minus that of the usual practice; those without enough common seeds are left out."""
    found = {name: difference(runs, of.get(PRACTICE, ()), measure) for name, runs in of.items() if name != PRACTICE}
    return {name: one for name, one in found.items() if one is not None}


def _row_name(objective: str) -> str:
    return name_of(objective) + (" (the first pronunciation only)" if objective == PRACTICE else "")


def pronunciations(grid: Grid) -> Table:
    """Accuracy by any listed pronunciation and the phoneme error rate, for every objective and both networks."""
    rows = []
    for kind in KINDS:
        for name, runs in runs_of(grid, kind).items():
            records, made = [record for record, _ in runs], commands(runs)
            shares = [with_interval(summary_of(runs, subset), made) for subset in SUBSETS]
            errors = _error_cell(runs)
            rows.append(
                (
                    *(Cell(kind.title), Cell(_row_name(name), objective=name), *shares, errors),
                    *(count_cell(len(runs)), updates_cell(records), training_cell(records)),
                )
            )
    return Table(
        "pronunciations",
        "Pronunciations of English words, test accuracy in %, among the listed pronunciations",
        (*columns(("network", "trained with"), (("", tuple(MEASURES.values())),)), *_MADE),
        tuple(rows),
        "Without stress marks. An answer is right if it is any listed pronunciation of its word; words with one and "
        "with several of them apart. Phoneme error rate: the edits to the nearest listed pronunciation over its "
        "phonemes, in %, all words. Mean over seeds, with Student's t interval (95 %) over seeds, cut at 0 and 100. "
        f"{SAME_ACCURACY} Updates: those made, pre-trainings included, mean over seeds; dev may end a run early.",
        labels=2,
    )


def _error_cell(runs: Runs) -> Cell:
    """The mean error rate and its interval, cut at 0; answers that are too long can make it larger than 100."""
    found = summarise((record, one.error_rate) for record, one in runs)
    if found is None:
        return Cell()
    text, numbers = f"{found.mean:.2f}", {"mean": found.mean}
    if found.low is not None and found.high is not None:
        numbers |= {"low": max(found.low, 0.0), "high": found.high}
        text += " [{low:.2f}, {high:.2f}]".format(**numbers)
    return Cell(text, numbers, commands(runs))


_MADE = tuple(map(Column, ("seeds", "updates", "training")))


def pronunciation_gains(grid: Grid) -> Table:
    """Every objective minus the first pronunciation only, paired by seed."""
    rows = []
    for kind in KINDS:
        of = runs_of(grid, kind)
        found = {measure: gains(of, measure) for measure in MEASURES}
        for name in of:
            if any(name in own for own in found.values()):
                pairs = [paired_cells(own.get(name), of[name], of[PRACTICE]) for own in found.values()]
                rows.append(
                    (Cell(kind.title), Cell(name_of(name), objective=name), *(c for pair in pairs for c in pair))
                )
    return Table(
        "pronunciation-gains",
        "Every objective minus Random, the first pronunciation only, in points",
        columns(("network", "trained with"), ((name, ("points", "")) for name in MEASURES.values())),
        tuple(rows),
        f"{PAIRED} A lower phoneme error rate is better.",
        labels=2,
    )


def preferred(of: Mapping[str, Runs]) -> str:
    """The objective with the best mean accuracy on the dev words, all of them; the test words have no say."""
    means = {name: over_dev([record for record, _ in runs], "overall") for name, runs in of.items()}
    return max(of, key=lambda name: -1.0 if (found := means[name]) is None else found.mean)


def pronunciations_answer(grid: Grid) -> str:
    """For every network: what dev prefers, what it gains over the usual practice, all verdicts; empty without runs."""
    lines = []
    for kind in KINDS:
        of = runs_of(grid, kind)
        if not gains(of, "overall"):
            continue
        lines += [f"* **{kind.title[0].upper()}{kind.title[1:]}**: {_choice(of)}", f"  {_verdicts(of)}"]
    return "\n".join([*lines, "", image("pronunciations", ALT)] if lines else [])


ALT = "Every objective minus training on the first pronunciation only, for two networks"


def _choice(of: Mapping[str, Runs]) -> str:
    best = preferred(of)
    if best == PRACTICE:
        return f"dev prefers **the first pronunciation only** (Random): {_shares(of[best])}."
    parts = []
    for measure, words in GAINED.items():
        if (found := gains(of, measure).get(best)) is not None:
            # An error rate that is lower is better.
            reverse = {HIGHER: LOWER, LOWER: HIGHER} if measure == "errors" else {}
            word = verdict(found)
            parts.append(f"{in_points(found)} points {words} (**{BETTER[reverse.get(word, word)]}**)")
    gained = f" Gained: {', '.join(parts)}." if parts else ""
    return (
        f"dev prefers **{name_of(best)}**: {_shares(of[best])}; the first pronunciation only (Random): "
        f"{_shares(of[PRACTICE])}.{gained}"
    )


GAINED: dict[Measure, str] = {
    "overall": "on all words",
    "ms": "on those with several",
    "errors": "of phoneme error rate",
}


def _shares(runs: Runs) -> str:
    words: dict[Subset, str] = {"overall": "of all words", "ms": "of those with several pronunciations"}
    found = [(summary_of(runs, subset), text) for subset, text in words.items()]
    return " and ".join(f"{one.mean:.1f} % {text}" for one, text in found if one is not None)


def _verdicts(of: Mapping[str, Runs]) -> str:
    """``All objectives on words with several, ...: **better** MinLoss +1.20 [...]; **undecided** ...``."""
    found: dict[str, list[str]] = {}
    for name, one in gains(of, "ms").items():
        found.setdefault(BETTER[verdict(one)], []).append(f"{name_of(name)} {in_points(one)}")
    parts = [f"**{word}** {', '.join(found[word])}" for word in BETTER.values() if word in found]
    return f"All objectives minus Random on words with several pronunciations, in points: {'; '.join(parts)}."


def pronunciations_chart(grid: Grid) -> Chart | None:
    """What every objective gains over the first pronunciation only: words with several, and all words."""
    panels, made = [], {}
    for kind in KINDS:
        of = runs_of(grid, kind)
        own = [(MEASURES[m], {name_of(n): one for n, one in gains(of, m).items()}) for m in ("ms", "overall")]
        if all(rows for _, rows in own):
            panels.append((kind.title, own))
            made |= dict.fromkeys(command for runs in of.values() for command in commands(runs))
    if not panels:
        return None
    return Chart(
        "pronunciations",
        "Pronunciations: every objective minus the first pronunciation only",
        "Test accuracy among the listed pronunciations, in points. Mean over seeds with Student's t interval (95 %), "
        "paired by seed; in grey those that contain 0.",
        partial(_draw, panels=panels),
        tuple(made),
        size=(4.8, 0.9 + sum(0.7 + 0.28 * len(own[0][1]) for _, own in panels)),
    )


Panel = tuple[str, Sequence[tuple[str, Mapping[str, SeedSummary]]]]
"""A network, and for each column its title with objective -> difference."""


def _draw(figure: Any, theme: Theme, panels: Sequence[Panel]) -> None:
    heights = [0.7 + 0.28 * len(own[0][1]) for _, own in panels]
    every = figure.subplots(len(panels), 2, squeeze=False, height_ratios=heights, sharex="col")
    for row, (title, own) in zip(every, panels, strict=True):
        for axes, (_, rows) in zip(row, own, strict=True):
            draw_differences(axes, theme, rows)
        row[0].set_title(title, loc="left")
        row[1].set_yticks(row[1].get_yticks(), [])
    for axes, (words, _) in zip(every[-1], panels[-1][1], strict=True):
        axes.set_xlabel(words)
    figure.supxlabel("points, minus the first pronunciation only", fontsize=10.5)
