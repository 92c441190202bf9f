"""The report as one self-contained HTML file: tables, figures, a board viewer, and the settings of every run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import oneofmany
from oneofmany.evaluation.record import Record
from oneofmany.extras import missing, require
from oneofmany.files import FileError, check_writable, write_whole
from oneofmany.pictures.themes import DARK, LIGHT, Chart, css
from oneofmany.report.answer import Answer, answer_of
from oneofmany.report.figures import user_charts
from oneofmany.report.grid import NO_RESULT, OBJECTIVES, Grid, name_of, titled
from oneofmany.report.results import user_tables
from oneofmany.report.table import Table
from oneofmany.report.viewer import check_viewer, packed

TEMPLATES = Path(__file__).parent / "templates"
LONG = 40
"""Tables with more rows are folded."""
MOST_OPEN = 8
"""In a section with more tables or figures, all but the first ones are folded."""
MOST_CARDS = 60
"""On a phone, a table with at most this many cells has its rows one below the other; larger ones are scrolled."""
MOST_UNBROKEN = 30
"""A cell with more letters is broken into lines."""


@dataclass(frozen=True)
class Section:
    """A section of the page: the tables that runs fill, then the figures.

    Args:
        id: of its HTML element, for links.
        title: its heading.
        tables: those without runs are left out.
        charts: the figures.
        html: markup above them. It is not escaped: its author escapes what comes from records.
    """

    id: str
    title: str
    tables: Sequence[Table] = ()
    charts: Sequence[Chart] = ()
    html: str = ""

    @property
    def filled(self) -> list[Table]:
        """The tables that are shown."""
        return [table for table in self.tables if table.filled]


def user_sections(grid: Grid) -> list[Section]:
    """The sections for any runs: tables of results, then figures."""
    return [
        Section("results", "Results", user_tables(grid)),
        Section("figures", "Figures", charts=user_charts(grid)),
    ]


def write_report(
    records: Iterable[Record],
    out: str | Path,
    *,
    sections: Callable[[Grid], Sequence[Section]] = user_sections,
    export: str | Path | None = None,
    force: bool = False,
    viewers: Sequence[tuple[str, dict[str, Any]]] = (),
    tell: Callable[[str], None] = lambda sentence: None,
) -> Grid:
    """Write the report of runs and return the grid that it shows.

    Args:
        records: the runs, as ``read_records`` returns them.
        out: the HTML file.
        sections: makes the sections of the page from the runs that count.
        export: a folder for tables (CSV, Markdown) and figures (SVG, PNG).
        force: overwrite existing files.
        viewers: (title, what ``trace`` returned) of each prediction for the board viewer.
        tell: called with a sentence if figures cannot be drawn.
    """
    require("jinja2")
    check_writable(out, force)
    folder = None if export is None else _export_folder(Path(export), force)
    grid = Grid.of(records)
    found = sections(grid)
    if lacking := missing("matplotlib"):
        tell(lacking)
    drawn = lacking is None
    page = render(grid, found, viewers, drawn)
    if folder is not None:
        for name, data in _files(grid, found, drawn):
            write_whole(folder / name, lambda beside, data=data: beside.write_bytes(data), force)
    write_whole(out, lambda beside: beside.write_text(page, encoding="utf-8"), force)
    return grid


def _export_folder(folder: Path, force: bool) -> Path:
    if folder.exists() and not folder.is_dir():
        raise FileError(f"{folder} is a file: name a folder for the exported tables and figures")
    if folder.is_dir() and any(folder.iterdir()) and not force:
        raise FileError(f"{folder} is not empty: choose another folder, or overwrite its files with --force")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _files(grid: Grid, sections: Sequence[Section], drawn: bool) -> Iterator[tuple[str, bytes]]:
    for table in (table for section in sections for table in section.filled):
        yield f"{table.name}.csv", table.csv().encode()
        yield f"{table.name}.md", table.markdown().encode()
    first = answer_of(grid).chart
    charts = [*([first] if first else []), *(chart for section in sections for chart in section.charts)]
    for chart in charts if drawn else ():
        yield f"{chart.name}.svg", chart.standalone_svg().encode()
        yield f"{chart.name}.png", chart.png(LIGHT)
        yield f"{chart.name}-dark.png", chart.png(DARK)


def render(
    grid: Grid,
    sections: Sequence[Section],
    viewers: Sequence[tuple[str, dict[str, Any]]] = (),
    drawn: bool = True,
    title: str = "Report of these runs",
    answer: Answer | None = None,
) -> str:
    """The whole page: the answer, the board viewer, the sections, and the settings of every run.

    Args:
        grid: the runs.
        sections: its sections; empty ones are left out.
        viewers: (title, what ``trace`` returned) of each prediction for the board viewer.
        drawn: False leaves the figures out and names the package that they need.
        title: the heading of the page.
        answer: what the page begins with; that of the runs if None.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    shown = [
        {"title": title, "label": name_of(data.get("objective") or title), **packed(check_viewer(data, title))}
        for title, data in viewers
    ]
    answer = answer_of(grid) if answer is None else answer
    picture = Markup(answer.chart.svg) if answer.chart and drawn else ""
    # A command that two runs share links to the first of them.
    anchors = {c: f"run-{i}" for i, r in reversed(list(enumerate(grid.all))) for c in _commands(r)}
    pages = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return pages.get_template("report.html").render(
        title=title,
        version=oneofmany.__version__,
        grid=grid,
        answer=answer,
        picture=picture,
        objectives=OBJECTIVES,
        most_open=MOST_OPEN,
        most_unbroken=MOST_UNBROKEN,
        sections=[
            {
                "id": section.id,
                "title": section.title,
                "html": Markup(section.html),
                "tables": [_shown(table) for table in section.filled],
                "charts": [(chart, Markup(chart.svg) if drawn else "") for chart in section.charts],
            }
            for section in sections
            if section.filled or section.charts or section.html
        ],
        drawn=drawn,
        recipes=_recipes(grid),
        anchors=anchors,
        viewers=Markup(embedded(shown)) if shown else None,
        compared=len(shown) > 1,
        light=Markup(css(LIGHT)),
        dark=Markup(css(DARK)),
        style=Markup((TEMPLATES / "report.css").read_text(encoding="utf-8")),
        script=Markup((TEMPLATES / "page.js").read_text(encoding="utf-8")),
        viewer_script=Markup((TEMPLATES / "viewer.js").read_text(encoding="utf-8")),
    )


