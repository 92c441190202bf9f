"""The list of recipes, for people."""

from __future__ import annotations

from oneofmany.recipes import matching, recipes
from oneofmany.training.settings import OBJECTIVES

GROUPS = {
    "table-2": "Table 2 of the paper, with the settings that made our numbers",
    "": "The paper's network and literal settings",
    "equivariant": "Our network, one GPU for one or two minutes",
    "equivariant-flags": "Our network, with inequalities as flags of cells instead of rules",
    "tiny": "Our network on small boards, a minute on a laptop",
}
"""Variant of a recipe -> what the list says above it."""
FOLDED = {
    "*/*/large-batch": "the paper's settings in batches eight times as large",
    "*/*/tuning/*": "what was tried on dev for Table 2",
    "*/*/table-2/*": "controls of Table 2",
    "*/*/equivariant/*": "ablations and experiments with our network",
}
"""Pattern of the recipes that the list only counts -> what they are."""


def listing(pattern: str = "") -> str:
    """All recipes under headings, or the names that fit a pattern or contain a text; ValueError where none does."""
    if pattern:
        names = matching(pattern) if "*" in pattern else [name for name in recipes() if pattern in name]
        if not names:
            raise ValueError(f"no recipe fits {pattern!r}: oneofmany train --recipes lists them")
        return "\n".join(names)
    lines = [f"OBJECTIVE is one of {', '.join(OBJECTIVES)}.", ""]
    for variant, title in GROUPS.items():
        lines += [title, *(f"  {line}" for line in _lines(variant)), ""]
    lines.append("Variations, listed by oneofmany train --recipes PATTERN")
    width = max(map(len, FOLDED)) + 2
    lines += [f"  {one!r:{width}} {len(matching(one)):3} recipes: {text}" for one, text in FOLDED.items()]
    return "\n".join(lines)


def _lines(variant: str) -> list[str]:
    """The names of a variant, those of all objectives as one line."""
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
