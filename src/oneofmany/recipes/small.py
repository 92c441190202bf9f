"""Small recipes for one CPU core: every objective with the same number of updates, for networks of four kinds.

* ``nqueens/OBJECTIVE/small``: the equivariant network, which is given the rules.
* ``nqueens/OBJECTIVE/small-transformer``: a recurrent Transformer, which is given none.
* ``sequences/OBJECTIVE/small``: an encoder-decoder, autoregressive.
* ``sequences/OBJECTIVE/small-ctc``: an encoder with CTC.

The boards have 8 queens, the sequences are the words of CMUdict with several pronunciations.
"""

from __future__ import annotations

from oneofmany.networks.building import NetworkSettings, SelectorSettings
from oneofmany.recipes.base import Recipe
from oneofmany.recipes.ours import phases
from oneofmany.training.settings import (
    OBJECTIVES,
    TWO_PHASES,
    ObjectiveName,
    PhaseSettings,
    SelectorTraining,
    Settings,
)

UPDATES = 600
"""The updates of every run, those of pre-training included."""
NETWORKS = {
    "nqueens/small": (NetworkSettings("equivariant", width=32, steps=8, test_steps=24), 4e-3),
    "nqueens/small-transformer": (NetworkSettings("transformer", width=64, depth=2, steps=8), 4e-3),
    "sequences/small": (NetworkSettings("seq2seq", width=64, depth=2), 2e-3),
    "sequences/small-ctc": (NetworkSettings("ctc", width=64, depth=2), 4e-3),
}
"""Task and variant -> network and learning rate, set by a few runs of MinLoss with another seed, on dev."""
SELECTORS = {
    "equivariant": SelectorSettings("equivariant", width=16, depth=2),
    "transformer": SelectorSettings("transformer", width=32, depth=2),
    "seq2seq": SelectorSettings("tokens", width=32),
    "ctc": SelectorSettings("tokens", width=32),
}
DATA = {"nqueens": "nqueens-completion-8", "sequences": "cmudict-several"}
"""Task -> data."""


def small(task: str, variant: str, objective: ObjectiveName) -> Recipe:
    """A recipe of ``NETWORKS`` with an objective."""
    network, lr = NETWORKS[f"{task}/{variant}"]
    batch = 32 if task == "nqueens" else 64
    settings = Settings(
        recipe=f"{task}/{objective}/{variant}",
        task=task,
        objective=objective,
        network=network,
        selector=SELECTORS[network.kind],
        **phases(
            objective,
            UPDATES,
            PhaseSettings(batch=batch, lr=lr, warmup=50, schedule="cosine"),
            PhaseSettings(batch=batch, lr=lr / 2, warmup=10, schedule="cosine"),
            pretrainings=1,
        ),
        pretraining="minloss" if objective in TWO_PHASES else "both",
        selector_training=SelectorTraining(updates=20, lr=2e-3),
        betas=(0.9, 0.98),
        decay=0.1 if network.kind == "transformer" else 0.01,
        clip=1.0,
        ema=0.98,
        keep_pretrained=True,
        evaluate_every=UPDATES // 4,
        log_every=50,
    )
    return Recipe(settings, f"{DATA[task]}-train", f"{DATA[task]}-dev")


def small_recipes() -> list[Recipe]:
    """All small recipes."""
    found = []
    for name in NETWORKS:
        task, variant = name.split("/")
        # No word has one pronunciation only, so there is nothing for Unique.
        skipped = ("unique",) if task == "sequences" else ()
        found += [small(task, variant, objective) for objective in OBJECTIVES if objective not in skipped]
    return found
