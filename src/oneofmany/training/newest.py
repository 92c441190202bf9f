"""The newest metrics of a run that another process trains."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

TRAINING = {"phase", "update", "loss", "queries_per_second"}
"""What every line of training has."""


class Metrics:
    """The newest metrics of a run, read from its growing metrics.jsonl."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read = 0
        self._newest: dict[str, Any] = {}

    def newest(self) -> dict[str, Any]:
        """The newest value of every metric of training and dev; empty before the first whole line of training."""
        try:
            size = self.path.stat().st_size
            if size < self._read:  # a resumed run cuts the lines after its state
                self._read, self._newest = 0, {}
            if size > self._read:
                with self.path.open("rb") as file:
                    file.seek(self._read)
                    whole = file.read().rpartition(b"\n")[0]
                self._read += len(whole) + 1 if whole else 0
                for line in whole.splitlines():
                    with suppress(ValueError, RecursionError):
                        values = json.loads(line)
                        self._newest |= values if _is_line(values) else {}
        except FileNotFoundError:
            self._newest = {}
        return self._newest if self._newest.keys() >= TRAINING else {}


def _is_line(line: Any) -> bool:
    """Whether it is a line of training or dev whose metrics have the right types."""
    if not isinstance(line, dict) or line.get("kind") not in ("train", "dev"):
        return False
    if line["kind"] == "train" and not line.keys() >= TRAINING:
        return False
    kinds = {"kind": str, "phase": str, "update": int, "loss": float | int, "queries_per_second": float | int}
    return all(isinstance(value, kinds.get(name, float | int | None)) for name, value in line.items())
