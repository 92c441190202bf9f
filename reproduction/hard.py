"""Hard Sudokus: accuracy on our extreme test sets and by rating, beside the published numbers of others."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from oneofmany.evaluation.record import Record
from oneofmany.networks.building import NetworkSettings, build_network
from oneofmany.pictures.lines import Line, draw_lines, legend_room
from oneofmany.pictures.searches import STYLES
from oneofmany.pictures.themes import Chart
from oneofmany.problems import sudoku
from oneofmany.report.cells import Runs, accuracy_cell, commands, count_cell, number_cell, with_interval
from oneofmany.report.grid import Grid, commands_of, over_dev, summarise, summary_of
from oneofmany.report.table import Cell, Column, Table, columns
from oneofmany.training.settings import from_json
from reproduction.other_papers import HARD_SUDOKU
from reproduction.ours import INTERVALS
from reproduction.paired import distinct, of_recipe

EXTREME, EXTREME_MS, FIRST = "sudoku-extreme-test", "sudoku-extreme-ms-test", "sudoku-test"
PAIRS = "sudoku-pairs-test"
OURS = {EXTREME: "our extreme set, one solution", EXTREME_MS: "our extreme set, several solutions"}
"""Test set -> its name for readers."""
THEIRS = "Sudoku-Extreme"
RATINGS = {
    "sudoku-rating-0-10-test": "0 to 10",
    "sudoku-rating-10-30-test": "10 to 30",
    "sudoku-rating-30-100-test": "30 to 100",
    "sudoku-rating-100-300-test": "100 to 300",
    "sudoku-hard-test": "10 to 1000",
    EXTREME: "extreme",
    EXTREME_MS: "extreme, MS",
    PAIRS: "after pairs at least 100",
    FIRST: "first",
    "sudoku-fresh-test": "fresh",
}
"""Test set -> its column in the table by rating; the last two are those of the other tables."""
PAPERS = ("first", "fresh")
HARD, DEV = "sudoku-hard/", "sudoku-extreme-dev"
"""How the names of the recipes for hard Sudokus begin, and their dev set."""


class Way(NamedTuple):
    """How queries are answered: the most steps of a trajectory, and the number of starts."""

    steps: int
    starts: int

    def __str__(self) -> str:
        """``one trajectory, 1,024 steps`` or ``the best of 8 starts, 1,024 steps``."""
        how = "one trajectory" if self.starts == 1 else f"the best of {self.starts} starts"
        return f"{how}, {self.steps:,} steps"


def runs_by_way(
    grid: Grid, wanted: Collection[str] = tuple(RATINGS), needed: Collection[str] = ()
) -> dict[str, dict[Way, dict[str, Runs]]]:
    """Recipe -> way -> test set -> runs, of networks for Sudoku on the wanted test sets; hard recipes first.

    ``needed`` are test sets of which a recipe must have one, by default any that is wanted.
    """
    found: dict[str, dict[Way, dict[str, Runs]]] = {}
    for record in (one for one in distinct(grid) if one.task == "sudoku"):
        for evaluation in record.evaluations.values():
            usual = evaluation.choose == "residual" and evaluation.patience is None and evaluation.seed == 0
            if evaluation.data.name in wanted and evaluation.steps and usual:
                way = Way(evaluation.steps, evaluation.starts)
                tests = found.setdefault(record.recipe, {}).setdefault(way, {})
                tests[evaluation.data.name] = [*tests.get(evaluation.data.name, ()), (record, evaluation)]
    return {
        recipe: dict(sorted(ways.items(), key=lambda item: (item[0].starts, item[0].steps)))
        for recipe, ways in sorted(found.items(), key=lambda item: (not item[0].startswith(HARD), item[0]))
        if any(test in tests for tests in ways.values() for test in needed or wanted)
    }


def by_extreme(grid: Grid) -> dict[str, dict[Way, dict[str, Runs]]]:
    """As ``runs_by_way``, of networks that were tested on extreme Sudokus."""
    return runs_by_way(grid, needed=OURS)


def parameters(record: Record) -> int:
    """The number of parameters of a run's network on 9x9."""
    return _parameters(from_json(record.settings).network)


