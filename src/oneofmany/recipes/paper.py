"""Recipes of the paper: its networks and literal settings, as far as they are known.

Everything that goes beyond the paper is off. If text and published code differ, these recipes follow the code (AdamW,
five convolutions, 1,944 edges). The tuned values are a starting point; ``table_2`` has the settings chosen on dev.
"""

from __future__ import annotations

from dataclasses import replace

from oneofmany.data.batches import Sampling
from oneofmany.networks.building import NetworkSettings, SelectorSettings
from oneofmany.recipes.base import Recipe, usual
from oneofmany.training.settings import OBJECTIVES, ObjectiveName, PhaseSettings, SelectorTraining, Settings

TASKS = ("nqueens", "futoshiki", "sudoku")
SEEDS = (42, 1729, 3120)
"""The paper's seeds."""

SAMPLING: dict[ObjectiveName, Sampling] = {"naive": "pairs", "unique": "os"}
"""Naive (Eq. 1) draws pairs, as the authors do; Unique draws only OS queries; all others draw queries uniformly."""


def nlm(task: str, objective: ObjectiveName) -> Settings:
    """N-Queens and Futoshiki: NLM, batch size 4, 250 updates per epoch, at most 200 epochs per phase."""
    choices = {"nqueens": 100, "futoshiki": 125}[task]
    first = PhaseSettings(
        updates=50_000,
        batch=4,
        lr=5e-3,
        schedule="plateau",
        stop_after=20,
        sampling=SAMPLING.get(objective, "uniform"),
    )
    # The released commands explore on MS queries only (N-Queens) or on half MS and half OS queries (Futoshiki).
    explored: Sampling = "ms" if task == "nqueens" else 0.5
    return Settings(
        recipe=f"{task}/{objective}",
        task=task,
        objective=objective,
        network=NetworkSettings("nlm", width=8, depth=30),
        selector=SelectorSettings("nlm", width=10, depth=4),
        first=first,
        second=_second(objective, replace(first, lr=5e-4, sampling=explored, stop_after=25)),
        selector_training=SelectorTraining(
            updates=250, lr=5e-4, decay=1e-5, copy_interval=2500 if task == "nqueens" else 1
        ),
        decay=1e-5,
        largest_gradient=1000.0,
        loss_scale=1 / choices,
        evaluate_every=250,
        log_every=250,
        precision="float16",
    )


def rrn(task: str, objective: ObjectiveName) -> Settings:
    """Sudoku: RRN with message dropout, batch size 32 then 16, 625 updates per epoch, at most 200 epochs per phase."""
    first = PhaseSettings(
        updates=125_000,
        batch=32,
        lr=1e-3,
        schedule="plateau",
        stop_after=20,
        sampling=SAMPLING.get(objective, "uniform"),
    )
    return Settings(
        recipe=f"{task}/{objective}",
        task=task,
        objective=objective,
        listed=5,
        network=NetworkSettings("rrn", width=96, steps=32, dropout=0.1),
        selector=SelectorSettings("cnn"),
        first=first,
        second=_second(objective, replace(first, batch=16, lr=1e-4, sampling="uniform", stop_after=25)),
        selector_training=SelectorTraining(updates=1250, lr=5e-4, decay=1e-4, copy_interval=1),
        decay=1e-4,
        clip=5.0,
        largest_gradient=1000.0,
        loss_scale=1 / 81,
        evaluate_every=625,
        log_every=125,
        precision="bfloat16",
    )


def _second(objective: ObjectiveName, phase: PhaseSettings) -> PhaseSettings:
    """Only I-ExplR and SelectR have a second phase in the paper."""
    return phase if objective in ("iexplr", "selectr") else replace(phase, updates=0)


def larger_batch(settings: Settings, times: int = 8) -> Settings:
    """The settings with fewer, larger batches for GPUs: the same number of queries and the same learning rates."""

    def larger(phase: PhaseSettings) -> PhaseSettings:
        return replace(phase, batch=phase.batch * times, updates=-(-phase.updates // times))

    return replace(
        settings,
        recipe=f"{settings.recipe}/large-batch",
        first=larger(settings.first),
        second=larger(settings.second),
        evaluate_every=-(-settings.evaluate_every // times),
        log_every=-(-settings.log_every // times),
        selector_training=replace(
            settings.selector_training, copy_interval=-(-settings.selector_training.copy_interval // times)
        ),
    )


def literal(task: str, objective: ObjectiveName) -> Settings:
    """The paper's settings of a task and objective, as far as they are known."""
    return rrn(task, objective) if task == "sudoku" else nlm(task, objective)


def paper_recipes() -> list[Recipe]:
    """All recipes with the paper's networks and literal settings."""
    table = [usual(literal(task, objective)) for task in TASKS for objective in OBJECTIVES]
    authors = nlm("nqueens", "naive")
    # The padding mistake of the authors' code: the last listed solution is drawn most often.
    padded = replace(authors, recipe="nqueens/naive-authors", first=replace(authors.first, sampling="pairs-padded"))
    unique = rrn("sudoku", "unique")
    on_os = usual(replace(unique, recipe="sudoku/unique-os-dev", select_on="os"))
    more, more_on_os = (
        replace(one, settings=replace(one.settings, recipe=f"sudoku/unique-180k{suffix}"), train="sudoku-os-train")
        for one, suffix in ((usual(unique), ""), (on_os, "-os-dev"))
    )
    table += [usual(padded), on_os, more_on_os, more]
    return [*table, *(replace(one, settings=larger_batch(one.settings)) for one in table)]
