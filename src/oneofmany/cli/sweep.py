"""``oneofmany sweep``: many runs, some at a time, in a queue that goes on where it stopped."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from oneofmany.cli.terminal import say

if TYPE_CHECKING:
    from oneofmany.training.jobs import Job

Number = TypeVar("Number", int, float)

USAGE = """usage: oneofmany sweep RECIPE ... [--seeds 42 1729 3120] [--jobs N] [--minutes M] [--field value ...]

Train many runs, N at a time, all recipes with one seed before the next seed. What has finished is skipped and what was
begun is resumed, so the same command again goes on where it stopped. I-ExplR and SelectR start from the MinLoss and
Unique runs of the same seed where these equal their pre-training.

  RECIPE ...          as `oneofmany train --recipes` lists them; '*' stands for any part between two slashes
  --seeds S ...       42 1729 3120 by default, the paper's
  --jobs N            runs at a time (default: 1); on a CPU they share its cores, --threads says otherwise
  --minutes M         stop after so many minutes; runs save their state, and the same command goes on with them
  --grid FIELD=V,V    try several values of a field, in all combinations with other --grid; a value of several
                      numbers has spaces: --grid 'burn_in=0,0 16 32'
  --tune              the short tuning grid of the paper's recipes, equally many settings for every objective
  --out DIR           where the runs go: DIR/RECIPE/SEED, with a grid DIR/RECIPE/FIELD=V/SEED (default: runs)
  --data DIR          where the benchmark's data lies; what is missing is built there (default: data)
  --clues FILE        list of 17-clue Sudokus to build the Sudoku data from; own minimal puzzles without
  --train FILE        your own training data instead of the benchmark's
  --dev FILE          your own dev data
  --evaluate FILE ... evaluate every finished run on the files of its task
  --records DIR       write the record of every finished run there
  --no-sharing        let I-ExplR and SelectR pre-train on their own
  --field value ...   any field of `oneofmany train RECIPE --help`, for every run

