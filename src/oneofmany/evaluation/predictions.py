"""The predictions file: a network's answers to a dataset in one safetensors file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import oneofmany
from oneofmany.evaluation.outcomes import DTYPES, OPTIONAL, Outcomes
from oneofmany.tensor_files import explained, read_sealed, sealed, write_tensors

FORMAT = 1
OTHERWISE = "holds no predictions"
ABOUT = ("data", "readout", "steps", "starts", "choose", "seed")
DATA = ("checksum", "task", "size", "queries", "name")


def save_predictions(path: str | Path, outcomes: Outcomes, about: dict[str, Any], *, force: bool = False) -> None:
    """Write the file whole; an existing one is replaced only with ``force``.

    Args:
        path: of the file.
        outcomes: the answers.
        about: how they were made, as JSON values: at least ``data`` (with checksum, task, size, queries and name),
            readout, steps, starts, choose and seed.
        force: replace an existing file.
    """
    _check_about(about, outcomes)
    tensors = {name: getattr(outcomes, name) for name in DTYPES if getattr(outcomes, name) is not None}
    header: dict[str, Any] = {"format": FORMAT, "version": oneofmany.__version__, "about": about}
    header["judged_by"] = outcomes.judged_by
    write_tensors(path, tensors, sealed(header, tensors), force=force)


def load_predictions(path: str | Path) -> tuple[Outcomes, dict[str, Any]]:
    """Read and check a file; return the outcomes and ``about``. A bad file raises FileError."""
    header, tensors = read_sealed(path, otherwise=OTHERWISE, newest=FORMAT, dtypes=DTYPES, optional=OPTIONAL)
    with explained(path, OTHERWISE):
        about = header["about"]
        outcomes = Outcomes(**tensors, judged_by=header.get("judged_by", "rules"))
        _check_about(about, outcomes)
    return outcomes, about


def _check_about(about: dict[str, Any], outcomes: Outcomes) -> None:
    missing = [name for name in ABOUT if name not in about] or [
        f"data.{name}" for name in DATA if name not in about["data"]
    ]
    if missing:
        raise ValueError(f"about: {', '.join(missing)} missing")
    if about["data"]["queries"] != len(outcomes):
        raise ValueError(f"about: it names {about['data']['queries']} queries, but there are {len(outcomes)} answers")
