"""``oneofmany data ...``: build, import, export and describe data sets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import tyro

from oneofmany.cli.options import Flag, Json, option
from oneofmany.cli.terminal import progress, results, say
from oneofmany.data.splits import Split
from oneofmany.files import FileError, check_writable

SplitOption = Annotated[Split | None, option("{train,dev,test}", "queries of all splits")]


def nqueens(
    size: int,
    blanks: int,
    out: Path,
    queries: Annotated[int | None, option("N", "all that exist; needed above 12 queens")] = None,
    split: SplitOption = None,
    seed: int = 0,
    force: Flag = False,
) -> None:
    """Build N-Queens queries: boards of non-attacking queens with some rows left blank.

    Example: oneofmany data nqueens --size 10 --blanks 5 --out train.safetensors

    Args:
        size: number of queens, which is also the number of rows and columns.
        blanks: number of blank rows.
        out: the file to write (.safetensors).
        queries: number of distinct queries.
        split: build only the queries of this split; a hash of the query decides its split.
        seed: random seed of the queries and of the order of their listed solutions.
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
    split: SplitOption = None,
    seed: int = 0,
    neighbours: Literal["horizontal", "all"] = "horizontal",
    force: Flag = False,
) -> None:
    """Build Futoshiki queries from uniformly random Latin squares.

    Example: oneofmany data futoshiki --size 6 --blanks 18 --inequalities 5 --queries 10000 --out test.safetensors

    Args:
        size: number of rows, columns and values.
        blanks: number of blank cells.
        queries: number of distinct queries.
        out: the file to write (.safetensors).
        inequalities: number of inequalities drawn for each direction (< and >), with replacement.
        split: build only the queries of this split; a hash of the query decides its split.
        seed: random seed; the same seed gives the same file.
        neighbours: inequalities between horizontal neighbours (the authors' code) or all adjacent cells (the paper).
        force: overwrite an existing file.
    """
    check_writable(out, force)
    from oneofmany.data.futoshiki import build_futoshiki

    _save(build_futoshiki(size, blanks, inequalities, queries, split, seed, neighbours), out, force)


def sudoku(
    split: Split,
    queries: int,
    out: Path,
    clues: Annotated[Path | None, option("FILE", "minimal puzzles are generated")] = None,
    seed: int = 0,
    size: int = 9,
    ms_queries: Annotated[int | None, option("N", "half of the queries")] = None,
    listed: Annotated[int | None, option("N", "5 for --split train, otherwise all")] = None,
    givens: Annotated[tuple[int, int] | None, option("LOW HIGH", "17 34 with --clues, 22 34 without")] = None,
    split_by: Literal["grid-class", "puzzle"] = "grid-class",
    force: Flag = False,
) -> None:
    """Build Sudoku queries: half with one solution, half with 2 to 50, spread evenly over the number of givens.

    Example: oneofmany data sudoku --clues sudoku17.txt --split train --queries 20000 --out train.safetensors

    Args:
        split: the split; a hash of the solution grid's symmetry class decides the split of a query.
        queries: number of distinct queries.
        out: the file to write (.safetensors).
        clues: a text file of puzzles with one solution, one per line, for example 17-clue puzzles.
        seed: random seed; the same seed gives the same file.
        size: number of rows, columns and values; other sizes than 9 (4, 6, 16, 25, ...) only without --clues.
        ms_queries: number of queries with several solutions (MS).
        listed: list at most this many solutions per query, a random sample.
        givens: lowest and highest number of givens.
        split_by: split by the symmetry class of the solution grid, or by puzzle for comparison.
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
    clues: Annotated[Path | None, option("FILE", "minimal puzzles are generated")] = None,
    only: Annotated[tuple[str, ...], option("NAME ...", "all of the paper's data sets")] = (),
    sizes: Flag = False,
    force: Flag = False,
) -> None:
    """Build the data sets of the benchmark with their fixed seeds; existing files are kept.

    Example: oneofmany data benchmark --clues sudoku17.txt --out data

    Args:
        out: the folder for the files; it is created if it does not exist.
        clues: a text file of 17-clue puzzles for the Sudoku data. Without it the files are named sudoku-own-....
        only: names of the data sets to build, for example nqueens-train nqueens-dev.
        sizes: also build the larger boards, such as nqueens-size-20-test.
        force: build existing files again and overwrite them.
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
            say(f"{path} exists and is kept; --force builds it again")
            continue
        _save(build_benchmark(name, clues), path, force)


def import_pairs(
    pairs: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="PAIRS")],
    out: Path,
    task: Annotated[str | None, option("TASK", "lists of numbers without rules")] = None,
    force: Flag = False,
) -> None:
    """Group your own input-output pairs into queries with their listed solutions.

    Example: oneofmany data import pairs.jsonl --out mine.safetensors

    Args:
        pairs: a .jsonl or .parquet file of records with the fields input and output.
        out: the file to write (.safetensors).
        task: nqueens, futoshiki or sudoku, if the pairs are in its text form; its rules then check every output.
        force: overwrite an existing file.
    """
    check_writable(out, force)
    from oneofmany.data.pairs import import_pairs as read_pairs

    dataset, summary = read_pairs(pairs, task)
    dataset.save(out, force=force)
    print(summary.sentence())
    say(f"wrote {out}")


def export(
    file: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")],
    out: Path,
    pairs: Flag = False,
    force: Flag = False,
) -> None:
    """Write a data set as a Parquet file.

    Example: oneofmany data export train.safetensors --out train.parquet

    Args:
        file: the data file.
        out: the .parquet file to write.
        pairs: write one row per (input, output) pair, as `data import` reads them, instead of one per query.
        force: overwrite an existing file.
    """
    check_writable(out, force)
    from oneofmany.data.dataset import Dataset
    from oneofmany.data.pairs import export_parquet

    export_parquet(Dataset.load(file), out, pairs=pairs, force=force)
    say(f"wrote {out}")


def show(file: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")], as_json: Json = False) -> None:
    """Describe a data set: the statistics of the paper's Table 1, and histograms of solutions and givens.

    Example: oneofmany data show train.safetensors

    Args:
        file: the data file.
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
