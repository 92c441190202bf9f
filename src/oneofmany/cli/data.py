"""``oneofmany data ...``: build, import, export and describe data sets."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from oneofmany.cli.options import Flag, option
from oneofmany.cli.terminal import progress, say
from oneofmany.data.splits import Split
from oneofmany.files import FileError, check_writable
from oneofmany.launching import Place, launcher_for
from oneofmany.runs.lock import Lock

Where = Annotated[Place, tyro.conf.arg(name="", help="")]
Shards = Annotated[int | None, option("N", "one build without shards")]
Jobs = Annotated[int | None, option("N", "1, on a cluster as many as it takes")]
SplitOption = Annotated[Split | None, option("{train,dev,test}", "queries of all splits")]


def nqueens(
    size: int,
    blanks: int,
    out: Path,
    queries: Annotated[int | None, option("N", "all that exist; needed above 12 queens")] = None,
    split: SplitOption = None,
    seed: int = 0,
    force: Flag = False,
    shards: Shards = None,
    jobs: Jobs = None,
    place: Where = Place(),  # noqa: B008 - frozen
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
        shards: build in this many shards, from 13 queens on; another number gives other queries, any launcher the
            same.
        jobs: number of shards at a time.
        place: where the shards are built.
    """
    _check_place(shards, jobs, place)
    check_writable(out, force)
    if shards is not None:
        arguments = {"size": size, "blanks": blanks, "queries": queries, "split": split, "seed": seed}
        _save_in_shards("nqueens", arguments, shards, jobs, place, out, force)
        return
    from oneofmany.data.nqueens import build_nqueens

    save(build_nqueens(size, blanks, queries, split, seed), out, force)


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
    shards: Shards = None,
    jobs: Jobs = None,
    place: Where = Place(),  # noqa: B008 - frozen
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
        shards: build in this many shards; another number gives other queries, any launcher the same.
        jobs: number of shards at a time.
        place: where the shards are built.
    """
    _check_place(shards, jobs, place)
    check_writable(out, force)
    if shards is not None:
        arguments = {"size": size, "blanks": blanks, "inequalities": inequalities, "queries": queries, "split": split}
        arguments |= {"seed": seed, "neighbours": neighbours}
        _save_in_shards("futoshiki", arguments, shards, jobs, place, out, force)
        return
    from oneofmany.data.futoshiki import build_futoshiki

    save(build_futoshiki(size, blanks, inequalities, queries, split, seed, neighbours), out, force)


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
    rating: Annotated[tuple[float, float] | None, option("LOW HIGH", "puzzles of any rating")] = None,
    pairs: Flag = False,
    reduced: Flag = False,
    force: Flag = False,
    shards: Shards = None,
    jobs: Jobs = None,
    place: Where = Place(),  # noqa: B008 - frozen
) -> None:
    """Build Sudoku queries: half with one solution, half with 2 to 50, spread evenly over the number of givens.

    Example: oneofmany data sudoku --clues sudoku17.txt --split train --queries 20000 --out train.safetensors

    Example: oneofmany data sudoku --rating 50 1000 --split test --queries 2000 --out hard.safetensors

    Example: oneofmany data sudoku --size 16 --reduced --givens 100 110 --split test --queries 200 --out 16.safetensors

    Args:
        split: the split; a hash of the solution grid's symmetry class decides the split of a query.
        queries: number of distinct queries.
        out: the file to write (.safetensors).
        clues: a file of puzzles with one solution, for example 17-clue puzzles, in any format of docs/reading.md.
        seed: random seed; the same seed gives the same file.
        size: number of rows, columns and values; other sizes than 9 (4, 6, 16, 25, ...) only without --clues.
        ms_queries: number of queries with several solutions (MS).
        listed: list at most this many solutions per query, a random sample.
        givens: lowest and highest number of givens.
        split_by: split by the symmetry class of the solution grid, or by puzzle for comparison.
        rating: generate minimal 9x9 puzzles with ratings in this range (see `oneofmany rate`), spread over it on a
            logarithmic scale; 1000 is extreme. MS queries lack one given of such a puzzle. Not with --clues, --size,
            --givens or --split-by.
        pairs: with --rating: rate by searches that use locked candidates and pairs too.
        reduced: sizes above 9, with --givens: remove cells of a grid one by one while a search proves that the solution
            is unique, instead of showing random cells; so fewer givens are enough (about 96 of 256, 300 of 625).
        force: overwrite an existing file.
        shards: build in this many shards; another number gives other queries, any launcher the same.
        jobs: number of shards at a time.
        place: where the shards are built.
    """
    if rating is not None and (clues is not None or size != 9 or givens is not None or split_by != "grid-class"):
        raise ValueError(
            "--rating generates 9x9 puzzles from random grids: leave out --clues, --size, --givens and --split-by"
        )
    if pairs and rating is None:
        raise ValueError("--pairs says how puzzles are rated: give a range of ratings with --rating LOW HIGH")
    _check_place(shards, jobs, place)
    if reduced and (rating is not None or clues is not None or size <= 9 or givens is None or split_by != "grid-class"):
        raise ValueError(
            "--reduced makes large puzzles from random grids: use it with --size above 9 and --givens alone"
        )
    check_writable(out, force)
    if shards is not None:
        arguments = {"queries": queries, "split": split, "seed": seed, "ms_queries": ms_queries, "listed": listed}
        if rating is not None:
            arguments |= {"rating": rating, "pairs": pairs}
            _save_in_shards("hard_sudoku", arguments, shards, jobs, place, out, force)
            return
        if reduced:
            arguments |= {"size": size, "givens": givens}
            _save_in_shards("large_sudoku", arguments, shards, jobs, place, out, force)
            return
        list_of_clues = None if clues is None else str(clues.absolute())
        arguments |= {"clues": list_of_clues, "size": size, "givens": givens, "split_by": split_by}
        _save_in_shards("sudoku", arguments, shards, jobs, place, out, force)
        return
    if rating is not None:
        from oneofmany.data.hard_sudoku import build_hard_sudoku

        with progress() as tell:
            hard = build_hard_sudoku(
                queries, split, rating, seed, ms_queries=ms_queries, listed=listed, pairs=pairs, progress=tell
            )
        save(hard, out, force)
        return
    if reduced and givens is not None:
        from oneofmany.data.large_sudoku import build_large_sudoku

        with progress() as tell:
            large = build_large_sudoku(
                size, queries, split, givens, seed, ms_queries=ms_queries, listed=listed, progress=tell
            )
        save(large, out, force)
        return
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
    save(built, out, force)


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
    from oneofmany.data.benchmark import BENCHMARK, NAMED, SIZES, build_benchmark, file_name

    for name in only:
        if name not in NAMED:
            raise ValueError(f"--only: expected names among {', '.join(NAMED)}, got {name!r}")
    if clues is not None and not clues.is_file():
        raise FileError(f"{clues} is not a file")
    out.mkdir(parents=True, exist_ok=True)
    for name in dict.fromkeys((*(only or BENCHMARK), *(SIZES if sizes else ()))):
        path = out / file_name(name, clues)
        if path.exists() and not force:
            say(f"{path} exists and is kept; --force builds it again")
            continue
        save(build_benchmark(name, clues), path, force)


def save(dataset, path: Path, force: bool) -> None:
    """Write a data set and say so."""
    dataset.save(path, force=force)
    multiple = int(dataset.multiple.sum())
    say(f"wrote {path}: {len(dataset):,} queries, {multiple:,} of them with several solutions")


def _check_place(shards: int | None, jobs: int | None, place: Place) -> None:
    for name, given in (("--launcher", place.launcher != "local"), ("--jobs", jobs is not None)):
        if given and shards is None:
            raise ValueError(f"{name} is for a build in shards: add --shards N, or leave it out")
    if jobs is not None and jobs < 1:
        raise ValueError(f"--jobs: expected at least 1, got {jobs}")


def _save_in_shards(
    builder: str, arguments: dict[str, Any], shards: int, jobs: int | None, place: Place, out: Path, force: bool
) -> None:
    """Build in shards in a folder beside ``out``, which is deleted at the end."""
    from oneofmany.data.shards import Build, build_in_shards

    build, folder = Build(builder, arguments, shards), out.with_name(f".{out.name}.shards")
    launcher = launcher_for(place, folder)
    try:
        with Lock(out.with_name(f".{out.name}.lock"), out), progress() as tell:
            at_once = 1 if jobs is None and place.launcher == "local" else jobs
            built = build_in_shards(
                build, folder, launcher, at_once=at_once, tell=lambda done, of: tell("shards", done, of)
            )
            save(built, out, force)
            shutil.rmtree(folder, ignore_errors=True)  # submitit may still write its logs
    finally:
        launcher.close()
