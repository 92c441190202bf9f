"""Searches by noise on hard Sudokus, from the files of ``oneofmany search --out``: accuracy by starts and steps."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from oneofmany.evaluation.searching import Searched, SearchPoint
from oneofmany.pictures.lines import Line, draw_lines, legend_room
from oneofmany.pictures.searches import RESTARTS, STYLES
from oneofmany.pictures.themes import Chart
from oneofmany.report.table import Cell, Table, columns
from reproduction.forest import image

FOLDER = Path("reproduction") / "searches"
"""Where the files are; another folder than that of the records, which are another kind of file."""
DEV, TEST = "sudoku-extreme-dev", "sudoku-extreme-test"
FEW = 32
"""Starts that an answer should need at most."""
_SEARCH = re.compile(r"oneofmany search \S+ \S+(.*)")


class Group(NamedTuple):
    """What the seeds of a network share: its recipe or name, the data, how queries start again, the most steps."""

    network: str
    data: str
    restart: str
    steps: int


def read_searches(root: Path) -> list[Searched]:
    """All searches of a repository; there may be none."""
    return [Searched.load(path) for path in sorted((root / FOLDER).glob("*.json"))]


def network_of(searched: Searched) -> str:
    """The recipe of the network or, for a file or a bundled network, its name."""
    return searched.about.get("recipe") or Path(str(searched.about["network"])).name


def command_of(searched: Searched) -> str:
    """The command with places in the repository: ``oneofmany search runs/RECIPE/SEED data/NAME.safetensors ...``."""
    found = _SEARCH.fullmatch(str(searched.about.get("command") or ""))
    run, data = Path(str(searched.about["network"])), searched.about["data"]["name"]
    place = f"runs/{searched.about['recipe']}/{run.name}" if run.name.isdigit() else run.name
    return f"oneofmany search {place} data/{data}.safetensors{found[1] if found else ''}"


def shorten_searches(root: Path) -> list[str]:
    """Write network and command of all searches with places in the repository; return the files that changed."""
    changed = []
    for path in sorted((root / FOLDER).glob("*.json")):
        one = Searched.load(path)
        command = command_of(one)
        about = one.about | {"network": command.split()[2], "command": command}
        if about != one.about:
            replace(one, about=about).save(path, force=True)
            changed.append(path.name)
    return changed


Points = dict[int, list[tuple[Searched, SearchPoint]]]


def grouped(searches: Iterable[Searched], size: int = 9) -> dict[Group, Points]:
    """Group -> starts -> the points of its seeds, on boards of this size; the test set comes first."""
    found: dict[Group, Points] = defaultdict(lambda: defaultdict(list))
    for one in searches:
        for point in one.points if one.about["data"]["size"] == size else ():
            group = Group(network_of(one), one.about["data"]["name"], point.restart, point.steps)
            found[group][point.starts].append((one, point))
    order = sorted(found, key=lambda group: (group.network, group.data != TEST, *group[1:]))
    return {group: dict(sorted(found[group].items())) for group in order}


def accuracy(points: Sequence[tuple[Searched, SearchPoint]]) -> float:
    """Percent of all queries, mean over seeds."""
    return float(np.mean([100 * (point.overall.accuracy or 0.0) for _, point in points]))


def search_table(searches: Sequence[Searched]) -> Table:
    """Accuracy and seconds for every number of steps and of starts, mean over seeds."""
    groups = grouped(searches)
    starts = sorted({number for points in groups.values() for number in points})
    rows = []
    for group, points in groups.items():
        row = [Cell(group.network), Cell(group.data), Cell(RESTARTS[group.restart]), Cell(f"{group.steps:,}")]
        row += [_cell(points.get(number, ())) for number in starts]
        last = [point for _, point in points[max(points)]]
        settled = [100 * share for point in last if (share := point.settled.accuracy) is not None]
        row += [
            Cell(f"{np.mean([point.mean_steps for point in last]):,.0f}"),
            Cell(f"{np.mean(settled):.2f}" if settled else ""),
            Cell(str(len(last))),
        ]
        rows.append(tuple(row))
    shown = [one for points in groups.values() for found in points.values() for one, _ in found]
    devices = {str(one.about["environment"].get("device") or "") for one in shown} - {""}
    return Table(
        "hard-search",
        "Search by noise on hard Sudokus: accuracy in % (seconds)",
        columns(
            ("network", "data", "again", "steps"),
            (
                ("starts at most", [str(number) for number in starts]),
                ("with the most starts", ("steps a query", "right if settled")),
                ("", ("seeds",)),
            ),
        ),
        tuple(rows),
        "All queries of the data, mean over seeds; in parentheses the seconds until they were answered"
        f"{f' on {_and(sorted(devices))}' if devices else ''}. The first start that settles answers, or else the one "
        "whose belief moved least; the rules only judge. Right if settled: the share of right answers among those that "
        "had settled.",
        labels=4,
    )


def _cell(points: Sequence[tuple[Searched, SearchPoint]]) -> Cell:
    if not points:
        return Cell()
    share, seconds = accuracy(points), float(np.mean([point.seconds for _, point in points]))
    made = tuple(dict.fromkeys(command_of(one) for one, _ in points))
    return Cell(f"{share:.2f} ({seconds:,.0f} s)", {"accuracy": share, "seconds": seconds}, made)


def _and(words: Sequence[str]) -> str:
    return " and ".join(words)


def policy(groups: dict[Group, Points], network: str) -> Group | None:
    """The group of a network on the test set whose restart and steps are best on dev with few starts; None without."""
    tests = [group for group in groups if (group.network, group.data) == (network, TEST)]

    def on_dev(group: Group) -> tuple[float, int]:
        points = groups.get(group._replace(data=DEV), {})
        few = [number for number in points if number <= FEW]
        # Of equal ones the cheapest; if dev was not searched, the one with the most steps.
        return (accuracy(points[max(few)]), -group.steps) if few else (-1.0, group.steps)

    return max(tests, key=on_dev, default=None)


def search_answer(searches: Sequence[Searched]) -> str:
    """For every network, what more starts give on the extreme test set, and the figure; empty without searches."""
    groups, lines = grouped(searches), []
    for network in dict.fromkeys(group.network for group in groups):
        group = policy(groups, network)
        if group is None:
            continue
        points = groups[group]
        few = max((number for number in points if number <= FEW), default=min(points))
        shown = dict.fromkeys((min(points), few, max(points)))
        parts = [f"**{accuracy(points[n]):.2f} %** with {_starts(n)}" for n in shown]
        chosen = group._replace(data=DEV) in groups
        lines.append(
            f"* `{network}` on `{TEST}`, at most {group.steps:,} steps a start, {RESTARTS[group.restart]}"
            f"{' (chosen on dev)' if chosen else ''}: {', '.join(parts)}."
        )
    if not groups:
        return ""
    return "\n".join([*lines, *([""] if lines else []), image("hard-search", "Accuracy over starts and steps")])


def _starts(number: int) -> str:
    return "one start" if number == 1 else f"up to {number} starts"


def search_figure(searches: Sequence[Searched]) -> Chart | None:
    """Accuracy against starts, a line for every number of steps, a panel for every data set and way to start again.

    Only those with the most numbers of steps.
    """
    groups = grouped(searches)
    if not groups:
        return None
    several = len({group.network for group in groups}) > 1
    panels: dict[str, list[Line]] = defaultdict(list)
    steps = sorted({group.steps for group in groups})
    for group, points in groups.items():
        title = ", ".join([*([group.network] if several else []), group.data, RESTARTS[group.restart]])
        line = [(float(number), accuracy(own), None, None) for number, own in points.items()]
        panels[title].append(Line(f"{group.steps:,} steps", "", line, *STYLES[steps.index(group.steps) % len(STYLES)]))
    # A panel with few of the numbers of steps shows little; the table has them.
    most = max(map(len, panels.values()))
    shown = [panel for panel in panels.items() if len(panel[1]) == most]
    made = dict.fromkeys(command_of(one) for points in groups.values() for found in points.values() for one, _ in found)
    return Chart(
        "hard-search",
        "Hard Sudokus: accuracy over starts and steps",
        "Mean over seeds. The first start that settles answers, or else the one whose belief moved least; the rules "
        "are not used.",
        partial(draw_lines, panels=shown, xlabel="starts at most", log=True),
        tuple(made),
        size=(4.8, 1.2 + 1.9 * len(shown) + legend_room(shown)),
    )
