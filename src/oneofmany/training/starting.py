"""Start or resume a run: the same as ``oneofmany train``, from Python."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from oneofmany.data import Dataset, SequenceData, load_data
from oneofmany.data.shares import Share, read_share
from oneofmany.files import FileError
from oneofmany.problems import check_source, source_of
from oneofmany.runs.devices import device_named
from oneofmany.runs.environment import environment
from oneofmany.runs.folder import RunFolder
from oneofmany.runs.lock import LIMIT, Locked, LostLock
from oneofmany.training.checks import check_data, check_initial, check_pretrained, too_long
from oneofmany.training.distributed import launched, processes
from oneofmany.training.extending import Extension
from oneofmany.training.metrics import Watch
from oneofmany.training.settings import MACHINE, Settings, differences, settings_of, to_json
from oneofmany.training.trainer import Trainer, TrainingError


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
    data = Data(_read(settings, train), load_data(dev))
    paths = {"train": str(Path(train).resolve()), "dev": str(Path(dev).resolve())}
    check_data(settings, data.train, data.dev)
    check_pretrained(settings)
    check_initial(settings, data.train.problem)
    if watch is not None and (left_out := too_long(settings, data.train)):
        watch({"kind": "warning", "text": left_out})

    def begin(device: torch.device, size: int) -> RunFolder:
        about = {name: {"path": paths[name], **_about(part, paths[name])} for name, part in data._asdict().items()}
        config = {
            "settings": to_json(settings),
            "data": about,
            "command": command,
            "environment": environment(device),
            "processes": size,
        }
        if source := source_of(settings.task):
            config["task_file"] = source
        return RunFolder(Path(out), config)

    return _run(settings, data, begin, RunFolder.beginning, watch)


def resume(
    out: str | Path,
    settings: Settings | None = None,
    watch: Watch | None = None,
    *,
    extend: bool = False,
    changed_task: bool = False,
    patient: bool = False,
) -> dict[str, Any]:
    """Resume a run from its last complete state and return its result; a finished run only returns it.

    Args:
        out: the run folder. The data must be the same as at the start.
        settings: those of the run, of which only the ones in ``MACHINE`` may be different; they are used until the
            run is resumed the next time.
        watch: called with every line of metrics.
        extend: let a finished run continue if ``settings`` have more updates in its last phase. Its last state is
            continued; a schedule that depends on the number of updates follows the new number from there. The recipe
            of the run then ends in ``/extended``, its record says by how much, and its evaluations become stale.
        changed_task: continue although the file that defines the task has changed since; the run remembers both.
        patient: wait for a lock of the folder that a lost process of another machine has left.
    """
    folder = RunFolder.open(out)
    saved = settings_of(folder)
    changed = check_source(folder.path, saved.task, folder.config.get("task_file"))
    if changed and not changed_task:
        raise ValueError(f"{changed}: use that version, or continue with the new one with --changed-task-file")
    session, extension = _session(folder, saved, settings or saved, extend)
    if folder.finished and extension is None:
        return folder.result()
    data = _same_data(folder, saved)

    @contextmanager
    def continuing(folder: RunFolder) -> Iterator[None]:
        with ExitStack() as locked:
            end = time.monotonic() + (LIMIT + 60 if patient else 0)
            while not folder.lock.acquired:
                try:
                    locked.enter_context(folder.continuing())
                except Locked:
                    if time.monotonic() >= end:
                        raise
                    time.sleep(1)
            if extension is not None:
                told = extension.apply(folder)
                if watch is not None:
                    watch({"kind": "warning", "text": told})
            _note_machine(folder, session, saved)
            if changed:
                before = [*(folder.config.get("task_files_before") or ()), folder.config["task_file"]]
                now = {"task_file": source_of(saved.task), "task_files_before": before}
                folder.configure(folder.config | now)
            yield

    return _run(session, data, lambda device, size: folder, continuing, watch)


def _session(folder: RunFolder, saved: Settings, wanted: Settings, extend: bool) -> tuple[Settings, Extension | None]:
    """The settings for this session, and whether they extend the run; ValueError if others than allowed differ."""
    machine = {name: getattr(wanted, name) for name in MACHINE}
    extension = Extension.between(saved, wanted) if extend else None
    base = saved if extension is None else extension.settings
    session = replace(base, **machine)
    same = wanted if extension is None else replace(wanted, recipe=session.recipe)
    if different := differences(to_json(same), to_json(session)):
        raise ValueError(
            f"{folder.path} was started with other settings: {'; '.join(different)}: resume it without them"
        )
    if extension is not None and extension.updates < extension.before:
        raise ValueError(
            f"{extension.phase}.updates: expected more than the {extension.before} of {folder.path}, "
            f"got {extension.updates}"
        )
    if extension is not None and not folder.finished:
        raise ValueError(
            f"{folder.path} has not finished its {extension.before} updates: finish it first with oneofmany train "
            f"--resume {folder.path}"
        )
    return session, extension


class Data(NamedTuple):
    """The data of a run."""

    train: Dataset | SequenceData | Share
    dev: Dataset | SequenceData


def _read(settings: Settings, train: str | Path) -> Dataset | SequenceData | Share:
    """The training data, or with shards what this process reads of it."""
    if settings.shards == 1:
        return load_data(train)
    # The first process of every machine checks the whole file.
    first = os.environ.get("LOCAL_RANK", "0") == "0"
    return read_share(train, settings.shards, launched().shards(settings.shards), check=first)


def _same_data(folder: RunFolder, settings: Settings) -> Data:
    """The data of a run; FileError if it is not the same any more."""
    try:
        about = folder.config["data"]
        begun_with = {name: (str(Path(about[name]["path"])), about[name]["checksum"]) for name in ("train", "dev")}
    except (KeyError, TypeError, AttributeError) as error:
        raise FileError(f"{folder.path / 'config.json'} is damaged ({type(error).__name__}: {error})") from None
    data = Data(_read(settings, begun_with["train"][0]), load_data(begun_with["dev"][0]))
    for name, (path, checksum) in begun_with.items():
        found = getattr(data, name).header()["checksum"]
        if found != checksum:
            raise FileError(
                f"{folder.path} was started with other {name} data: {path} had checksum {checksum}, now {found}"
            )
    return data


def _note_machine(folder: RunFolder, session: Settings, saved: Settings) -> None:
    """Add the machine settings of this session to the environment of the run, and so to its record."""
    changed = {name: getattr(session, name) for name in MACHINE if getattr(session, name) != getattr(saved, name)}
    known = dict(folder.config.get("environment") or {})
    notes = known.get("resumed_with") or []
    if changed and changed not in notes:
        folder.configure(folder.config | {"environment": known | {"resumed_with": [*notes, changed]}})


def _run(
    settings: Settings,
    data: Data,
    folder_for: Callable[[torch.device, int], RunFolder],
    writing: Callable[[RunFolder], AbstractContextManager[None]],
    watch: Watch | None,
) -> dict[str, Any]:
    if settings.threads is not None:
        torch.set_num_threads(settings.threads)
    with processes(device_named(settings.device)) as (group, device), ExitStack() as locked:
        if device.type == "cuda":
            torch.backends.cuda.matmul.allow_tf32 = settings.precision != "float32"
        folder = folder_for(device, group.size)
        # Before the folder is made: this raises for whatever cannot be trained.
        trainer = Trainer(
            settings,
            folder,
            data.train,
            data.dev,
            device=device,
            group=group,
            watch=watch if group.writes else None,
        )
        for phase in trainer.phases:
            group.rows(phase.settings.batch)
        if group.writes:
            locked.enter_context(writing(folder))
        # Every process reads the folder that the first one has made.
        group.wait(device)
        try:
            return trainer.run()
        except LostLock as error:
            raise TrainingError(str(error)) from None


def _about(data: Dataset | SequenceData | Share, path: str) -> dict[str, Any]:
    if isinstance(data, Share):
        queries, ms_queries, solutions = int(data.counts.sum()), int(data.counts[:, 1].sum()), data.ms_solutions
    else:
        of_ms = np.where(data.total >= 0, data.total, data.listed)[data.multiple]
        queries, ms_queries, solutions = len(data), len(of_ms), int(of_ms.sum())
    return {
        "name": Path(path).stem,
        "checksum": data.header()["checksum"],
        "queries": queries,
        "ms_queries": ms_queries,
        "solutions_per_ms_query": round(solutions / ms_queries, 4) if ms_queries else None,
    }
