"""The run folder: configuration, metrics, weights, predictions, and the state for resuming. No pickle."""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from torch import Tensor

from oneofmany.files import FileError, read_json, write_json, write_whole
from oneofmany.tensor_files import from_bytes, to_bytes

FORMAT = 1
KEPT_STATES = 2
"""If the newest state is damaged, the one before it is used."""


class RunFolder:
    """A run on disk. ``create`` makes a new one, ``open`` opens an existing one. Files are written whole."""

    def __init__(self, path: Path, config: dict[str, Any]) -> None:
        self.path, self.config = path, config
        self.weights = path / "weights.safetensors"
        self.metrics = path / "metrics.jsonl"
        self.predictions = path / "predictions"
        self._states = path / "state"

    @classmethod
    def create(cls, path: str | Path, config: dict[str, Any]) -> RunFolder:
        """Make the folder and write its configuration; FileError if the path is in use."""
        path = Path(path)
        # Ignore empty folders and partial files: a process killed before it writes the configuration leaves them.
        if path.exists() and (not path.is_dir() or any(_matters(inner) for inner in path.rglob("*"))):
            is_run = (path / "config.json").exists()
            what = f"it is a run; --resume {path} continues it" if is_run else "it is not a run"
            raise FileError(f"{path} exists ({what}): choose another folder with --out")
        (path / "state").mkdir(parents=True, exist_ok=True)
        (path / "predictions").mkdir(exist_ok=True)
        write_json(path / "config.json", {"format": FORMAT, **config})
        return cls(path, {"format": FORMAT, **config})

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

    # ---- metrics ---------------------------------------------------------------------------------------------------

    def log(self, values: dict[str, Any]) -> None:
        """Append one line to the metrics, with the time."""
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
        return [json.loads(line) for line in lines[:-1] if line]

    # ---- state -----------------------------------------------------------------------------------------------------

    def save_state(self, number: int, tensors: dict[str, Tensor], about: dict[str, Any]) -> None:
        """Write state ``number`` (numbers increase), then delete all but the last two."""
        data = to_bytes(tensors, json.dumps(about, sort_keys=True))
        write_whole(
            self._states / f"{number:012d}.safetensors", lambda beside: beside.write_bytes(data + _seal(data)), True
        )
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
            except (FileError, OSError, SafetensorError, KeyError, ValueError) as error:
                complaints.append(f"{file} is damaged ({error}): going back to the state before it")
                continue
            return tensors, about, complaints
        if complaints:
            raise FileError(f"{self.path}: every state is damaged, so it cannot be resumed: {'; '.join(complaints)}")
        return None

    def _state_files(self) -> list[Path]:
        return sorted(self._states.glob("*.safetensors"))


def _matters(path: Path) -> bool:
    return not path.is_dir() and path.suffix != ".part"


SEAL = 32
"""Bytes of the checksum at the end of a state file."""


def _seal(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()
