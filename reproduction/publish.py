"""Write every number of the docs: all of them come from records and from the output of benchmarks.

A page names a table in a comment, <!-- results: NAME -->. The text up to <!-- end --> is replaced by the table that the
records give (``claims``: the list of the paper's claims; ``weights``: the cards of the bundled networks; the names of
``ANSWERS`` and ``SEARCH_ANSWER``: a few sentences). Without records the block says that nothing has been measured, or
is empty if the comment is <!-- results: NAME? -->. A page can also name a file, <!-- benchmarks/measured/NAME.txt -->;
the code block after the comment is replaced by the file.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from oneofmany.evaluation.searching import Searched
from oneofmany.files import FileError
from oneofmany.report import Grid, Table
from oneofmany.report.page import render
from reproduction import measured as measured_recipes
from reproduction.answers import ANSWERS
from reproduction.bundle import markdown as cards
from reproduction.choosing import is_small
from reproduction.claims import check_claims, claims_markdown, measured
from reproduction.commands import FILE, commands_page
from reproduction.figures import page_charts
from reproduction.page import all_tables, answer, sections
from reproduction.runs import counting, read_published
from reproduction.searches import read_searches, search_answer, shorten_searches
from reproduction.shortening import shorten

ROOT = Path(__file__).parents[1]
TABLE = re.compile(r"(<!-- results: ([\w-]+)(\??) -->\n).*?(<!-- end -->)", re.DOTALL)
MEASURED = re.compile(r"(<!-- (benchmarks/measured/[\w.-]+) -->\n)```text\n.*?^```$", re.DOTALL | re.MULTILINE)
FIGURES = Path("docs") / "figures"
"""Committed, but not compared by ``--check``: another version of matplotlib draws other bytes."""
REPORT = Path("docs") / "report.html"
"""Built, never committed."""
TITLE = "The paper, reproduced, and our network"
SEARCH_ANSWER = "hard-search-answer"
"""The block of sentences about searches by noise, which have files of their own."""
NOTHING = "Nothing has been measured here yet."


def read_grid(root: Path = ROOT) -> Grid:
    """The published runs of a repository; there may be none yet."""
    grid = Grid.of(read_published(root / "reproduction" / "records"))
    for name, why in grid.left_out:
        warn(f"{name} is left out: {why}")
    return grid


def warn(sentence: str) -> None:
    """Print a sentence to stderr."""
    print(sentence, file=sys.stderr)


def block(table: Table, commands: str = "") -> str:
    """The table as a page shows it, or one sentence if it has no runs.

    Args:
        table: the table.
        commands: the path of the file of commands, to link to its section; no link if empty.
    """
    if not table.filled:
        return f"{NOTHING}\n"
    text = table.markdown(titled=False)
    return f"{text}\n[Commands]({commands}#{table.name})\n" if commands else text


def claims(grid: Grid) -> str:
    """The paper's claims with our verdicts, or one sentence without runs."""
    checked = check_claims(grid)
    if not measured(checked):
        return f"{NOTHING}\n"
    return f"{claims_markdown(checked)}\n{counting(grid)}\n"


def bundled(weights: Path) -> str:
    """The cards of the bundled networks, or one sentence if one of them has no card."""
    try:
        return cards(weights)
    except FileError as error:
        warn(str(error))
        return f"{NOTHING}\n"


def filled(page: str, blocks: dict[str, str], root: Path = ROOT) -> str:
    """The text of a page with every named table and file filled in."""

    def table(match: re.Match[str]) -> str:
        if match[2] not in blocks:
            raise ValueError(f"there is no table {match[2]!r} of results: the tables are {', '.join(blocks)}")
        text = blocks[match[2]]
        return f"{match[1]}{match[4]}" if match[3] and text == f"{NOTHING}\n" else f"{match[1]}\n{text}\n{match[4]}"

    def file(match: re.Match[str]) -> str:
        lines = [line.rstrip() for line in (root / match[2]).read_text(encoding="utf-8").strip().splitlines()]
        return f"{match[1]}```text\n" + "\n".join(lines) + "\n```"

    return MEASURED.sub(file, TABLE.sub(table, page))


