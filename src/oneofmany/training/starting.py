"""Start or resume a run: the same as ``oneofmany train``, from Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from oneofmany.data import Dataset
from oneofmany.files import FileError
from oneofmany.runs.devices import device_named
from oneofmany.runs.environment import environment
from oneofmany.runs.folder import RunFolder
from oneofmany.training.checks import check_data, check_pretrained
from oneofmany.training.distributed import processes
from oneofmany.training.metrics import Watch
from oneofmany.training.phases import phases_of
from oneofmany.training.settings import Settings, differences, from_json, to_json
from oneofmany.training.trainer import Trainer


def train(
    settings: Settings,
    train: str | Path,
    dev: str | Path,
    out: str | Path,
    *,
    command: str = "",
    watch: Watch | None = None,
) -> dict[str, Any]:
    """Train a new run in the folder ``out`` and return the content of its result.json.

    Args:
        settings: the settings; ``oneofmany.recipes.recipe("nqueens/minloss")`` returns those of a recipe.
        train: the training data file.
        dev: the validation (dev) data file, used for schedules, early stopping and the best weights.
        out: the run folder, which must not exist yet.
        command: the command that started the run, kept in config.json.
        watch: called with every line of metrics.
    """
    data = {"train": Dataset.load(train), "dev": Dataset.load(dev)}
    paths = {"train": str(Path(train).resolve()), "dev": str(Path(dev).resolve())}
    check_data(settings, data["train"], data["dev"])
    check_pretrained(settings)
    return _run(settings, data, paths, Path(out), None, command, watch)


def resume(out: str | Path, settings: Settings | None = None, watch: Watch | None = None) -> dict[str, Any]:
    """Resume a run from its last complete state and return its result; a finished run only returns it.

    ``settings``, if given, must equal those of the run. The data must be the same as at the start.
    """
    folder = RunFolder.open(out)
    try:
        saved = from_json(folder.config["settings"])
        begun_with = {name: (about["path"], about["checksum"]) for name, about in folder.config["data"].items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise FileError(f"{folder.path / 'config.json'} is damaged ({type(error).__name__}: {error})") from None
    if settings is not None and (different := differences(to_json(settings), to_json(saved))):
        raise ValueError(f"{out} was started with other settings: {'; '.join(different)}: resume it without them")
    data = {}
    for name, (path, checksum) in begun_with.items():
        data[name] = Dataset.load(path)
        found = data[name].header()["checksum"]
        if found != checksum:
            raise FileError(f"{out} was started with other {name} data: {path} had checksum {checksum}, now {found}")
    paths = {name: path for name, (path, _) in begun_with.items()}
    return _run(saved, data, paths, Path(out), folder, str(folder.config.get("command", "")), watch)


def _run(
    settings: Settings,
    data: dict[str, Dataset],
    paths: dict[str, str],
    out: Path,
    folder: RunFolder | None,
    command: str,
    watch: Watch | None,
) -> dict[str, Any]:
    if settings.threads is not None:
        torch.set_num_threads(settings.threads)
    with processes(device_named(settings.device)) as (group, device):
        if device.type == "cuda":
            torch.backends.cuda.matmul.allow_tf32 = settings.precision != "float32"
        for phase in phases_of(settings):
            group.rows(phase.settings.batch)  # raises before the first phase if a batch cannot be split
        if folder is None and group.writes:
            about = {name: {"path": paths[name], **_about(part, paths[name])} for name, part in data.items()}
            config = {
                "settings": to_json(settings),
                "data": about,
                "command": command,
                "environment": environment(device),
                "processes": group.size,
            }
            folder = RunFolder.create(out, config)
        # Every process reads the folder that the first one has made.
        group.wait(device)
        trainer = Trainer(
            settings,
            folder or RunFolder.open(out),
            data["train"],
            data["dev"],
            device=device,
            group=group,
            watch=watch if group.writes else None,
        )
        return trainer.run()


def _about(data: Dataset, path: str) -> dict[str, Any]:
    solutions = np.where(data.total >= 0, data.total, data.listed)[data.multiple]
    return {
        "name": Path(path).stem,
        "checksum": data.header()["checksum"],
        "queries": len(data),
        "ms_queries": len(solutions),
        "solutions_per_ms_query": round(float(solutions.mean()), 4) if len(solutions) else None,
    }
