"""Controls of Table 2, and ablations of our network: recipes with a few fields or the data changed.

``TASK/OBJECTIVE/table-2/CHANGE`` changes a recipe of Table 2, ``TASK/OBJECTIVE/equivariant/CHANGE`` one of our network.
"""

from __future__ import annotations

from dataclasses import replace

from oneofmany.recipes.base import Recipe, usual
from oneofmany.recipes.ours import equivariant
from oneofmany.recipes.paper import TASKS
from oneofmany.recipes.table_2 import starting_from, table_2


def second_phases() -> list[Recipe]:
    """Second phases of MinLoss and CC-Loss that start from MinLoss and have the budget of SelectR's second phase."""
    found = []
    for task in TASKS:
        start, second = table_2(task, "minloss"), table_2(task, "selectr").second
        for objective in ("minloss", "ccloss"):
            settings = replace(table_2(task, objective), second=second)
            found.append(usual(starting_from(settings, start)).changed("second-phase"))
    return found


def controls() -> list[Recipe]:
    """Controls of Table 2: other settings and other data, compared with it on the page about the paper."""
    queens = {objective: usual(table_2("nqueens", objective)) for objective in ("naive", "ccloss", "minloss")}
    unique, iexplr, selectr = (usual(table_2("sudoku", objective)) for objective in ("unique", "iexplr", "selectr"))
    from_unique = replace(iexplr, settings=starting_from(iexplr.settings, unique.settings))
    return [
        queens["minloss"].changed("float32", {"precision": "float32"}),
        queens["minloss"].changed("learned-numbers", {"network.latent": 16}),
        # The share of MS queries and the weight decay that were best for seed 42 alone.
        queens["ccloss"].changed("learned-numbers", {"network.latent": 16, "first.sampling": 0.5}),
        queens["naive"].changed("naive-authors", {"first.sampling": "pairs-padded", "decay": 1e-4}),
        unique.changed("os-dev", {"select_on": "os"}),
        unique.changed("180k", train="sudoku-os-train"),
        unique.changed("180k-os-dev", {"select_on": "os"}, train="sudoku-os-train"),
        from_unique.changed("unique-start"),
        selectr.changed("authors-selector", {"selector.kind": "cnn-authors"}),
    ]


def experiments() -> list[Recipe]:
    """Ablations and experiments with our network."""
    nqueens, futoshiki, sudoku = (usual(equivariant(task, "minloss")) for task in TASKS)
    return [
        nqueens.changed("no-burn-in", {"burn_in": (0,)}),
        futoshiki.changed("revealing", {"reveal": 0.5}),
        sudoku.changed(
            "no-checker",
            {"discover": False, "spare_settled": True, "reveal": 0.8, "first.updates": 9_000, "evaluate_every": 900},
        ),
        sudoku.changed("listed-1", {"listed": 1}),
        sudoku.changed("listed-2", {"listed": 2}),
        sudoku.changed("listed-all", train="sudoku-all-train"),
        sudoku.changed("split-by-puzzle", train="sudoku-puzzle-train", dev="sudoku-puzzle-dev"),
    ]


def ablation_recipes() -> list[Recipe]:
    """All controls, ablations and experiments."""
    return [*second_phases(), *controls(), *experiments()]
