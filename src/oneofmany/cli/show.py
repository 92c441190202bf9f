"""``oneofmany show``: draw queries and their solutions as boards, in the terminal or as pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

from oneofmany.cli.options import Flag, TaskFile, option, use_task
from oneofmany.cli.reading import SIZE, Read, read_queries
from oneofmany.cli.terminal import compiling, draw_boards, results, say
from oneofmany.data.dataset import Dataset
from oneofmany.files import check_writable
from oneofmany.pictures.boards import Board, save_boards
from oneofmany.problems import TASKS, Query, find_task


def show(
    source: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="DATA|TASK")],
    query: Annotated[
        str | None, tyro.conf.Positional, tyro.conf.arg(metavar="[QUERY|FILE]", help_behavior_hint="")
    ] = None,
    *,
    rows: Annotated[tuple[int, ...], option("ROW ...", "the first ones")] = (),
    number: int = 3,
    solutions: int = 4,
    ms: Flag = False,
    size: Annotated[int | None, SIZE] = None,
    svg: Annotated[Path | None, option("FILE", "boards in the terminal")] = None,
    png: Annotated[Path | None, option("FILE", "boards in the terminal")] = None,
    settling: Annotated[Path | None, option("FILE", "no animation")] = None,
    dark: Flag = False,
    force: Flag = False,
    task_file: TaskFile = None,
) -> int:
    """Draw queries with their solutions as boards, in the terminal or as a picture.

    Example: oneofmany show train.safetensors --ms --number 2

    Example: oneofmany show nqueens "3 . . . . . 2 ."

    Example: oneofmany show sudoku puzzles.txt --svg boards.svg

    Example: oneofmany show nqueens ". . . . . . . ." --settling settling.svg

    Args:
        source: a data file, or a task (nqueens, futoshiki, sudoku, colouring, your own) followed by a query.
        query: with a task: a query as text, a file of queries (docs/reading.md lists the formats), or - for stdin.
        rows: with a data file: the numbers of the queries to draw, counted from 0.
        number: with a data file and without --rows: the number of queries to draw.
        solutions: draw at most this many solutions per query.
        ms: with a data file: draw only queries with several solutions.
        size: with a task: number of rows and columns, if a text can be read in two sizes.
        svg: write the boards to this SVG file, which follows the reader's light or dark mode.
        png: write the boards to this PNG file.
        settling: with a task: write an animated SVG of how the bundled network settles on an answer to the first query.
        dark: draw the PNG for a dark page.
        force: overwrite existing files.
    """
    if solutions < 0 or number < 1:
        raise ValueError(f"expected --solutions of at least 0 and --number of at least 1, got {solutions} and {number}")
    use_task(task_file)
    picture = Picture([(file, kind) for file, kind in ((svg, ".svg"), (png, ".png")) if file], dark, force)
    if task := find_task(source):
        read = read_queries(task, query, size)
        if settling is not None:
            _settle(read, settling, force)
        if settling is None or picture.files:
            _show_text(read, solutions, picture)
        for complaint in read.complaints:
            say(f"oneofmany: {complaint}")
        return 2 if read.complaints else 0
    if settling is not None:
        raise ValueError(f"--settling: expected a task (one of {', '.join(TASKS)}) and a query, got {source!r}")
    if query is not None:
        raise ValueError(
            f"{source!r} is not a task (expected one of {', '.join(TASKS)}, or its --task-file), so a query cannot "
            "follow it"
        )
    dataset = Dataset.load(source)
    picked = list(rows) or np.flatnonzero(dataset.multiple if ms else np.ones(len(dataset), bool))[:number].tolist()
    for row in picked:
        if not 0 <= row < len(dataset):
            raise ValueError(f"--rows: expected 0 to {len(dataset) - 1}, got {row}")
        listed = dataset.solutions_of(row)
        total = int(dataset.total[row])
        counted = f"{total:,} solutions" if total != 1 else "1 solution"
        header = f"query {row}: {counted if total >= 0 else f'{len(listed):,} listed solutions'}"
        one = Query(dataset.problem_of(row), dataset.query[row], dataset.relations[row])
        _show_one(header, one, total, listed, solutions, picture)
    picture.write()
    return 0


class Picture:
    """The boards for pictures, and the files to write them to; without files nothing is drawn.

    Args:
        files: each with the end that its name must have.
        dark: of a PNG.
        force: overwrite existing files.
    """

    def __init__(self, files: list[tuple[Path, str]], dark: bool, force: bool) -> None:
        for file, kind in files:
            if file.suffix.lower() != kind:
                raise ValueError(f"--{kind[1:]}: expected the name of a file that ends in {kind}, got {str(file)!r}")
            check_writable(file, force)
        self.files, self.dark, self.force = [file for file, _ in files], dark, force
        self.rows: list[list[Board]] = []

    def add(self, header: str, query: Query, listed: np.ndarray, only: bool) -> None:
        """A row of boards: the query and its solutions; ``only``: it has no other one."""
        given = query.values > 0
        names = ["the solution" if only else f"solution {i + 1}" for i in range(len(listed))]
        row = [Board(query.problem, query.values, query.relations, title=header)]
        answers = zip(names, listed, strict=True)
        self.rows.append(row + [Board(query.problem, one, query.relations, given, name) for name, one in answers])

    def write(self) -> None:
        """Write all rows to every file and print their names."""
        for file in self.files:
            save_boards(file, self.rows, dark=self.dark, force=self.force)
            print(file)


def _settle(read: Read, file: Path, force: bool) -> None:
    from oneofmany.pictures.settling import beliefs, save_settling

    check_writable(file, force)
    if read.queries:
        _, query = read.queries[0]
        with compiling():
            save_settling(file, query, beliefs(query), force=force)
        print(file)


def _show_text(read: Read, solutions: int, picture: Picture) -> None:
    from oneofmany.exact import solve

    for number, one in read.queries:
        limit = max(1000, solutions)
        solved = solve(one.problem, one.values[None], one.relations[None], limit=limit)
        total = int(solved.total[0])
        counted = "1 solution" if total == 1 else f"{total:,} solutions{' or more' if total == limit else ''}"
        header = f"line {number}: {counted}" if len(read.queries) > 1 else counted
        _show_one(header, one, total, solved.of(0), solutions, picture)
    picture.write()


def _show_one(header: str, query: Query, total: int, listed: np.ndarray, most: int, picture: Picture) -> None:
    if picture.files:
        return picture.add(header, query, listed[:most], total == 1)
    console = results()
    task = find_task(query.problem.task)
    console.print(header, style="bold")
    if task is None:
        console.print("  query     " + " ".join(str(v) if v else "." for v in query.values))
        for solution in listed[:most]:
            console.print("  solution  " + " ".join(map(str, solution)))
    else:
        width = console.width if console.is_terminal else 100
        console.print(draw_boards(task, query.problem, query.values, query.relations, listed[:most], width), end="")
    if len(listed) > most:
        console.print(f"... and {len(listed) - most:,} more")
    console.print()
    return None
