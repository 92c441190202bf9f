"""Checks before a run folder is made: the data, and the runs that the new run starts from."""

from __future__ import annotations

from pathlib import Path

import torch

from oneofmany.data import Dataset
from oneofmany.files import FileError
from oneofmany.networks.building import build_network
from oneofmany.runs.folder import RunFolder
from oneofmany.training.phases import phases_of
from oneofmany.training.settings import Settings, from_json


def check_data(settings: Settings, train: Dataset, dev: Dataset) -> None:
    """Raise FileError for data that cannot be trained on."""
    for name, data in (("train", train), ("dev", dev)):
        if data.problem.task != settings.task:
            raise FileError(f"{name}: the data is of task {data.problem.task}, the recipe is for {settings.task}")
    with torch.random.fork_rng(devices=[]):
        network = build_network(settings.network, train.problem)
    for name, data in (("train", train), ("dev", dev)):
        if why := network.accepts(data.problem, data.relations):
            raise FileError(f"{name}: {why}")
    if not len(train.solutions):
        raise FileError("train: the data lists no solutions to train on")
    looked_at = dev.multiple[: settings.dev_queries] == (settings.select_on == "ms")
    if settings.select_on != "overall" and not looked_at.any():
        raise FileError(
            f"dev: select_on is {settings.select_on}, but the data has no {settings.select_on.upper()} query"
        )
    for phase in phases_of(settings):
        sampling = phase.settings.sampling
        share = sampling if isinstance(sampling, (int, float)) else {"ms": 1.0, "os": 0.0}.get(sampling)
        if share is not None and share > 0 and not train.multiple.any():
            raise FileError(f"train: phase {phase.name} samples MS queries, but the data has none")
        if share is not None and share < 1 and train.multiple.all():
            raise FileError(f"train: phase {phase.name} samples OS queries, but the data has none")


def check_pretrained(settings: Settings) -> None:
    """Raise ValueError for runs that this one cannot start from."""
    for path in settings.pretrained:
        theirs = from_json(RunFolder.open(path).config["settings"])
        if (theirs.seed, theirs.task, theirs.network) != (settings.seed, settings.task, settings.network):
            raise ValueError(
                f"pretrained: {path} has another task, seed or network ({theirs.task}, seed {theirs.seed}) than this "
                f"run ({settings.task}, seed {settings.seed})"
            )
        if not (Path(path) / "result.json").exists():
            raise FileError(
                f"pretrained: {path} has not finished: finish it first with oneofmany train --resume {path}"
            )
