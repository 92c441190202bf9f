"""``oneofmany sweep``: many runs, some at a time, in a queue that goes on where it stopped."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from oneofmany.cli.terminal import say

if TYPE_CHECKING:
    from oneofmany.recipes.planning import Sweep

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

DATA = {"--data": "folder", "--clues": "clues", "--train": "train", "--dev": "dev"}
"""Option -> the field of ``DataFiles``."""
OWN = ("--seeds", "--jobs", "--minutes", "--grid", "--tune", "--out", *DATA, "--evaluate", "--records", "--no-sharing")
NAMED = 10
"""How many of the runs that are left are named."""


@dataclass(frozen=True)
class Asked:
    """What the command line asks for."""

    sweep: Sweep
    at_once: int
    minutes: float


def sweep(arguments: list[str]) -> int:
    """Train many recipes and seeds in a queue that resumes."""
    if not arguments or {"-h", "--help"} & set(arguments):
        print(USAGE, end="")
        return 0 if arguments else 2
    began = time.monotonic()
    asked = read_arguments(arguments)
    from oneofmany.cli.sweep_progress import print_results, show_sweep
    from oneofmany.recipes.planning import plan
    from oneofmany.training.queue import Queue

    jobs = plan(asked.sweep, say)
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


def read_arguments(arguments: list[str]) -> Asked:
    """Recipes first, then options with all that follows them up to the next; what is not ours is a field."""
    from oneofmany.recipes import SEEDS
    from oneofmany.recipes.finding import DataFiles
    from oneofmany.recipes.planning import Sweep

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
    at_once = _number("--jobs", int, _one(own, "--jobs", "1"))
    if at_once < 1:
        raise ValueError(f"--jobs: expected at least 1, got {at_once}")
    minutes = _number("--minutes", float, _one(own, "--minutes", "inf"))
    if not minutes > 0:
        raise ValueError(f"--minutes: expected more than 0, got {minutes}")
    for flag in ("--no-sharing", "--tune"):
        if own.get(flag):
            raise ValueError(f"{flag} takes no value, got {' '.join(own[flag])}; recipes come first")
    if "--evaluate" in own and not own["--evaluate"]:
        raise ValueError("--evaluate needs a data file")
    data = {name: _one(own, option) for option, name in DATA.items() if option in own}
    sweep = Sweep(
        recipes=patterns,
        seeds=seeds,
        out=Path(_one(own, "--out", "runs")),
        fields=fields,
        grid=own.get("--grid"),
        tune="--tune" in own,
        data=DataFiles(**data),
        evaluate=[Path(file) for file in own.get("--evaluate", ())],
        records=Path(_one(own, "--records")) if "--records" in own else None,
        sharing="--no-sharing" not in own,
    )
    return Asked(sweep, at_once, minutes)


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
