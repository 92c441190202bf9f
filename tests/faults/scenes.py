"""Commands that write something, how a user repeats them after a kill, and what it means that two results are equal."""

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oneofmany.runs.folder import SEAL
from oneofmany.runs.lock import owner_of
from oneofmany.tensor_files import HEADER
from small_runs import fields, files, small, write_data

CLOCK = {"seconds", "phase_seconds", "queries_per_second", "time"}
"""What may differ between equal results: times and speeds."""


@dataclass(frozen=True)
class Scene:
    """A command that writes below a folder.

    Args:
        name: of the scene.
        arguments: the command for a folder: the first time, and after a kill.
        done: whether the result is there already, which the command then refuses to replace.
        set_up: puts into the folder what the command needs.
    """

    name: str
    arguments: Callable[[Path], Sequence[object]]
    done: Callable[[Path], bool] = lambda folder: False
    set_up: Callable[[Path], object] = lambda folder: None


def all_scenes(data: Path) -> list[Scene]:
    """Trainings, sweeps and data builds on small data, which is written into the folder ``data``."""
    write_data(data)
    return [
        *(_training(data, objective) for objective in ("minloss", "selectr", "iexplr")),
        _sweep(data, "sweep", "minloss"),
        _sweep(data, "sweep of two", "minloss", "naive", jobs=2),
        _build("sudoku", "--size", 4, "--split", "train", "--queries", 40),
        _build("nqueens", "--size", 7, "--blanks", 5, "--queries", 200),
        _build("futoshiki", "--size", 4, "--blanks", 8, "--queries", 50, "--inequalities", 3),
        _build("futoshiki", "--size", 4, "--blanks", 8, "--queries", 50, "--inequalities", 3, "--force"),
    ]


def other_scenes(data: Path, run: Path) -> list[Scene]:
    """The other commands that write, with the small data and a run that is finished and evaluated."""
    dev = data / "sudoku-dev.safetensors"
    pairs = data / "pairs.jsonl"
    pairs.write_text('{"input": "2 . . .", "output": "2 4 1 3"}\n{"input": ". . 1 .", "output": "2 4 1 3"}\n')

    def copied(folder: Path) -> None:
        shutil.copytree(run, folder / "run")

    words = data / "words.jsonl"
    words.write_text('{"input": "hi", "output": "h ai"}\n{"input": "read", "output": "r e d"}\n')
    dictionary = data / "cmudict.dict"
    dictionary.write_text("read R EH1 D\nread(2) R IY1 D\nhi HH AY1\n")

    def writes(name: str, *arguments: object, to: str, again: str = "", by: str = "--out", **more: Any) -> Scene:
        """A command whose option ``by`` is this file; with ``again`` there is an old file of this content."""

        def set_up(folder: Path) -> None:
            if again:
                (folder / to).write_text(again)

        forced = ["--force"] if again else []
        own = {"set_up": set_up, "done": lambda folder: not forced and (folder / to).exists()} | more
        return Scene(name, lambda folder: [*arguments, by, folder / to, *forced], **own)

    built = ("data", "sudoku", "--size", 4, "--split", "train", "--queries", 40)
    return [
        writes("data sudoku", *built, to="data.safetensors"),
        writes("data sudoku --force", *built, to="data.safetensors", again="old"),
        writes("data import", "data", "import", pairs, "--task", "nqueens", to="data.safetensors"),
        writes("data import --force", "data", "import", pairs, "--task", "nqueens", to="data.safetensors", again="old"),
        writes("data export", "data", "export", dev, to="out.parquet"),
        writes("data export --force", "data", "export", dev, to="out.parquet", again="old"),
        writes("data import, sequences", "data", "import", words, "--form", "sequences", to="data.safetensors"),
        writes("data cmudict --force", "data", "cmudict", dictionary, to="data.safetensors", again="old"),
        writes("new-task", "new-task", "mine", to="mine.py"),
        writes("show --svg", "show", "nqueens", "2 . . .", to="board.svg", by="--svg"),
        writes("show --png --force", "show", "nqueens", "2 . . .", to="board.png", by="--png", again="old"),
        writes("show --settling", "show", "nqueens", "2 . . .", to="board.svg", by="--settling"),
        writes("plot --force", "plot", run, to="plot.svg", again="old"),
        writes("playground", "playground", to="playground.html"),
        writes("report --force", "report", run, to="report.html", again="old"),
        Scene("record", lambda folder: ["record", run, "--out", folder / "records", "--force", "--allow-dirty"]),
        Scene(
            "evaluate",
            lambda folder: ["evaluate", folder / "run", data / "sudoku.safetensors", "--device", "cpu"],
            set_up=copied,
        ),
    ]


