"""Recipes of our network for graph colouring.

``colouring/OBJECTIVE/equivariant`` trains on the benchmark's graphs of 16 and 32 nodes with 3 colours, with the same
short budget for all objectives, ``.../5-colours`` on those with 5 colours. ``colouring/OBJECTIVE/equivariant-checker``
also learns from valid answers that are not listed, and ``colouring/OBJECTIVE/tiny`` takes about a minute on two CPU
cores. ``colouring/rules/equivariant`` is the baseline that has the rules instead of listed solutions, so nothing is
revealed. ``.../long[-5-colours]`` train on graphs of up to 64 nodes with the longer trajectories of hard Sudokus, and
choose on graphs of all sizes; with the checker, a local search mends the network's answers (``repair``). None of them
was tuned on a GPU; ``repair`` and ``reveal`` were chosen with a few small runs on dev.
``colouring/minloss/equivariant-checker/one-core[-5-colours]`` do so with a small network and short trajectories, in
10 and 20 minutes on one CPU core. Their settings were chosen with such runs on dev. ``.../wide-small[-5-colours]`` are
the same for a GPU: a wider network and more training. ``.../wide-medium[-5-colours]`` train on graphs of up to 64 nodes
instead of 32, ``.../wide-late[-5-colours]`` on these from later states too.
"""

from __future__ import annotations

from typing import Any

from oneofmany.recipes.base import Recipe
from oneofmany.recipes.hard import LONGER
from oneofmany.recipes.ours import ours, small
from oneofmany.training.settings import CHOOSING, OBJECTIVES, ObjectiveName, Settings

TASK = "colouring"
UPDATES = 3_000
MOVES = 100
"""Moves of the local search that mends answers."""


def equivariant(objective: ObjectiveName, *, checker: bool = False) -> Settings:
    """Our network on graphs, with the settings of Sudoku, whose data also lists only some of the solutions."""
    partial = not checker and objective in CHOOSING
    return ours(
        TASK,
        objective,
        UPDATES,
        recipe=f"{TASK}/{objective}/equivariant{'-checker' * checker}",
        reveal=0.0 if objective == "rules" else 0.5 if checker else 0.8,
        discover=checker,
        spare_settled=partial,
    )


def _with_data(settings: Settings, colours: int, sizes: str) -> Recipe:
    return Recipe(settings, f"{TASK}-{colours}{sizes}-train", f"{TASK}-{colours}{sizes}-dev")


def _longer(settings: Settings) -> dict[str, Any]:
    """Longer trajectories, on larger graphs in smaller batches."""
    # As for hard Sudokus, fewer queries are made easier; none where a colouring near the answer is known.
    fields = LONGER | {"first.batch": 128, "second.batch": 128, "evaluate_every": UPDATES // 3}
    return fields | ({"repair": MOVES, "reveal": 0.0} if settings.discover else {"reveal": 0.3})


ONE_CORE = {
    "network.width": 32,
    "network.test_steps": 1024,
    "first.updates": 2_400,
    "first.batch": 64,
    "first.warmup": 100,
    "ema": 0.99,
    "reveal": 0.0,
    "repair": MOVES,
    "evaluate_every": 1_200,
}
"""A small network, short trajectories in training, and small batches, for one core of a CPU."""

WIDE = ONE_CORE | {
    "network.width": 64,
    "first.updates": 6_000,
    "first.batch": 256,
    "first.warmup": 300,
    "ema": 0.999,
    "evaluate_every": 1_500,
}
"""The same with the usual width, four times as many queries in a batch and more batches, for a GPU."""
WITH_REPAIR: dict[str, tuple[str, dict[str, Any]]] = {
    "one-core": ("-small", ONE_CORE),
    "wide-small": ("-small", WIDE),
    "wide-medium": ("-medium", WIDE),
    "wide-late": ("-medium", WIDE | {"burn_in": LONGER["burn_in"]}),
}
"""Change -> the graphs that MinLoss with the checker trains on, and the fields that differ."""


def graph_recipes() -> list[Recipe]:
    """All recipes for graph colouring."""
    found = []
    every = [equivariant(objective) for objective in (*OBJECTIVES, "rules")]
    every += [equivariant(objective, checker=True) for objective in CHOOSING]
    for settings in every:
        usual = _with_data(settings, 3, "-small")
        found += [usual, usual.changed("5-colours", train=f"{TASK}-5-small-train", dev=f"{TASK}-5-small-dev")]
        if settings.objective in CHOOSING:
            for colours, suffix in ((3, ""), (5, "-5-colours")):
                train, dev = f"{TASK}-{colours}-medium-train", f"{TASK}-{colours}-dev"
                found.append(usual.changed(f"long{suffix}", _longer(settings), train=train, dev=dev))
                if settings.discover and settings.objective == "minloss":
                    for change, (sizes, fields) in WITH_REPAIR.items():
                        train, dev = f"{TASK}-{colours}{sizes}-train", f"{TASK}-{colours}-medium-dev"
                        found.append(usual.changed(f"{change}{suffix}", fields, train=train, dev=dev))
    tiny = [small(TASK, objective, 400, f"{TASK}/{objective}/tiny") for objective in OBJECTIVES]
    return found + [Recipe(settings, f"{TASK}-tiny-train", f"{TASK}-tiny-dev") for settings in tiny]
