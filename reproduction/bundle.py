"""Make the bundled networks, src/oneofmany/weights/NAME.safetensors, from finished runs, each with its card.

    python -m reproduction.bundle RUN RUN RUN --force    # one run per name; all are checked before a file is written
    python -m reproduction.bundle --markdown             # print their cards, as in docs/weights.md

The name is the task or, of recipes such as ``sudoku-hard/minloss/equivariant``, what comes before the objective; it is
what ``--weights NAME`` loads. Everything on a card comes from the run: its accuracies are those of the stored
predictions on ``*-test`` data. The same run gives the same bytes.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from safetensors import safe_open

from oneofmany.evaluation import DataInfo, Evaluation, Record, read_record
from oneofmany.files import FileError, check_writable, write_whole
from oneofmany.networks.saved import SavedNetwork, load_network, save_network
from oneofmany.problems import TASKS

WEIGHTS = Path(__file__).parents[1] / "src" / "oneofmany" / "weights"
LARGEST = 1_000_000
"""The largest file, in bytes, that may be bundled."""
CARD = (
    *("recipe", "objective", "seed", "command", "data", "dev", "accuracy"),
    *("hardware", "seconds", "updates", "version", "revision", "licence", "limits"),
)
"""The fields of every card."""

Card = dict[str, Any]


def card_of(record: Record, size: int) -> Card:
    """The card of a finished run's network.

    Args:
        record: of the run.
        size: of the training problems.
    """
    on_test = {key: one for key, one in record.evaluations.items() if key.endswith("-test")}
    if not record.finished:
        raise ValueError(f"{record.name} is not finished: continue it with oneofmany train --resume")
    if (data := f"{record.task}-fresh-test") not in on_test:
        raise ValueError(f"{record.name} has no predictions {data}: run `oneofmany evaluate` on that data first")
    return {
        "recipe": record.recipe,
        "objective": record.objective,
        "seed": record.seed,
        "command": re.sub(r" --data \S+ --out \S+$", "", record.command or ""),  # of the data and the run by name
        "data": {split: _data(about) for split, about in record.data.items()},
        "dev": None if record.dev is None else asdict(record.dev),
        "accuracy": {key: _accuracy(one) for key, one in on_test.items()},
        "hardware": record.environment["device"],
        "seconds": record.seconds,
        "updates": record.updates,
        "version": record.environment["version"],
        "revision": record.environment["revision"],
        "licence": "Apache-2.0",
        "limits": _limits(record.task, size, {one.data.size or size for one in on_test.values()}),
    }


def bundle(runs: list[Path], folder: Path = WEIGHTS, *, force: bool = False) -> list[Path]:
    """Write the weights of runs, one per name, into a folder; if one of them is refused, nothing is written."""
    files: dict[Path, bytes] = {}
    for run in runs:
        name, data = _file_of(run)
        path = check_writable(folder / f"{name}.safetensors", force)
        if path in files:
            raise ValueError(f"{run} is a second run of {name}: name one run of each")
        files[path] = data
    for path, data in files.items():
        write_whole(path, lambda beside, data=data: beside.write_bytes(data), force)
    return list(files)


def markdown(folder: Path = WEIGHTS) -> str:
    """The cards of all networks in a folder, one section each."""
    return "\n\n".join(_section(path) for path in sorted(folder.glob("*.safetensors"))) + "\n"


def _file_of(run: Path) -> tuple[str, bytes]:
    """The name and the bytes of a run's bundled file."""
    record = read_record(run)
    weights = run / "weights.safetensors"
    saved = load_network(weights)
    with safe_open(weights, framework="numpy") as file:
        options = json.loads(file.metadata()["oneofmany"])["options"]
    problem = TASKS[saved.task].problem(saved.size, **options)
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / weights.name
        save_network(path, saved.network, saved.settings, problem, card_of(record, saved.size))
        data = path.read_bytes()
    if len(data) > LARGEST:
        raise ValueError(f"{run}: its network takes {len(data):,} bytes, and at most {LARGEST:,} may ship")
    kind = record.recipe.partition("/")[0]
    return kind if kind.startswith(f"{saved.task}-") else saved.task, data


