"""One self-contained HTML file with tables, claims, figures, a board viewer, and the settings behind every number."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import oneofmany
from oneofmany.report.claims import FAILS, HOLDS, UNKNOWN, check_claims
from oneofmany.report.learned import our_tables
from oneofmany.report.records import NO_RESULT, Grid, Record, titled
from oneofmany.report.table import Table
from oneofmany.report.tables import general_tables
from oneofmany.report.themes import DARK, LIGHT, Chart, css
from oneofmany.report.viewer import check_viewer

TEMPLATES = Path(__file__).parent / "templates"
TALLY = {HOLDS: "of the paper's claims hold", FAILS: "do not hold", UNKNOWN: "need more runs"}
LONG = 40
"""A table of more rows is folded."""


def render(grid: Grid, charts: Sequence[Chart] | None, viewers: Sequence[tuple[str, dict[str, Any]]] = ()) -> str:
    """The whole page.

    Args:
        grid: the runs.
        charts: the figures, or None where they cannot be drawn (matplotlib is not installed).
        viewers: (title, what ``viewer.trace`` returned) for every prediction that the board viewer offers; those that
            the records hold (``record["viewer"]``) come first.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    stored = [(record["name"], part) for record in grid.runs for part in _viewers(record)]
    shown = [{"title": title, **check_viewer(data, title)} for title, data in [*stored, *viewers]]
    claims, tables, own = check_claims(grid), general_tables(grid), our_tables(grid)
    # Of commands that two runs share, the link leads to the first.
    anchors = {c: f"run-{i}" for i, r in reversed(list(enumerate(grid.all))) for c in _commands(r)}
    pages = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    counts = Counter(claim.ours.verdict for claim in claims)
    return pages.get_template("report.html").render(
        version=oneofmany.__version__,
        grid=grid,
        tables=[_shown(table) for table in tables if table.filled],
        unfilled=[_shown(table) for table in tables if not table.filled and table.rows],
        ours=[_shown(table) for table in own if table.filled],
        missing=[table.title for table in own if not table.filled],
        claims=claims,
        verdicts=[(verdict, counts[verdict], words) for verdict, words in TALLY.items() if counts[verdict]],
        decided=counts[UNKNOWN] < len(claims),
        unknown=UNKNOWN,
        charts=None if charts is None else [(chart, Markup(chart.svg)) for chart in charts],
        recipes=_recipes(grid),
        anchors=anchors,
        viewers=Markup(embedded(shown)) if shown else None,
        light=Markup(css(LIGHT)),
        dark=Markup(css(DARK)),
        style=Markup((TEMPLATES / "report.css").read_text(encoding="utf-8")),
        script=Markup((TEMPLATES / "page.js").read_text(encoding="utf-8")),
        viewer_script=Markup((TEMPLATES / "viewer.js").read_text(encoding="utf-8")),
    )


def embedded(value: Any) -> str:
    """JSON that can stand inside a script element: nothing in it can end the element or begin another."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _viewers(record: Record) -> list[dict[str, Any]]:
    stored = record.get("viewer") or []
    return stored if isinstance(stored, list) else [stored]


def _commands(record: Record) -> list[str]:
    return [record["command"], *(e["command"] for e in record["evaluations"].values() if e.get("command"))]


def _shown(table: Table) -> dict[str, Any]:
    """A table as the template wants it: groups of columns, groups of rows that share their first label."""
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
    }


def _recipes(grid: Grid) -> list[dict[str, Any]]:
    """Recipes, and what stands apart from them, with the settings that their runs share, and the runs."""
    found = []
    numbered = list(enumerate(grid.all))
    for recipe, part in groupby(numbered, key=lambda pair: titled(pair[1], "recipe")):
        runs = list(part)
        settings = {name: value for name, value in runs[0][1]["settings"].items() if name not in NO_RESULT}
        found.append(
            {
                "name": recipe,
                "settings": json.dumps(settings, indent=1),
                "runs": [
                    {
                        "anchor": f"run-{i}",
                        "name": record["name"],
                        "commands": list(dict.fromkeys(_commands(record))),
                        "facts": _facts(record),
                    }
                    for i, record in runs
                ],
            }
        )
    return found


def _facts(record: Record) -> list[tuple[str, str]]:
    facts = [("seed", str(record["seed"]))]
    if record.get("updates") is not None:
        facts.append(("updates", f"{record['updates']:,}"))
    if record.get("seconds") is not None:
        facts.append(("training", f"{record['seconds']:,.0f} s"))
    data = {part["name"]: part["checksum"] for part in (record.get("data") or {}).values()}
    data |= {e["data"]["name"]: e["data"]["checksum"] for e in record["evaluations"].values()}
    facts += [(str(name), str(value)) for name, value in (record.get("environment") or {}).items() if value is not None]
    return facts + [(name, f"checksum {checksum[:16]}") for name, checksum in data.items()]
