"""The predictions file: what a network answered to a dataset, in one safetensors file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

import oneofmany
from oneofmany.data.dataset import HEADER
from oneofmany.evaluation.accuracy import DTYPES, OPTIONAL, Outcomes
from oneofmany.files import FileError, canonical_json, content_checksum, write_whole

FORMAT = 1
ABOUT = ("data", "readout", "steps", "starts", "choose", "seed")
DATA = ("checksum", "task", "size", "queries", "name")


def save_predictions(path: str | Path, outcomes: Outcomes, about: dict[str, Any], *, force: bool = False) -> None:
    """Write the file in one step; an existing one only with ``force``.

    Args:
        path: where.
        outcomes: what was answered.
        about: how, in terms of JSON: at least ``data`` (with checksum, task, size, queries and name), readout, steps,
            starts, choose and seed.
        force: replace an existing file.
    """
    _check_about(about, outcomes)
    tensors = {name: getattr(outcomes, name) for name in DTYPES if getattr(outcomes, name) is not None}
    header: dict[str, Any] = {"format": FORMAT, "version": oneofmany.__version__, "about": about}
    metadata = {HEADER: canonical_json(header | {"checksum": content_checksum(header, tensors)})}
    write_whole(path, lambda beside: beside.write_bytes(save(tensors, metadata)), force)


def load_predictions(path: str | Path) -> tuple[Outcomes, dict[str, Any]]:
    """Read and check a file: the outcomes and ``about``; FileError says in one sentence what is wrong with it."""
    path = Path(path)
    if not path.is_file():
        raise FileError(f"{path} is not a file")
    try:
        with safe_open(path, framework="numpy") as file:
            header = json.loads((file.metadata() or {})[HEADER])
            version = header["format"]
            if not isinstance(version, int) or version > FORMAT:
                raise FileError(
                    f"{path} has format version {version}, newer than {FORMAT}, which this version of oneofmany reads: "
                    "upgrade oneofmany"
                )
            tensors: dict[str, np.ndarray] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if not set(DTYPES) - set(OPTIONAL) <= set(tensors) <= set(DTYPES):
            raise ValueError(f"its tensors are not {', '.join(DTYPES)}")
        if any(tensor.dtype != DTYPES[name] for name, tensor in tensors.items()):
            raise ValueError("its tensors have other types")
        checksum = header.pop("checksum")
        if content_checksum(header, tensors) != checksum:
            raise FileError(f"{path} was altered or damaged: its content does not match its checksum")
        outcomes, about = Outcomes(**tensors), header["about"]
        _check_about(about, outcomes)
    except FileError:
        raise
    except (SafetensorError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise FileError(f"{path} is damaged or holds no predictions ({type(error).__name__}: {error})") from None
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}") from None
    return outcomes, about


def _check_about(about: dict[str, Any], outcomes: Outcomes) -> None:
    missing = [name for name in ABOUT if name not in about] or [
        f"data.{name}" for name in DATA if name not in about["data"]
    ]
    if missing:
        raise ValueError(f"about: {', '.join(missing)} missing")
    if about["data"]["queries"] != len(outcomes):
        raise ValueError(f"about: it tells of {about['data']['queries']} queries, but {len(outcomes)} were answered")
