"""``oneofmany demo``: a first look."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from rich.table import Table

from oneofmany.cli.show import show
from oneofmany.cli.terminal import progress, results, say


def demo(out: Path = Path("demo")) -> None:
    """Build a small data set of each task and show queries that have several solutions.

    Example: oneofmany demo --out demo

    Args:
        out: the folder for the data sets; files of an earlier demo are replaced.
    """
    from oneofmany.data.futoshiki import build_futoshiki
    from oneofmany.data.nqueens import build_nqueens
    from oneofmany.data.statistics import statistics
    from oneofmany.data.sudoku import build_sudoku

    out.mkdir(parents=True, exist_ok=True)
    say("building a small data set of each task (the first call also compiles the enumerator, about half a minute)")
    with progress() as tell:
        sets = {"nqueens": build_nqueens(8, 4, seed=1)}
        tell("data sets", 1, 3)
        sets["futoshiki"] = build_futoshiki(5, 14, 5, 1000, seed=1)
        tell("data sets", 2, 3)
        sets["sudoku"] = build_sudoku(200, "train", seed=1, size=6, listed=50)
        tell("data sets", 3, 3)
    table = Table(title=f"Data sets in {out}, with all solutions of every query", title_justify="left")
    for column in ("task", "queries", "with several solutions", "solutions each", "furthest apart"):
        table.add_column(column, justify="left" if column == "task" else "right")
    for name, dataset in sets.items():
        path = out / f"{name}.safetensors"
        dataset.save(path, force=True)
        about = statistics(dataset)
        table.add_row(
            f"{name} {about['size']}",
            f"{about['queries']:,}",
            f"{about['ms_queries']:,} ({about['ms_percent']:.1f} %)",
            f"{about['solutions_per_ms_query']:.2f}",
            f"{about['largest_hamming_distance']} variables",
        )
    console = results()
    console.print(table)
    for name, title in {
        "nqueens": "8 queens, four given: exactly two ways to place the others",
        "futoshiki": "Futoshiki",
        "sudoku": "Sudoku 6x6",
    }.items():
        console.print(f"\n{title}", style="bold cyan")
        row = int(np.flatnonzero(sets[name].total == 2)[0])
        show(str(out / f"{name}.safetensors"), rows=(row,))
    console.print(f"Look further: oneofmany data show {out / 'sudoku.safetensors'}, oneofmany show --help")
