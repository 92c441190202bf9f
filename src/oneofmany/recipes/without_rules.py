"""Recipes of networks that are given no rules: the Transformer on every task and on your own data, and sequences.

``TASK/OBJECTIVE/transformer`` is for the tasks of the paper, ``.../augmented`` the same with the task's symmetries (and
on Sudoku with revealed cells, as for our network), ``pairs/OBJECTIVE`` for imported fill-in data,
``sequences/OBJECTIVE`` and ``sequences/OBJECTIVE/ctc`` for imported sequences, ``.../cmudict`` for those of CMUdict.
"""

from __future__ import annotations

from dataclasses import replace

from oneofmany.networks.building import NetworkSettings, SelectorSettings
from oneofmany.recipes.base import Recipe, usual
from oneofmany.recipes.ours import phases
from oneofmany.recipes.paper import TASKS
from oneofmany.training.settings import CHOOSING, OBJECTIVES, TWO_PHASES, ObjectiveName, PhaseSettings, Settings

PRONUNCIATIONS = 3_000
"""Updates of 512 words on CMUdict, 15 epochs; those of both phases are included."""


def transformer(task: str, objective: ObjectiveName) -> Settings:
    """The recurrent Transformer; the settings were not tuned."""
    updates = {"nqueens": 4_000, "futoshiki": 2_000, "sudoku": 4_000}.get(task, 10_000)
    return Settings(
        recipe=f"{task}/{objective}/transformer" if task in TASKS else f"{task}/{objective}",
        task=task,
        objective=objective,
        network=NetworkSettings("transformer", width=128, depth=2, steps=16),
        selector=SelectorSettings("transformer", width=64, depth=2),
        **phases(
            objective,
            updates,
            PhaseSettings(batch=512, lr=1e-3, warmup=500, schedule="cosine"),
            PhaseSettings(batch=512, lr=5e-4, warmup=100, schedule="cosine"),
        ),
        betas=(0.9, 0.98),
        decay=0.1,
        clip=1.0,
        ema=0.999,
        # Only the Sudoku data lists some of the solutions instead of all.
        spare_settled=task == "sudoku" and objective in CHOOSING,
        keep_pretrained=True,
        evaluate_every=updates // 20,
        log_every=100,
        precision="bfloat16",
    )


def on_one_size(settings: Settings) -> Recipe:
    """The recipe with data of one size: the Transformer knows that of its training data only."""
    task = settings.task
    if task == "sudoku":
        return usual(settings)
    return Recipe(settings, f"{task}{'-same-size' * (task == 'nqueens')}-train", f"{task}-same-size-dev")


def pairs(objective: ObjectiveName) -> Settings:
    """The same for imported fill-in data: smaller batches, and early stopping, because such data may be small."""
    settings = transformer("pairs", objective)
    first, second = (replace(phase, batch=128, stop_after=10) for phase in (settings.first, settings.second))
    return replace(settings, first=first, second=second, evaluate_every=200)


def sequences(objective: ObjectiveName, *, ctc: bool = False) -> Settings:
    """An encoder-decoder for imported sequences, or an encoder with CTC; the settings were not tuned."""
    updates = 30_000
    return Settings(
        recipe=f"sequences/{objective}{'/ctc' if ctc else ''}",
        task="sequences",
        objective=objective,
        network=NetworkSettings("ctc" if ctc else "seq2seq", width=256, depth=6 if ctc else 3, dropout=0.1),
        selector=SelectorSettings("tokens", width=64),
        **phases(
            objective,
            updates,
            PhaseSettings(batch=256, lr=5e-4, warmup=1000, schedule="cosine", stop_after=10),
            PhaseSettings(batch=256, lr=2e-4, warmup=100, schedule="cosine", stop_after=10),
        ),
        betas=(0.9, 0.98),
        decay=0.01,
        clip=1.0,
        ema=0.999,
        keep_pretrained=True,
        evaluate_every=1000,
        log_every=100,
        precision="bfloat16",
    )


def recipes_without_rules() -> list[Recipe]:
    """All recipes of networks that are given no rules; those of your own data name no data."""
    table = [on_one_size(transformer(task, objective)) for task in TASKS for objective in OBJECTIVES]
    # N-Queens has enough queries without it.
    eased = {"futoshiki": {"augment": True}, "sudoku": {"augment": True, "reveal": 0.8}}
    table += [one.changed("augmented", eased[task]) for one in table if (task := one.settings.task) in eased]
    own = [pairs(objective) for objective in OBJECTIVES]
    own += [sequences(objective, ctc=ctc) for ctc in (False, True) for objective in OBJECTIVES]
    return table + [Recipe(settings, "", "") for settings in own] + pronunciations()


def pronunciations() -> list[Recipe]:
    """Sequences on CMUdict. Random trains on the dictionary's first pronunciation of a word, the usual practice."""
    whole, half = PRONUNCIATIONS, PRONUNCIATIONS // 2
    short = {"first.updates": whole, "first.batch": 512, "first.lr": 1e-3, "first.warmup": 300, "evaluate_every": 300}
    short |= {"second.batch": 512, "second.lr": 5e-4}
    halves = {"pretraining": "minloss", "first.updates": half, "second.updates": half}
    found = []
    for ctc in (False, True):
        for objective in OBJECTIVES:
            own = Recipe(sequences(objective, ctc=ctc), "cmudict-train", "cmudict-dev")
            found.append(own.changed("cmudict", short | (halves if objective in TWO_PHASES else {})))
    return found