Example: oneofmany sweep 'nqueens/*/tiny' --seeds 42 1729 --jobs 2
Example: oneofmany sweep 'nqueens/*/table-2' --jobs 4
Example: oneofmany sweep 'nqueens/*' --tune --seeds 42 --out tuning
Example: oneofmany sweep nqueens/minloss nqueens/selectr --seeds 42 --grid decay=1e-4,1e-5,0 --out tuning
"""

DATA = ("--data", "--clues", "--train", "--dev")
OWN = ("--seeds", "--jobs", "--minutes", "--grid", "--tune", "--out", *DATA, "--evaluate", "--records", "--no-sharing")
NAMED = 10
"""How many of the runs that are left are named."""


@dataclass(frozen=True)
class Sweep:
    """What the command line asks for."""

    recipes: list[str]
    seeds: list[int]
    at_once: int
    minutes: float
    grid: list[str] | None
    """FIELD=VALUE,... of every axis."""
    tune: bool
    out: Path
    data: dict[str, str]
    evaluate: list[Path]
    records: Path | None
    sharing: bool
    fields: list[str]


def sweep(arguments: list[str]) -> int:
    """Train many recipes and seeds in a queue that resumes."""
    if not arguments or {"-h", "--help"} & set(arguments):
        print(USAGE, end="")
        return 0 if arguments else 2
    began = time.monotonic()
    asked = read_arguments(arguments)
    from oneofmany.cli.sweep_progress import print_results, show_sweep
    from oneofmany.training.jobs import check_data, check_settings, share
    from oneofmany.training.queue import Queue

    jobs = plan(asked)
    check_settings(jobs, asked.sharing)
    jobs = with_data(jobs, asked)
    check_data(jobs)
    jobs = share(jobs, asked.out) if asked.sharing else jobs
    with show_sweep() as watch:
        queue = Queue(jobs, at_once=asked.at_once, deadline=began + 60 * asked.minutes, watch=watch)
        stopped_by = queue.run()
    print_results(jobs)
    left = [entry.job.name for entry in queue.entries if entry.state in ("waiting", "stopped")]
    failed = [entry for entry in queue.entries if entry.state == "failed"]
    for entry in failed:
        say(f"{entry.job.name} failed: {entry.why} (all of it in {entry.job.log})")
    if left:
        names = ", ".join(left[:NAMED]) + (" ..." if len(left) > NAMED else "")
        say(f"{len(left)} of {len(jobs)} runs are left ({names}): the same command goes on with them")
    if stopped_by is not None:
        return 128 + stopped_by
    return 1 if failed else 0


def plan(asked: Sweep) -> list[Job]:
    """The jobs in their order, all recipes and grid points of one seed before the next seed."""
    from oneofmany.cli.train import resolve
    from oneofmany.data import Dataset
    from oneofmany.training.jobs import Job

    runs = [(recipe, *point) for recipe in asked.recipes for point in _points(asked, recipe)]
    settings = {(recipe, point): resolve(recipe, [*asked.fields, *fields]) for recipe, point, fields in runs}
    data = [part for option, value in asked.data.items() for part in (option, value)]
    jobs = []
    for seed in asked.seeds:
        for recipe, point, fields in runs:
            name = "/".join(part for part in (recipe, point, str(seed)) if part)
            own = replace(settings[recipe, point], seed=seed)
            arguments = (recipe, "--seed", str(seed), *asked.fields, *fields, *data)
            jobs.append(Job(name, own, asked.out / name, arguments))
    if len({job.folder for job in jobs}) < len(jobs):
        raise ValueError("--grid: two of its points have the same name: leave one of them out")
    tasks = {file: Dataset.load(file).problem.task for file in asked.evaluate}
    for file, task in tasks.items():
        if not any(job.settings.task == task for job in jobs):
            raise ValueError(f"--evaluate: {file} is data of {task}, which no run of this sweep is about")
    return [replace(job, after=_after(job, tasks, asked.records)) for job in jobs]


def with_data(jobs: Sequence[Job], asked: Sweep) -> list[Job]:
    """The jobs with the checksums of their data; data that an unfinished run needs is built where it is missing."""
    from oneofmany.cli.train import find_data
    from oneofmany.data import Dataset
    from oneofmany.training.jobs import data_in, state_of

    needed = {job.settings.recipe for job in jobs if state_of(job.folder) != "finished"}
    files = {recipe: find_data(recipe, asked.data) for recipe in asked.recipes if recipe in needed}
    checksums = {file: Dataset.load(file).header()["checksum"] for pair in files.values() for file in pair}

    def data_of(job: Job) -> tuple[str, str]:
        if job.settings.recipe not in files:
            return data_in(job.folder)
        train, dev = files[job.settings.recipe]
        return checksums[train], checksums[dev]

    return [replace(job, data=data_of(job)) for job in jobs]


def read_arguments(arguments: list[str]) -> Sweep:
    """Recipes first, then options with all that follows them up to the next; what is not ours is a field."""
    from oneofmany.recipes import SEEDS

    patterns = list(takewhile(lambda argument: not argument.startswith("-"), arguments))
    if not patterns:
        raise ValueError("name recipes first, for example: oneofmany sweep 'nqueens/*/tiny'")
    own: dict[str, list[str]] = {}
    fields: list[str] = []
    current = fields
    for argument in arguments[len(patterns) :]:
        name, equals, value = argument.partition("=")
        if name in OWN:
            current = own.setdefault(name, [])
            current += [value] if equals else []
        else:
            current = fields if argument.startswith("--") else current
            current.append(argument)
    if any(field.partition("=")[0] == "--seed" for field in fields):
        raise ValueError("--seed: a sweep takes --seeds, one or several")
    seeds = [_number("--seeds", int, value) for value in own.get("--seeds", map(str, SEEDS))]
    if not seeds or len(set(seeds)) < len(seeds):
        raise ValueError(f"--seeds: expected different whole numbers, got {' '.join(map(str, seeds)) or 'none'}")
    at_once = _number("--jobs", int, _one(own, "--jobs", "1"))
    if at_once < 1:
        raise ValueError(f"--jobs: expected at least 1, got {at_once}")
    minutes = _number("--minutes", float, _one(own, "--minutes", "inf"))
    if not minutes > 0:
        raise ValueError(f"--minutes: expected more than 0, got {minutes}")
    for flag in ("--no-sharing", "--tune"):
        if own.get(flag):
            raise ValueError(f"{flag} takes no value, got {' '.join(own[flag])}; recipes come first")
    if "--tune" in own and "--grid" in own:
        raise ValueError("--tune is a grid already: leave out --grid")
    if "--evaluate" in own and not own["--evaluate"]:
        raise ValueError("--evaluate needs a data file")
    return Sweep(
        recipes=expand(patterns),
        seeds=seeds,
        at_once=at_once,
        minutes=minutes,
        grid=own.get("--grid"),
        tune="--tune" in own,
        out=Path(_one(own, "--out", "runs")),
        data={name: _one(own, name) for name in DATA if name in own},
        evaluate=[Path(file) for file in own.get("--evaluate", ())],
        records=Path(_one(own, "--records")) if "--records" in own else None,
        sharing="--no-sharing" not in own,
        fields=fields,
    )


def expand(patterns: Sequence[str]) -> list[str]:
    """The recipes that names and patterns stand for, each once, in the order given; ``*`` stops at a slash."""
    from oneofmany.recipes import matching, recipe

    found: list[str] = []
    for pattern in patterns:
        if "*" not in pattern:
            found.append(recipe(pattern).recipe)
            continue
        names = matching(pattern)
        if not names:
            raise ValueError(f"no recipe fits {pattern!r}: `oneofmany train --recipes` lists them")
        found += names
    return list(dict.fromkeys(found))


def grid_points(grid: Sequence[str] | None) -> list[tuple[str, list[str]]]:
    """Name and fields of every combination of the values."""
    if grid is None:
        return [("", [])]
    axes = []
    for text in grid:
        name, _, values = text.partition("=")
        choices = [value.strip() for value in values.split(",")]
        if not name or not all(choices):
            raise ValueError(f"--grid: expected FIELD=VALUE,VALUE,..., got {text!r}")
        if name.lstrip("-") == "seed":
            raise ValueError("--grid: a sweep takes the seeds with --seeds")
        axes.append([(name.lstrip("-"), value) for value in choices])
    if not axes:
        raise ValueError("--grid: expected FIELD=VALUE,VALUE,..., got nothing")
    return [_point(point) for point in product(*axes)]


def _point(fields: Sequence[tuple[str, str]]) -> tuple[str, list[str]]:
    """A folder's name, whatever the values hold, and the arguments."""
    name = re.sub(r"[^\w.,=+-]", "_", ",".join(f"{field}={value}" for field, value in fields))
    return name, [part for field, value in fields for part in (f"--{field}", *value.split())]


