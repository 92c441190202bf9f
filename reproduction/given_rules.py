"""How much the objective matters with given rules and without: the paper's three tasks, all objectives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from oneofmany.evaluation.record import Record
from oneofmany.evaluation.statistics import SeedSummary
from oneofmany.pictures.themes import Chart, Theme
from oneofmany.report.cells import Runs, commands, count_cell, training_cell
from oneofmany.report.figures import legend
from oneofmany.report.grid import OBJECTIVES, TASKS, Grid, name_of, summary_of
from oneofmany.report.table import Cell, Table, columns
from oneofmany.training.settings import TWO_PHASES
from reproduction.cells import accuracy_cells, updates_cell
from reproduction.forest import image
from reproduction.ours import INTERVALS, on
from reproduction.paired import difference, in_points, of_recipe


class Half(NamedTuple):
    """A task with rules or without: variants of its recipes and test sets; those that fit most objectives are used."""

    variants: tuple[str, ...]
    tests: tuple[str, ...]


GIVEN, LEARNED = "given", "not given"
# A network that is given the rules of N-Queens trains on all boards of the training size, so it needs a larger test.
HALVES = {
    ("nqueens", GIVEN): Half(("equivariant",), ("nqueens-test",)),
    ("nqueens", LEARNED): Half(("transformer",), ("nqueens-same-size-test",)),
    ("futoshiki", GIVEN): Half(("equivariant",), ("futoshiki-same-size-test", "futoshiki-test")),
    ("futoshiki", LEARNED): Half(("transformer", "transformer/augmented"), ("futoshiki-same-size-test",)),
    ("sudoku", GIVEN): Half(("equivariant", "equivariant/alike"), ("sudoku-test",)),
    ("sudoku", LEARNED): Half(("transformer", "transformer/augmented"), ("sudoku-test",)),
}
"""(task, whether its rules are given) -> where its runs are."""
TITLES = {GIVEN: "given (our network)", LEARNED: "not given (Transformer)"}
HELPS = {"augment": "symmetries", "reveal": "revealed cells"}
"""Setting -> what it adds to the training queries."""
LEAST = 2
"""Objectives without which there is nothing to compare."""
NEAR = 1.0
"""Points."""
ONE_PHASE = tuple(name for name in OBJECTIVES if name not in TWO_PHASES)
PARTS = {LEARNED: "without rules", GIVEN: "with given rules"}


def half(grid: Grid, task: str, rules: str) -> dict[str, Runs]:
    """Objective -> its runs; empty for fewer than two objectives."""
    one = HALVES[task, rules]
    every = [
        {o: runs for o in OBJECTIVES if (runs := on(of_recipe(grid, f"{task}/{o}/{variant}"), test))}
        for variant in one.variants
        for test in one.tests
    ]
    found = max(every, key=len)
    return found if len(found) >= LEAST else {}


def measured_tasks(grid: Grid) -> dict[str, dict[str, dict[str, Runs]]]:
    """Task -> rules -> objective -> runs, for the tasks that were trained without rules; a half may be missing."""
    found = {task: {rules: own for rules in TITLES if (own := half(grid, task, rules))} for task in TASKS}
    return {task: halves for task, halves in found.items() if LEARNED in halves}


def title(rules: str, record: Record) -> str:
    """Whether the rules are given, to which network, and what a network without rules was helped with in training."""
    if rules == GIVEN:
        return TITLES[rules]
    helps = [name for field, name in HELPS.items() if record.settings.get(field)]
    return TITLES[rules].replace(")", f", {' and '.join(helps)} in training)" if helps else ")")


def given_rules(grid: Grid) -> Table:
    """Accuracy of every objective with given rules and without."""
    rows = []
    for task, halves in measured_tasks(grid).items():
        for rules, of in halves.items():
            for name, runs in of.items():
                records, about = [record for record, _ in runs], runs[0][1].data
                row = [Cell(name_of(task)), Cell(title(rules, records[0])), Cell(name_of(name), objective=name)]
                row += [Cell(f"{about.name} ({about.size}x{about.size})"), *accuracy_cells(runs)]
                row += [updates_cell(records), count_cell(len(runs))]
                rows.append((*row, training_cell(records)))
    return Table(
        "given-rules",
        "Every objective with given rules and without, accuracy in %",
        columns(
            ("task", "rules", "objective", "test set"),
            (("", ("OS", "MS", "Overall")), ("", ("updates", "seeds", "training"))),
        ),
        tuple(rows),
        f"{INTERVALS} An answer is right if it keeps the rules. All objectives of a task and network have the same "
        "number of updates, pre-trainings included; SelectR also counts those that train its selector alone. The two "
        "networks have different budgets, and may have different test sets: compare objectives, not networks. "
        "Several Transformers shared the GPU, so their seconds are longer than those of one alone. The Transformer "
        "knows the size of its training boards only; our network has trained on all boards of 10 queens and is tested "
        "on 11.",
        labels=4,
    )


class Spread(NamedTuple):
    """The objectives on MS queries: the best and the worst with their means, and how many are near the best.

    Args:
        best: name and mean.
        worst: name and mean.
        near: objectives whose mean is at most ``NEAR`` points below the best.
        objectives: their number.
        found: the best minus the worst, paired by seed; None without enough common seeds.
    """

    best: tuple[str, float]
    worst: tuple[str, float]
    near: int
    objectives: int
    found: SeedSummary | None

    @property
    def points(self) -> float:
        """The best mean minus the worst."""
        return self.best[1] - self.worst[1]

    def __str__(self) -> str:
        """``30.00 points (MinLoss 90.00 %, Naive 60.00 %; paired by seed +30.00 [...]; 2 of 7 near the best)``."""
        (best, high), (worst, low) = self.best, self.worst
        paired = "" if self.found is None else f" paired by seed {in_points(self.found)};"
        near = f"{self.near} of {self.objectives} within a point of the best"
        return f"{self.points:.2f} points ({name_of(best)} {high:.2f} %, {name_of(worst)} {low:.2f} %;{paired} {near})"


def spread(of: Mapping[str, Runs], names: Sequence[str]) -> Spread | None:
    """The spread among these objectives; None for fewer than two."""
    means = {name: one.mean for name in names if (one := summary_of(of[name], "ms")) is not None}
    if len(means) < LEAST:
        return None
    best, worst = (choose(means, key=lambda name: means[name]) for choose in (max, min))
    near = sum(mean >= means[best] - NEAR for mean in means.values())
    ends = ((best, means[best]), (worst, means[worst]))
    return Spread(*ends, near, len(means), difference(of[best], of[worst]))


def given_rules_answer(grid: Grid) -> str:
    """A line for every task: how much the objective matters on MS queries, with and without rules; empty without runs.

    Best and worst are among the objectives with one phase. The others have only a part of the updates for themselves.
    """
    lines = []
    for task, halves in measured_tasks(grid).items():
        common = [name for name in ONE_PHASE if all(name in of for of in halves.values())]
        found = {rules: one for rules, of in halves.items() if (one := spread(of, common)) is not None}
        if LEARNED not in found:
            continue
        parts = [f"{name} {found[rules]}{late(halves[rules])}" for rules, name in PARTS.items() if rules in found]
        lines.append(f"* **{name_of(task)}**: {'; '.join(parts)}.")
    if not lines:
        return ""
    warning = (
        f"On MS queries, best minus worst of the {len(ONE_PHASE)} objectives with one phase. Both are chosen by the "
        "same numbers, so chance alone makes a spread larger than 0. I-ExplR and SelectR share the same number of "
        "updates with a pre-training."
    )
    return "\n".join([*lines, "", warning, "", image("given-rules", ALT)])


def late(of: Mapping[str, Runs]) -> str:
    """``, I-ExplR 94.52 %, SelectR 94.23 %``: the objectives that have two phases."""
    means = {name: one.mean for name in TWO_PHASES if name in of and (one := summary_of(of[name], "ms")) is not None}
    return "".join(f", {name_of(name)} {mean:.2f} %" for name, mean in means.items())


ALT = (
    "Accuracy of every objective on queries with several solutions, with given rules and without, a panel for each task"
)


def given_rules_chart(grid: Grid) -> Chart | None:
    """MS accuracy of every objective, a panel for each task: filled with given rules, hollow without."""
    tasks = measured_tasks(grid)
    if not given_rules_answer(grid):
        return None
    every = [runs for halves in tasks.values() for of in halves.values() for runs in of.values()]
    return Chart(
        "given-rules",
        "Where the objective matters: accuracy on MS queries with given rules and without",
        "Mean over seeds, with Student's t interval (95 %) where there are several, cut at 0 and 100. Given rules: our "
        "network; without: a Transformer.",
        partial(_draw, tasks=tasks),
        tuple(dict.fromkeys(command for runs in every for command in commands(runs))),
        size=(4.6, 1.0 + 1.75 * len(tasks)),
    )


STYLES = {GIVEN: ("o", -0.15, "rules given"), LEARNED: ("D", 0.15, "rules not given")}
"""Marker, shift and label of a half."""


def _draw(figure: Any, theme: Theme, tasks: Mapping[str, Mapping[str, Mapping[str, Runs]]]) -> None:
    all_axes = figure.subplots(len(tasks), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (task, halves) in zip(all_axes, tasks.items(), strict=True):
        names = [name for name in OBJECTIVES if any(name in of for of in halves.values())]
        for rules, of in halves.items():
            marker, shift, _ = STYLES[rules]
            for name, runs in of.items():
                if (one := summary_of(runs, "ms")) is None:
                    continue
                low, high = (one.mean if end is None else min(max(end, 0.0), 100.0) for end in (one.low, one.high))
                colour, inside = theme[name], theme[name] if rules == GIVEN else theme["paper"]
                axes.errorbar([one.mean], [names.index(name) + shift], xerr=[[one.mean - low], [high - one.mean]],
                              color=colour, marker=marker, markerfacecolor=inside, markersize=5, elinewidth=1.3,
                              clip_on=False)  # fmt: skip
        axes.set_yticks(range(len(names)), [name_of(name) for name in names])
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_title(name_of(task), loc="left")
        axes.grid(axis="y", visible=False)
    for rules, (marker, _, label) in STYLES.items():
        inside = theme["ink"] if rules == GIVEN else theme["paper"]
        all_axes[0].plot([], [], linestyle="", color=theme["ink"], marker=marker, markerfacecolor=inside,
                         markersize=5, label=label)  # fmt: skip
    all_axes[-1].set(xlabel="accuracy on MS queries, %", xlim=(0, 100))
    legend(figure, all_axes[0], columns=2)
