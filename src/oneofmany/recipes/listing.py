"""The list of recipes as readable text: network, needs, minutes and accuracy of each, as far as they were measured."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from oneofmany.problems import find_task
from oneofmany.recipes import matching, recipes
from oneofmany.recipes.graphs import TASK as GRAPHS
from oneofmany.recipes.paper import TASKS

GROUPS = {
    "tiny": "Our network on small boards: a minute on a laptop",
    "equivariant": "Our network",
    "equivariant-checker": "Our network on Sudoku and graphs, trained with the rules checker",
    "equivariant-flags": "Our network, with inequalities as flags of cells, not rules (an ablation)",
    "transformer": "A recurrent Transformer that is given no rules",
    "table-2": "Table 2 of the paper, with the settings of our published numbers",
    "": "The paper's networks with its literal settings",
}
"""Variant of a recipe -> its heading in the list."""
OWN_DATA = {
    "pairs/*": "The Transformer on your own fill-in data (--train FILE --dev FILE)",
    "sequences/*": "An encoder-decoder on your own sequences (--train FILE --dev FILE)",
    "sequences/*/ctc": "CTC on your own sequences (--train FILE --dev FILE)",
}
"""Pattern of recipes for imported data -> their heading in the list."""
FOLDED = {
    "*/*/large-batch": "the paper's, with larger batches",
    "*/*/tuning/*": "settings compared on dev for Table 2",
    "*/*/table-2/*": "controls of Table 2",
    "*/*/equivariant/*": "experiments with our network",
    "*/*/equivariant-checker/*": "experiments with the checker",
    "*/*/transformer/*": "Transformers that know symmetries",
    "sequences/*/*cmudict*": "an encoder-decoder on CMUdict",
    "sequences/*/ctc/*cmudict*": "CTC on CMUdict",
    "nqueens/*/small*": "small boards, with and without rules",
    "sequences/*/small*": "words with several sounds",
}
"""Pattern of recipes that the list only counts -> their description."""
MEASURED = Path(__file__).with_name("measured.json")
"""Made from the published records by `make results`."""
WIDTH = 43
"""Columns of the name; a longer name has a line of its own."""


@dataclass(frozen=True)
class Measured:
    """What the published runs of a recipe took and reached, as means over seeds.

    Args:
        minutes: of training on the device.
        device: the device.
        pretrained: whether the runs started from another run, whose minutes come on top.
        accuracy: share of test queries with a valid answer, in percent; None if it was not measured.
        seeds: the number of runs.
    """

    minutes: float
    device: str
    pretrained: bool
    accuracy: float | None
    seeds: int


@cache
def measured() -> dict[str, Measured]:
    """What was measured, by recipe."""
    return {name: Measured(**values) for name, values in json.loads(MEASURED.read_text(encoding="utf-8")).items()}


def line_of(name: str) -> str:
    """One line about a recipe: name, network, what it needs, minutes and accuracy; two lines if the name is long."""
    settings, found = recipes()[name], measured().get(name)
    small = any(part.startswith(("tiny", "small")) for part in name.split("/"))
    small = small or (settings.task not in (*TASKS, GRAPHS) and "cmudict" not in name)
    needs = ("CPU" if small else "GPU") + (" *" if settings.discover else "")
    minutes = "- " if found is None else f"{found.minutes:.1f}{'+' if found.pretrained else ' '}"
    accuracy = "-" if found is None or found.accuracy is None else f"{found.accuracy:.2f}"
    shown = name if len(name) <= WIDTH else f"{name}\n{'':<{WIDTH}}"
    return f"{shown:<{WIDTH}} {settings.network.kind:<11} {needs:<5} {minutes:>7} {accuracy:>8}"


def listing(*words: str) -> str:
    """All recipes under headings, or those that match all words; ValueError if none does.

    A word is a part of the name or the network, or a pattern with ``*``, which matches any part between two slashes.
    """
    title = f"{'recipe':<{WIDTH}} {'network':<11} {'needs':<5} {'minutes':>7} {'accuracy':>8}"
    for word in words:
        find_task(word.partition("/")[0])  # it may be one of an installed package
    if words:
        names = [name for name, own in recipes().items() if all(_fits(word, name, own.network.kind) for word in words)]
        if not names:
            raise ValueError(f"no recipe matches {' '.join(words)!r}: oneofmany train --recipes lists them")
        return "\n".join([title, *map(line_of, names), "", *_notes(names)])
    lines = [title]
    shown: list[str] = []
    for variant, heading in GROUPS.items():
        names = _names(variant)
        lines += ["", heading, *map(line_of, names)]
        shown += names
    for pattern, heading in OWN_DATA.items():
        lines += ["", heading, *map(line_of, matching(pattern))]
    lines += ["", "Variations of these; to list them: oneofmany train --recipes WORD"]
    width = max(map(len, FOLDED)) + 2
    lines += [f"  {one!r:{width}} {len(matching(one)):3} recipes: {text}" for one, text in FOLDED.items()]
    return "\n".join([*lines, "", *_notes(shown)])


def _names(variant: str) -> list[str]:
    own = {name for pattern in OWN_DATA for name in matching(pattern)}
    return [name for name in matching(f"*/*/{variant}".removesuffix("/")) if name not in own]


def _fits(word: str, name: str, network: str) -> bool:
    return name in matching(word) if "*" in word else word in name or word == network


def _notes(names: Sequence[str]) -> list[str]:
    """How to read the columns."""
    found = [measured()[name] for name in names if name in measured()]
    notes = ["needs: GPU: a CPU is much slower; CPU: a laptop is enough."]
    if any(recipes()[name].discover for name in names):
        notes.append("*: training also needs the rules: it checks the answers of the network.")
    if found:
        devices = " or ".join(dict.fromkeys(one.device for one in found))
        notes.append(f"minutes: of training on one {devices}; -: not measured.")
    if any(one.pretrained for one in found):
        notes.append("+: the runs started from MinLoss or Unique runs, whose minutes come on top.")
    if any(one.accuracy is not None for one in found):
        notes.append("accuracy: % of test queries answered validly, mean over seeds; -: not measured.")
    return notes
