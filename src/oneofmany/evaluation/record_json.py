"""Convert records to JSON and back. All checks of a record's JSON are here."""

from __future__ import annotations

import base64
import binascii
import math
import zlib
from dataclasses import asdict, fields
from functools import cache
from typing import Any, TypeVar, get_type_hints

import numpy as np

from oneofmany.evaluation.record import SUBSETS, DataInfo, Dev, Evaluation, History, Record, Scores
from oneofmany.evaluation.scores import JUDGED, Score
from oneofmany.files import FileError

FORMAT = 2
"""Version 1 also stored shares, intervals and scores by number of solutions and givens, which are now computed."""
OPTIONAL = ("made_by", "extended", "task_file")
"""Fields that are left out of the file if they are empty."""
MOST = 2**63
"""Whole numbers of a record are smaller."""
T = TypeVar("T")


def to_json(record: Record) -> dict[str, Any]:
    """Return a record as the JSON object of its file."""
    left_out = {"apart", "flat"} | {name for name in OPTIONAL if not getattr(record, name)}
    plain = {one.name: getattr(record, one.name) for one in fields(Record) if one.name not in left_out}
    return {"format": FORMAT} | plain | {
        "data": {name: _known(asdict(about)) for name, about in record.data.items()},
        "dev": None if record.dev is None else _dev_json(record.dev),
        "history": {name: list(values) for name, values in asdict(record.history).items()},
        "evaluations": {name: _evaluation_json(one) for name, one in record.evaluations.items()},
    }  # fmt: skip


def from_json(value: Any, where: str) -> Record:
    """Read and check the record in a JSON value; FileError, which begins with ``where``, if it is not a record."""
    if not isinstance(value, dict):
        raise FileError(f"{where} is not the record of a run: expected a JSON object")
    version = value.get("format")
    if isinstance(version, int) and version > FORMAT:
        raise FileError(f"{where} has format version {version}, newer than {FORMAT}: upgrade oneofmany")
    try:
        if not isinstance(version, int):
            raise ValueError("format: expected a version number")
        return build(
            Record,
            value,
            data={name: build(DataInfo, about) for name, about in _object(value, "data").items()},
            dev=None if value.get("dev") is None else build(Dev, value["dev"]),
            history=history_of(_object(value, "history")),
            evaluations={name: _evaluation(name, one) for name, one in _object(value, "evaluations").items()},
            apart="",
        )
    except (ValueError, TypeError, RecursionError, zlib.error) as error:
        raise FileError(f"{where} is not the record of a run or is damaged: {error}") from None


def build(kind: type[T], value: Any, **made: Any) -> T:
    """Build a dataclass from a JSON object: check and copy the fields not in ``made``; a missing one is None."""
    if not isinstance(value, dict):
        raise ValueError(f"{kind.__name__}: expected a JSON object, got {type(value).__name__}")
    for name, hint in _hints(kind).items():
        if name not in made:
            one = value.get(name)
            if not isinstance(one, hint) or (isinstance(one, bool) and hint is not bool):
                raise ValueError(f"{name}: expected {getattr(hint, '__name__', hint)}, got {type(one).__name__}")
            if not _is_usual(one):
                raise ValueError(f"{name}: expected a finite number below 2^63")
            made[name] = one
    return kind(**made)


def _is_usual(value: Any) -> bool:
    """Whether it is no number, or one to compute with: finite, and not a whole number of hundreds of digits."""
    return abs(value) < MOST if isinstance(value, int) else not isinstance(value, float) or math.isfinite(value)


