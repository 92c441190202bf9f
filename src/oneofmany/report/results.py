"""Tables of any runs: accuracy by recipe, objectives compared, several starts, other data, every run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from oneofmany.evaluation.record import SUBSETS, Evaluation, Record, Scores, Subset
from oneofmany.evaluation.statistics import gain
from oneofmany.report.cells import (
    SAME_ACCURACY,
    Runs,
    accuracy_cell,
    against,
    commands,
    count_cell,
    mean_and_best,
    number_cell,
    training_cell,
    wilson_cell,
)
from oneofmany.report.grid import (
    Grid,
    commands_of,
    dev_score,
    name_of,
    order_of,
    shared_data,
    summarise,
    summary_of,
    test_evaluation,
    tested,
    titled,
    variant_of,
)
from oneofmany.report.table import Cell, Column, Table, columns, signed

ACCURACIES = ("", tuple(map(name_of, SUBSETS)))
"""A group of columns: OS, MS, overall."""
WAYS = {None: "one trajectory", "chosen": "chosen without the rules", "checked": "chosen with the checker"}
"""How the answer to a query is chosen; tables never mix these."""


def user_tables(grid: Grid) -> list[Table]:
    """The tables of a report, including those that no run fills."""
    return [by_recipe(grid), compared(grid), several_starts(grid), other_data(grid), every_run(grid)]


def _comparable(grid: Grid) -> Iterator[tuple[str, dict[str, float], dict[str, list[tuple[Record, Evaluation]]]]]:
    """(task and variant, objective -> mean accuracy, objective -> runs) if two objectives share their test queries."""
    for task, variant in dict.fromkeys((record.task, variant_of(record)) for record in grid.runs):
        found = {r.objective for r in grid.runs if (r.task, variant_of(r)) == (task, variant)}
        of = {o: tested(grid.at(task, o, variant)) for o in sorted(found, key=lambda one: order_of(task, one))}
        means = {o: summary.mean for o, runs in of.items() if (summary := summary_of(runs, "overall")) is not None}
        if len(means) > 1 and shared_data([one for o in means for one in of[o]]):
            yield name_of(task) + (f" ({variant})" if variant else ""), means, of


def by_recipe(grid: Grid) -> Table:
    """Accuracy of every recipe on its test set: the mean over seeds with its interval."""
    rows = []
    for records in grid.by_recipe():
        runs = tested(records)
        if runs:
            row = [Cell(name_of(records[0].task)), Cell(records[0].recipe, objective=records[0].objective)]
            row += [*(accuracy_cell(runs, subset) for subset in SUBSETS), count_cell(len(runs))]
            row += [Cell(runs[0][1].data.name + runs[0][1].judge_mark), count_cell(runs[0][1].data.queries)]
            rows.append((*row, training_cell([record for record, _ in runs])))
    rows.sort(key=lambda row: row[0].text)
    return Table(
        "accuracy",
        "Accuracy by recipe, %",
        (
            *columns(("task", "recipe"), (ACCURACIES,)),
            *map(Column, ("seeds", "data", "queries", "training")),
        ),
        tuple(rows),
        f"An answer is right if it is a solution, listed or not{_by_list(grid)}; one trajectory. Mean over seeds with "
        "Student's t interval (95 %), cut at 0 and 100; with one seed, Wilson's interval over the queries. "
        f"{SAME_ACCURACY} OS: queries with one solution; MS: queries with several.",
        labels=2,
    )


def _by_list(grid: Grid) -> str:
    """What is right where there are no rules, if a run has none."""
    marks = {one.judge_mark for record in grid.all for one in record.evaluations.values()} - {""}
    return "".join(f"{mark[:-1]}, if its data is marked so)" for mark in marks)


def compared(grid: Grid) -> Table:
    """Objectives of the same task and variant: the best minus each other one, on the same queries."""
    rows = []
    for label, means, of in _comparable(grid):
        best = max(means, key=lambda objective: means[objective])
        for other in (objective for objective in means if objective != best):
            row = [Cell(label), Cell(f"{name_of(best)} − {name_of(other)}")]
            row += [_gain(of[best], of[other], subset) for subset in SUBSETS]
            seeds = {record.seed for record, _ in of[best]} & {record.seed for record, _ in of[other]}
            rows.append((*row, against(of[best], of[other]), count_cell(len(seeds))))
    return Table(
        "compared",
        "Objectives compared: the best minus each other one, points",
        (*columns(("task", "objectives"), (ACCURACIES, ("", ("p",)))), Column("seeds")),
        tuple(rows),
        "Best: on all queries. Differences over the seeds that both have, with Student's t interval (95 %) if there "
        "are several. p: exact McNemar test on all queries, with the first of these seeds, not corrected.",
        labels=2,
    )


def _gain(ours: Runs, theirs: Runs, subset: Subset) -> Cell:
    one, other = (
        {r.seed: 100 * share for r, e in runs if (share := e.scores.of(subset).accuracy) is not None}
        for runs in (ours, theirs)
    )
    shared = one.keys() & other.keys()
    if not shared:
        return Cell()
    found = gain({seed: one[seed] for seed in shared}, {seed: other[seed] for seed in shared})
    text, numbers = signed(found.mean), {"points": found.mean}
    if found.low is not None and found.high is not None:
        text += f" [{signed(found.low)}, {signed(found.high)}]"
        numbers |= {"low": found.low, "high": found.high}
    return Cell(text, numbers, commands([*ours, *theirs]))


def by_evaluation(records: Iterable[Record]) -> dict[tuple[str, str], list[tuple[Record, Evaluation]]]:
    """(recipe, name of the evaluation) -> its runs, in order."""
    found: dict[tuple[str, str], list[tuple[Record, Evaluation]]] = defaultdict(list)
    for record in records:
        for name, evaluation in record.evaluations.items():
            found[record.recipe, name].append((record, evaluation))
    return found


def scores_of(evaluation: Evaluation, way: str | None) -> Scores:
    """The scores of one of ``WAYS``; with one start, those of its trajectory."""
    found = {None: evaluation.scores, "chosen": evaluation.chosen, "checked": evaluation.checked}[way]
    return found or evaluation.scores


def several_starts(grid: Grid) -> Table:
    """Several noisy starts: one trajectory, the start chosen without the rules, the start chosen with the checker."""
    rows = []
    for (recipe, name), runs in by_evaluation(grid.runs).items():
        if not all(evaluation.chosen for _, evaluation in runs):
            continue
        about, made = runs[0][1], commands(runs)
        how = [f"{about.steps} steps"] if about.steps else []
        objective = runs[0][0].objective
        row = [
            Cell(recipe, objective=objective),
            Cell(name),
            Cell(", ".join([*how, f"{about.starts} starts", f"by {about.choose}"])),
        ]
        for way in WAYS:
            for subset in SUBSETS:
                shares = [(record, scores_of(one, way).of(subset).accuracy) for record, one in runs]
                row.append(mean_and_best(summarise(shares), made))
        rows.append((*row, count_cell(len(runs))))
    return Table(
        "starts",
        "Several noisy starts, accuracy in %",
        (*columns(("recipe", "data", "how"), ((way, ACCURACIES[1]) for way in WAYS.values())), Column("seeds")),
        tuple(rows),
        "One trajectory: the first start. Chosen without the rules: the start whose belief moved least, or the most "
        "confident one. Chosen with the checker: right if any start is a solution, which needs the rules at test time. "
        "Mean over seeds (the run that dev picks).",
        labels=3,
    )


def other_data(grid: Grid, shown: Callable[[Record, Evaluation], bool] = lambda record, evaluation: False) -> Table:
    """Evaluations on data other than the task's test set: other sizes, other numbers of blanks or of steps.

    Args:
        grid: the runs.
        shown: whether another table shows an evaluation.
    """
    rows = []
    for (recipe, name), runs in by_evaluation(grid.runs).items():
        others = [(r, one) for r, one in runs if one is not test_evaluation(r) and not shown(r, one)]
        if not others:
            continue
        about = others[0][1]
        words = (recipe, name + about.judge_mark, about.data.size, about.data.queries, about.steps)
        row = [Cell("" if word is None else f"{word:,}" if isinstance(word, int) else word) for word in words]
        row += [mean_and_best(summary_of(others, subset), commands(others)) for subset in SUBSETS]
        rows.append((*row, count_cell(len(others))))
    return Table(
        "other-data",
        "Other data and numbers of steps, accuracy in %",
        (*columns(("recipe", "data", "size", "queries", "steps"), (ACCURACIES,)), Column("seeds")),
        tuple(rows),
        "One trajectory. Mean over seeds (the run that dev picks).",
        labels=5,
    )


def every_run(grid: Grid) -> Table:
    """One row per run: dev, test with Wilson intervals, cell accuracy, share of listed answers, cost."""
    rows = []
    for record in grid.all:
        evaluation, dev = test_evaluation(record), dev_score(record)
        mark = evaluation.judge_mark if evaluation else ""
        row = [
            Cell(titled(record, record.name) + mark, objective=record.objective),
            number_cell(None if dev < 0 else 100 * dev),
        ]
        made = commands_of([record], [evaluation])
        row += [wilson_cell(evaluation and evaluation.scores.of(subset), made) for subset in SUBSETS]
        for share in (evaluation and evaluation.cell_accuracy, evaluation and evaluation.listed.accuracy):
            row.append(number_cell(None if share is None else 100 * share))
        row += [number_cell(cost, ",.0f") for cost in (record.updates, record.seconds)]
        rows.append((*row, Cell(record.device)))
    test = (*ACCURACIES[1], "cells right", "listed")
    return Table(
        "runs",
        "Every run",
        columns(("run",), (("", ("dev",)), ("test, %", test), ("training", ("updates", "seconds", "device")))),
        tuple(rows),
        "Dev: accuracy on the validation set, which picks the kept weights. In brackets Wilson's 95 % interval over "
        "the queries. Cells right: agreement with the closest listed solution, including givens. "
        "Listed: the answer is one of the listed solutions.",
    )