def _data(about: DataInfo) -> dict[str, Any]:
    return {"name": about.name, "checksum": about.checksum, "queries": about.queries}


def _accuracy(evaluation: Evaluation) -> dict[str, Any]:
    """The scores of an evaluation, and its data."""
    data = _data(evaluation.data) | {"size": evaluation.data.size}
    return {"data": data, "steps": evaluation.steps, **asdict(evaluation.scores)}


def _limits(task: str, size: int, measured: set[int]) -> list[str]:
    others = ", ".join(map(str, sorted(measured - {size})))
    falls = f"what falls off at size {others} is in the accuracies" if others else "no other size was measured"
    return [
        "The network does not check its answers; `oneofmany solve` does, and the enumerator replaces wrong ones.",
        f"Trained on {task} of size {size} alone: {falls}.",
        "Measured on the data that the accuracies name; other queries, such as with fewer givens, may be harder.",
    ]


def _section(path: Path) -> str:
    saved = load_network(path)
    card = saved.card
    if missing := [key for key in CARD if key not in card]:
        raise FileError(f"{path} has an incomplete card (no {', '.join(missing)}): make it again from its run")
    tests = [f"{saved.task}-test", f"{saved.task}-fresh-test"]
    order = sorted(
        card["accuracy"].items(),
        key=lambda item: (-tests.index(item[0]) if item[0] in tests else 1, item[1]["data"]["size"], item[0]),
    )
    rows = [["data", "size", "queries", "OS", "MS", "overall"], ["---"] * 6]
    for name, one in order:
        about = one["data"]
        scores = (_percent(one[key]) for key in ("os", "ms", "overall"))
        rows.append([f"`{name}`", str(about["size"]), f"{about['queries']:,}", *scores])
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    limits = "\n".join(f"* {sentence}" for sentence in card["limits"])
    return f"### {path.stem}\n\n{_about(saved, path.stat().st_size)}\n\n{table}\n\n{limits}"


def _about(saved: SavedNetwork, size: int) -> str:
    card, parameters = saved.card, sum(one.numel() for one in saved.network.parameters())
    train, dev = (card["data"][split] for split in ("train", "dev"))
    return (
        f"Network `{saved.settings.kind}`: {parameters:,} parameters, {size / 1000:.0f} kB, {card['licence']}.\n"
        f"Recipe `{card['recipe']}`, seed {card['seed']}: {card['seconds']:.0f} seconds on one {card['hardware']}.\n"
        f"Trained on {saved.task} of size {saved.size}: {train['queries']:,} queries (`{train['name']}`, "
        f"`{train['checksum'][:19]}…`); chosen on {dev['queries']:,} others (`{dev['name']}`), of which "
        f"{100 * card['dev']['overall']:.2f} % got a solution.\n\n"
        f"```text\n{card['command']}\n```"
    )


def _percent(score: dict[str, int]) -> str:
    correct, total = score["correct"], score["total"]
    return f"{100 * correct / total:.2f} ({correct:,} of {total:,})" if total else "–"


def main(arguments: list[str] | None = None) -> int:
    """Write files or print cards; return 2, with one sentence on stderr, if something is refused."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("runs", nargs="*", type=Path, metavar="RUN", help="finished run folders, one per name")
    parser.add_argument("--out", type=Path, default=WEIGHTS, help="folder for the files (default: the package's)")
    parser.add_argument("--force", action="store_true", help="overwrite existing files")
    parser.add_argument("--markdown", action="store_true", help="print the cards of the folder")
    asked = parser.parse_args(arguments)
    if not asked.runs and not asked.markdown:
        parser.error("name at least one run, or ask for --markdown")
    try:
        for path in bundle(asked.runs, asked.out, force=asked.force):
            print(path, file=sys.stderr)
        if asked.markdown:
            print(markdown(asked.out), end="")
    except ValueError as error:
        print(f"bundle: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
