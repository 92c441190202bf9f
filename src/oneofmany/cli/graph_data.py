"""``oneofmany data colouring``: graphs with their colourings."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated, Literal

from oneofmany.cli.data import SplitOption, save
from oneofmany.cli.options import Flag, option
from oneofmany.cli.terminal import progress, say
from oneofmany.files import check_writable


def colouring(
    out: Path,
    colours: int = 3,
    nodes: Annotated[tuple[int, ...], option("N ...", "the benchmark's: 16 32 64 128 256", "--size")] = (),
    benchmark: Annotated[
        Literal["train", "dev", "test"] | None, option("{train,dev,test}", "random graphs of your own")
    ] = None,
    queries: Annotated[int | None, option("N", "all graphs of the benchmark")] = None,
    degree: Annotated[tuple[float, float] | None, option("LOW HIGH", "where few graphs are easy")] = None,
    split: SplitOption = None,
    seed: int = 0,
    listed: int = 10,
    branches: int = 20_000,
    moves: int = 200_000,
    tries: int = 4,
    no_clique: Flag = False,
    unsolved: Flag = False,
    threads: Annotated[int | None, option("N", "one per core")] = None,
    force: Flag = False,
) -> None:
    """Build graph colouring queries: random graphs, each with colourings that are far apart.

    Example: oneofmany data colouring --nodes 8 12 16 --queries 2000 --split train --out train.safetensors

    Example: oneofmany data colouring --benchmark test --colours 5 --nodes 16 32 --out test.safetensors

    With --benchmark the graphs are those of RandCSPBench; a build that was stopped goes on where it was. The command
    says how many graphs of every size have a colouring, have none, and how many are not known.

    Args:
        out: the file to write (.safetensors).
        colours: number of colours; 3 or 5 with --benchmark.
        nodes: numbers of nodes; without --benchmark one of them is drawn for every graph.
        benchmark: build this part of RandCSPBench. It has train and test; dev is made like them with another seed.
        queries: without --benchmark: number of different graphs.
        degree: without --benchmark: lowest and highest mean degree.
        split: without --benchmark: build only the graphs of this split; a hash of the graph decides its split.
        seed: without --benchmark: random seed; the same seed gives the same file.
        listed: list at most this many colourings per graph.
        branches: number of branches of the exhaustive search of a graph.
        moves: number of moves of a local search.
        tries: number of local searches for a graph without a colouring so far.
        no_clique: do not give the nodes of one clique different colours in advance.
        unsolved: also keep graphs without a known colouring.
        threads: number of threads; the file does not depend on it.
        force: overwrite an existing file.
    """
    check_writable(out, force)
    from oneofmany.data.colouring import STATES, Effort, build_benchmark_colouring, build_colouring
    from oneofmany.data.graphs import SIZES

    effort = Effort(listed, branches, moves, tries)
    if benchmark is None:
        if queries is None or not nodes:
            raise ValueError("expected --queries N and --nodes N ..., or a part of RandCSPBench with --benchmark")
        built = build_colouring(
            queries,
            nodes,
            colours,
            split,
            seed,
            degrees=degree,
            clique=not no_clique,
            unsolved=unsolved,
            effort=effort,
            threads=threads,
        )
        save(built, out, force)
        return
    if queries is not None or degree is not None or split is not None or seed:
        raise ValueError("--benchmark makes fixed graphs: leave out --queries, --degree, --split and --seed")
    folder = out.with_name(f".{out.name}.parts")
    with progress() as tell:
        built = build_benchmark_colouring(
            colours,
            benchmark,
            nodes or SIZES,
            clique=not no_clique,
            unsolved=unsolved,
            effort=effort,
            threads=threads,
            folder=folder,
            progress=tell,
        )
    save(built, out, force)
    shutil.rmtree(folder, ignore_errors=True)
    for size, numbers in built.built["counts"].items():
        known = dict(zip(STATES, numbers, strict=True))
        say(
            "{size} nodes: {graphs:,} graphs, {solvable:,} solvable, {unsolvable:,} not, {unknown:,} unknown".format(
                size=size, **known
            )
        )