@cache
def _parameters(network: NetworkSettings) -> int:
    return sum(one.numel() for one in build_network(network, sudoku(9)).parameters())


def hard_sudokus(grid: Grid) -> Table:
    """Our networks on our extreme test sets with parameters and minutes, and the published numbers of others."""
    rows: list[tuple[Cell, ...]] = []
    for ways in by_extreme(grid).values():
        for way, tests in ways.items():
            for test, name in OURS.items():
                if runs := tests.get(test, ()):
                    record = runs[0][0]
                    about = (Cell(record.recipe), Cell(str(way)), Cell(f"{name} ({runs[0][1].data.queries:,})"))
                    more = (_chosen(runs), Cell(f"{parameters(record):,}"), _minutes([r for r, _ in runs]))
                    rows.append((*about, *more, count_cell(len(runs))))
    if rows:
        rows += [
            (
                *(Cell(f"{name}, published"), Cell(one.search), Cell(THEIRS)),
                *(number_cell(one.accuracy, ".1f"), Cell(one.parameters), Cell(one.minutes), Cell()),
            )
            for name, one in HARD_SUDOKU.items()
        ]
    return Table(
        "hard-sudokus",
        "Hard Sudokus: accuracy in %",
        (
            *columns(("network", "answers", "tested on"), (("", ("accuracy", "parameters")),)),
            *map(Column, ("minutes of training", "seeds")),
        ),
        tuple(rows),
        f"{INTERVALS} One seed: Wilson's interval over the queries. The best of several starts is the one whose belief "
        "moved least in its last step, which needs no rules. Published: the numbers of the authors.",
        labels=3,
    )


def _chosen(runs: Runs) -> Cell:
    """The accuracy of one trajectory, or of the chosen start if there are several."""
    if runs[0][1].starts == 1:
        return accuracy_cell(runs, "overall")
    shares = [(record, (one.chosen or one.scores).overall) for record, one in runs]
    found = summarise([(record, one.accuracy) for record, one in shares], [one.total for _, one in shares])
    return with_interval(found, commands(runs))


def _minutes(records: list[Record]) -> Cell:
    """``14.2, NVIDIA H200``: mean minutes over seeds, and the devices."""
    seconds = [record.seconds for record in records if record.seconds is not None]
    if not seconds:
        return Cell()
    mean = float(np.mean(seconds)) / 60
    return Cell(", ".join([f"{mean:,.1f}", *sorted({r.device for r in records} - {""})]), {"minutes": mean})


def hard_ratings(grid: Grid) -> Table:
    """The same networks by the rating of the puzzles, and on the test sets of the other tables."""
    rows, found = [], by_extreme(grid)
    measured = {test for ways in found.values() for tests in ways.values() for test in tests}
    shown = {test: name for test, name in RATINGS.items() if test in measured}
    for recipe, ways in found.items():
        for way, tests in ways.items():
            cells = []
            for test in shown:
                runs = tests.get(test, ())
                one = None if not runs else _chosen(runs).numbers
                mean = None if not one else one.get("mean", one.get("accuracy"))
                cells.append(Cell() if mean is None else Cell(f"{mean:.2f}", {"mean": mean}, commands(runs)))
            rows.append((Cell(recipe), Cell(str(way)), *cells, seeds_cell(tests)))
    names = list(shown.values())
    return Table(
        "hard-ratings",
        "Sudokus by rating: accuracy in %",
        (
            *columns(
                ("network", "answers"),
                (
                    ("rating", [name for name in names if name not in PAPERS]),
                    ("other test set", [name for name in names if name in PAPERS]),
                ),
            ),
            Column("seeds"),
        ),
        tuple(rows),
        "All queries of a test set, mean over the seeds that were tested on it. Half of the queries of a range have "
        "several solutions; their rating is that of the puzzle before the given was removed. First and fresh: the test "
        "sets of the other results on Sudoku.",
        labels=2,
    )


