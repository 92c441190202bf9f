"""``oneofmany data ...``: build, import, export and describe data sets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import tyro

from oneofmany.cli.terminal import progress, results, say
from oneofmany.data.splits import Split
from oneofmany.files import FileError, check_writable

Positional = tyro.conf.Positional


def nqueens(
    size: int,
    blanks: int,
    out: Path,
    queries: int | None = None,
    split: Split | None = None,
    seed: int = 0,
    force: bool = False,
) -> None:
    """Build N-Queens queries by blanking rows of boards of non-attacking queens.

    Example: oneofmany data nqueens --size 10 --blanks 5 --out train.safetensors

    Args:
        size: how many queens.
        blanks: how many rows are blank.
        out: the file to write.
        queries: how many distinct queries; all that exist by default (needed above 12 queens).
        split: only queries of this split, which a hash of the query decides; all by default.
        seed: order of the listed solutions, and which queries are drawn.
        force: overwrite an existing file.
    """
    check_writable(out, force)
    from oneofmany.data.nqueens import build_nqueens

    _save(build_nqueens(size, blanks, queries, split, seed), out, force)


def futoshiki(
    size: int,
    blanks: int,
    queries: int,
    out: Path,
    inequalities: int = 5,
    split: Split | None = None,
    seed: int = 0,
    neighbours: Literal["horizontal", "all"] = "horizontal",
    force: bool = False,
) -> None:
    """Build Futoshiki queries from uniformly random Latin squares.

    Example: oneofmany data futoshiki --size 6 --blanks 18 --inequalities 5 --queries 10000 --out test.safetensors

    Args:
        size: how many rows, columns and values.
        blanks: how many cells are blank.
        queries: how many distinct queries.
        out: the file to write.
        inequalities: how many of each direction are drawn, with replacement.
        split: only queries of this split, which a hash of the query decides; all by default.
        seed: the same seed gives the same bytes.
        neighbours: inequalities between horizontal neighbours (the authors' code) or all adjacent cells (the text).
        force: overwrite an existing file.
    """
    check_writable(out, force)
    from oneofmany.data.futoshiki import build_futoshiki

    _save(build_futoshiki(size, blanks, inequalities, queries, split, seed, neighbours), out, force)


def sudoku(
    split: Split,
    queries: int,
    out: Path,
    clues: Path | None = None,
    seed: int = 0,
    size: int = 9,
    ms_queries: int | None = None,
    listed: int | None = None,
    givens: tuple[int, int] | None = None,
    split_by: Literal["grid-class", "puzzle"] = "grid-class",
    force: bool = False,
) -> None:
    """Build Sudoku queries, half with one solution and half with 2 to 50, evenly over the numbers of givens.

    Example: oneofmany data sudoku --clues sudoku17.txt --split train --queries 20000 --out train.safetensors

    Args:
        split: train, dev or test; a hash of the solution grid's symmetry class decides.
        queries: how many distinct queries.
        out: the file to write.
        clues: list of puzzles with one solution, one a line (17-clue puzzles, for example); own minimal ones without.
        seed: the same seed gives the same bytes.
        size: 9, or another size (4, 6, 16, 25, ...) without --clues.
        ms_queries: how many queries have several solutions; half by default.
        listed: list at most so many solutions, a fair sample; 5 in training and all elsewhere by default.
        givens: lowest and highest number of givens; 17 34 with --clues, 22 34 without.
        split_by: split by the solution grid's symmetry class, or by puzzle for comparison.
        force: overwrite an existing file.
    """
    check_writable(out, force)
    from oneofmany.data.sudoku import build_sudoku

    with progress() as tell:
        built = build_sudoku(
            queries,
            split,
            clues,
            seed,
            size=size,
            ms_queries=ms_queries,
            listed=listed,
            givens=givens,
            split_by=split_by,
            progress=tell,
        )
    _save(built, out, force)


def benchmark(
    out: Path,
    clues: Path | None = None,
    only: tuple[str, ...] = (),
    sizes: bool = False,
    force: bool = False,
) -> None:
    """Build the data sets of the benchmark with their fixed seeds; files that exist are left alone.

    Example: oneofmany data benchmark --clues sudoku17.txt --out data

    Args:
        out: the folder to fill; it is made where it does not exist.
        clues: list of 17-clue puzzles for the Sudoku sets; without it they come from our own minimal puzzles and are
            named sudoku-own-....
        only: names of the sets to build, for example nqueens-train nqueens-dev; all of the paper's by default.
        sizes: also build the larger boards, such as nqueens-size-20-test.
        force: build and overwrite files that exist.
    """
    from oneofmany.data.benchmark import BENCHMARK, EXPERIMENTS, SIZES, build_benchmark, file_name

    known = BENCHMARK | EXPERIMENTS | SIZES
    for name in only:
        if name not in known:
            raise ValueError(f"--only: expected names among {', '.join(known)}, got {name!r}")
    if clues is not None and not clues.is_file():
        raise FileError(f"{clues} is not a file")
    out.mkdir(parents=True, exist_ok=True)
    for name in dict.fromkeys((*(only or BENCHMARK), *(SIZES if sizes else ()))):
        path = out / file_name(name, clues)
        if path.exists() and not force:
            say(f"{path} exists and is left alone")
            continue
        _save(build_benchmark(name, clues), path, force)


def import_pairs(pairs: Positional[Path], out: Path, task: str | None = None, force: bool = False) -> None:
    """Group your own input-output pairs into queries with their listed solutions.

    Example: oneofmany data import pairs.jsonl --out mine.safetensors

    Args:
        pairs: a .jsonl or .parquet file of records with the fields input and output.
        out: the file to write.
        task: nqueens, futoshiki or sudoku if the pairs are in its text form: then outputs are checked by the rules.
        force: overwrite an existing file.
    """
    check_writable(out, force)
    from oneofmany.data.pairs import import_pairs as read_pairs

    dataset, summary = read_pairs(pairs, task)
    dataset.save(out, force=force)
    print(summary.sentence())
    say(f"wrote {out}")


def export(file: Positional[Path], out: Path, pairs: bool = False, force: bool = False) -> None:
    """Write a data set as Parquet.

    Example: oneofmany data export train.safetensors --out train.parquet

    Args:
        file: the data set.
        out: the .parquet file to write.
        pairs: one row for each (input, output) pair, as `data import` reads them, instead of one for each query.
        force: overwrite an existing file.
    """
    check_writable(out, force)
    from oneofmany.data.dataset import Dataset
    from oneofmany.data.pairs import export_parquet

    export_parquet(Dataset.load(file), out, pairs=pairs, force=force)
    say(f"wrote {out}")


def show(file: Positional[Path], as_json: Annotated[bool, tyro.conf.arg(name="json")] = False) -> None:
    """Describe a data set: Table 1's statistics, histograms, and how far two solutions of a query lie apart.

    Example: oneofmany data show train.safetensors

    Args:
        file: the data set.
        as_json: print JSON.
    """
    from oneofmany.data.dataset import Dataset
    from oneofmany.data.statistics import statistics

    about = statistics(Dataset.load(file))
    if as_json:
        print(json.dumps(about, indent=2))
        return
    from rich.table import Table

    console = results()
    table = Table(title=f"{about['task']} {about['size']}", title_justify="left", show_header=False, box=None)
    rows = {
        "queries": f"{about['queries']:,}",
        "MS queries": f"{about['ms_queries']:,} ({about['ms_percent']:.2f} %)",
        "solutions per MS query": f"{about['solutions_per_ms_query']:.2f} (listed {about['listed_per_ms_query']:.2f})",
        "most solutions": f"{about['most_solutions']:,}",
        "largest Hamming distance": f"{about['largest_hamming_distance']}",
        "groups": f"{about['groups']:,}",
        "built": ", ".join(f"{key} {value}" for key, value in about["built"].items() if value is not None),
        "checksum": about["checksum"],
    }
    if about["unknown_totals"]:
        rows["unknown totals"] = f"{about['unknown_totals']:,} queries: their listed solutions are counted"
    for name, value in rows.items():
        table.add_row(name, value)
    console.print(table)
    for title, name in (("solutions", "solution_counts"), ("givens", "givens")):
        histogram = about[name]
        most = max(histogram.values(), default=1)
        console.print(f"\n{title:>9}  queries")
        for value, number in histogram.items():
            console.print(f"{value:>9}  {number:>9,}  {'█' * max(1, round(40 * number / most))}")


def _save(dataset, path: Path, force: bool) -> None:
    dataset.save(path, force=force)
    multiple = int(dataset.multiple.sum())
    say(f"wrote {path}: {len(dataset):,} queries, {multiple:,} of them with several solutions")
