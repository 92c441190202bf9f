"""Evaluate a run on a data file and keep its answers, so that nothing is evaluated twice.

Example::

    from oneofmany.evaluation import evaluate_run

    evaluated = evaluate_run("runs/nqueens/minloss/42", "data/nqueens-test.safetensors")
    print(evaluated.summary["ms"])
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch

import oneofmany
from oneofmany.data import SequenceData, load_data
from oneofmany.evaluation.accuracy import evaluate
from oneofmany.evaluation.outcomes import Outcomes
from oneofmany.evaluation.predictions import load_predictions, save_predictions
from oneofmany.files import FileError, check_writable, checksum_of
from oneofmany.networks.inference import StartCriterion
from oneofmany.networks.kernels import Precision, precision_for
from oneofmany.networks.saved import SavedNetwork, load_network
from oneofmany.networks.sequences import SequenceNetwork
from oneofmany.problems import Problem, check_source, source_of
from oneofmany.progress import Progress
from oneofmany.runs.devices import device_named
from oneofmany.runs.environment import environment
from oneofmany.runs.folder import RunFolder

Device = Literal["auto", "cpu", "cuda"]

DECIDING = ("readout", "steps", "starts", "choose", "seed", "patience", "batch", "precision")
"""Settings that must be equal for saved predictions to be reused."""


@dataclass(frozen=True, eq=False)
class Evaluated:
    """An evaluation of a network on a data file.

    Args:
        outcomes: the answers to all queries.
        about: how they were made, as in the predictions file: data, settings, command, environment, seconds, summary.
        file: the predictions file; None for a network that is not in a run folder.
        reused: whether the predictions were read from an existing file.
        changed: a sentence if the file that defines the task has changed since the network was trained.
    """

    outcomes: Outcomes
    about: dict[str, Any]
    file: Path | None
    reused: bool
    changed: str | None = None

    @property
    def summary(self) -> dict[str, Any]:
        """``Outcomes.summary()``."""
        return self.about["summary"]


def evaluate_run(
    run: str | Path,
    data: str | Path,
    *,
    steps: int | None = None,
    starts: int = 1,
    choose: StartCriterion = "residual",
    seed: int = 0,
    batch_size: int = 1024,
    device: Device = "auto",
    precision: Precision | None = None,
    patience: int | None = None,
    name: str | None = None,
    force: bool = False,
    problem: Problem | None = None,
    tell: Progress | None = None,
) -> Evaluated:
    """Evaluate a network on a data file. Predictions are saved in the run folder and reused by the next call.

    Args:
        run: a run folder, a weights file, or the name of a bundled network.
        data: the data file.
        steps: at most this many steps; the network's own number at test time by default.
        starts: as in ``evaluate``.
        choose: as in ``evaluate``.
        seed: as in ``evaluate``.
        batch_size: as in ``evaluate``.
        device: auto takes a GPU if there is one.
        precision: of the activations; by default float32 on a CPU, and on a GPU float16 for the NLM, else bfloat16.
        patience: as in ``evaluate``.
        name: of the predictions in the run folder; by default that of the data file plus settings that differ
            from the defaults.
        force: evaluate again and overwrite the saved predictions of this name.
        problem: of a task of your own that has rules, which are not in the files.
        tell: as in ``evaluate``.
    """
    folder = RunFolder.open(run) if Path(run).is_dir() else None
    if name is not None and (folder is None or Path(name).name != name):
        raise ValueError(f"--name: expected the name of a file in a run folder's predictions, got {name!r} for {run}")
    place = device_named(device)
    if folder is not None and problem is None:
        check_source(run, str((folder.config.get("settings") or {}).get("task")), folder.config.get("task_file"))
    dataset = load_data(data, problem)
    checksum = dataset.header()["checksum"]
    saved, weights = _load(run, folder, problem, place, precision)
    changed = None if problem else check_source(run, saved.task, saved.card.get("task_file"))
    settings = saved.settings
    kept_in = precision_for(settings.kind, place, precision)
    if isinstance(saved.network, SequenceNetwork) and isinstance(dataset, SequenceData):
        dataset = dataset.in_words_of(saved.network.problem)
    elif isinstance(saved.network, SequenceNetwork) or isinstance(dataset, SequenceData):
        raise ValueError(
            f"{data} holds {dataset.problem.task}, but {run} was trained on {saved.task}: sequences need a network for "
            "sequences, and only they do"
        )
    elif why := saved.network.accepts(dataset.problem, dataset.relations):
        raise ValueError(f"{data} holds {dataset.problem.task} {dataset.problem.size}, but {why}")
    if steps is not None and not settings.has_steps:
        raise ValueError(f"--steps: this network ({settings.kind}) has no steps to choose, got {steps}")
    usual = (settings.test_steps or settings.steps) if settings.has_steps else None
    # With one start there is nothing to choose from.
    asked = {
        "steps": usual if steps is None else steps,
        "starts": starts,
        "choose": choose if starts > 1 else "residual",
        "seed": seed,
        "patience": patience or None,
    }
    standard = {"steps": usual, "starts": 1, "choose": "residual", "seed": 0, "patience": None}
    unusual = {key: value for key, value in asked.items() if value != standard[key]}
    how = {"batch": (batch_size, 1024), "precision": (precision, None), "name": (name, None)}
    options = unusual | {key: value for key, (value, default) in how.items() if value != default}
    about: dict[str, Any] = {
        "data": {
            "name": Path(data).stem,
            "checksum": checksum,
            "task": dataset.problem.task,
            "size": dataset.problem.size,
            "queries": len(dataset),
        },
        "network": settings.kind,
        "readout": saved.network.readout,
        **asked,
        "batch": batch_size,
        "precision": kept_in,
        "weights": weights,
    }
    if source := source_of(dataset.problem.task):
        options["task-file"] = source["path"]
        about["task_file"] = source_of(dataset.problem.task, whole_path=False)
    given = (f"--{key}={value}" for key, value in options.items())
    about["command"] = shlex.join(["oneofmany", "evaluate", str(run), str(data), *given])
    file = None
    if folder is not None:
        kept_as = name or Path(data).stem + "".join(_suffix(key, value) for key, value in unusual.items())
        file = folder.predictions / f"{kept_as}.safetensors"
        if file.exists() and not force:
            deciding = [key for key in DECIDING if key != "precision" or precision is not None]
            return replace(_kept(file, about, deciding), changed=changed)
        folder.predictions.mkdir(exist_ok=True)
        check_writable(file, force)
    began = time.perf_counter()
    outcomes = evaluate(
        saved.network,
        dataset,
        **asked,
        batch_size=batch_size,
        device=place,
        precision=kept_in,
        tell=tell,
    )
    about |= {
        "seconds": round(time.perf_counter() - began, 3),
        "time": round(time.time(), 1),
        "environment": environment(place),
        "summary": outcomes.summary(),
    }
    if file is not None:
        save_predictions(file, outcomes, about, force=force)
    return Evaluated(outcomes, about, file, reused=False, changed=changed)


def _load(
    run: str | Path,
    folder: RunFolder | None,
    problem: Problem | None,
    device: torch.device,
    precision: Precision | None,
) -> tuple[SavedNetwork, str | None]:
    """The network, and the checksum of its file if it is in a run folder."""
    if folder is None and not Path(run).exists():
        return oneofmany.load(run, device=device), None
    if folder is None:
        return load_network(run, problem, device=device, precision=precision), None
    if not folder.weights.is_file():
        raise FileError(f"{run} has no weights yet: train it first, with oneofmany train --resume {run}")
    while True:
        checksum = checksum_of(folder.weights)
        saved = load_network(folder.weights, problem, device=device, precision=precision)
        if checksum_of(folder.weights) == checksum:  # otherwise the run is being trained, and has replaced them
            return saved, checksum


def _suffix(key: str, value: Any) -> str:
    return f"-{value}" if key == "choose" else f"-{key}{value}"


def _kept(file: Path, asked: dict[str, Any], deciding: Sequence[str]) -> Evaluated:
    """Read saved predictions; FileError unless data, weights and the ``deciding`` settings are those asked for."""
    try:
        outcomes, kept = load_predictions(file)
    except FileError as error:
        raise FileError(f"{error}: evaluate again with --force") from None
    what_to_do = "overwrite it with --force, or keep both with another --name"
    there, here = kept["data"], asked["data"]
    if there["checksum"] != here["checksum"]:
        raise FileError(
            f"{file} was made on other data ({there['name']}, {there['checksum']}) than {here['name']} "
            f"({here['checksum']}): {what_to_do}"
        )
    if kept.get("weights") != asked["weights"]:
        raise FileError(f"{file} was made with other weights than the run's current ones: overwrite it with --force")
    if kept.get("task_file") != asked.get("task_file"):
        raise FileError(f"{file} was made with another version of the task's file: overwrite it with --force")
    different = [
        f"{key} {kept.get(key)} there and {asked[key]} here" for key in deciding if kept.get(key) != asked[key]
    ]
    if different:
        raise FileError(f"{file} was made with other settings ({', '.join(different)}): {what_to_do}")
    # The answers decide, not the summary in the file.
    own = {"data": here, "network": asked["network"], "summary": outcomes.summary()}
    return Evaluated(outcomes, kept | own, file, reused=True)
