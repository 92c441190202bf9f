"""Recipes of our network: the equivariant network on every task, and tiny ones that take a minute on two CPU cores."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypedDict

from oneofmany.networks.building import NetworkSettings, SelectorSettings
from oneofmany.recipes.base import Recipe, changed, usual
from oneofmany.recipes.paper import SAMPLING, TASKS
from oneofmany.training.settings import (
    CHOOSING,
    OBJECTIVES,
    TWO_PHASES,
    ObjectiveName,
    PhaseSettings,
    SelectorTraining,
    Settings,
)


class _Phases(TypedDict, total=False):
    first: PhaseSettings
    second: PhaseSettings


def equivariant(task: str, objective: ObjectiveName) -> Settings:
    """Our network; two runs at a time on one H200 take at most 90 s on N-Queens, 50 s on Futoshiki, 510 s on Sudoku."""
    updates = {"nqueens": 8_000, "futoshiki": 2_000, "sudoku": 9_000}[task]
    # Only the Sudoku data lists some of the solutions instead of all.
    partial = task == "sudoku"
    return ours(
        task,
        objective,
        updates,
        recipe=f"{task}/{objective}/equivariant",
        reveal=0.8 if partial else 0.0,
        spare_settled=partial and objective in CHOOSING,
    )


def with_checker(objective: ObjectiveName) -> Settings:
    """Our network on Sudoku, trained with the rules checker: valid answers join the listed solutions."""
    recipe = f"sudoku/{objective}/equivariant-checker"
    return ours("sudoku", objective, 3_000, recipe=recipe, reveal=0.5, discover=True)


def ours(task: str, objective: ObjectiveName, updates: int, **others: Any) -> Settings:
    """The settings that all recipes with our network share, for a number of updates; ``others`` are more fields."""
    return Settings(
        task=task,
        objective=objective,
        network=NetworkSettings("equivariant", width=64, steps=16, test_steps=256),
        selector=SelectorSettings("equivariant", width=32, depth=3),
        **phases(
            objective,
            updates,
            PhaseSettings(batch=512, lr=2e-3, warmup=300, schedule="cosine"),
            PhaseSettings(batch=512, lr=1e-3, warmup=100, schedule="cosine"),
        ),
        betas=(0.9, 0.98),
        decay=0.01,
        clip=1.0,
        ema=0.999,
        burn_in=(0, 16, 32),
        keep_pretrained=True,
        evaluate_every=updates // 10,
        log_every=100,
        precision="bfloat16",
        **others,
    )


def tiny(task: str, objective: ObjectiveName) -> Settings:
    """Our network on 8 queens, Futoshiki 4x4 or Sudoku 4x4: a minute on two CPU cores."""
    updates = {"nqueens": 800, "futoshiki": 400, "sudoku": 300}[task]
    return small(task, objective, updates, f"{task}/{objective}/tiny")


def own_task(task: str, objective: ObjectiveName) -> Recipe:
    """Our network on a task of the user's, of a size for two CPU cores; its data is that of the task's usual size."""
    return usual(small(task, objective, 500, f"{task}/{objective}/equivariant"))


def small(task: str, objective: ObjectiveName, updates: int, recipe: str) -> Settings:
    """Our network in a size for two CPU cores."""
    return Settings(
        recipe=recipe,
        task=task,
        objective=objective,
        network=NetworkSettings("equivariant", width=32, steps=8, test_steps=24),
        selector=SelectorSettings("equivariant", width=16, depth=2),
        **phases(
            objective,
            updates,
            PhaseSettings(batch=32, lr=4e-3, warmup=20, schedule="cosine"),
            PhaseSettings(batch=32, lr=2e-3, warmup=10, schedule="cosine"),
            pretrainings=1,
        ),
        pretraining="minloss" if objective in TWO_PHASES else "both",
        selector_training=SelectorTraining(updates=20, lr=2e-3),
        betas=(0.9, 0.98),
        decay=0.01,
        clip=1.0,
        ema=0.98,
        keep_pretrained=True,
        evaluate_every=updates // 4,
        log_every=20,
    )


def phases(
    objective: ObjectiveName, updates: int, first: PhaseSettings, second: PhaseSettings, pretrainings: int = 2
) -> _Phases:
    """The phases of an objective: the same number of updates for all; with two phases, pre-trainings are included."""
    if objective not in TWO_PHASES:
        return {"first": replace(first, updates=updates, sampling=SAMPLING.get(objective, "uniform"))}
    before = int(updates * (0.3 if pretrainings == 2 else 0.5))
    rest = updates - pretrainings * before
    return {"first": replace(first, updates=before), "second": replace(second, updates=rest)}


def our_recipes() -> list[Recipe]:
    """All recipes with our network."""
    table = [usual(equivariant(task, objective)) for task in TASKS for objective in OBJECTIVES]
    table += [usual(with_checker(objective)) for objective in CHOOSING]
    small = [tiny(task, objective) for task in TASKS for objective in OBJECTIVES]
    table += [Recipe(settings, f"{settings.task}-tiny-train", f"{settings.task}-tiny-dev") for settings in small]
    for objective in OBJECTIVES:
        settings = equivariant("futoshiki", objective)
        flags = {"recipe": f"{settings.recipe}-flags", "network.inequalities": "flags"}
        table.append(usual(changed(settings, flags)))
    return table