@cache
def _hints(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {one.name: hints[one.name] for one in fields(kind) if one.init}


def _object(value: dict[str, Any], name: str) -> dict[str, Any]:
    if not isinstance(value.get(name), dict):
        raise ValueError(f"{name}: expected a JSON object, got {type(value.get(name)).__name__}")
    return value[name]


def history_of(value: dict[str, Any]) -> History:
    """Build the history from columns of equal length; a missing column is all None."""
    names = [one.name for one in fields(History)]
    found = {name: tuple(value[name]) for name in names if isinstance(value.get(name), list)}
    count = len(found.get("update", ()))
    found = {name: found.get(name, (None,) * count) for name in names}
    kinds = {"phase": str, "update": int}
    for name, column in found.items():
        kind = kinds.get(name, float | int | None)
        if len(column) != count or not all(isinstance(one, kind) and _is_usual(one) for one in column):
            raise ValueError(f"history.{name}: expected {count} entries of the right type")
    return History(**found)


def _evaluation(name: str, value: Any) -> Evaluation:
    try:
        data, splits = build(DataInfo, _object(value, "data")), {}
        for way in ("chosen", "checked"):
            splits[way] = None if value.get(way) is None else _scores(value[way])
        if (judge := value.get("judged_by", "rules")) not in JUDGED:
            raise ValueError(f"judged_by: expected {' or '.join(JUDGED)}, got {judge!r}")
        made = {"judged_by": judge, "data": data, "scores": _scores(value), "listed": build(Score, value.get("listed"))}
        # The bits come first: they show that the file is large enough for the queries that it names.
        valid = _bits(value.get("valid"), data.queries)
        counts = ("total", "givens") if value.get("distinct") is None else ("total", "givens", "distinct")
        arrays = {"distinct": None} | {key: _numbers(value.get(key), data.queries) for key in counts}
        return build(Evaluation, value, name=name, valid=valid, **made, **splits, **arrays)
    except (ValueError, TypeError, AttributeError, OverflowError, zlib.error) as error:
        raise ValueError(f"evaluation {name!r} is inconsistent ({error})") from None


def _scores(value: dict[str, Any]) -> Scores:
    return Scores(*(build(Score, value.get(subset)) for subset in SUBSETS))


def _evaluation_json(evaluation: Evaluation) -> dict[str, Any]:
    unused = [one for one in ("made_by", "distinct", "error_rate") if getattr(evaluation, one) is None]
    left_out = {"name", "scores", *unused}
    left_out |= {"judged_by"} if evaluation.judged_by == "rules" else set()
    plain = {one.name: getattr(evaluation, one.name) for one in fields(Evaluation) if one.name not in left_out}
    ways = {way: None if (one := getattr(evaluation, way)) is None else asdict(one) for way in ("chosen", "checked")}
    counts = [name for name in ("total", "givens", "distinct") if name in plain]
    arrays = {name: _text(zlib.compress(plain[name].astype("<i4").tobytes())) for name in counts}
    arrays["valid"] = _text(np.packbits(evaluation.valid).tobytes())
    about = {"data": _known(asdict(evaluation.data)), "listed": asdict(evaluation.listed)}
    return asdict(evaluation.scores) | plain | ways | about | arrays


def _dev_json(dev: Dev) -> dict[str, Any]:
    # Files of earlier versions do not name a judge.
    return {name: value for name, value in asdict(dev).items() if name != "judged_by" or value is not None}


def _known(about: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in about.items() if value is not None}


def _bits(text: Any, queries: int) -> np.ndarray:
    packed = np.frombuffer(_bytes(text), np.uint8)
    if len(packed) != -(-queries // 8):
        raise ValueError(f"valid: expected {queries} bits, got {8 * len(packed)}")
    return np.unpackbits(packed, count=queries).astype(bool)


def _numbers(text: Any, queries: int) -> np.ndarray:
    # Unpack at most what the queries need: a small file can expand to gigabytes.
    unpack = zlib.decompressobj()
    data = unpack.decompress(_bytes(text), max(4 * queries, 1))
    if len(data) != 4 * queries or not unpack.eof:
        raise ValueError(f"expected {queries} numbers")
    return np.frombuffer(data, "<i4")


def _bytes(text: Any) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, TypeError) as error:
        raise ValueError(f"expected base64 ({error})") from None


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
