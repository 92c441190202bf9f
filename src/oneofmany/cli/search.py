"""``oneofmany search``: what more starts and more steps of a network pay."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import tyro

from oneofmany.cli.evaluate import print_table
from oneofmany.cli.options import Flag, Json, TaskFile, option, use_task
from oneofmany.cli.terminal import progress, say


def search(
    run: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")],
    data: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DATA")],
    *,
    starts: Annotated[tuple[int, ...], tyro.conf.arg(metavar="N ...")] = (1, 2, 4, 8, 16, 32),
    steps: Annotated[tuple[int, ...], tyro.conf.arg(metavar="N ...")] = (64, 256, 1024),
    restarts: tuple[Literal["noise", "perturbed"], ...] = ("noise",),
    tolerance: float = 0.001,
    patience: int = 8,
    scale: float = 1.0,
    seed: int = 0,
    batch: int = 1024,
    device: Literal["auto", "cpu", "cuda"] = "auto",
    precision: Annotated[
        Literal["float32", "bfloat16"] | None, option("{float32,bfloat16}", "float32 on a CPU, bfloat16 on a GPU")
    ] = None,
    out: Annotated[Path | None, option("FILE.json", "none")] = None,
    figure: Annotated[Path | None, option("FIG.svg|FIG.png", "none")] = None,
    task_file: TaskFile = None,
    force: Flag = False,
    as_json: Json = False,
) -> None:
    """Search by noise: accuracy against the number of starts and the number of steps, without rules.

    Example: oneofmany search sudoku data/sudoku-extreme-dev.safetensors --starts 1 8 --steps 64 256 --out search.json

    A start has settled when its answer has not changed for --patience steps and its belief moved by at most --tolerance
    in the last step. The first start that settles answers its query, which then needs no more starts. If none settles,
    the start whose belief moved least answers. The rules only judge the answers.

    Args:
        run: a run folder, a weights file, or the name of a bundled network that starts from noise.
        data: the data file.
        starts: numbers of starts to report; the largest is run.
        steps: the most steps of a start; every number is a search of its own.
        restarts: how a query starts again: from the beginning with new noise, or from its last state plus noise.
            Every way is a search of its own.
        tolerance: the largest change of the belief of a settled start: total variation, mean over variables.
        patience: steps without a change of the answer before a start can have settled.
        scale: standard deviation of the noise that is added to a state (perturbed).
        seed: random seed of the noise; the same seed and batch give the same answers.
        batch: number of queries per batch; when few of them are left, several of their starts run at once.
        device: where the network runs; auto is a GPU if there is one.
        precision: precision of the network's activations.
        out: write the numbers to this file.
        figure: draw accuracy against starts, with a line for every number of steps.
        force: overwrite existing files.
        as_json: print JSON.
    """
    use_task(task_file)
    from oneofmany.evaluation import search_run
    from oneofmany.extras import require
    from oneofmany.files import check_writable
    from oneofmany.pictures.themes import check_picture

    if out is not None:
        check_writable(out, force)
    if figure is not None:
        check_picture(figure, force)
        require("matplotlib")
    with progress() as bar:
        found = search_run(
            run,
            data,
            device=device,
            precision=precision,
            starts=starts,
            steps=steps,
            restarts=restarts,
            tolerance=tolerance,
            patience=patience,
            scale=scale,
            seed=seed,
            batch_size=batch,
            tell=bar,
        )
    if as_json:
        print(json.dumps({"about": found.about, "points": [asdict(point) for point in found.points]}, indent=2))
    else:
        about = found.about["data"]
        title = (
            f"{about['name']}: {about['queries']:,} queries of {about['task']} {about['size']}, chosen without rules"
        )
        names = ["restarts", "steps", "starts", "OS", "MS", "overall", "settled", "steps a query", "seconds"]
        rows = [
            [
                *(point.restart, point.steps, point.starts),
                *(score.as_dict() for score in (point.os, point.ms, point.overall, point.settled)),
                *(f"{point.mean_steps:,.1f}", f"{point.seconds:.1f}"),
            ]
            for point in found.points
        ]
        print_table(title, names, rows)
    if out is not None:
        found.save(out, force=force)
        say(f"numbers saved in {out}")
    if figure is not None:
        from oneofmany.pictures.searches import search_chart

        search_chart(found.curves(), found.caption).save(figure, force=force)
        say(f"figure saved in {figure}")
