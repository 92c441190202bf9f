"""``oneofmany report``: tables, claims, figures and boards of runs as one HTML file."""

from __future__ import annotations

from pathlib import Path

import tyro

from oneofmany.cli.terminal import say


def report(
    runs: tyro.conf.Positional[tuple[Path, ...]], out: Path, export: Path | None = None, force: bool = False
) -> None:
    """Make one self-contained HTML file from runs: the paper's tables, claims and figures, and a board viewer.

    Example: oneofmany report runs/ results/ --out report.html --export figures/

    Args:
        runs: run folders, record files (.json), or folders that are searched for both.
        out: the HTML file to write.
        export: also write every table (CSV, Markdown) and figure (SVG, PNG) into this folder.
        force: overwrite existing files.
    """
    from oneofmany.files import check_writable
    from oneofmany.report import read_records, write_report

    check_writable(out, force)
    grid = write_report(read_records(runs, say), out, export=export, force=force, tell=say)
    for name, why in grid.left_out:
        say(f"{name} is left out: {why}")
    say(f"{len(grid.runs)} runs" + ("" if export is None else f", tables and figures in {export}"))
    print(out)
