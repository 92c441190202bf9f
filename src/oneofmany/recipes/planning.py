"""Plan a sweep: the jobs of many recipes, seeds and grid points, for a queue::

    from oneofmany.recipes.planning import Sweep, plan
    from oneofmany.training.queue import Queue

    Queue(plan(Sweep(["nqueens/*/tiny"], seeds=[42, 1729])), at_once=2).run()

Finished runs are skipped and started runs are resumed, so the same lines continue a sweep that was stopped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path

from oneofmany.data import load_data
from oneofmany.recipes import SEEDS, matching, recipe, tuning
from oneofmany.recipes.fields import resolve
from oneofmany.recipes.finding import DataFiles
from oneofmany.training.jobs import Job, check_data, check_settings, data_in, share, state_of

Point = tuple[str, list[str]]
"""A grid point: its name, used as a folder name, and its fields as arguments of ``oneofmany train``."""


@dataclass(frozen=True)
class Sweep:
    """The runs of a sweep.

    Args:
        recipes: names and patterns; ``*`` matches any part between two slashes.
        seeds: the seeds; all recipes run with one seed before the next seed.
        out: the folder for OUT/RECIPE/SEED, with a grid OUT/RECIPE/FIELD=V/SEED.
        fields: changed fields of every run, as arguments of ``oneofmany train``.
        grid: ``FIELD=V,V`` for every axis; a value with several numbers is written with spaces.
        tune: use the small tuning grid of the paper's recipes instead.
        data: the location of the data.
        evaluate: data files; every finished run is evaluated on those of its task.
        records: the folder for the record of every finished run.
        allow_dirty: also record runs that were made with uncommitted changes in the source tree.
        task_file: the file of a task of your own, for the commands of the runs.
        sharing: let I-ExplR and SelectR start from runs that equal their pre-training.
    """

    recipes: Sequence[str]
    seeds: Sequence[int] = SEEDS
    out: Path = Path("runs")
    fields: Sequence[str] = ()
    grid: Sequence[str] | None = None
    tune: bool = False
    data: DataFiles = field(default_factory=DataFiles)
    evaluate: Sequence[Path] = ()
    records: Path | None = None
    allow_dirty: bool = False
    sharing: bool = True
    task_file: Path | None = None

    def __post_init__(self) -> None:
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            got = " ".join(map(str, self.seeds)) or "none"
            raise ValueError(f"--seeds: expected different whole numbers, got {got}")
        if self.tune and self.grid is not None:
            raise ValueError("--tune is already a grid: leave out --grid")


def plan(sweep: Sweep, say: Callable[[str], None] = lambda sentence: None) -> list[Job]:
    """All jobs in their order, finished ones included; ValueError if a run folder does not fit its job.

    Missing data of unfinished runs is built; ``say`` is called with a sentence for every file.
    """
    jobs = jobs_of(sweep)
    check_settings(jobs, sweep.sharing)
    jobs = with_data(jobs, sweep.data, say)
    check_data(jobs)
    return share(jobs, sweep.out) if sweep.sharing else jobs


def look_ahead(sweep: Sweep) -> tuple[list[tuple[Job, str]], list[Path]]:
    """The jobs, each with what a sweep would do (done, resume, start), and the data that it would build.

    Nothing is written; the same errors are raised as by ``plan``. A run that is trained, but not yet evaluated or
    recorded, is to be resumed.
    """
    jobs = jobs_of(sweep)
    check_settings(jobs, sweep.sharing)
    names = dict.fromkeys(job.settings.recipe for job in jobs if state_of(job.folder) != "finished")
    missing = list(dict.fromkeys(file for name in names for file in sweep.data.missing(name)))
    if not missing:
        jobs = with_data(jobs, sweep.data)
        check_data(jobs)
        jobs = share(jobs, sweep.out) if sweep.sharing else jobs
    states = {"missing": "start", "begun": "resume", "finished": "done"}
    return [(job, "resume" if _is_trained_only(job) else states[state_of(job.folder)]) for job in jobs], missing


def _is_trained_only(job: Job) -> bool:
    return bool(job.after) and state_of(job.folder) == "finished"


def jobs_of(sweep: Sweep) -> list[Job]:
    """The jobs in their order: all recipes and grid points of one seed before the next seed."""
    runs = [(name, *point) for name in expand(sweep.recipes) for point in points_of(sweep, name)]
    settings = {(name, point): resolve(name, [*sweep.fields, *fields]) for name, point, fields in runs}
    jobs = []
    for seed in sweep.seeds:
        for recipe_name, point, fields in runs:
            name = "/".join(part for part in (recipe_name, point, str(seed)) if part)
            own = replace(settings[recipe_name, point], seed=seed)
            arguments = (recipe_name, "--seed", str(seed), *sweep.fields, *fields, *sweep.data.options())
            jobs.append(Job(name, own, sweep.out / name, arguments, task_file=_task_file(sweep)))
    if len({job.folder for job in jobs}) < len(jobs):
        raise ValueError("--grid: two of its points have the same name: leave out one of them")
    tasks = {file: load_data(file).problem.task for file in sweep.evaluate}
    for file, task in tasks.items():
        if not any(job.settings.task == task for job in jobs):
            raise ValueError(f"--evaluate: {file} is data of {task}, but no run of this sweep has this task")
    return [replace(job, after=_after(job, tasks, sweep)) for job in jobs]


def with_data(jobs: Sequence[Job], data: DataFiles, say: Callable[[str], None] = lambda sentence: None) -> list[Job]:
    """The jobs with the checksums of their data; missing data of unfinished runs is built."""
    needed = dict.fromkeys(job.settings.recipe for job in jobs if state_of(job.folder) != "finished")
    files = {name: data.find(name, say) for name in needed}
    checksums = {file: load_data(file).header()["checksum"] for pair in files.values() for file in pair}

    def data_of(job: Job) -> tuple[str, str]:
        if job.settings.recipe not in files:
            return data_in(job.folder)
        train, dev = files[job.settings.recipe]
        return checksums[train], checksums[dev]

    return [replace(job, data=data_of(job)) for job in jobs]


def expand(patterns: Sequence[str]) -> list[str]:
    """The recipes that match names and patterns, each once, in the given order; ``*`` stops at a slash."""
    found: list[str] = []
    for pattern in patterns:
        if "*" not in pattern:
            found.append(recipe(pattern).recipe)
            continue
        names = matching(pattern)
        if not names:
            raise ValueError(f"no recipe matches {pattern!r}: `oneofmany train --recipes` lists them")
        found += names
    return list(dict.fromkeys(found))


def points_of(sweep: Sweep, name: str) -> list[Point]:
    """Every grid point of a recipe; without a grid, one point with an empty name."""
    if sweep.tune:
        return [_point(list(fields.items())) for fields in tuning(recipe(name))]
    return grid_points(sweep.grid)


def grid_points(grid: Sequence[str] | None) -> list[Point]:
    """Every combination of the values; without a grid, one point with an empty name."""
    if grid is None:
        return [("", [])]
    axes = []
    for text in grid:
        name, _, values = text.partition("=")
        choices = [value.strip() for value in values.split(",")]
        if not name or not all(choices):
            raise ValueError(f"--grid: expected FIELD=VALUE,VALUE,..., got {text!r}")
        if name.lstrip("-") == "seed":
            raise ValueError("--grid: choose the seeds of a sweep with --seeds")
        axes.append([(name.lstrip("-"), value) for value in choices])
    if not axes:
        raise ValueError("--grid: expected FIELD=VALUE,VALUE,..., got nothing")
    return [_point(point) for point in product(*axes)]


def _point(fields: Sequence[tuple[str, str]]) -> Point:
    """The point with a name that is safe for a folder."""
    name = re.sub(r"[^\w.,=+-]", "_", ",".join(f"{field}={value}" for field, value in fields))
    return name, [part for field, value in fields for part in (f"--{field}", *value.split())]


def _task_file(sweep: Sweep) -> tuple[str, ...]:
    return () if sweep.task_file is None else ("--task-file", str(sweep.task_file))


def _after(job: Job, tasks: dict[Path, str], sweep: Sweep) -> tuple[tuple[str, ...], ...]:
    """The commands that evaluate and record a run, without those whose files exist already."""
    finished, run = state_of(job.folder) == "finished", str(job.folder)
    kind = job.settings.device.partition(":")[0]
    commands = [
        # Predictions of an unfinished run were made with earlier weights.
        ("evaluate", run, str(file), "--force", *(() if kind == "auto" else ("--device", kind)), *job.task_file)
        for file, task in tasks.items()
        if task == job.settings.task
        and not (finished and (job.folder / "predictions" / f"{file.stem}.safetensors").exists())
    ]
    if sweep.records is not None:
        name, seed = job.settings.recipe, str(job.settings.seed)
        # Records are named after recipe and seed only, so every grid point needs its own folder.
        folder = sweep.records / job.name.removeprefix(name).removesuffix(seed).strip("/")
        file = folder / f"{name}/{seed}.json".replace("/", "-")
        if commands or not finished or not file.exists():
            dirty = ("--allow-dirty",) if sweep.allow_dirty else ()
            commands.append(("record", run, "--out", str(folder), "--force", *dirty))
    return tuple(commands)