def embedded(value: Any) -> str:
    """JSON for a script element: nothing in it can end the element or begin another."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _commands(record: Record) -> list[str]:
    return [record.command, *(e.command for e in record.evaluations.values() if e.command)]


def _shown(table: Table) -> dict[str, Any]:
    """A table for the template: groups of columns, and groups of rows with the same first label."""
    table = _without_empty_columns(table)
    grouped = table.labels == 2
    columns = table.columns[grouped:]
    heads = [(group, len(list(part))) for group, part in groupby(columns, key=lambda column: column.group)]
    if grouped:
        rows = [(first, [row[1:] for row in part]) for first, part in groupby(table.rows, key=lambda row: row[0].text)]
    else:
        rows = [("", list(table.rows))]
    return {
        "table": table,
        "heads": heads if any(group for group, _ in heads) else [],
        "columns": columns,
        "labels": table.labels - grouped,
        "first_of_group": [i > 0 and c.group != columns[i - 1].group for i, c in enumerate(columns)],
        "rows": rows,
        "long": len(table.rows) > LONG,
        "cards": len(table.rows) * len(table.columns) <= MOST_CARDS,
    }


def _without_empty_columns(table: Table) -> Table:
    """The table with its labels and the columns in which at least one row has something."""
    kept = [i for i in range(len(table.columns)) if i < table.labels or any(row[i].text for row in table.rows)]
    rows = tuple(tuple(row[i] for i in kept) for row in table.rows)
    return replace(table, columns=tuple(table.columns[i] for i in kept), rows=rows)


def _recipes(grid: Grid) -> list[dict[str, Any]]:
    """Every recipe, and every folder that is kept apart, with the settings of its runs and the runs."""
    found = []
    numbered = list(enumerate(grid.all))
    for recipe, part in groupby(numbered, key=lambda pair: titled(pair[1], pair[1].recipe)):
        runs = list(part)
        settings = {name: value for name, value in runs[0][1].settings.items() if name not in NO_RESULT}
        found.append(
            {
                "name": recipe,
                "settings": json.dumps(settings, indent=1),
                "runs": [
                    {
                        "anchor": f"run-{i}",
                        "name": record.name,
                        "commands": list(dict.fromkeys(_commands(record))),
                        "facts": _facts(record),
                    }
                    for i, record in runs
                ],
            }
        )
    return found


def _facts(record: Record) -> list[tuple[str, str]]:
    facts = [("seed", str(record.seed))]
    if record.updates is not None:
        facts.append(("updates", f"{record.updates:,}"))
    if record.seconds is not None:
        facts.append(("training", f"{record.seconds:,.0f} s"))
    data = {about.name: about.checksum for about in record.data.values()}
    data |= {one.data.name: one.data.checksum for one in record.evaluations.values()}
    facts += [(str(name), str(value)) for name, value in record.environment.items() if value is not None]
    return facts + [(name, f"checksum {checksum[:16]}") for name, checksum in data.items()]