def _points(asked: Sweep, recipe: str) -> list[tuple[str, list[str]]]:
    """Name and fields of every grid point of a recipe; one without a name where there is no grid."""
    if not asked.tune:
        return grid_points(asked.grid)
    from oneofmany.recipes import recipe as recipe_named
    from oneofmany.recipes import tuning

    return [_point(list(fields.items())) for fields in tuning(recipe_named(recipe))]


def _after(job: Job, tasks: dict[Path, str], records: Path | None) -> tuple[tuple[str, ...], ...]:
    """The commands that evaluate and record a run, without those whose files are there already."""
    from oneofmany.training.jobs import state_of

    finished, run = state_of(job.folder) == "finished", str(job.folder)
    kind = job.settings.device.partition(":")[0]
    commands = [
        # What is there of an unfinished run was made with earlier weights.
        ("evaluate", run, str(file), "--force", *(() if kind == "auto" else ("--device", kind)))
        for file, task in tasks.items()
        if task == job.settings.task
        and not (finished and (job.folder / "predictions" / f"{file.stem}.safetensors").exists())
    ]
    if records is not None:
        recipe, seed = job.settings.recipe, str(job.settings.seed)
        # Records are named from recipe and seed: every grid point has a folder of its own.
        folder = records / job.name.removeprefix(recipe).removesuffix(seed).strip("/")
        file = folder / f"{recipe}/{seed}.json".replace("/", "-")
        if commands or not finished or not file.exists():
            commands.append(("record", run, "--out", str(folder), "--force"))
    return tuple(commands)


def _one(own: dict[str, list[str]], name: str, default: str = "") -> str:
    values = own.get(name, [default])
    if len(values) != 1:
        raise ValueError(f"{name}: expected one value, got {' '.join(values) or 'none'}")
    return values[0]


def _number(name: str, kind: type[Number], value: str) -> Number:
    try:
        return kind(value)
    except ValueError:
        raise ValueError(f"{name}: expected {'whole numbers' if kind is int else 'a number'}, got {value!r}") from None
