"""``oneofmany report``: one HTML file with tables, figures and boards of runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from oneofmany.cli.options import Flag, TaskFile, option, use_task
from oneofmany.cli.terminal import say


def report(
    runs: Annotated[
        tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUN ...", help_behavior_hint="(required)")
    ],
    out: Path,
    export: Annotated[Path | None, option("DIR", "not written")] = None,
    boards: Annotated[Path | None, option("FILE", "no board viewer")] = None,
    force: Flag = False,
    task_file: TaskFile = None,
) -> None:
    """Write one self-contained HTML file about runs: tables of their accuracy, figures and a board viewer.

    Example: oneofmany report runs/ records/ --out report.html --export figures/

    Example: oneofmany report runs/ --boards data/nqueens-test.safetensors --out report.html

    Args:
        runs: run folders, record files (.json), or folders that are searched for both.
        out: the HTML file to write.
        export: also write every table (CSV, Markdown) and figure (SVG, PNG) to this folder.
        boards: a data file; the board viewer shows how the run folders' networks answer its first MS queries.
        force: overwrite existing files.
    """
    from oneofmany.extras import require
    from oneofmany.files import check_writable
    from oneofmany.report import find_runs, read_records, write_report

    require("jinja2")
    use_task(task_file)
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
    say(
        f"{len(grid.runs)} run{'s' if len(grid.runs) != 1 else ''}"
        + ("" if export is None else f", tables and figures in {export}")
    )
    print(out)
