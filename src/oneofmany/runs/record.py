"""The record: what a run was and what came of it, in one JSON object, which is all that a report reads."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from oneofmany.files import FileError, write_whole
from oneofmany.runs.folder import RunFolder, read_json

FORMAT = 1
HEADER = "oneofmany"
KINDS = {
    "name": str,
    "recipe": str,
    "task": str,
    "objective": str,
    "network": str,
    "seed": int,
    "settings": dict,
    "command": str,
    "environment": dict,
    "data": dict,
    "finished": bool,
    "history": dict,
    "evaluations": dict,
}
"""What every record has, beside its format; ``dev``, ``seconds`` and ``updates`` are None before a run has them."""
HISTORY = (
    "phase",
    "update",
    "seconds",
    "time",
    "loss",
    "dev_os",
    "dev_ms",
    "dev_overall",
    "lr",
    "exploratory_ms_loss",
    "exploratory_all_loss",
    "exploratory_ms_hamming",
    "exploratory_all_hamming",
)
DEV = ("os", "ms", "overall", "update", "phase")


def record_of(folder: RunFolder) -> dict[str, Any]:
    """The record of a run, finished or not; FileError in one sentence where the folder is damaged.

    Nothing in it tells where on a machine files lay.
    """
    try:
        return _record(folder)
    except FileError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError, SafetensorError) as error:
        raise FileError(f"{folder.path} is damaged or no run ({type(error).__name__}: {error})") from None


def read_record(path: str | Path) -> dict[str, Any]:
    """The record of a run folder, or in a .json file; FileError says in one sentence what is wrong with it."""
    path = Path(path)
    if path.is_dir():
        return record_of(RunFolder.open(path))
    if path.suffix != ".json" or not path.is_file():
        raise FileError(f"{path} is neither a run folder nor a record (.json)")
    record = read_json(path)
    version = record.get("format")
    if isinstance(version, int) and version > FORMAT:
        raise FileError(f"{path} has format version {version}, newer than {FORMAT}: upgrade oneofmany")
    wrong = [key for key, kind in KINDS.items() if not isinstance(record.get(key), kind)]
    if not isinstance(version, int) or wrong:
        raise FileError(f"{path} is no record of a run or damaged: no proper {', '.join(wrong) or 'format'}")
    return record


def save_record(record: dict[str, Any], path: str | Path, force: bool = False) -> None:
    """Write a record, one line for each of its parts; an existing file only with ``force``."""
    parts = (f" {json.dumps(key)}: {json.dumps(value, allow_nan=False)}" for key, value in record.items())
    text = "{\n" + ",\n".join(parts) + "\n}\n"
    write_whole(path, lambda beside: beside.write_text(text, encoding="utf-8"), force)


def valid_bits(evaluation: dict[str, Any]) -> np.ndarray:
    """bool [Q] of a record's evaluation: which queries one trajectory answered with a solution."""
    packed = np.frombuffer(base64.b64decode(evaluation["valid"], validate=True), np.uint8)
    queries = evaluation["data"]["queries"]
    if len(packed) != -(-queries // 8):
        raise ValueError(f"valid: expected {queries} bits, got {8 * len(packed)}")
    return np.unpackbits(packed, count=queries).astype(bool)


def decode(text: str) -> np.ndarray:
    """int32 [Q] of an evaluation's ``total`` or ``givens``."""
    return np.frombuffer(zlib.decompress(base64.b64decode(text, validate=True)), "<i4")


def encode(numbers: np.ndarray) -> str:
    """What ``decode`` reads: the numbers as little-endian int32, compressed, in base64."""
    return _text(zlib.compress(numbers.astype("<i4").tobytes()))


def checksum_of(path: str | Path) -> str:
    """The checksum of a file's bytes, by which predictions name the weights that made them."""
    with Path(path).open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def _record(folder: RunFolder) -> dict[str, Any]:
    config, lines = folder.config, folder.read_metrics()
    settings = dict(config["settings"])
    settings["pretrained"] = [_without_places(path) for path in settings.get("pretrained", ())]
    # A run without a recipe must not pass for one of the paper's, whose names have two parts.
    recipe = settings["recipe"] or f"{settings['task']}/{settings['objective']}/own"
    result = _result(folder, lines)
    on_dev = [line for line in lines if line["kind"] == "dev"]
    weights = checksum_of(folder.weights) if folder.weights.is_file() else None
    predictions = sorted(folder.predictions.glob("*.safetensors"), key=lambda path: path.stem)
    return {
        "format": FORMAT,
        "name": f"{recipe}/{settings['seed']}",
        "recipe": recipe,
        "task": settings["task"],
        "objective": settings["objective"],
        "network": settings["network"]["kind"],
        "seed": settings["seed"],
        "settings": settings,
        "command": _without_places(config["command"]),
        "environment": config["environment"],
        "data": {
            name: {key: value for key, value in about.items() if key != "path"}
            for name, about in config["data"].items()
        },
        "seconds": result["seconds"],
        "updates": result["updates"],
        "finished": result["finished"],
        "dev": None if result["dev"] is None else {key: result["dev"][key] for key in DEV},
        "history": {key: [line.get(key) for line in on_dev] for key in HISTORY},
        "evaluations": {path.stem: _evaluation(path, weights) for path in predictions},
    }


def _result(folder: RunFolder, lines: list[dict[str, Any]]) -> dict[str, Any]:
    """What result.json says, or what is known of a run that has none yet."""
    if (folder.path / "result.json").is_file():
        return read_json(folder.path / "result.json")
    dev = None
    if folder.weights.is_file():
        with safe_open(folder.weights, framework="numpy") as file:
            dev = json.loads(file.metadata()[HEADER])["card"]["dev"]
    reached = {line["phase"]: line["update"] for line in lines if "update" in line}
    seconds = lines[-1]["seconds"] if lines else 0.0
    return {"dev": dev, "seconds": seconds, "updates": sum(reached.values()), "finished": False}


def _evaluation(path: Path, weights: str | None) -> dict[str, Any]:
    """One entry of ``evaluations`` from a predictions file, whose header has the summary already."""
    try:
        with safe_open(path, framework="numpy") as file:
            about = json.loads(file.metadata()[HEADER])["about"]
            valid, total, givens = (file.get_tensor(name) for name in ("valid", "total", "givens"))
        summary = about.pop("summary")
        made_with, command = about["weights"], about["command"]
        about["command"] = _without_places(command)
        queries, correct = about["data"]["queries"], summary["overall"]["correct"]
        if not len(valid) == len(total) == len(givens) == queries or valid.sum() != correct:
            raise ValueError("its parts do not fit together")
    except (KeyError, TypeError, AttributeError, ValueError, SafetensorError) as error:
        raise FileError(
            f"{path} is damaged or was not made by `oneofmany evaluate` ({type(error).__name__}: {error}): delete it, "
            "or evaluate again with --force"
        ) from None
    if weights not in (None, made_with):
        raise FileError(
            f"{path} was made with other weights than the run has now: evaluate again with `{command} --force`, or "
            "delete it"
        )
    arrays = {"valid": _text(np.packbits(valid).tobytes()), "total": encode(total), "givens": encode(givens)}
    return summary | about | arrays


def _without_places(command: str) -> str:
    """A command with the names of files in place of their absolute paths, which only one machine has."""
    return re.sub(r"""(?<![^\s='"])/[^\s'"]*/(?=[^\s'"])""", "", command)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