def _training(data: Path, objective: str) -> Scene:
    settings = small(objective)
    train, dev = files(data, settings)
    fresh = [f"sudoku/{objective}/tiny", "--train", train, "--dev", dev, *fields(settings)]

    def arguments(folder: Path) -> list[object]:
        out = folder / "run"
        begun = (out / "config.json").exists()
        return ["train", "--resume", out] if begun else ["train", *fresh, "--out", out]

    return Scene(f"train {objective}", arguments)


def _sweep(data: Path, name: str, *objectives: str, jobs: int = 1) -> Scene:
    settings = small()
    train, dev = files(data, settings)
    recipes = [f"sudoku/{objective}/tiny" for objective in objectives]
    tiny = ["--first.updates", 4, "--first.batch", 4, "--network.width", 8, "--network.steps", 3, "--evaluate-every", 2]
    tiny += ["--log-every", 2, "--device", "cpu", "--threads", 1, "--checkpoint-minutes", 0]

    def arguments(folder: Path) -> list[object]:
        own = ["--seeds", 1, 2, "--jobs", jobs, "--evaluate", dev, "--records", folder / "records", "--allow-dirty"]
        return ["sweep", *recipes, "--train", train, "--dev", dev, "--out", folder / "runs", *own, *tiny]

    return Scene(name, arguments)


def _build(task: str, *options: object) -> Scene:
    forced = "--force" in options
    name = f"data {task}{' --force' if forced else ''}"

    def arguments(folder: Path) -> list[object]:
        return ["data", task, *options, "--out", folder / "data.safetensors"]

    return Scene(name, arguments, lambda folder: not forced and (folder / "data.safetensors").exists())


def content(folder: Path) -> dict[str, Any]:
    """Everything below a folder by file name, without ``CLOCK``, the logs of a sweep and what is left of processes."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix != ".log"]
    return {str(path.relative_to(folder)): _content(path, str(folder)) for path in files if not is_left(path)}


def is_left(path: Path) -> bool:
    """Whether a file is a lock or a temporary file."""
    return path.suffix == ".part" or ".lock." in path.name


def blocked(folder: Path) -> list[Path]:
    """The locks below a folder that block somebody, although no process is left."""
    locks = {path.with_suffix("") for path in folder.rglob(".*lock.*") if path.suffix != ".part"}
    return [lock for lock in locks if owner_of(lock) is not None]


def _content(path: Path, place: str) -> Any:
    raw = path.read_bytes()
    if path.suffix in (".html", ".parquet", ".svg", ".png") or raw == b"old":
        return raw
    if path.suffix == ".py":  # its example names the file
        return raw.replace(place.encode(), b"FOLDER")
    if path.suffix == ".safetensors":
        if path.name == "data.safetensors":
            return raw
        state = path.parent.name == "state"
        length = int.from_bytes(raw[:8], "little")
        header = json.loads(raw[8 : 8 + length])
        about = json.loads(header.pop("__metadata__")[HEADER])
        # Checksums cover the times, and the length of the metrics depends on their digits.
        about = _timeless(about, {"checksum", "metrics", "weights"} if path.parent.name != "run" else set(), place)
        return header, about, raw[8 + length : -SEAL if state else None]
    text = raw.decode()
    if path.suffix == ".jsonl":
        return [_timeless(json.loads(line), set(), place) for line in text.splitlines()]
    return _timeless(json.loads(text), {"weights"}, place)


def _timeless(value: Any, also: set[str], place: str) -> Any:
    """A JSON value without times, and with the same name for the folder of every try."""
    if isinstance(value, dict):
        return {k: _timeless(v, also, place) for k, v in value.items() if k not in CLOCK and k not in also}
    if isinstance(value, list):
        return [_timeless(one, also, place) for one in value]
    return value.replace(place, "FOLDER") if isinstance(value, str) else value
