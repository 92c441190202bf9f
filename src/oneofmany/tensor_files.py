"""Tensors with a JSON header in a safetensors file: the format of datasets, networks, predictions and states."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
from safetensors import SafetensorError, safe_open

from oneofmany.files import FileError, canonical_json, write_whole

HEADER = "oneofmany"
"""The metadata key of the header."""

PIECE = 2**24
"""Bytes of an opened tensor that are read together, at most."""

Header = dict[str, Any]


def write_tensors(path: str | Path, tensors: Mapping[str, Any], header: Header, *, force: bool = False) -> None:
    """Write tensors (all of NumPy or all of PyTorch) in one step; an existing file is replaced only with ``force``."""
    # Python writes the file, because the library's errors do not show whether the disk is full.
    write_whole(path, lambda beside: beside.write_bytes(to_bytes(tensors, canonical_json(header))), force)


def read_tensors(
    path: str | Path, *, otherwise: str, newest: int, framework: Literal["numpy", "pt"]
) -> tuple[Header, dict[str, Any]]:
    """Read the header and the tensors of a file; raises FileError with one sentence if something is wrong with it.

    A checksum is compared if the header has one; weights of version 0.1 have none.

    Args:
        path: the file.
        otherwise: what else than damaged an unreadable file may be, such as "not a dataset".
        newest: the newest format version that can be read.
        framework: the library of the returned tensors.
    """
    path = Path(path)
    if not path.is_file():
        raise FileError(f"{path} is not a file")
    # Python opens the file too: safetensors calls a file missing that may not be read.
    with explained(path, otherwise), path.open("rb"), safe_open(path, framework=framework) as file:
        header = _header_of(file, path, newest)
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
        if "checksum" in header:
            check_content(path, header, tensors)
        return header, tensors


@contextmanager
def opened(path: str | Path, *, otherwise: str, newest: int) -> Iterator[tuple[Header, dict[str, Any]]]:
    """Open a file without reading its tensors, of which ``[first:last]`` reads some rows; errors are FileErrors."""
    path = Path(path)
    if not path.is_file():
        raise FileError(f"{path} is not a file")
    with explained(path, otherwise), path.open("rb"), safe_open(path, framework="numpy") as file:
        yield _header_of(file, path, newest), {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118


def check_content(path: str | Path, header: Header, tensors: Mapping[str, Any]) -> None:
    """Raise FileError if the tensors of a file, read or only opened, do not match the checksum of its header."""
    about = {key: value for key, value in header.items() if key != "checksum"}
    if sealed(about, tensors)["checksum"] != header["checksum"]:
        raise FileError(f"{path} was altered or damaged: its content does not match its checksum")


def _header_of(file: Any, path: Path, newest: int) -> Header:
    header = json.loads((file.metadata() or {})[HEADER])
    version = header["format"]
    if not isinstance(version, int):
        raise ValueError(f"its format version is {version!r}")
    if version > newest:
        raise FileError(f"{path} has format version {version}, newer than {newest}: upgrade oneofmany")
    return header


def read_header(path: str | Path, *, otherwise: str) -> Header:
    """Read the header of a file only; raises FileError with one sentence if something is wrong with it."""
    path = Path(path)
    if not path.is_file():
        raise FileError(f"{path} is not a file")
    with explained(path, otherwise), path.open("rb"), safe_open(path, framework="numpy") as file:
        header = json.loads((file.metadata() or {})[HEADER])
        if not isinstance(header, dict):
            raise ValueError("its header is not an object")
        return header


def read_sealed(
    path: str | Path, *, otherwise: str, newest: int, dtypes: Mapping[str, type], optional: Sequence[str] = ()
) -> tuple[Header, dict[str, np.ndarray]]:
    """Read a file with a ``sealed`` header and arrays of these names and dtypes; ``optional`` ones may be missing."""
    header, tensors = read_tensors(path, otherwise=otherwise, newest=newest, framework="numpy")
    with explained(path, otherwise):
        if not set(dtypes) - set(optional) <= set(tensors) <= set(dtypes):
            raise ValueError(f"its tensors are not {', '.join(dtypes)}")
        if any(tensor.dtype != dtypes[name] for name, tensor in tensors.items()):
            raise ValueError("its tensors have other types")
        header["checksum"]  # compared above; it must be there
    return header, tensors


def sealed(header: Header, tensors: Mapping[str, Any]) -> Header:
    """Return the header with its checksum: the sha256 of the header and of the shapes and bytes of the tensors.

    The same values have the same checksum as arrays of NumPy, as tensors of PyTorch and as tensors of an opened file,
    which are read piece by piece.
    """
    digest = hashlib.sha256(canonical_json(header).encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        if hasattr(tensor, "shape"):
            shape, pieces = list(tensor.shape), [tensor]
        else:
            shape = tensor.get_shape()
            step = max(1, PIECE // max(1, 8 * math.prod(shape[1:])))
            pieces = (tensor[first : min(first + step, shape[0])] for first in range(0, shape[0], step))
        digest.update(f"{name}{shape}".encode())
        for piece in pieces:
            digest.update(_bytes_of(piece))
    return header | {"checksum": f"sha256:{digest.hexdigest()}"}


def _bytes_of(tensor: Any) -> bytes:
    if not isinstance(tensor, np.ndarray):
        import torch

        # NumPy has no bfloat16, so the bytes are taken from PyTorch.
        tensor = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
    return tensor.tobytes()


@contextmanager
def explained(path: str | Path, otherwise: str) -> Iterator[None]:
    """Turn every error that the content of a file raises into a FileError of one sentence."""
    try:
        yield
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}") from None
    except (
        SafetensorError,
        LookupError,
        TypeError,
        AttributeError,
        ValueError,
        ArithmeticError,
        RuntimeError,
    ) as error:
        sentence = next(iter(str(error).splitlines()), "")
        # Our own ValueErrors are sentences; other errors are hard to understand without their type.
        why = f": {sentence}" if type(error) is ValueError else f" ({type(error).__name__}: {sentence})"
        raise FileError(f"{path} is damaged or {otherwise}{why}") from None


def to_bytes(tensors: Mapping[str, Any], header: str) -> bytes:
    """Return the content of a file with this text as its header."""
    if all(isinstance(tensor, np.ndarray) for tensor in tensors.values()):
        from safetensors.numpy import save

        return save(dict(tensors), {HEADER: header})
    from safetensors.torch import save

    return save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, {HEADER: header})


def from_bytes(content: bytes) -> tuple[Header, dict[str, Any]]:
    """Return the header and the PyTorch tensors of a file's content; raises any error if it is damaged."""
    from safetensors.torch import load

    length = int.from_bytes(content[:8], "little")
    return json.loads(json.loads(content[8 : 8 + length])["__metadata__"][HEADER]), load(content)
