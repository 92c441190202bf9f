"""``oneofmany train``: train one run of a recipe."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from oneofmany.cli.options import use_task
from oneofmany.cli.terminal import say
from oneofmany.cli.training_progress import show_training
from oneofmany.evaluation.scores import judged

USAGE = """usage: oneofmany train RECIPE [--out RUN] [--data DIR] [--FIELD VALUE ...]
       oneofmany train --resume RUN [--FIELD VALUE ...]
       oneofmany train --recipes [WORD ...] list all recipes, or those with these words: sudoku tiny
       oneofmany train RECIPE --help        list all fields of the recipe with their values

Train a recipe, a named set of settings:

  TASK/OBJECTIVE/tiny         our network on small boards: a minute on a laptop
  TASK/OBJECTIVE/equivariant  our network: one or two minutes on one GPU
  sudoku-hard/OBJECTIVE/equivariant
                              our network on Sudokus that need much search
  TASK/OBJECTIVE/transformer  a recurrent Transformer that is given no rules
  pairs/OBJECTIVE             the same for your own fill-in data, with --train FILE --dev FILE (see data import)
  sequences/OBJECTIVE         an encoder-decoder for your own sequences; sequences/OBJECTIVE/ctc is not autoregressive
  TASK/OBJECTIVE/table-2      the paper's networks with the settings of our Table 2
  TASK/OBJECTIVE              the paper's networks with its literal settings

TASK is nqueens, futoshiki or sudoku. OBJECTIVE is naive, random, unique, ccloss, minloss, iexplr or selectr. A task of
your own (--task-file) has the recipes TASK/OBJECTIVE/equivariant: our network, a minute on a laptop.

  --out RUN       the run folder (default: runs/RECIPE/SEED)
  --data DIR      folder of the benchmark's data; missing files are built there (default: data)
  --clues FILE    17-clue Sudokus to build the Sudoku data from (default: minimal puzzles are generated)
  --train FILE    your training data instead of the benchmark's
  --dev FILE      your validation (dev) data instead of the benchmark's
  --task-file FILE
                  the Python file of a task of your own; its code runs
  --changed-task-file
                  resume although that file has changed since the run was started
  --resume RUN    continue a run that was stopped, also with another --device or --threads; a finished run continues if
                  it gets more updates in its last phase (--first.updates N), and its record says that it was extended
  --or-resume     continue RUN if it was started already, with the same settings: the command can be repeated, as
                  torchrun does after it has lost a process
  --tensorboard   also write RUN/tensorboard (needs pip install 'oneofmany[tensorboard]')
  --FIELD VALUE   change a field of the recipe, for example --seed 1729 or --first.lr 0.001

Example: oneofmany train nqueens/minloss/tiny --seed 1729 --out runs/first
On several GPUs: torchrun --nproc-per-node 4 -m oneofmany train nqueens/minloss/equivariant
On several machines: see docs/scaling.md
"""

OWN = ("--out", "--data", "--clues", "--train", "--dev", "--resume", "--task-file")
FLAGS = ("--tensorboard", "--changed-task-file", "--or-resume")


def train(arguments: list[str]) -> int:
    """Train a recipe, or resume a run."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE, end="")
        return 0 if arguments else 2
    own, fields = split_arguments(arguments)
    use_task(Path(own["--task-file"]) if "--task-file" in own else None)
    if fields and fields[0] == "--recipes":
        from oneofmany.recipes.listing import listing

        print(listing(*fields[1:]))
        return 0
    tensorboard, changed_task, repeated = (flag in fields for flag in FLAGS)
    fields = [field for field in fields if field not in FLAGS]
    name = fields.pop(0) if fields and not fields[0].startswith("-") else None
    from oneofmany.recipes.fields import resolve
    from oneofmany.recipes.finding import DataFiles
    from oneofmany.runs import RunFolder
    from oneofmany.training import Interrupted, LostProcess, TrainingError, resume
    from oneofmany.training import train as start
    from oneofmany.training.settings import settings_of

    again = ""
    task_file = ["--task-file", own["--task-file"]] if "--task-file" in own else []
    folder = Path(own["--resume"]) if "--resume" in own else None
    try:
        if folder is not None:
            extra = sorted(set(own) - {"--resume", "--task-file"})
            if extra:
                raise ValueError(f"--resume uses the data and the folder of the run: leave out {', '.join(extra)}")
            base = settings_of(RunFolder.open(folder)) if name is None else None
            settings = resolve(name or f"--resume {folder}", fields, base)
            again = shlex.join(["--resume", str(folder), *([name] if name else []), *fields, *task_file])
            with show_training(folder, tensorboard) as watch:
                # A recipe may have got more updates in a new version; that is not a wish to extend the run.
                result = resume(folder, settings, watch, extend=name is None, changed_task=changed_task)
        else:
            if name is None:
                raise ValueError("name a recipe first, for example: oneofmany train nqueens/minloss/tiny")
            settings = resolve(name, fields)
            folder = Path(own.get("--out", f"runs/{name}/{settings.seed}"))
            again = shlex.join(["--resume", str(folder), *task_file])
            begun = repeated and (folder / "config.json").exists()
            data = DataFiles(own.get("--data"), own.get("--clues"), own.get("--train"), own.get("--dev"))
            files = data.find(name, say)
            command = shlex.join(["oneofmany", "train", *arguments])
            with show_training(folder, tensorboard) as watch:
                if begun:
                    result = resume(folder, settings, watch, changed_task=changed_task, patient=True)
                else:
                    result = start(settings, files[0], files[1], folder, command=command, watch=watch)
    except Interrupted as stopped:
        say(f"{stopped}; continue with: oneofmany train {again}{' --tensorboard' * tensorboard}")
        return 128 + stopped.number
    except LostProcess as error:
        say(f"oneofmany: {error}; continue with: oneofmany train {again}{' --tensorboard' * tensorboard}")
        return 1
    except TrainingError as error:
        say(f"oneofmany: {error}")
        return 1
    if int(os.environ.get("RANK", "0")):
        return 0
    dev = result["dev"]
    shares = ", ".join(f"{k.upper()} {100 * dev[k]:.2f} %" for k in ("os", "ms", "overall") if dev[k] is not None)
    where = f"(update {dev['update']} of phase {dev['phase']})"
    print(f"{folder}: dev {shares} {judged(dev.get('judged_by'))} {where}, {result['seconds']:.0f} s")
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
