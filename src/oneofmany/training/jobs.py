"""The jobs of a sweep. The run folders on disk decide what is left to do and which pre-training can be reused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path, PurePath

from oneofmany.files import FileError
from oneofmany.runs.folder import RunFolder, about_extensions, is_unused
from oneofmany.runs.state import state_of
from oneofmany.training.phases import Phase, phases_of, pretrainings
from oneofmany.training.settings import Settings, differences, settings_of, to_json

WITHOUT_INFLUENCE = frozenset(
    {
        "recipe",
        "objective",  # this and the next three are compared through the phases
        "first",
        "second",
        "pretraining",
        "selector",  # trained after the first phase
        "selector_training",
        "keep_pretrained",
        "temperature",
        "epsilon",
        "decay",  # compared through the phases
        "checkpoint_minutes",
        "threads",  # changes rounding only, and the queue chooses it
    }
)
"""Settings that may differ between a run and an equal pre-training; all others have to be equal."""


@dataclass(frozen=True)
class Job:
    """One run of a sweep.

    Args:
        name: the path of the run below the folder of the sweep.
        settings: the settings of the run; the queue chooses ``threads`` if it is None.
        folder: the run folder.
        arguments: arguments of ``oneofmany train`` that give these settings, recipe first; the queue adds ``--out``.
        data: checksums of the training and dev data.
        after: ``oneofmany`` commands to run after training.
        task_file: the option that names the file of a task of the user's, if there is one.
    """

    name: str
    settings: Settings
    folder: Path
    arguments: tuple[str, ...]
    data: tuple[str, str] = ("", "")
    after: tuple[tuple[str, ...], ...] = ()
    task_file: tuple[str, ...] = ()

    @property
    def log(self) -> Path:
        """The file next to the run folder with the output of the run's commands."""
        return self.folder.with_name(f"{self.folder.name}.log")

    @property
    def lock(self) -> Path:
        """The lock of the queue that runs the job, next to the run folder, whose own lock is that of the training."""
        return self.folder.with_name(f".{self.folder.name}.lock")

    @property
    def file(self) -> Path:
        """The file next to the run folder that tells a machine of a cluster what to do."""
        return self.folder.with_name(f".{self.folder.name}.job.json")


def check_settings(jobs: Iterable[Job], sharing: bool = True) -> None:
    """Raise ValueError with the differences if a run folder has other settings than its job."""
    for job in jobs:
        if state_of(job.folder) == "missing":
            if job.folder.exists() and not is_unused(job.folder):
                raise FileError(
                    f"{job.folder} exists and is not a run: move it away, or choose another folder with --out"
                )
            continue
        folder = RunFolder.open(job.folder)
        ours, theirs = to_json(job.settings), to_json(settings_of(folder))
        if extended := about_extensions(folder.config):
            raise ValueError(f"{job.folder} was {extended}: choose another folder with --out")
        if job.settings.threads is None:
            theirs["threads"] = None
        if sharing and pretrainings(job.settings):
            theirs["pretrained"] = ()  # checked by ``share``
        if different := differences(ours, theirs):
            raise ValueError(
                f"{job.folder} was started with other settings: {'; '.join(different)}: choose another folder with "
                "--out"
            )


def data_in(folder: Path) -> tuple[str, str]:
    """The checksums of a run's training and dev data."""
    config = RunFolder.open(folder).config
    try:
        return config["data"]["train"]["checksum"], config["data"]["dev"]["checksum"]
    except (KeyError, TypeError) as error:
        where = folder / "config.json"
        raise FileError(f"{where} is damaged ({type(error).__name__}: {error})") from None


def check_data(jobs: Iterable[Job]) -> None:
    """Raise FileError if a run folder was started with other data than its job has now."""
    for job in jobs:
        if state_of(job.folder) != "missing" and data_in(job.folder) != job.data:
            raise FileError(
                f"{job.folder} was started with other data ({' and '.join(data_in(job.folder))}, here "
                f"{' and '.join(job.data)}): use that data, or choose another folder with --out"
            )


def share(jobs: Sequence[Job], out: Path) -> list[Job]:
    """The jobs, in which I-ExplR and SelectR start from the MinLoss and Unique runs that equal their pre-trainings.

    These runs are among the jobs, or are finished runs below ``out``. A run that has started already is not changed.
    """
    folders = {job.folder for job in jobs}
    wanted = any(pretrainings(job.settings) for job in jobs)
    others = [run for run in _finished_runs(out) if run.folder not in folders] if wanted else []
    return [_shared(job, [*jobs, *others]) for job in jobs]


def _shared(job: Job, runs: Sequence[Job]) -> Job:
    phases = pretrainings(job.settings)
    if not phases:
        return job
    state = state_of(job.folder)
    same = [[run for run in runs if _is_same_pretraining(phase, job, run)] for phase in phases]
    if state == "missing":
        if not all(same):
            return job
        # Prefer a finished run: nothing has to wait for it.
        chosen = [min(found, key=lambda run: state_of(run.folder) != "finished") for found in same]
        paths = tuple(str(run.folder) for run in chosen)
        return replace(
            job,
            settings=replace(job.settings, pretrained=paths),
            arguments=(*job.arguments, "--pretrained", *paths),
        )
    begun = settings_of(RunFolder.open(job.folder)).pretrained
    known = not begun or (
        len(begun) == len(same)
        and all(any(PurePath(path).match(run.name) for run in found) for path, found in zip(begun, same, strict=True))
    )
    # The run that a finished run started from may have been moved since.
    if not known and (state == "begun" or all(same)):
        raise ValueError(
            f"{job.folder} was started with other settings: pretrained: {', '.join(begun)} there, which is not its "
            "pre-training here: choose another folder with --out"
        )
    return replace(job, settings=replace(job.settings, pretrained=begun))


def _is_same_pretraining(phase: Phase, job: Job, run: Job) -> bool:
    if run.data != job.data or phases_of(run.settings) != (phase,):
        return False
    return all(
        getattr(run.settings, field.name) == getattr(job.settings, field.name)
        for field in fields(Settings)
        if field.name not in WITHOUT_INFLUENCE
    )


def _finished_runs(out: Path) -> Iterator[Job]:
    for result in sorted(out.rglob("result.json")):
        folder = result.parent
        with suppress(ValueError):  # damaged or from another version: not shared
            run = RunFolder.open(folder)
            if not about_extensions(run.config):  # another run than its settings alone would give
                yield Job(str(folder.relative_to(out)), settings_of(run), folder, (), data_in(folder))
