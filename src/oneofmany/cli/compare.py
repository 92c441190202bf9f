"""``oneofmany compare``: two runs on the same queries, with the exact McNemar test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import tyro

from oneofmany.cli.evaluate import SUBSETS, print_table
from oneofmany.cli.options import Json, option
from oneofmany.evaluation.scores import judged


def compare(
    first: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")],
    second: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")],
    data: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DATA")],
    *,
    name: Annotated[str | None, option("NAME", "the name of the data file")] = None,
    as_json: Json = False,
) -> None:
    """Compare two runs on the same queries, with the exact McNemar test.

    Example: oneofmany compare runs/nqueens/selectr/42 runs/nqueens/minloss/42 data/nqueens-test.safetensors

    Evaluate both runs on the data first, with `oneofmany evaluate`. Only the first start of a query counts. p is the
    two-sided probability of counts at least this unequal if both runs were equally good.

    Args:
        first: the first run: a run folder or a record (.json).
        second: the second run.
        data: the data file.
        name: name of the saved predictions.
        as_json: print JSON.
    """
    from oneofmany.evaluation import compare_runs, p_text

    compared = compare_runs(first, second, data, name=name)
    if as_json:
        print(json.dumps({"first": str(first), "second": str(second)} | compared.as_dict(), indent=2))
        return
    correct = judged(compared.data["judged_by"])
    title = f"{data.stem}: {compared.data['queries']:,} queries; correct: {correct}\nfirst:  {first}\nsecond: {second}"
    found = compared.as_dict()
    counts = ("only_first", "only_second", "both", "neither")
    names = ["", "queries", "first", "second", *(name.replace("_", " ") for name in counts), "p"]
    table = [
        [text, one["first"]["total"], one["first"], one["second"], *(one[key] for key in counts), p_text(one["p"])]
        for text, one in ((text, found[subset]) for subset, text in SUBSETS.items())
    ]
    print_table(title, names, table)
