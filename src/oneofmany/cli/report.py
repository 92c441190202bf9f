"""``oneofmany report``: tables, figures and boards of runs as one HTML file."""

from __future__ import annotations

from pathlib import Path

import tyro

from oneofmany.cli.terminal import say


def report(
    runs: tyro.conf.Positional[tuple[Path, ...]],
    out: Path,
    export: Path | None = None,
    boards: Path | None = None,
    force: bool = False,
) -> None:
    """Make one self-contained HTML file from runs: tables of their accuracy, figures, and a board viewer.

    Example: oneofmany report runs/ records/ --out report.html --export figures/

    Example: oneofmany report runs/ --boards data/nqueens-test.safetensors --out report.html

    Args:
        runs: run folders, record files (.json), or folders that are searched for both.
        out: the HTML file to write.
        export: also write every table (CSV, Markdown) and figure (SVG, PNG) into this folder.
        boards: a data file; its first MS queries are answered by the networks of the run folders in the board viewer.
        force: overwrite existing files.
    """
    from oneofmany.extras import require
    from oneofmany.files import check_writable
    from oneofmany.report import find_runs, read_records, write_report

    require("jinja2")
    check_writable(out, force)
    records, viewers = read_records(runs, say), []
    if boards is not None:
        from oneofmany.data import Dataset
        from oneofmany.report import trace_runs

        folders = [path for path, _ in find_runs(runs) if path.is_dir()]
        viewers = trace_runs(folders, Dataset.load(boards))
        if not viewers:
            raise ValueError(f"--boards: no run folder among these runs has a network for the queries of {boards}")
    grid = write_report(records, out, export=export, force=force, viewers=viewers, tell=say)
    for name, why in grid.left_out:
        say(f"{name} is left out: {why}")
    say(f"{len(grid.runs)} runs" + ("" if export is None else f", tables and figures in {export}"))
    print(out)
