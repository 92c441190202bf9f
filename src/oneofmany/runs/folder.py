"""The run folder: configuration, metrics, weights, predictions, and the state that resuming needs. No pickle."""

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
"""A damaged state falls back to the one before."""


class RunFolder:
    """A run on disk. ``create`` makes a new one, ``open`` takes an existing one; nothing is ever half-written."""

    def __init__(self, path: Path, config: dict[str, Any]) -> None:
        self.path, self.config = path, config
        self.weights = path / "weights.safetensors"
        self.metrics = path / "metrics.jsonl"
        self.predictions = path / "predictions"
        self._states = path / "state"

    @classmethod
    def create(cls, path: str | Path, config: dict[str, Any]) -> RunFolder:
        """Make the folder and write its configuration; FileError where something stands there already."""
        path = Path(path)
        # Empty folders and a part of a file are what a kill leaves before the configuration is written.
        if path.exists() and (not path.is_dir() or any(_matters(inner) for inner in path.rglob("*"))):
            what = (
                f"it is a run, which --resume {path} continues" if (path / "config.json").exists() else "it is no run"
            )
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
        """How long the metrics are now, safe on the disk, to cut them back to on resuming."""
        if not self.metrics.exists():
            return 0
        with self.metrics.open("rb") as file:
            os.fsync(file.fileno())
            return os.fstat(file.fileno()).st_size

    def cut_metrics(self, size: int) -> None:
        """Forget what was logged after the state that is resumed."""
        if self.metrics.exists():
            with self.metrics.open("r+b") as file:
                file.truncate(size)

    def read_metrics(self) -> list[dict[str, Any]]:
        """All lines of the metrics; a last line that was cut off by a kill is left out."""
        if not self.metrics.exists():
            return []
        lines = self.metrics.read_text(encoding="utf-8").split("\n")
        return [json.loads(line) for line in lines[:-1] if line]

    # ---- state -----------------------------------------------------------------------------------------------------

    def save_state(self, number: int, tensors: dict[str, Tensor], about: dict[str, Any]) -> None:
        """Write state ``number`` (they rise), then forget all but the last two."""
        data = to_bytes(tensors, json.dumps(about, sort_keys=True))
        write_whole(
            self._states / f"{number:012d}.safetensors", lambda beside: beside.write_bytes(data + _seal(data)), True
        )
        for old in (*self._state_files()[:-KEPT_STATES], *self._states.glob(".*.part")):
            old.unlink(missing_ok=True)

    def load_state(self) -> tuple[dict[str, Tensor], dict[str, Any], list[str]] | None:
        """The newest state that is whole, with sentences about damaged ones; None where the run has none yet."""
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
            raise FileError(f"{self.path}: no state is whole, so it cannot be resumed: {'; '.join(complaints)}")
        return None

    def _state_files(self) -> list[Path]:
        return sorted(self._states.glob("*.safetensors"))


def _matters(path: Path) -> bool:
    return not path.is_dir() and path.suffix != ".part"


SEAL = 32
"""Bytes of the checksum that follows a state."""


def _seal(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()
