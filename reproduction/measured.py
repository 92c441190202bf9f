"""Minutes and accuracy of recipes for ``oneofmany train --recipes``: a small file in the package, made from records."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from oneofmany.evaluation.record import Record
from reproduction.experiments import GALLERY

FILE = Path("src") / "oneofmany" / "recipes" / "measured.json"


def measured_json(records: Iterable[Record]) -> str:
    """The content of the file: for every recipe the means over its seeds, one line each.

    The accuracy is that of the fresh test if all seeds were tested on it, otherwise that of the first test.
    """
    of_recipe: dict[str, dict[int, Record]] = defaultdict(dict)
    in_package = (one for one in records if not one.apart.startswith(GALLERY))
    for record in sorted(in_package, key=lambda one: bool(one.apart)):  # runs that count come before repeated ones
        if record.finished and record.seconds is not None:
            of_recipe[record.recipe].setdefault(record.seed, record)
    lines = (
        f"{json.dumps(name)}: {json.dumps(_means(list(seeds.values())))}" for name, seeds in sorted(of_recipe.items())
    )
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _means(runs: list[Record]) -> dict[str, Any]:
    found = [run.evaluations.get(f"{run.task}-fresh-test") for run in runs]
    if None in found:
        found = [run.evaluations.get(f"{run.task}-test") for run in runs]
    shares = [
        one.scores.overall.accuracy for one in found if one is not None and one.scores.overall.accuracy is not None
    ]
    return {
        "minutes": round(sum(run.seconds or 0.0 for run in runs) / len(runs) / 60, 1),
        "device": runs[0].device,
        "pretrained": any(run.settings.get("pretrained") for run in runs),
        "accuracy": round(100 * sum(shares) / len(shares), 2) if len(shares) == len(runs) else None,
        "seeds": len(runs),
    }
