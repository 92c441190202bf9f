"""Build the record of a run folder."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError

from oneofmany.evaluation.outcomes import Outcomes
from oneofmany.evaluation.predictions import load_predictions
from oneofmany.evaluation.record import DataInfo, Dev, Evaluation, History, Record, Scores
from oneofmany.evaluation.record_json import build, history_of
from oneofmany.evaluation.scores import Score
from oneofmany.files import FileError, checksum_of, read_json
from oneofmany.networks.saved import FORMAT as WEIGHTS_FORMAT
from oneofmany.runs.folder import RunFolder
from oneofmany.tensor_files import read_tensors


def record_of(run: str | Path) -> Record:
    """Return the record of a run folder, finished or not; FileError if the folder is damaged.

    The record contains no absolute paths.
    """
    folder = RunFolder.open(run)
    try:
        return _record(folder)
    except FileError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError, SafetensorError) as error:
        raise FileError(f"{folder.path} is damaged or not a run ({type(error).__name__}: {error})") from None


def _record(folder: RunFolder) -> Record:
    config, lines = folder.config, folder.read_metrics()
    settings = dict(config["settings"])
    settings["pretrained"] = [_without_places(path) for path in settings.get("pretrained", ())]
    if settings.get("initial"):
        settings["initial"] = _without_places(settings["initial"])
    result = _result(folder, lines)
    on_dev = [line for line in lines if line["kind"] == "dev"]
    weights = checksum_of(folder.weights) if folder.weights.is_file() else None
    predictions = sorted(folder.predictions.glob("*.safetensors"), key=lambda path: path.stem)
    return build(
        Record,
        settings | config | result,
        # The third part keeps a run without a recipe apart from the paper's recipes, whose names have two parts.
        recipe=settings["recipe"] or f"{settings['task']}/{settings['objective']}/own",
        network=settings["network"]["kind"],
        settings=settings,
        command=_without_places(config["command"]),
        data={name: build(DataInfo, about) for name, about in config["data"].items()},
        dev=None if result["dev"] is None else build(Dev, result["dev"]),
        history=history_of({one.name: [line.get(one.name) for line in on_dev] for one in fields(History)}),
        evaluations={path.stem: _evaluation(path, weights) for path in predictions},
        task_file=_task_file(config.get("task_file")),
        apart="",
    )


def _task_file(source: dict[str, str] | None) -> dict[str, str] | None:
    return None if source is None else source | {"path": Path(source["path"]).name}


def _result(folder: RunFolder, lines: list[dict[str, Any]]) -> dict[str, Any]:
    """The contents of result.json, or the same fields for an unfinished run, which has no such file."""
    if (folder.path / "result.json").is_file():
        return read_json(folder.path / "result.json")
    dev = None
    if folder.weights.is_file():
        header, _ = read_tensors(folder.weights, otherwise="not a network", newest=WEIGHTS_FORMAT, framework="numpy")
        dev = header["card"]["dev"]
    reached = {line["phase"]: line["update"] for line in lines if "update" in line}
    seconds = lines[-1]["seconds"] if lines else 0.0
    return {"dev": dev, "seconds": seconds, "updates": sum(reached.values()), "finished": False}


def _evaluation(path: Path, weights: str | None) -> Evaluation:
    try:
        outcomes, about = load_predictions(path)
        made_with, command = about["weights"], about["command"]
        found = evaluation_of(path.stem, outcomes, about | {"command": _without_places(command)})
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        why = str(error) if isinstance(error, FileError) else f"{path} was not made by `oneofmany evaluate` ({error})"
        raise FileError(f"{why}: delete it, or evaluate again with --force") from None
    if weights not in (None, made_with):
        raise FileError(
            f"{path} was made with other weights than the run's current ones: evaluate again with "
            f"`{command} --force`, or delete it"
        )
    return found


def evaluation_of(name: str, outcomes: Outcomes, about: dict[str, Any]) -> Evaluation:
    """Build the evaluation from the outcomes and the ``about`` of a predictions file."""
    known = outcomes.cells >= 0
    return build(
        Evaluation,
        about,
        name=name,
        data=build(DataInfo, about["data"]),
        scores=_scores(outcomes, outcomes.valid),
        chosen=None if outcomes.chosen is None else _scores(outcomes, outcomes.chosen),
        checked=None if outcomes.checked is None else _scores(outcomes, outcomes.checked),
        listed=Score(int(outcomes.listed[known].sum()), int(known.sum())),
        cell_accuracy=float(outcomes.cells[known].mean() / outcomes.variables) if known.any() else None,
        valid=outcomes.valid,
        total=outcomes.total,
        givens=outcomes.givens,
        distinct=outcomes.distinct,
        error_rate=outcomes.error_rate,
        judged_by=outcomes.judged_by,
    )


def _scores(outcomes: Outcomes, right: np.ndarray) -> Scores:
    parts = (right[~outcomes.multiple], right[outcomes.multiple], right)
    return Scores(*(Score(int(part.sum()), len(part)) for part in parts))


def _without_places(command: str) -> str:
    """A command with file names instead of absolute paths, which exist on one machine only."""
    return re.sub(r"""(?<![^\s='"])/[^\s'"]*/(?=[^\s'"])""", "", command)
