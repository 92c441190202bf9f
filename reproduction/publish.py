"""Put every number of the docs in its place: all of them come from files in results/.

    python results/publish.py            # fill README.md and docs/, write docs/report.html
    python results/publish.py --check    # fail if they are out of step

A page names a table in a comment, <!-- results: NAME -->, and all up to <!-- end --> is replaced by the table made from
the records in results/ (``claims``: by the list of the paper's claims; ``weights``: by the cards of the bundled
networks). Or it names a file in a comment, <!-- results/benchmarks/NAME.txt -->, and the code block after it is
replaced by the file.
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from bundle import markdown as cards
from oneofmany.files import FileError
from oneofmany.report import Grid, read_records
from oneofmany.report.claims import UNKNOWN, check_claims, claims_markdown
from oneofmany.report.figures import all_charts
from oneofmany.report.html import render
from oneofmany.report.table import Table
from oneofmany.report.tables import all_tables

ROOT = Path(__file__).parents[1]
TABLE = re.compile(r"(<!-- results: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
FILE = re.compile(r"(<!-- (results/benchmarks/[\w.-]+) -->\n)```text\n.*?^```$", re.DOTALL | re.MULTILINE)
PICTURE = re.compile(r"<svg\b.*?</svg>", re.DOTALL)
MAIN = "table-2-accuracy"
"""The table that says the commands of the runs that other tables are made of too."""
NOTHING = "Nothing has been measured here yet."


def read_grid(results: Path) -> Grid:
    """The runs whose records are in a folder, of which there may be none yet."""
    grid = Grid.of(read_records([results], warn) if any(results.rglob("*.json")) else [])
    for name, why in grid.left_out:
        warn(f"{name} is left out: {why}")
    return grid


def warn(sentence: str) -> None:
    """Say it beside the results."""
    print(sentence, file=sys.stderr)


def block(table: Table, main: Table | None = None, commands_too: bool = True) -> str:
    """A table and, folded, the commands behind each of its rows; one sentence where no run stands behind it.

    Args:
        table: what to show.
        main: where the same runs stand with their commands already; those are not said again.
        commands_too: False leaves the commands out.
    """
    if not table.filled:
        return f"{NOTHING}\n"
    if not commands_too:
        return table.markdown(titled=False)
    if main is not None and table is not main and _commands(table) <= _commands(main):
        return "\n".join([table.markdown(titled=False), "The commands are those of the same runs in Table 2.", ""])
    lines = [line for what, commands in table.commands() for line in (f"# {what}", *commands, "")]
    commands = ["<details><summary>Commands behind the numbers</summary>", "", "```text", *lines[:-1], "```", ""]
    return "\n".join([table.markdown(titled=False), *commands, "</details>", ""])


def _commands(table: Table) -> set[str]:
    return {command for _, commands in table.commands() for command in commands}


def claims(grid: Grid) -> str:
    """The paper's claims with our verdicts; one sentence where the runs decide none of them."""
    checked = check_claims(grid)
    if all(claim.ours.verdict == UNKNOWN for claim in checked):
        return f"{NOTHING}\n"
    return f"{claims_markdown(checked)}\n{grid.counting()}\n"


def bundled(weights: Path) -> str:
    """The cards of the networks that ship; one sentence where one of them has none yet."""
    try:
        return cards(weights)
    except FileError as error:
        warn(str(error))
        return f"{NOTHING}\n"


def filled(page: str, blocks: dict[str, str], root: Path = ROOT) -> str:
    """The text of a page with every named table and file in its place."""

    def table(match: re.Match[str]) -> str:
        if match[2] not in blocks:
            raise ValueError(f"there is no table {match[2]!r} of results: the tables are {', '.join(blocks)}")
        return f"{match[1]}\n{blocks[match[2]]}\n{match[3]}"

    def file(match: re.Match[str]) -> str:
        lines = [line.rstrip() for line in (root / match[2]).read_text(encoding="utf-8").strip().splitlines()]
        return f"{match[1]}```text\n" + "\n".join(lines) + "\n```"

    return FILE.sub(file, TABLE.sub(table, page))


def report(grid: Grid, pictures: bool = True) -> str:
    """The HTML report; without pictures the figures are empty, which is faster and the same everywhere."""
    charts = all_charts(grid)
    return render(grid, charts if pictures else [replace(chart, draw=_nothing) for chart in charts])


def _nothing(figure: Any, theme: dict[str, str]) -> None:
    """Draws nothing."""


def outputs(root: Path = ROOT, pictures: bool = True) -> Iterator[tuple[Path, str]]:
    """Every file that is made from results/, with its text."""
    grid = read_grid(root / "results")
    tables = all_tables(grid)
    main = next(table for table in tables if table.name == MAIN)
    blocks = {table.name: block(table, main) for table in tables}
    blocks["claims"] = claims(grid)
    blocks["weights"] = bundled(root / "src" / "oneofmany" / "weights")
    # The README is for a first look: the pages that it links to say the commands.
    short = {table.name: block(table, commands_too=False) for table in tables}
    yield root / "README.md", filled((root / "README.md").read_text(encoding="utf-8"), short, root)
    for path in sorted((root / "docs").rglob("*.md")):
        yield path, filled(path.read_text(encoding="utf-8"), blocks, root)
    yield root / "docs" / "report.html", report(grid, pictures)


def stale(root: Path = ROOT) -> list[str]:
    """Files that are out of step with results/. Figures are not compared: another matplotlib draws otherwise."""
    found = []
    for path, text in outputs(root, pictures=False):
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        if PICTURE.sub("", before) != PICTURE.sub("", text):
            found.append(str(path.relative_to(root)))
    return found


def publish(root: Path = ROOT) -> list[str]:
    """Bring all files in step; which of them changed."""
    changed = []
    for path, text in outputs(root):
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            changed.append(str(path.relative_to(root)))
    return changed


def main() -> None:
    """Fill the pages, or check them."""
    if "--check" in sys.argv:
        if found := stale():
            sys.exit(f"run make results: out of step are {', '.join(found)}")
        return
    print("changed:", ", ".join(publish()) or "nothing")


if __name__ == "__main__":
    main()
