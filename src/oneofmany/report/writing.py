"""Writes the report: one HTML file and, where wanted, all tables and figures as files of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from oneofmany.extras import missing, require
from oneofmany.files import FileError, check_writable, write_whole
from oneofmany.report.claims import check_claims, claims_markdown
from oneofmany.report.html import render
from oneofmany.report.records import Grid, Record
from oneofmany.report.tables import all_tables
from oneofmany.report.themes import DARK, LIGHT, Chart


def write_report(
    records: Iterable[Record],
    out: str | Path,
    *,
    export: str | Path | None = None,
    force: bool = False,
    viewers: Sequence[tuple[str, dict[str, Any]]] = (),
    tell: Callable[[str], None] = lambda sentence: None,
) -> Grid:
    """Write the report of some runs and return the grid that it shows.

    Args:
        records: the runs, as ``read_records`` returns them.
        out: the HTML file.
        export: a folder for tables (CSV, Markdown) and figures (SVG, PNG).
        force: overwrite existing files.
        viewers: (title, data of ``viewer.trace``) of predictions for the board viewer.
        tell: called with a sentence about what could not be drawn.
    """
    require("jinja2")
    check_writable(out, force)
    folder = None if export is None else _export_folder(Path(export), force)
    grid = Grid.of(records)
    charts = None
    if lacking := missing("matplotlib"):
        tell(lacking)
    else:
        from oneofmany.report.figures import all_charts

        charts = all_charts(grid)
    page = render(grid, charts, viewers)
    if folder is not None:
        for name, data in _files(grid, charts or []):
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


def _files(grid: Grid, charts: Sequence[Chart]):
    for table in all_tables(grid):
        yield f"{table.name}.csv", table.csv().encode()
        yield f"{table.name}.md", table.markdown().encode()
    yield "claims.md", f"### The paper's claims\n\n{claims_markdown(check_claims(grid))}".encode()
    for chart in charts:
        yield f"{chart.name}.svg", chart.standalone_svg().encode()
        yield f"{chart.name}.png", chart.png(LIGHT)
        yield f"{chart.name}-dark.png", chart.png(DARK)