def pages(grid: Grid, searches: Sequence[Searched], root: Path = ROOT) -> Iterator[tuple[Path, str]]:
    """README.md, the pages of the docs, the commands and the minutes of recipes, with what the records give."""
    tables = all_tables(grid, searches)
    # The README is for a first look: the pages that it links to name the commands.
    short = {table.name: block(table) for table in tables}
    blocks = {table.name: block(table, f"../{FILE.as_posix()}") for table in tables}
    blocks["claims"] = claims(grid)
    blocks["weights"] = bundled(root / "src" / "oneofmany" / "weights")
    answers = {name: f"{answer(grid) or NOTHING}\n" for name, answer in ANSWERS.items()}
    short, blocks = short | answers, blocks | answers
    blocks[SEARCH_ANSWER] = f"{search_answer(searches) or NOTHING}\n"
    yield root / "README.md", filled((root / "README.md").read_text(encoding="utf-8"), short, root)
    for path in sorted((root / "docs").rglob("*.md")):
        yield path, filled(path.read_text(encoding="utf-8"), blocks, root)
    yield root / FILE, commands_page(tables)
    timed = [record for record in (*grid.runs, *grid.apart) if not is_small(record)]
    yield root / measured_recipes.FILE, measured_recipes.measured_json(timed)


def stale(root: Path = ROOT) -> list[str]:
    """The pages that do not match the records."""
    found = pages(read_grid(root), read_searches(root), root)
    return [str(path.relative_to(root)) for path, text in found if _text(path) != text]


def publish(root: Path = ROOT) -> list[str]:
    """Write all pages, figures and the report; return the names of the files that changed."""
    changed, grid, searches = [], read_grid(root), read_searches(root)
    files = [*pages(grid, searches, root)]
    files += [(root / FIGURES / f"{chart.name}.svg", chart.standalone_svg()) for chart in page_charts(grid, searches)]
    for path, text in files:
        if _text(path) != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            changed.append(str(path.relative_to(root)))
    write_page(grid, root / REPORT, searches=searches)
    return changed


def _text(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


def write_page(grid: Grid, out: Path, pictures: bool = True, searches: Sequence[Searched] = ()) -> None:
    """Write the HTML report; without pictures its figures are empty, which is faster."""
    parts = sections(grid, searches)
    if not pictures:
        parts = [replace(part, charts=[replace(chart, draw=_nothing) for chart in part.charts]) for part in parts]
    first = answer(grid) if pictures else replace(answer(grid), chart=None)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(render(grid, parts, title=TITLE, answer=first), encoding="utf-8")


def _nothing(figure: Any, theme: dict[str, str]) -> None:
    """Draw nothing."""


def export(folder: Path, root: Path = ROOT) -> None:
    """Write every table as CSV and Markdown, and the claims."""
    grid = read_grid(root)
    folder.mkdir(parents=True, exist_ok=True)
    for table in all_tables(grid, read_searches(root)):
        (folder / f"{table.name}.csv").write_text(table.csv(), encoding="utf-8")
        (folder / f"{table.name}.md").write_text(table.markdown(), encoding="utf-8")
    (folder / "claims.md").write_text(claims_markdown(check_claims(grid)), encoding="utf-8")


def main(arguments: list[str] | None = None) -> None:
    """Fill the pages, check them, or export the tables."""
    parser = argparse.ArgumentParser(prog="python -m reproduction", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--check", action="store_true", help="fail if a page does not match the records")
    parser.add_argument("--tables", type=Path, metavar="DIR", help="export every table as CSV and Markdown")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write the report alone")
    parser.add_argument(
        "--shorten",
        action="store_true",
        help="write commands without options and places of another machine",
    )
    asked = parser.parse_args(arguments)
    if asked.shorten:
        print("changed:", ", ".join([*shorten(), *shorten_searches(ROOT)]) or "nothing")
    elif asked.tables is not None:
        export(asked.tables)
    elif asked.report is not None:
        write_page(read_grid(), asked.report, searches=read_searches(ROOT))
    elif not asked.check:
        print("changed:", ", ".join(publish()) or "nothing")
    elif found := stale():
        sys.exit(f"these pages do not match the records, run make results: {', '.join(found)}")
