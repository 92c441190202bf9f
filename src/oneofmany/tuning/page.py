"""The page of a search: the best trials of every objective, and the plots of its studies."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oneofmany.extras import missing, require
from oneofmany.files import check_writable, write_whole
from oneofmany.report import Chart, Grid, Section, Table
from oneofmany.report.answer import Answer
from oneofmany.report.page import render
from oneofmany.report.table import Cell, Column

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial

BEST = 5
"""Trials of an objective in the first table."""
MARKERS = "os^Dv*P"


def write_page(studies: Mapping[str, Study], out: str | Path, command: str, *, force: bool = True) -> None:
    """Write the page of a search: objective -> study."""
    require("jinja2")
    check_writable(out, force)
    charts = [chart for chart in (history(studies), progress(studies)) if chart is not None]
    sections = [
        Section("best", "Best trials", [best(studies, command)], html=_summary(studies)),
        Section("search", "The search", charts=charts),
        Section("fields", "Fields and accuracy on dev", charts=fields(studies)),
    ]
    drawn = missing("matplotlib") is None
    page = render(Grid.of([]), sections, drawn=drawn, title="Hyperparameter search", answer=answer(studies))
    write_whole(out, lambda beside: beside.write_text(page, encoding="utf-8"), force)


def _finished(study: Study) -> list[FrozenTrial]:
    """Finished trials, the best on dev first."""
    from optuna.trial import TrialState

    done = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    return sorted(done, key=lambda trial: -(trial.value or 0.0))


def answer(studies: Mapping[str, Study]) -> Answer:
    """What the page begins with: the best trial of every objective."""
    winners = {name: done[0] for name, study in studies.items() if (done := _finished(study))}
    sentences = [
        f"{name} reaches {100 * (trial.value or 0.0):.2f} % on dev with {_chosen(trial)}."
        for name, trial in sorted(winners.items(), key=lambda pair: -(pair[1].value or 0.0))
    ]
    note = "The best of several trials is too high for its own accuracy: evaluate it on a test set, once."
    return Answer(sentences or ["No trial has finished yet."], note=note if sentences else "")


def _chosen(trial: FrozenTrial) -> str:
    return ", ".join(f"{field} {_text(value)}" for field, value in trial.params.items())


def _summary(studies: Mapping[str, Study]) -> str:
    items = []
    for name, study in studies.items():
        states = [trial.state.name.lower() for trial in study.get_trials(deepcopy=False)]
        counts = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
        items.append(f"<li>{name}: {counts}; {study.user_attrs['search']['updates']:,} updates a trial</li>")
    return f'<ul class="headlines">{"".join(items)}</ul>'


def best(studies: Mapping[str, Study], command: str) -> Table:
    """The best trials of every objective with their fields."""
    rows = []
    for name, study in studies.items():
        for rank, trial in enumerate(_finished(study)[:BEST]):
            score = trial.value or 0.0
            number = Cell(f"{100 * score:.2f}", {"dev": score}, (command,), best=rank == 0)
            rows.append((Cell(name), Cell(f"{trial.number}"), Cell(_chosen(trial)), number))
    columns = (Column("objective"), Column("trial"), Column("fields"), Column("dev, %"))
    note = "Every objective has the same number of trials and of updates. Chosen on dev; no test set was read."
    return Table("tuning-best", "Best trials on dev", columns, tuple(rows), note, labels=3)


def history(studies: Mapping[str, Study]) -> Chart | None:
    """The score of every trial, and the best so far."""

    def draw(figure: Any, theme: Mapping[str, str]) -> None:
        axes = figure.add_subplot()
        for i, (name, study) in enumerate(studies.items()):
            done = sorted(_finished(study), key=lambda trial: trial.number)
            numbers, scores = [t.number for t in done], [100 * (t.value or 0.0) for t in done]
            best_so_far = [max(scores[: k + 1]) for k in range(len(scores))]
            axes.step(numbers, best_so_far, where="post", label=name, color=theme[name])
            axes.plot(numbers, scores, MARKERS[i % len(MARKERS)], color=theme[name], markersize=4, alpha=0.6)
        axes.set(xlabel="trial", ylabel="accuracy on dev, %")
        axes.legend()

    if not any(_finished(study) for study in studies.values()):
        return None
    return Chart("tuning-history", "Trials", "Points: finished trials. Lines: the best so far.", draw)


def progress(studies: Mapping[str, Study]) -> Chart | None:
    """The accuracy of every trial during training; pruned trials end early."""
    every = [(name, trial) for name, study in studies.items() for trial in study.get_trials(deepcopy=False)]
    every = [(name, trial) for name, trial in every if trial.intermediate_values]

    def draw(figure: Any, theme: Mapping[str, str]) -> None:
        axes = figure.add_subplot()
        for name, trial in every:
            steps, scores = zip(*sorted(trial.intermediate_values.items()), strict=True)
            pruned = trial.state.name == "PRUNED"
            axes.plot(
                steps, [100 * s for s in scores], ":" if pruned else "-", color=theme[name], linewidth=1, alpha=0.7
            )
        axes.set(xlabel="updates of all phases", ylabel="accuracy on dev, %")

    caption = "One line for each trial, coloured by objective; dotted lines were pruned."
    return Chart("tuning-progress", "Trials during training", caption, draw) if every else None


def fields(studies: Mapping[str, Study]) -> list[Chart]:
    """A chart for every field: its value and the score of the trial."""
    names = dict.fromkeys(name for s in studies.values() for trial in _finished(s) for name in trial.params)
    return [_field(name, studies) for name in names]


def _field(field: str, studies: Mapping[str, Study]) -> Chart:
    def draw(figure: Any, theme: Mapping[str, str]) -> None:
        from matplotlib.ticker import LogLocator, NullFormatter

        axes = figure.add_subplot()
        for i, (name, study) in enumerate(studies.items()):
            done = [trial for trial in _finished(study) if field in trial.params]
            if not done:
                continue
            values = [trial.params[field] for trial in done]
            numbers = all(isinstance(value, int | float) for value in values)
            places = values if numbers else [str(value) for value in values]
            scores = [100 * (trial.value or 0.0) for trial in done]
            marker = MARKERS[i % len(MARKERS)]
            axes.plot(places, scores, marker, color=theme[name], markersize=5, alpha=0.7, label=name)
            if any(getattr(trial.distributions[field], "log", False) for trial in done):
                axes.set_xscale("log")
                axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
                axes.xaxis.set_major_formatter("{x:g}")
                axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set(xlabel=field, ylabel="accuracy on dev, %")
        axes.legend()

    return Chart(f"tuning-{field.replace('.', '-')}", field, "One point for each finished trial.", draw)


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
