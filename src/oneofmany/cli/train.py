"""``oneofmany train``: train one run of a recipe."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from oneofmany.cli.terminal import say
from oneofmany.cli.training_progress import show_training

USAGE = """usage: oneofmany train RECIPE [--out RUN] [--data DIR] [--FIELD VALUE ...]
       oneofmany train --resume RUN
       oneofmany train --recipes [PATTERN]  list all recipes, or those that match: 'nqueens/*/table-2'
       oneofmany train RECIPE --help        list all fields of the recipe with their values

Train a recipe, a named set of settings:

  TASK/OBJECTIVE/tiny         our network on small boards: a minute on a laptop
  TASK/OBJECTIVE/equivariant  our network: one or two minutes on one GPU
  TASK/OBJECTIVE/table-2      the paper's networks with the settings of our Table 2
  TASK/OBJECTIVE              the paper's networks with its literal settings

TASK is nqueens, futoshiki or sudoku. OBJECTIVE is naive, random, unique, ccloss, minloss, iexplr or selectr.

  --out RUN       the run folder (default: runs/RECIPE/SEED)
  --data DIR      folder of the benchmark's data; missing files are built there (default: data)
  --clues FILE    17-clue Sudokus to build the Sudoku data from (default: minimal puzzles are generated)
  --train FILE    your training data instead of the benchmark's
  --dev FILE      your validation (dev) data instead of the benchmark's
  --resume RUN    continue a run that was stopped
  --tensorboard   also write RUN/tensorboard (needs pip install 'oneofmany[tensorboard]')
  --FIELD VALUE   change a field of the recipe, for example --seed 1729 or --first.lr 0.001

Example: oneofmany train nqueens/minloss/tiny --seed 1729 --out runs/first
On several GPUs: torchrun --nproc-per-node 4 -m oneofmany train nqueens/minloss/equivariant
"""

OWN = ("--out", "--data", "--clues", "--train", "--dev", "--resume")


def train(arguments: list[str]) -> int:
    """Train a recipe, or resume a run."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE, end="")
        return 0 if arguments else 2
    if arguments[0] == "--recipes":
        from oneofmany.recipes.listing import listing

        print(listing(*arguments[1:2]))
        return 0
    own, fields = split_arguments(arguments)
    tensorboard = "--tensorboard" in fields
    fields = [field for field in fields if field != "--tensorboard"]
    name = fields.pop(0) if fields and not fields[0].startswith("-") else None
    from oneofmany.recipes.fields import resolve
    from oneofmany.recipes.finding import DataFiles
    from oneofmany.training import Interrupted, LostProcess, TrainingError, resume
    from oneofmany.training import train as start

    folder = Path(own["--resume"]) if "--resume" in own else None
    try:
        if folder is not None:
            extra = sorted(set(own) - {"--resume"})
            if extra:
                raise ValueError(f"--resume uses the data and the folder of the run: leave out {', '.join(extra)}")
            settings = None if name is None and not fields else resolve(name or _recipe_of(folder), fields)
            with show_training(folder, tensorboard) as watch:
                result = resume(folder, settings, watch)
        else:
            if name is None:
                raise ValueError("name a recipe first, for example: oneofmany train nqueens/minloss/tiny")
            settings = resolve(name, fields)
            folder = Path(own.get("--out", f"runs/{name}/{settings.seed}"))
            data = DataFiles(own.get("--data"), own.get("--clues"), own.get("--train"), own.get("--dev"))
            files = data.find(name, say)
            command = shlex.join(["oneofmany", "train", *arguments])
            with show_training(folder, tensorboard) as watch:
                result = start(settings, files[0], files[1], folder, command=command, watch=watch)
    except Interrupted as stopped:
        say(f"{stopped}; continue with: oneofmany train --resume {folder}")
        return 128 + stopped.number
    except LostProcess as error:
        say(f"oneofmany: {error}; continue with: oneofmany train --resume {folder}")
        return 1
    except TrainingError as error:
        say(f"oneofmany: {error}")
        return 1
    if int(os.environ.get("RANK", "0")):
        return 0
    dev = result["dev"]
    shares = ", ".join(f"{k.upper()} {100 * dev[k]:.2f} %" for k in ("os", "ms", "overall") if dev[k] is not None)
    print(f"{folder}: dev {shares} (update {dev['update']} of phase {dev['phase']}), {result['seconds']:.0f} s")
    return 0


def split_arguments(arguments: list[str]) -> tuple[dict[str, str], list[str]]:
    """The command's own options, and the remaining arguments: recipe and fields."""
    own: dict[str, str] = {}
    rest: list[str] = []
    remaining = list(arguments)
    while remaining:
        argument = remaining.pop(0)
        name, equals, value = argument.partition("=")
        if name not in OWN:
            rest.append(argument)
        elif equals:
            own[name] = value
        elif remaining:
            own[name] = remaining.pop(0)
        else:
            raise ValueError(f"{name} needs a value")
    return own, rest


def _recipe_of(folder: Path) -> str:
    from oneofmany.runs.folder import RunFolder

    return str(RunFolder.open(folder).config["settings"]["recipe"])
