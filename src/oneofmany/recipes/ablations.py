"""Controls of Table 2, and ablations of our network: recipes with a few fields or the data changed.

``TASK/OBJECTIVE/table-2/CHANGE`` changes a recipe of Table 2, ``TASK/OBJECTIVE/equivariant/CHANGE`` and
``sudoku/OBJECTIVE/equivariant-checker/CHANGE`` one of our network.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from oneofmany.recipes.base import Recipe, usual
from oneofmany.recipes.ours import equivariant, with_checker
from oneofmany.recipes.paper import TASKS
from oneofmany.recipes.table_2 import starting_from, table_2
from oneofmany.training.settings import TWO_PHASES, ObjectiveName


def second_phases() -> list[Recipe]:
    """Second phases from MinLoss, on N-Queens also from Unique, with the budget of SelectR's second phase.

    ``second-phase`` starts from MinLoss, ``second-phase-from-unique`` from Unique.
    """
    found = []
    for task in TASKS:
        starts: tuple[ObjectiveName, ...] = ("minloss", "unique") if task == "nqueens" else ("minloss",)
        objectives: tuple[ObjectiveName, ...] = ("minloss", "ccloss")
        objectives += TWO_PHASES if task == "nqueens" else ()
        second = table_2(task, "selectr").second
        for start, objective in product(starts, objectives):
            settings = starting_from(replace(table_2(task, objective), second=second), table_2(task, start))
            found.append(usual(settings).changed("second-phase" if start == "minloss" else "second-phase-from-unique"))
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
    nqueens, futoshiki = (usual(equivariant(task, "minloss")) for task in ("nqueens", "futoshiki"))
    checker = usual(with_checker("minloss"))
    return [
        nqueens.changed("no-burn-in", {"burn_in": (0,)}),
        futoshiki.changed("revealing", {"reveal": 0.5}),
        checker.changed("listed-1", {"listed": 1}),
        checker.changed("listed-2", {"listed": 2}),
        checker.changed("listed-all", train="sudoku-all-train"),
        checker.changed("split-by-puzzle", train="sudoku-puzzle-train", dev="sudoku-puzzle-dev"),
        *(
            nqueens.changed(
                f"completion-{size}{by}",
                {"follow_noise": 3.0, "first.updates": updates, "evaluate_every": updates // 10},
                train=f"nqueens-completion-{size}{by}-train",
                dev=f"nqueens-completion-{size}{by}-dev",
            )
            for size, updates in ((8, 4_000), (10, 8_000))
            for by in ("", "-by-class")
        ),
    ]


def ablation_recipes() -> list[Recipe]:
    """All controls, ablations and experiments."""
    return [*second_phases(), *controls(), *experiments()]
