"""The paper's experiments: its networks and the settings that produced Table 2, as far as they are known.

Everything that goes beyond the paper is off. Where text and published code differ, the code is followed (AdamW, five
convolutions, 1,944 edges); the tuned values are a starting point, which a sweep tunes on dev.
"""

from __future__ import annotations

from dataclasses import replace

from oneofmany.data.batches import Sampling
from oneofmany.networks.building import NetworkSettings, SelectorSettings
from oneofmany.training.settings import OBJECTIVES, ObjectiveName, PhaseSettings, SelectorTraining, Settings

SEEDS = (42, 1729, 3120)
"""The paper's seeds."""

_SAMPLING: dict[ObjectiveName, Sampling] = {"naive": "pairs", "unique": "os"}
"""Eq. 1 by drawing pairs, as the authors do; OS queries alone. The others draw queries as they come."""


def nlm(task: str, objective: ObjectiveName) -> Settings:
    """N-Queens and Futoshiki: NLM, batch 4, 250 updates an epoch, at most 200 epochs a phase."""
    choices = {"nqueens": 100, "futoshiki": 125}[task]
    first = PhaseSettings(
        updates=50_000,
        batch=4,
        lr=5e-3,
        schedule="plateau",
        stop_after=20,
        sampling=_SAMPLING.get(objective, "uniform"),
    )
    # The released commands explore on MS queries alone (N-Queens) or on as many of them as of the others (Futoshiki).
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
    """Sudoku: RRN with message dropout, batch 32 then 16, 625 updates an epoch, at most 200 epochs a phase."""
    first = PhaseSettings(
        updates=125_000,
        batch=32,
        lr=1e-3,
        schedule="plateau",
        stop_after=20,
        sampling=_SAMPLING.get(objective, "uniform"),
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
    """The same number of queries in fewer, larger batches, which GPUs like better; the rates stay."""

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


_IN_UPDATES = {"selector_training.copy_interval"}
_TUNED: dict[str, dict[str, tuple[dict[str, str], ...]]] = {
    "nqueens": {
        "naive": tuple({"decay": value} for value in ("1e-4", "1e-5", "0")),
        "ccloss": tuple({"first.sampling": value} for value in ("uniform", "0.25", "0.5")),
        "iexplr": (
            {"pretraining": "unique", "second.sampling": "ms"},
            {"pretraining": "minloss", "second.sampling": "ms"},
            {"pretraining": "unique", "second.sampling": "0.5"},
        ),
        "selectr": (
            {"pretraining": "unique", "second.sampling": "ms", "selector_training.copy_interval": "2500"},
            {"pretraining": "minloss", "second.sampling": "ms", "selector_training.copy_interval": "2500"},
            {"pretraining": "unique", "second.sampling": "0.5", "selector_training.copy_interval": "1"},
        ),
    },
    "sudoku": {
        "naive": tuple({"decay": value} for value in ("1e-4", "1e-5")),
        "ccloss": tuple({"first.sampling": value} for value in ("uniform", "0.2")),
        # From MinLoss, which is the better start on dev there; the authors' two rates.
        "iexplr": tuple({"pretraining": "minloss", "second.lr": value} for value in ("1e-4", "2e-5")),
    },
}
# The authors start from MinLoss that was trained on more MS queries there.
_TUNED["futoshiki"] = _TUNED["nqueens"] | {
    "ccloss": tuple({"first.sampling": value} for value in ("0.25", "0.5", "ms"))
}
_AS = {"random": "naive", "unique": "naive", "minloss": "ccloss", "selectr": "iexplr"}
"""Objective -> the one whose grid it has, where it has none of its own."""


def tuning(settings: Settings) -> tuple[dict[str, str], ...]:
    """The short grid of a paper's recipe, to be chosen from on dev: equally many settings for every objective.

    The paper tunes the share of MS queries in each phase, the weight decay, copyitr, the second phase's rate, and what
    to start from; of these, each objective gets the three settings (on Sudoku two) that matter most to it.
    """
    if settings.network.kind not in ("nlm", "rrn"):
        raise ValueError(f"there is no tuning grid for {settings.recipe}: only for the paper's networks")
    table, objective = _TUNED[settings.task], settings.objective
    changes = table[objective if objective in table else _AS[objective]]
    # The intervals are those of the paper's batches, counted in updates.
    times = settings.first.batch // _of_paper(settings.task, objective).first.batch
    return tuple(
        {name: str(-(-int(value) // times)) if name in _IN_UPDATES else value for name, value in change.items()}
        for change in changes
    )


def _of_paper(task: str, objective: ObjectiveName) -> Settings:
    return rrn(task, objective) if task == "sudoku" else nlm(task, objective)


def paper_recipes() -> dict[str, Settings]:
    """All recipes with the paper's networks, by name."""
    table = [_of_paper(task, objective) for task in ("nqueens", "futoshiki", "sudoku") for objective in OBJECTIVES]
    authors = nlm("nqueens", "naive")
    # The authors' padding mistake: the last listed solution is drawn most often.
    table.append(
        replace(authors, recipe="nqueens/naive-authors", first=replace(authors.first, sampling="pairs-padded"))
    )
    unique = rrn("sudoku", "unique")
    table += [
        replace(unique, recipe="sudoku/unique-os-dev", select_on="os"),
        replace(unique, recipe="sudoku/unique-180k-os-dev", select_on="os"),
        replace(unique, recipe="sudoku/unique-180k"),
    ]
    return {settings.recipe: settings for settings in (*table, *(larger_batch(settings) for settings in table))}
