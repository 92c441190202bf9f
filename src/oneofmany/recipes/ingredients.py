"""What each ingredient of our results gives: recipes at equal, short budgets, on Sudoku and N-Queens.

None of the values here were tuned for these budgets, except where a recipe of ``ours`` or ``table_2`` has them. In
particular the length of ``alike``'s phases and everything that a network takes over from another network's recipe are
untuned. Recipes that several comparisons need are shared: ``sudoku/minloss/equivariant/short-reveal-burn-in-sparing``
is our Sudoku recipe with fewer updates.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from oneofmany.recipes.base import Recipe, changed, usual
from oneofmany.recipes.ours import equivariant, with_checker
from oneofmany.recipes.table_2 import table_2
from oneofmany.training.settings import OBJECTIVES, TWO_PHASES, ObjectiveName, Settings

SHORT = {"nqueens": 2_000, "sudoku": 3_000}
"""Task -> updates of a short run."""
ALIKE, ALIKE_FIRST = 4_000, 1_500
"""Updates of ``alike``, and those of its pre-training if the objective has two phases."""
SHORT_RECIPE = "sudoku/minloss/equivariant/short-reveal-burn-in-sparing"
"""Our Sudoku recipe with fewer updates."""
SHORT_CHECKER = "sudoku/minloss/equivariant-checker/short-reveal-burn-in"
"""The same with the checker instead of sparing."""
NETWORK_OBJECTIVES: tuple[ObjectiveName, ...] = ("minloss", "selectr")


def factorial() -> list[Recipe]:
    """Checker x revealed cells x burn-in on Sudoku with MinLoss, at an equal, short budget.

    ``short-reveal-burn-in`` has both of the last two, ``short`` neither. With ``-sparing``, settled queries are left
    out of burn-in, which takes the place of the checker.
    """
    without, checker = usual(equivariant("sudoku", "minloss")), usual(with_checker("minloss"))
    found = []
    for reveal, burn_in in product((0.0, 0.8), ((0,), (0, 16, 32))):
        name = "short" + "-reveal" * (reveal > 0) + "-burn-in" * (burn_in != (0,))
        fields = _budget("sudoku") | {"reveal": reveal, "burn_in": burn_in}
        found += [without.changed(name, fields | {"spare_settled": False}), checker.changed(name, fields)]
        if burn_in != (0,):
            found.append(without.changed(f"{name}-sparing", fields))
    return found


def listed_solutions() -> list[Recipe]:
    """At most 1 or 2 listed solutions, or all, with and without the checker; with 5: the two ``SHORT`` recipes."""
    fields = _budget("sudoku") | {"reveal": 0.8}
    found = []
    for base in (usual(equivariant("sudoku", "minloss")), usual(with_checker("minloss"))):
        found += [base.changed(f"short-listed-{count}", fields | {"listed": count}) for count in (1, 2)]
        found.append(base.changed("short-listed-all", fields, train="sudoku-all-train"))
    return found


def alike() -> list[Recipe]:
    """All objectives on Sudoku without the checker, with equal numbers of updates, pre-trainings included.

    Objectives with two phases continue from MinLoss (``alike-start``) for most of their updates. So does MinLoss in
    ``alike-two-phases``, which tells a second phase from its objective. How the updates are divided was not tuned.
    """
    whole = {"first.updates": ALIKE, "evaluate_every": ALIKE // 16}
    parts = whole | {"first.updates": ALIKE_FIRST, "second.updates": ALIKE - ALIKE_FIRST, "pretraining": "minloss"}
    found = [
        usual(equivariant("sudoku", objective)).changed("alike", parts if objective in TWO_PHASES else whole)
        for objective in OBJECTIVES
    ]
    minloss = usual(equivariant("sudoku", "minloss"))
    second = {"second": equivariant("sudoku", "selectr").second}
    return [
        *found,
        minloss.changed("alike-start", whole | {"first.updates": ALIKE_FIRST}),
        replace(minloss, settings=changed(minloss.settings, second)).changed("alike-two-phases", parts),
    ]


def network_recipes() -> list[Recipe]:
    """Network x recipe with MinLoss and SelectR: the paper's networks under ours, our network under the paper's.

    ``TASK/OBJECTIVE/table-2/our-recipe``, ``TASK/OBJECTIVE/equivariant/paper-schedule``, and our network under our
    recipe with the same number of updates, ``TASK/OBJECTIVE/equivariant/same-budget`` (Sudoku with MinLoss:
    ``SHORT_RECIPE``).
    """
    found = []
    for task, objective in product(SHORT, NETWORK_OBJECTIVES):
        if (task, objective) != ("sudoku", "minloss"):
            found.append(_same_budget(task, objective))
        found += [_our_recipe(task, objective), _paper_schedule(task, objective)]
    return found


def _same_budget(task: str, objective: ObjectiveName) -> Recipe:
    """Our network in a short run; SelectR has half of it as a pre-training with MinLoss."""
    fields = _budget(task)
    if objective in TWO_PHASES:
        half = SHORT[task] // 2
        fields |= {"first.updates": half, "second.updates": half, "pretraining": "minloss"}
    return usual(equivariant(task, objective)).changed("same-budget", fields)


def _our_recipe(task: str, objective: ObjectiveName) -> Recipe:
    """The paper's network with our batches, cosine, moving average and revealed cells.

    It keeps its own learning rates, loss scale and precision. It has no burn-in, and no sparing, which needs it.
    """
    ours, paper = _same_budget(task, objective).settings, table_2(task, objective)
    settings = replace(
        ours,
        recipe=paper.recipe,
        listed=paper.listed,
        network=paper.network,
        selector=paper.selector,
        first=replace(ours.first, lr=paper.first.lr),
        second=replace(ours.second, lr=paper.second.lr),
        precision=paper.precision,
        loss_scale=paper.loss_scale,
        burn_in=(0,),
        spare_settled=False,
    )
    return usual(settings).changed("our-recipe")


def _paper_schedule(task: str, objective: ObjectiveName) -> Recipe:
    """Our network with the batches, schedules and optimiser of Table 2; the loss is a mean over the variables."""
    ours, paper = equivariant(task, objective), table_2(task, objective)
    variables = {"nqueens": 10, "sudoku": 81}[task]
    network = {"network": ours.network, "selector": ours.selector, "precision": ours.precision}
    settings: Settings = replace(paper, recipe=ours.recipe, loss_scale=1 / variables, **network)
    return usual(settings).changed("paper-schedule")


def _budget(task: str) -> dict[str, int]:
    return {"first.updates": SHORT[task], "evaluate_every": SHORT[task] // 10}


def ingredient_recipes() -> list[Recipe]:
    """All of them."""
    return [*factorial(), *listed_solutions(), *alike(), *network_recipes()]