def seeds_cell(tests: Mapping[str, Sequence[Any]]) -> Cell:
    """``3``, or ``2 to 3`` if some test sets have fewer seeds than others."""
    few, most = (end(len(runs) for runs in tests.values()) for end in (min, max))
    return count_cell(most) if few == most else Cell(f"{few} to {most}", {"": most})


def main_recipe(grid: Grid) -> str | None:
    """The hard recipe without the checker in training that dev prefers; None without one."""
    means = {}
    for recipe, ways in by_extreme(grid).items():
        records = list({r.seed: r for tests in ways.values() for runs in tests.values() for r, _ in runs}.values())
        mean = over_dev(records, "overall")
        comparable = recipe.startswith(HARD) and records[0].data["dev"].name == DEV
        if comparable and not records[0].setting("discover") and mean is not None:
            means[recipe] = mean.mean
    return max(means, key=lambda name: means[name], default=None)


def hard_chart(grid: Grid) -> Chart | None:
    """Accuracy on the extreme dev set against the minutes of training, a line for every seed of the main recipe."""
    recipe = main_recipe(grid)
    records = [record for record in of_recipe(grid, recipe or "") if record.history.seconds]
    if not records:
        return None
    lines = []
    for record, style in zip(sorted(records, key=lambda one: one.seed), STYLES, strict=False):
        logged = zip(record.history.seconds, record.history.dev_overall, strict=True)
        points = [(s / 60, 100 * share, None, None) for s, share in logged if s is not None and share is not None]
        lines.append(Line(f"seed {record.seed}", "minloss", points, *style))
    longest = max(line.points[-1][0] for line in lines)
    ticks = {float(minute): str(minute) for minute in range(int(longest) + 2)}
    return Chart(
        "hard-training",
        "Hard Sudokus: accuracy while the network is trained",
        f"Dev accuracy of {recipe} on {records[0].data['dev'].queries:,} extreme Sudokus in one trajectory, against "
        f"the minutes of training ({', '.join(sorted({record.device for record in records}))}).",
        partial(draw_lines, panels=[("", lines)], xlabel="minutes of training", ticks=ticks),
        commands_of(records),
        size=(4.8, 2.9 + legend_room([("", lines)])),
    )


def hard_answer(grid: Grid) -> str:
    """Accuracy of one trajectory on our extreme sets, with parameters and minutes; empty without runs."""
    recipe = main_recipe(grid)
    ways = {} if recipe is None else by_extreme(grid)[recipe]
    one = {way: tests for way, tests in ways.items() if way.starts == 1 and EXTREME in tests}
    if not one:
        return ""
    # The recipe's own number of steps, unless only others were tried.
    own = [w for w, tests in one.items() if any(e.name == EXTREME for _, e in tests[EXTREME])]
    way = (own or list(one))[0]
    parts = []
    for test, words in (
        (EXTREME, "of our {:,} extreme Sudokus"),
        (EXTREME_MS, "of the {:,} with several solutions"),
        (PAIRS, "of the {:,} that are hardest after pairs"),
        (FIRST, "of the {:,} Sudokus of the first test set"),
    ):
        if (runs := one[way].get(test)) and (found := summary_of(runs, "overall")) is not None:
            parts.append(f"**{found.mean:.2f} %** {words.format(runs[0][1].data.queries)}")
    records = [record for record, _ in one[way][EXTREME]]
    seeds = "one seed" if len(records) == 1 else f"means over {len(records)} seeds"
    return (
        f"In one trajectory of at most {way.steps:,} steps, without the checker in training or test, `{recipe}` "
        f"answers {', '.join(parts)} ({seeds}). It has {parameters(records[0]):,} parameters and trains in "
        f"{_minutes(records).text.replace(', ', ' minutes on one ', 1)}."
    )
