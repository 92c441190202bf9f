"""``oneofmany compare``: two runs on the same queries, with the exact McNemar test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import tyro

from oneofmany.cli.evaluate import SUBSETS, print_table


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
    from oneofmany.evaluation import compare_runs

    compared = compare_runs(first, second, data, name=name)
    if as_json:
        print(json.dumps({"first": str(first), "second": str(second)} | compared.as_dict(), indent=2))
        return
    title = f"{data.stem}: {compared.data['queries']:,} queries\nfirst:  {first}\nsecond: {second}"
    found = compared.as_dict()
    counts = ("only_first", "only_second", "both", "neither")
    names = ["", "queries", "first", "second", *(name.replace("_", " ") for name in counts), "p"]
    table = [
        [text, one["first"]["total"], one["first"], one["second"], *(one[key] for key in counts), f"{one['p']:.3g}"]
        for text, one in ((text, found[subset]) for subset, text in SUBSETS.items())
    ]
    print_table(title, names, table)
