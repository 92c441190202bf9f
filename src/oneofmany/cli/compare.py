"""``oneofmany compare``: two runs on the same queries, with the exact McNemar test."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import tyro

from oneofmany.cli.evaluate import SUBSETS, print_table
from oneofmany.files import FileError

if TYPE_CHECKING:
    from oneofmany.data import Dataset


def compare(
    first: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")],
    second: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")],
    data: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DATA")],
    *,
    name: str | None = None,
    as_json: Annotated[bool, tyro.conf.arg(name="json")] = False,
) -> None:
    """Compare two runs on the same queries, with the exact McNemar test.

    Example: oneofmany compare runs/nqueens/selectr/42 runs/nqueens/minloss/42 data/nqueens-test.safetensors

    Both runs must have been evaluated on the data before. What counts is one trajectory, the first start. p is the
    two-sided probability of counts as uneven as these, or more so, if both runs were equally good.

    Args:
        first: a run folder or a record (.json).
        second: another one.
        data: the data file.
        name: of the kept predictions; the data file's by default.
        as_json: print JSON.
    """
    from oneofmany.data import Dataset
    from oneofmany.evaluation import Score, mcnemar

    dataset = Dataset.load(data)
    pair = [_valid(run, data, dataset, name or data.stem) for run in (first, second)]
    rows = {"os": ~dataset.multiple, "ms": dataset.multiple, "overall": np.ones(len(dataset), bool)}
    found: dict[str, Any] = {}
    for subset, chosen in rows.items():
        ours, theirs = (valid[chosen] for valid in pair)
        scores = (Score(int(valid.sum()), len(valid)).as_dict() for valid in (ours, theirs))
        both = {"both": int((ours & theirs).sum()), "neither": int((~ours & ~theirs).sum())}
        found[subset] = dict(zip(("first", "second"), scores, strict=True)) | asdict(mcnemar(ours, theirs)) | both
    if as_json:
        about = {"name": data.stem, "checksum": dataset.header()["checksum"], "queries": len(dataset)}
        print(json.dumps({"first": str(first), "second": str(second), "data": about} | found, indent=2))
        return
    title = f"{data.stem}: {len(dataset):,} queries\nfirst:  {first}\nsecond: {second}"
    counts = ("only_first", "only_second", "both", "neither")
    names = ["", "queries", "first", "second", *(name.replace("_", " ") for name in counts), "p"]
    table = [
        [text, one["first"]["total"], one["first"], one["second"], *(one[key] for key in counts), f"{one['p']:.3g}"]
        for text, one in ((text, found[subset]) for subset, text in SUBSETS.items())
    ]
    print_table(title, names, table)


def _valid(run: Path, data: Path, dataset: Dataset, name: str) -> np.ndarray:
    """bool [Q]: which queries a run answered with a solution, from the predictions that it keeps."""
    from oneofmany.evaluation import read_record

    evaluations = read_record(run).evaluations
    if name not in evaluations:
        others = f" (but on {', '.join(evaluations)})" if evaluations else ""
        command = ["oneofmany", "evaluate", str(run), str(data), *([] if name == data.stem else ["--name", name])]
        raise FileError(f"{run} has no predictions on {name}{others}: make them with `{shlex.join(command)}`")
    there, here = evaluations[name].data, dataset.header()["checksum"]
    if there.checksum != here:
        raise FileError(
            f"{run} was evaluated on other data ({there.name}, {there.checksum}) than {data} ({here}): use the "
            "same data, or evaluate again with --force"
        )
    return evaluations[name].valid
