"""``oneofmany sweep``: train many runs, several at a time, in a queue that can be stopped and continued."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from oneofmany.cli.options import use_task
from oneofmany.cli.terminal import say

if TYPE_CHECKING:
    from oneofmany.launching import Place
    from oneofmany.recipes.planning import Sweep

Number = TypeVar("Number", int, float, str)

USAGE = """usage: oneofmany sweep RECIPE ... [--seeds 42 1729 3120] [--jobs N] [--minutes M] [--FIELD VALUE ...]

Train many recipes with several seeds, N runs at a time. All recipes run with one seed before the next seed. Finished
runs are skipped and started runs are resumed, so the same command continues a sweep that was stopped. I-ExplR and
SelectR start from the MinLoss and Unique runs of the same seed if these equal their pre-training.

  RECIPE ...           names from `oneofmany train --recipes`; '*' matches any part between two slashes
  --seeds SEED ...     random seeds (default: 42 1729 3120, the paper's)
  --jobs N             number of runs at a time (default: 1, on a cluster as many as it takes); on a CPU they share its
                       cores, unless --threads is given
  --minutes M          stop after M minutes (default: no limit); runs save their state, and the same command continues
  --grid FIELD=V,V ... values of a field to try, in all combinations with other fields; a value with several numbers
                       is written with spaces: --grid 'burn_in=0,0 16 32'
  --tune               the small tuning grid of the paper's recipes, with equally many settings for every objective
  --out DIR            folder of the runs: DIR/RECIPE/SEED, with a grid DIR/RECIPE/FIELD=V/SEED (default: runs)
  --data DIR           folder of the benchmark's data; missing files are built there (default: data)
  --clues FILE         17-clue Sudokus to build the Sudoku data from (default: minimal puzzles are generated)
  --train FILE         your training data instead of the benchmark's
  --dev FILE           your validation (dev) data instead of the benchmark's
  --task-file FILE     the Python file of a task of your own (docs: A task of your own)
  --evaluate FILE ...  data files; every finished run is evaluated on those of its task
  --records DIR        folder for the record of every finished run (default: none are written)
  --allow-dirty        also record runs made with uncommitted changes in the source tree of oneofmany
  --no-sharing         let I-ExplR and SelectR do their own pre-training
  --dry-run            print every run with its state (done, resume, start) and stop; nothing is written
  --status             print every run with its progress and the machine that works on it, and stop
  --launcher NAME      local (default), slurm or ray: where the runs are trained; --out and the data must be on storage
                       that all machines share. Any launcher continues what another began.
  --cpus N, --gpus G   cores (default: 1) and GPUs (default: 0) of a run on a cluster; Ray takes fractions: --gpus 0.25
  --address A          the Ray cluster (default: that of this machine, or a new one); auto finds a running one
  --retries N          how often Ray resumes a run that was killed (default: 3)
  --limit M            time limit of a SLURM job in minutes (default: 1440); it saves its state and is queued again
  --partition NAME     partition of the SLURM cluster (default: the cluster's)
  --FIELD VALUE ...    a field for every run, as in `oneofmany train RECIPE --help`

Example: oneofmany sweep 'nqueens/*/tiny' --seeds 42 1729 --jobs 2
Example: oneofmany sweep 'nqueens/*/table-2' --jobs 4
Example: oneofmany sweep 'nqueens/*' --tune --seeds 42 --out tuning
Example: oneofmany sweep 'nqueens/*/table-2' --launcher slurm --gpus 1 --limit 240 --out /shared/runs
Example: oneofmany sweep 'nqueens/*/table-2' --launcher ray --address auto --gpus 0.25 --out /shared/runs
Example: oneofmany sweep nqueens/minloss nqueens/selectr --seeds 42 --grid decay=1e-4,1e-5,0 --out tuning
"""

DATA = {"--data": "folder", "--clues": "clues", "--train": "train", "--dev": "dev"}
"""Option -> field of ``DataFiles``."""
PLACE = {"--launcher": str, "--cpus": int, "--gpus": float, "--address": str, "--retries": int, "--limit": int}
PLACE |= {"--partition": str}
"""Option -> type of the field of ``Place``."""
OWN = (
    "--seeds",
    "--jobs",
    "--minutes",
    "--grid",
    "--tune",
    "--out",
    *DATA,
    "--task-file",
    "--evaluate",
    "--records",
    "--allow-dirty",
    "--no-sharing",
    "--dry-run",
    "--status",
    *PLACE,
)
NAMED = 10
"""At most this many unfinished runs are named at the end."""


@dataclass(frozen=True)
class Asked:
    """The arguments of the command."""

    sweep: Sweep
    place: Place
    at_once: int | None
    minutes: float
    dry: bool = False
    status: bool = False


def sweep(arguments: list[str]) -> int:
    """Train many recipes with several seeds, several runs at a time; can be stopped and continued."""
    if not arguments or {"-h", "--help"} & set(arguments):
        print(USAGE, end="")
        return 0 if arguments else 2
    began = time.monotonic()
    asked = read_arguments(arguments)
    if asked.dry:
        return _show_plan(asked.sweep)
    from oneofmany.cli.sweep_progress import print_results, print_status, show_sweep

    if asked.status:
        from oneofmany.recipes.planning import jobs_of

        print_status(jobs_of(asked.sweep))
        return 0
    from oneofmany.launching import launcher_for
    from oneofmany.recipes.planning import plan
    from oneofmany.training.queue import Queue

    launcher = None if asked.place.launcher == "local" else launcher_for(asked.place, asked.sweep.out)
    jobs = plan(asked.sweep, say)
    with show_sweep() as watch:
        deadline = began + 60 * asked.minutes
        queue = Queue(jobs, at_once=asked.at_once, deadline=deadline, watch=watch, cluster=launcher)
        stopped_by = queue.run()
    if launcher is not None:
        launcher.close()
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


def _show_plan(sweep: Sweep) -> int:
    """Print a line for every run: what the sweep would do, its name, and the commands after its training."""
    from oneofmany.recipes.planning import look_ahead

    counts: dict[str, int] = {}
    jobs, missing = look_ahead(sweep)
    for job, doing in jobs:
        after = "".join(f", {command[0]}" for command in job.after)
        print(f"{doing:<7} {job.name}{after}")
        counts[doing] = counts.get(doing, 0) + 1
    for file in missing:
        say(f"{file} is missing: it would be built first")
    say(f"{len(jobs)} runs: {', '.join(f'{number} {doing}' for doing, number in counts.items())}; nothing was written")
    return 0


def read_arguments(arguments: list[str]) -> Asked:
    """Read recipes, then options with their values; an option that is not one of ``OWN`` is a field."""
    from oneofmany.launching import Place
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
    where: dict[str, Any] = {name[2:]: _number(name, PLACE[name], _one(own, name)) for name in PLACE if name in own}
    place = Place(**where)
    at_once = _number("--jobs", int, _one(own, "--jobs", "1"))
    if at_once < 1:
        raise ValueError(f"--jobs: expected at least 1, got {at_once}")
    minutes = _number("--minutes", float, _one(own, "--minutes", "inf"))
    if not minutes > 0:
        raise ValueError(f"--minutes: expected more than 0, got {minutes}")
    for flag in ("--no-sharing", "--tune", "--allow-dirty", "--dry-run", "--status"):
        if own.get(flag):
            raise ValueError(f"{flag} takes no value, got {' '.join(own[flag])}; recipes come first")
    if "--evaluate" in own and not own["--evaluate"]:
        raise ValueError("--evaluate needs a data file")
    data = {name: _one(own, option) for option, name in DATA.items() if option in own}
    task_file = Path(_one(own, "--task-file")) if "--task-file" in own else None
    use_task(task_file)
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
        task_file=task_file,
    )
    on_cluster = place.launcher != "local" and "--jobs" not in own
    return Asked(sweep, place, None if on_cluster else at_once, minutes, "--dry-run" in own, "--status" in own)


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
