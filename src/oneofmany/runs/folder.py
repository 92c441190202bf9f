"""The run folder: configuration, metrics, weights, predictions, and the state for resuming. No pickle."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from torch import Tensor

from oneofmany.files import FULL_DISK, FileError, read_json, write_json, write_whole
from oneofmany.runs.state import lock_of
from oneofmany.tensor_files import from_bytes, to_bytes

FORMAT = 1
KEPT_STATES = 2
"""If the newest state is damaged, the one before it is used."""


class RunFolder:
    """A run on disk. ``create`` makes a new one, ``open`` opens an existing one. Files are written whole.

    A training process writes inside of ``beginning`` (a new run) or ``continuing`` (an existing one), which lock the
    folder. Everybody may read at any time.
    """

    def __init__(self, path: Path, config: dict[str, Any]) -> None:
        self.path, self.config = path, {"format": FORMAT, **config}
        self.weights = path / "weights.safetensors"
        self.metrics = path / "metrics.jsonl"
        self.predictions = path / "predictions"
        self.lock = lock_of(path)
        self._states = path / "state"

    @classmethod
    def create(cls, path: str | Path, config: dict[str, Any]) -> RunFolder:
        """Make the folder and write its configuration; FileError if the path is in use."""
        folder = cls(Path(path), config)
        with folder.beginning():
            return folder

    @classmethod
    def open(cls, path: str | Path) -> RunFolder:
        """Read an existing run's configuration."""
        path = Path(path)
        if not (path / "config.json").is_file():
            raise FileError(f"{path} is not a run folder: it has no config.json")
        config = read_json(path / "config.json")
        if not isinstance(config.get("format"), int) or config["format"] > FORMAT:
            raise FileError(f"{path / 'config.json'} has a format that this version cannot read: upgrade oneofmany")
        return cls(path, config)

    # ---- writing ---------------------------------------------------------------------------------------------------

    @contextmanager
    def beginning(self) -> Iterator[None]:
        """Make the folder, locked, and write its configuration; FileError if the path is in use.

        Bad input leaves nothing behind: if a ValueError or OSError comes before the first state is saved, all that was
        made is deleted again. After an error of a full disk, the run can be resumed.
        """
        self._refuse_taken()
        made = [folder for folder in (self.path, *self.path.parents) if not folder.exists()]
        try:
            with self._made_and_locked():
                self._refuse_taken()  # another process may have been faster
                self._write_configuration()
                try:
                    yield
                except (ValueError, OSError) as error:
                    if not self._state_files() and getattr(error, "errno", None) not in FULL_DISK:
                        shutil.rmtree(self.path, ignore_errors=True)
                    raise
        except BaseException:
            with suppress(OSError):  # not empty
                for folder in made:
                    folder.rmdir()
            raise

    @contextmanager
    def continuing(self) -> Iterator[None]:
        """Lock an existing run; FileError if somebody else writes it, or has changed its configuration meanwhile."""
        with self.lock:
            if RunFolder.open(self.path).config != self.config:
                raise FileError(f"{self.path} was changed by another process meanwhile: give the command again")
            for part in self.path.glob(".*.part"):  # of a process that was killed
                part.unlink(missing_ok=True)
            self._delete_old_states()
            yield

    def configure(self, config: dict[str, Any]) -> None:
        """Replace the configuration."""
        self.check_lock()
        write_json(self.path / "config.json", config)
        self.config = config

    def check_lock(self) -> None:
        """Raise LostLock if another process has taken over the folder from this one."""
        if self.lock.acquired:
            self.lock.check()

    @contextmanager
    def _made_and_locked(self) -> Iterator[None]:
        while True:
            self.path.mkdir(parents=True, exist_ok=True)
            try:
                self.lock.acquire()
                break
            except FileNotFoundError:  # another process has failed to start here, and deleted the folder
                continue
        try:
            yield
        finally:
            self.lock.release()

    def _write_configuration(self) -> None:
        try:
            self._states.mkdir(exist_ok=True)
            self.predictions.mkdir(exist_ok=True)
            write_json(self.path / "config.json", self.config)
        except BaseException:
            with suppress(OSError):
                self._states.rmdir()
                self.predictions.rmdir()
            raise

    def _refuse_taken(self) -> None:
        if not self.path.exists() or is_unused(self.path):
            return
        if not self.lock.acquired:
            self.lock.refuse()
        is_run = (self.path / "config.json").exists()
        what = f"it is a run; --resume {self.path} continues it" if is_run else "it is not a run"
        raise FileError(f"{self.path} exists ({what}): choose another folder with --out")

    # ---- result ----------------------------------------------------------------------------------------------------

    @property
    def finished(self) -> bool:
        """Whether the run has finished. A finished run is not written again, unless it is extended."""
        return (self.path / "result.json").exists()

    def result(self) -> dict[str, Any]:
        """The result of a finished run."""
        result = read_json(self.path / "result.json")
        dev, shares = result.get("dev"), ("os", "ms", "overall")
        if (
            not isinstance(dev, dict)
            or not {*shares, "update", "phase"} <= dev.keys()
            or not all(isinstance(dev[name], float | int | None) for name in shares)
            or not isinstance(result.get("seconds"), float | int)
        ):
            raise FileError(f"{self.path / 'result.json'} is damaged: expected the dev accuracy and the seconds")
        return result

    # ---- metrics ---------------------------------------------------------------------------------------------------

    def log(self, values: dict[str, Any]) -> None:
        """Append one line to the metrics, with the time."""
        self.check_lock()
        line = values | {"time": round(time.time(), 1)}
        with self.metrics.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, separators=(",", ":")) + "\n")

    def logged_bytes(self) -> int:
        """The current length of the metrics, flushed to disk; resuming cuts them back to it."""
        if not self.metrics.exists():
            return 0
        with self.metrics.open("rb") as file:
            os.fsync(file.fileno())
            return os.fstat(file.fileno()).st_size

    def cut_metrics(self, size: int) -> None:
        """Cut the metrics to ``size`` bytes, their length when the resumed state was saved."""
        if self.metrics.exists():
            with self.metrics.open("r+b") as file:
                file.truncate(size)

    def read_metrics(self) -> list[dict[str, Any]]:
        """Return all lines of the metrics; an incomplete last line is left out."""
        if not self.metrics.exists():
            return []
        lines = self.metrics.read_text(encoding="utf-8").split("\n")
        return [self._line(number, line) for number, line in enumerate(lines[:-1], 1) if line]

    def _line(self, number: int, line: str) -> dict[str, Any]:
        try:
            values = json.loads(line)
        except (ValueError, RecursionError):
            values = None
        if not isinstance(values, dict):
            raise FileError(f"line {number} of {self.metrics} is damaged: it is not a JSON object")
        return values

    # ---- state -----------------------------------------------------------------------------------------------------

    def save_state(self, number: int, tensors: dict[str, Tensor], about: dict[str, Any]) -> None:
        """Write state ``number`` (numbers increase), then delete all but the last two."""
        data = to_bytes(tensors, json.dumps(about, sort_keys=True))
        self.check_lock()
        self._states.mkdir(exist_ok=True)
        write_whole(
            self._states / f"{number:012d}.safetensors", lambda beside: beside.write_bytes(data + _seal(data)), True
        )
        self._delete_old_states()

    def _delete_old_states(self) -> None:
        for old in (*self._state_files()[:-KEPT_STATES], *self._states.glob(".*.part")):
            old.unlink(missing_ok=True)

    def load_state(self) -> tuple[dict[str, Tensor], dict[str, Any], list[str]] | None:
        """Return the newest intact state and warnings about damaged ones; None if the run has no state yet."""
        complaints = []
        for file in reversed(self._state_files()):
            try:
                data = file.read_bytes()
                body, seal = data[:-SEAL], data[-SEAL:]
                if _seal(body) != seal:
                    raise FileError("its checksum does not match")
                about, tensors = from_bytes(body)
            except (FileError, OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
                complaints.append(f"{file} is damaged ({error}): going back to the state before it")
                continue
            return tensors, about, complaints
        if complaints:
            raise FileError(f"{self.path}: every state is damaged, so it cannot be resumed: {'; '.join(complaints)}")
        return None

    def _state_files(self) -> list[Path]:
        numbered = [file for file in self._states.glob("*.safetensors") if file.stem.isdecimal()]
        return sorted(numbered, key=lambda file: int(file.stem))


def is_unused(path: Path) -> bool:
    """Whether a folder holds at most empty folders, partial files and locks.

    A process that is killed before it has written the configuration leaves such a folder.
    """
    return path.is_dir() and not any(_matters(inner) for inner in path.rglob("*"))


def _matters(path: Path) -> bool:
    return not path.is_dir() and path.suffix != ".part" and not path.name.startswith(".lock.")


SEAL = 32
"""Bytes of the checksum at the end of a state file."""


def _seal(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def about_extensions(config: dict[str, Any]) -> str:
    """A sentence about the extensions of a run; empty if it has none."""
    found = config.get("extended")
    if not isinstance(found, list) or not found:
        return ""
    return ", ".join(f"extended from {one.get('from')} to {one.get('to')} updates" for one in found)
