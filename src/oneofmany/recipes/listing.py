"""The list of recipes as readable text."""

from __future__ import annotations

from oneofmany.recipes import matching, recipes
from oneofmany.training.settings import OBJECTIVES

GROUPS = {
    "table-2": "Table 2 of the paper, with the settings of our published numbers",
    "": "The paper's networks with its literal settings",
    "equivariant": "Our network: one or two minutes on one GPU",
    "equivariant-flags": "Our network, with inequalities as flags of cells instead of rules (an ablation)",
    "tiny": "Our network on small boards: a minute on a laptop",
}
"""Variant of a recipe -> its heading in the list."""
FOLDED = {
    "*/*/large-batch": "the paper's settings with batches eight times as large",
    "*/*/tuning/*": "the settings that were compared on dev for Table 2",
    "*/*/table-2/*": "controls of Table 2",
    "*/*/equivariant/*": "ablations and experiments with our network",
}
"""Pattern of recipes that the list only counts -> their description."""


def listing(pattern: str = "") -> str:
    """All recipes under headings, or the names that match a pattern or contain a text; ValueError if none does."""
    if pattern:
        names = matching(pattern) if "*" in pattern else [name for name in recipes() if pattern in name]
        if not names:
            raise ValueError(f"no recipe matches {pattern!r}: oneofmany train --recipes lists them")
        return "\n".join(names)
    lines = [f"OBJECTIVE is one of {', '.join(OBJECTIVES)}.", ""]
    for variant, title in GROUPS.items():
        lines += [title, *(f"  {line}" for line in _lines(variant)), ""]
    lines.append("Variations of these; to list them: oneofmany train --recipes PATTERN")
    width = max(map(len, FOLDED)) + 2
    lines += [f"  {one!r:{width}} {len(matching(one)):3} recipes: {text}" for one, text in FOLDED.items()]
    return "\n".join(lines)


def _lines(variant: str) -> list[str]:
    """The names of a variant; the names of all objectives are one line."""
    of_task: dict[str, list[str]] = {}
    for name in matching(f"*/*/{variant}".removesuffix("/")):
        of_task.setdefault(name.split("/")[0], []).append(name)
    lines = []
    for task, names in of_task.items():
        every = [f"{task}/{objective}/{variant}".removesuffix("/") for objective in OBJECTIVES]
        together = set(every) <= set(names)
        lines += [f"{task}/OBJECTIVE/{variant}".removesuffix("/")] if together else []
        lines += [name for name in names if not together or name not in every]
    return lines
