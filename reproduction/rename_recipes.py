"""Records from before version 0.1.0 get the recipes that made them, and the data sets' new names.

    python reproduction/rename_recipes.py reproduction/records src/oneofmany/weights

Below a folder of records (paper/, ours/, experiments/), every .json file gets the name of the recipe whose settings it
has, and short commands; what made it is kept under ``made_by``. Every .safetensors file, a bundled network, gets a card
with the new names; its tensors stay the same bytes. Nothing is written unless all files can be; a second call changes
nothing.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from oneofmany.data.benchmark import BENCHMARK, SIZES, former_name
from oneofmany.files import write_whole
from oneofmany.recipes import data_of, matching, recipes
from oneofmany.recipes.comparing import departures

RENAMED = {former_name(name): name for name in (*BENCHMARK, *SIZES) if former_name(name) != name}
"""Former name of a data set -> its name."""
REMOVED = {"starts": 1, "start_temperature": 0.0}
"""Settings that are gone -> the value that every record has."""
PARTS = {
    "nqueens/naive-authors": ("nqueens/naive", "naive-authors"),
    "sudoku/unique-os-dev": ("sudoku/unique", "os-dev"),
    "sudoku/unique-180k": ("sudoku/unique", "180k"),
    "sudoku/unique-180k-os-dev": ("sudoku/unique", "180k-os-dev"),
}
"""Recipes of controls -> the recipe of Table 2 that they change, and the change."""
FUTOSHIKI_UNIQUE = "futoshiki/unique/tuning/decay=1e-4"
"""Futoshiki's second phases that start from Unique were made when Table 2's Unique was this one."""


def converted(record: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The record with its names and commands changed.

    Args:
        record: what the file holds.
        folder: the file's, relative to that of all records: ``paper/tuning/decay=0``.
    """
    if "made_by" in record:
        return record
    settings = {name: value for name, value in record["settings"].items() if name not in REMOVED}
    for name, usual in REMOVED.items():
        if record["settings"].get(name, usual) != usual:
            raise ValueError(f"settings.{name}: expected {usual}, got {record['settings'][name]}")
    seed = record["seed"]
    settings["pretrained"] = [f"runs/{_start(path, seed)}/{seed}" for path in settings["pretrained"]]
    name = _name(folder.parts, record["recipe"], settings)
    data = {part: about | {"name": _data(about["name"])} for part, about in record["data"].items()}
    if tuple(data[part]["name"] for part in ("train", "dev")) != data_of(name):
        raise ValueError(f"data: expected {' and '.join(data_of(name))} of {name}")
    new = record | {
        "name": f"{name}/{seed}",
        "recipe": name,
        "settings": settings | {"recipe": name},
        "command": f"oneofmany train {name} --seed {seed}",
        "made_by": record["command"],
        "data": data,
        "evaluations": {_data(key): _evaluation(one, name, seed) for key, one in record["evaluations"].items()},
    }
    order = [*record]
    order.insert(order.index("command") + 1, "made_by")
    return {key: new[key] for key in order}


def _name(folder: tuple[str, ...], recipe: str, settings: dict[str, Any]) -> str:
    """The first of the names that the folder suggests whose recipe has the record's settings."""
    match folder:
        case ("ours",) | ("paper", "literal") | ("experiments", "repeated"):
            names = [recipe]
        case ("experiments", experiment):
            names = [f"{recipe}/{experiment}"]
        case ("paper",) | ("paper", "controls", "repeated"):
            names = [f"{recipe}/table-2"]
        case ("paper", "tuning", point):
            names = [f"{recipe}/tuning/{point}"]
        case ("paper", "controls", control):
            base, change = PARTS.get(recipe, (recipe, control))
            names = [f"{base}/table-2/{change}", *matching(f"{base}/tuning/*"), base]
        case _:
            raise ValueError(f"{'/'.join(folder)}: expected paper, ours or experiments, and what they hold")
    fitting = [name for name in names if name in recipes() and not departures(settings | {"recipe": name})]
    if not fitting:
        raise ValueError(f"no recipe of {', '.join(names)} has its settings")
    return fitting[0]


def _start(path: str, seed: int) -> str:
    """The recipe of the run that a second phase started from: ``runs/paper/TASK/OBJECTIVE/SEED``."""
    start = path.removeprefix("runs/paper/").removesuffix(f"/{seed}")
    return FUTOSHIKI_UNIQUE if start == "futoshiki/unique" else f"{start}/table-2"


def _evaluation(evaluation: dict[str, Any], recipe: str, seed: int) -> dict[str, Any]:
    about, made_by = evaluation["data"], evaluation["command"]
    found = re.fullmatch(r"oneofmany evaluate \S+ data/([\w-]+)\.safetensors(.*)", made_by)
    if found is None:
        raise ValueError(f"expected oneofmany evaluate RUN DATA, got {made_by!r}")
    command = f"oneofmany evaluate runs/{recipe}/{seed} data/{_data(found[1])}.safetensors{found[2]}"
    changed = {"data": about | {"name": _data(about["name"])}, "command": command, "made_by": made_by}
    return evaluation | changed


def _data(name: str) -> str:
    return RENAMED.get(name, name)


def record_bytes(record: dict[str, Any]) -> bytes:
    """A record as its file holds it, one line for each of its parts."""
    parts = (f" {json.dumps(key)}: {json.dumps(value, allow_nan=False)}" for key, value in record.items())
    return ("{\n" + ",\n".join(parts) + "\n}\n").encode()


def with_new_card(data: bytes) -> bytes:
    """A network's file with the card's data sets and command renamed, and the same tensors."""
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    about = json.loads(header["__metadata__"]["oneofmany"])
    card = about["card"]
    card["accuracy"] = {
        _data(name): one | {"data": one["data"] | {"name": _data(one["data"]["name"])}}
        for name, one in card["accuracy"].items()
    }
    card["command"] = f"oneofmany train {card['recipe']} --seed {card['seed']}"
    header["__metadata__"]["oneofmany"] = json.dumps(about, sort_keys=True, separators=(",", ":"), allow_nan=False)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + data[start:]


def main(folders: list[str]) -> int:
    """Convert all files below the folders; 2 and one sentence on stderr where one of them cannot be."""
    files: dict[Path, bytes] = {}
    for folder in map(Path, folders):
        for path in sorted((*folder.rglob("*.json"), *folder.rglob("*.safetensors"))):
            before = path.read_bytes()
            try:
                after = (
                    record_bytes(converted(json.loads(before), path.parent.relative_to(folder)))
                    if path.suffix == ".json"
                    else with_new_card(before)
                )
            except (KeyError, ValueError) as error:
                print(f"{path}: {error}", file=sys.stderr)
                return 2
            if after != before:
                files[path] = after
    for path, after in files.items():
        write_whole(path, lambda beside, after=after: beside.write_bytes(after), force=True)
    print(f"{len(files)} files changed", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
