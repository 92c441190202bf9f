"""``oneofmany sweep``: train many runs, several at a time, in a queue that can be stopped and continued."""

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

USAGE = """usage: oneofmany sweep RECIPE ... [--seeds 42 1729 3120] [--jobs N] [--minutes M] [--FIELD VALUE ...]

Train many recipes with several seeds, N runs at a time. All recipes run with one seed before the next seed. Finished
runs are skipped and started runs are resumed, so the same command continues a sweep that was stopped. I-ExplR and
SelectR start from the MinLoss and Unique runs of the same seed if these equal their pre-training.

  RECIPE ...           names from `oneofmany train --recipes`; '*' matches any part between two slashes
  --seeds SEED ...     random seeds (default: 42 1729 3120, the paper's)
  --jobs N             number of runs at a time (default: 1); on a CPU they share its cores, unless --threads is given
  --minutes M          stop after M minutes (default: no limit); runs save their state, and the same command continues
  --grid FIELD=V,V ... values of a field to try, in all combinations with other fields; a value with several numbers
                       is written with spaces: --grid 'burn_in=0,0 16 32'
  --tune               the small tuning grid of the paper's recipes, with equally many settings for every objective
  --out DIR            folder of the runs: DIR/RECIPE/SEED, with a grid DIR/RECIPE/FIELD=V/SEED (default: runs)
  --data DIR           folder of the benchmark's data; missing files are built there (default: data)
  --clues FILE         17-clue Sudokus to build the Sudoku data from (default: minimal puzzles are generated)
  --train FILE         your training data instead of the benchmark's
  --dev FILE           your validation (dev) data instead of the benchmark's
  --evaluate FILE ...  data files; every finished run is evaluated on those of its task
  --records DIR        folder for the record of every finished run (default: none are written)
  --allow-dirty        also record runs made with uncommitted changes in the source tree of oneofmany
  --no-sharing         let I-ExplR and SelectR do their own pre-training
  --FIELD VALUE ...    a field for every run, as in `oneofmany train RECIPE --help`

Example: oneofmany sweep 'nqueens/*/tiny' --seeds 42 1729 --jobs 2
Example: oneofmany sweep 'nqueens/*/table-2' --jobs 4
Example: oneofmany sweep 'nqueens/*' --tune --seeds 42 --out tuning
Example: oneofmany sweep nqueens/minloss nqueens/selectr --seeds 42 --grid decay=1e-4,1e-5,0 --out tuning
"""

DATA = {"--data": "folder", "--clues": "clues", "--train": "train", "--dev": "dev"}
"""Option -> field of ``DataFiles``."""
OWN = (
    "--seeds",
    "--jobs",
    "--minutes",
    "--grid",
    "--tune",
    "--out",
    *DATA,
    "--evaluate",
    "--records",
    "--allow-dirty",
    "--no-sharing",
)
NAMED = 10
"""At most this many unfinished runs are named at the end."""


@dataclass(frozen=True)
class Asked:
    """The arguments of the command."""

    sweep: Sweep
    at_once: int
    minutes: float


def sweep(arguments: list[str]) -> int:
    """Train many recipes with several seeds, several runs at a time; can be stopped and continued."""
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
        say(f"{entry.job.name} failed: {entry.why} (full log: {entry.job.log})")
    if left:
        names = ", ".join(left[:NAMED]) + (" ..." if len(left) > NAMED else "")
        say(f"{len(left)} of {len(jobs)} runs are left ({names}): run the same command to continue")
    if stopped_by is not None:
        return 128 + stopped_by
    return 1 if failed else 0


def read_arguments(arguments: list[str]) -> Asked:
    """Read recipes, then options with their values; an option that is not one of ``OWN`` is a field."""
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
        raise ValueError("--seed: use --seeds, with one or several seeds")
    seeds = [_number("--seeds", int, value) for value in own.get("--seeds", map(str, SEEDS))]
    at_once = _number("--jobs", int, _one(own, "--jobs", "1"))
    if at_once < 1:
        raise ValueError(f"--jobs: expected at least 1, got {at_once}")
    minutes = _number("--minutes", float, _one(own, "--minutes", "inf"))
    if not minutes > 0:
        raise ValueError(f"--minutes: expected more than 0, got {minutes}")
    for flag in ("--no-sharing", "--tune", "--allow-dirty"):
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
        allow_dirty="--allow-dirty" in own,
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
