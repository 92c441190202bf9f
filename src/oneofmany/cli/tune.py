"""``oneofmany tune``: search hyperparameters on dev, with equal budgets for every objective."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path
from typing import Annotated, Literal

import tyro

from oneofmany.cli.options import TaskFile, option, use_task
from oneofmany.cli.terminal import say
from oneofmany.launching import Place, launcher_for


def tune(
    recipe: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RECIPE")],
    space: Path,
    trials: int = 50,
    objectives: Annotated[tuple[str, ...], option("NAME ...", "that of the recipe")] = (),
    updates: Annotated[int | None, option("N", "the most among the recipes of the objectives")] = None,
    pruner: Literal["median", "halving", "none"] = "median",
    seed: int = 42,
    jobs: int = 1,
    minutes: float = float("inf"),
    out: Path = Path("tuning"),
    data: Annotated[Path | None, option("DIR", "data; missing files are built there")] = None,
    clues: Annotated[Path | None, option("FILE", "minimal puzzles are generated")] = None,
    train: Annotated[Path | None, option("FILE", "the benchmark's")] = None,
    dev: Annotated[Path | None, option("FILE", "the benchmark's")] = None,
    task_file: TaskFile = None,
    fields: Annotated[tuple[str, ...], option("FIELD=V ...", "those of the recipe")] = (),
    place: Annotated[Place, tyro.conf.arg(name="", help="")] = Place(),  # noqa: B008 - frozen
) -> int:
    """Search hyperparameters of a recipe with Optuna; every objective gets equally many trials and updates.

    The same command continues a search that was stopped. Trials are judged on dev; test sets are refused.
    OUT/tuning.html shows the best trials and the plots of the search.

    Example: oneofmany tune nqueens/minloss/tiny --space space.toml --trials 20 --objectives minloss selectr

    Args:
        recipe: a name from `oneofmany train --recipes`; with --objectives the same variant of every objective.
        space: a TOML file of fields with low and high, or values (see docs/tuning.md).
        trials: number of trials of every objective, with those of an earlier search in --out.
        objectives: objectives to compare.
        updates: updates of every trial, over all phases; the phases keep their shares.
        pruner: stops trials that fall behind on dev: the median of earlier trials, successive halving, or none.
        seed: random seed of every run, and of the search.
        jobs: number of trials at a time.
        minutes: stop after this time; runs save their state.
        out: folder of the search: its journal, the runs OUT/OBJECTIVE/TRIAL and the page.
        data: folder of the benchmark's data.
        clues: a file of 17-clue Sudokus to build the Sudoku data from.
        train: your training data.
        dev: your dev data.
        fields: changed fields of every run, for example first.batch=32.
        place: where the trials run.
    """
    from oneofmany.extras import require

    require("optuna")
    require("jinja2")  # for the page at the end
    use_task(task_file)
    from oneofmany.cli.sweep_progress import show_sweep
    from oneofmany.recipes.finding import DataFiles
    from oneofmany.tuning import Search, Tuner, read_space, write_page

    if jobs < 1 or not minutes > 0:
        raise ValueError(f"expected --jobs of at least 1 and --minutes above 0, got {jobs} and {minutes}")
    words = [part for one in fields for part in (f"--{one.partition('=')[0]}", *one.partition("=")[2].split())]
    files = DataFiles(data, clues, train, dev)
    search = Search(recipe, read_space(space), trials, objectives, updates, pruner, seed, out, words, files, task_file)
    launcher = None if place.launcher == "local" else launcher_for(place, out)
    try:
        with show_sweep() as watch:
            deadline = time.monotonic() + 60 * minutes
            tuner = Tuner(search, at_once=jobs, launcher=launcher, deadline=deadline, watch=watch)
            stopped_by = tuner.run()
    finally:
        if launcher is not None:
            launcher.close()
    write_page(tuner.studies, out / "tuning.html", shlex.join(["oneofmany", *sys.argv[1:]]))
    for name, study in tuner.studies.items():
        done = [trial for trial in study.get_trials(deepcopy=False) if trial.value is not None]
        left = trials - sum(trial.state.is_finished() for trial in study.get_trials(deepcopy=False))
        if done and any(trial.state.name == "COMPLETE" for trial in done):
            best = study.best_trial
            chosen = " ".join(f"--{field} {value}" for field, value in best.params.items())
            print(f"{name}: dev {100 * (best.value or 0.0):.2f} % in trial {best.number}: {chosen}")
        if left > 0:
            say(f"{name}: {left} of {trials} trials are left: run the same command to continue")
    say(f"wrote {out / 'tuning.html'}")
    return 0 if stopped_by is None else 128 + stopped_by
