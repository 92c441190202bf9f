"""The settings of a run: frozen, fully resolved, saved with it. The text under a field is its help text."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from oneofmany.data.batches import Sampling
from oneofmany.networks.building import NetworkSettings, SelectorSettings
from oneofmany.networks.kernels import Precision

ObjectiveName = Literal["naive", "random", "unique", "ccloss", "minloss", "iexplr", "selectr"]
OBJECTIVES: tuple[ObjectiveName, ...] = get_args(ObjectiveName)
TWO_PHASES: tuple[ObjectiveName, ...] = ("iexplr", "selectr")
"""Objectives that start from a pre-trained network (section 3.5)."""

CHOOSING: tuple[ObjectiveName, ...] = ("ccloss", "minloss", "iexplr", "selectr")
"""Objectives that weigh the listed solutions by how close the network is to them."""


@dataclass(frozen=True)
class PhaseSettings:
    """One phase of training the prediction network."""

    updates: int = 0
    """Stop after so many updates; 0 leaves the phase out."""
    minutes: float | None = None
    """Stop after so many minutes, evaluation and compilation included; the cosine then follows the clock."""
    batch: int = 512
    """Queries of an update, over all devices together."""
    sampling: Sampling = "uniform"
    """How queries are drawn: uniform, pairs, pairs-padded, os, ms, or the share of MS queries."""
    lr: float = 2e-3
    """Learning rate of the prediction network."""
    decay: float | None = None
    """Weight decay of the prediction network in this phase; by default that of the run."""
    warmup: int = 0
    """The learning rate rises linearly over so many updates."""
    schedule: Literal["constant", "cosine", "plateau"] = "constant"
    """cosine: down to final_lr. plateau: x0.2 after more than 7 evaluations without 1 % relative improvement of the dev
    error, not below 0.01 lr (the paper's)."""
    final_lr: float = 0.01
    """Where the cosine ends, as a share of lr."""
    stop_after: int | None = None
    """Stop after more than so many evaluations without 1 % relative improvement of the dev error."""


@dataclass(frozen=True)
class SelectorTraining:
    """How the selector is trained (SelectR)."""

    updates: int = 250
    """Updates of its pre-training, with the prediction network fixed."""
    lr: float = 5e-4
    """Its learning rate, which has no schedule."""
    decay: float = 1e-5
    """Its weight decay."""
    copy_interval: int = 1
    """copyitr: the lagged copy is refreshed every so many updates."""
    reward: Literal["hamming", "exact"] = "hamming"
    """hamming: how many variables (choices, for the NLM) agree; exact: whether all do."""
    sample: bool = False
    """Train on one drawn solution instead of on the expected loss, and the selector by REINFORCE."""


@dataclass(frozen=True)
class Settings:
    """Everything that decides what a run does."""

    recipe: str = ""
    """The recipe's name."""
    task: str = "nqueens"
    """The task, as in the data's header."""
    objective: ObjectiveName = "minloss"
    """What to do with several listed solutions."""
    seed: int = 42
    """Decides the network's first parameters, the batches and the noise."""
    listed: int | None = None
    """Use at most so many listed solutions of a query; all by default."""
    network: NetworkSettings = field(default_factory=NetworkSettings)
    selector: SelectorSettings = field(default_factory=SelectorSettings)
    first: PhaseSettings = field(default_factory=PhaseSettings)
    """The first phase: of one-phase objectives the only one, of I-ExplR and SelectR each of the pre-trainings."""
    second: PhaseSettings = field(default_factory=PhaseSettings)
    """The second phase: I-ExplR's exploration, SelectR's joint training; of the others an equal-budget control."""
    pretraining: Literal["both", "minloss", "unique"] = "both"
    """What I-ExplR and SelectR start from; both: the better one on dev. Another objective's second phase can start from
    minloss or unique too; both: it starts from the objective's own first phase."""
    pretrained: tuple[str, ...] = ()
    """Runs of the same task and seed whose weights to choose the start from, instead of pre-training again."""
    keep_pretrained: bool = False
    """Whether the pre-trained network stays a candidate for the best (not in the paper)."""
    selector_training: SelectorTraining = field(default_factory=SelectorTraining)
    temperature: float = 1.0
    """I-ExplR's temperature; the authors' annealing 0.5 is 2."""
    epsilon: float = 0.0
    """MinLoss takes any listed solution with this probability, in the second phase."""
    optimiser: Literal["adamw", "adam"] = "adamw"
    """adamw as the authors' code, or adam with L2 as the paper's text says."""
    betas: tuple[float, float] = (0.9, 0.999)
    decay: float = 1e-4
    """Weight decay of the prediction network."""
    clip: float | None = None
    """Clip the norm of the gradient, of each network on its own."""
    largest_gradient: float | None = None
    """An update whose gradient norm is larger (before clipping) is skipped, as in the authors' code above 1000; one
    that is not finite is always skipped."""
    loss_scale: float = 1.0
    """Multiplies the loss; the paper's recipes take the mean over the variables or choices."""
    ema: float = 0.0
    """Evaluate and keep an exponential moving average of the weights with this decay; 0 for none."""
    reveal: float = 0.0
    """Share of queries that show random cells of one listed solution; only the solutions that agree stay listed."""
    burn_in: tuple[int, ...] = (0,)
    """Steps without a gradient before the trained ones; every update draws one of these numbers."""
    discover: bool = False
    """A valid answer of the network's own joins the listed solutions of its query."""
    evaluate_every: int = 250
    """Updates between two evaluations on dev."""
    dev_queries: int | None = None
    """Use only the first so many dev queries."""
    select_on: Literal["overall", "os", "ms"] = "overall"
    """The dev queries that schedule, stopping and the best weights look at."""
    precision: Precision = "float32"
    """Of activations on a GPU: bfloat16 for RRN and equivariant, float16 for NLM. CPUs always take float32."""
    device: str = "auto"
    """cpu, cuda, cuda:1 ...; auto takes a GPU where there is one."""
    threads: int | None = None
    """CPU threads of PyTorch; its own default if none is said."""
    capture: bool = True
    """On a GPU, run the whole update as one CUDA graph."""
    compile: bool = True
    """On a GPU, compile the equivariant network's step."""
    log_every: int = 50
    """Updates between two lines of metrics, which wait for the device."""
    checkpoint_minutes: float = 2.0
    """Minutes between two checkpoints."""
    largest_loss: float = 1e6
    """Training stops with an error where the mean loss is larger or not a number."""

    def __post_init__(self) -> None:
        _check(self)


def _check(s: Settings) -> None:
    for name, value in _numbers(s):
        if not math.isfinite(value):
            raise ValueError(f"{name}: expected a finite number, got {value}")
    if s.first.updates < 1 and not s.pretrained:
        raise ValueError(f"first.updates: expected at least 1, got {s.first.updates}")
    if s.objective in TWO_PHASES and s.second.updates < 1:
        raise ValueError(f"second.updates: {s.objective} has a second phase, expected at least 1, got 0")
    least_one = {
        "evaluate_every": s.evaluate_every,
        "log_every": s.log_every,
        "first.batch": s.first.batch,
        "second.batch": s.second.batch,
        "selector_training.copy_interval": s.selector_training.copy_interval,
        "listed": 1 if s.listed is None else s.listed,
        "dev_queries": 1 if s.dev_queries is None else s.dev_queries,
    }
    for name, value in least_one.items():
        if value < 1:
            raise ValueError(f"{name}: expected at least 1, got {value}")
    shares = [("reveal", s.reveal, 1.0), ("ema", s.ema, 0.999999), ("epsilon", s.epsilon, 1.0)]
    for name, phase in (("first", s.first), ("second", s.second)):
        if not isinstance(phase.sampling, str):
            shares.append((f"{name}.sampling", phase.sampling, 1.0))
    for name, value, most in shares:
        if not 0 <= value <= most:
            raise ValueError(f"{name}: expected 0 to {most}, got {value}")
    positive = {
        "first.lr": s.first.lr,
        "second.lr": s.second.lr,
        "selector_training.lr": s.selector_training.lr,
        "temperature": s.temperature,
        "clip": s.clip if s.clip is not None else 1.0,
        "first.minutes": s.first.minutes if s.first.minutes is not None else 1.0,
        "second.minutes": s.second.minutes if s.second.minutes is not None else 1.0,
    }
    for name, value in positive.items():
        if not value > 0:
            raise ValueError(f"{name}: expected more than 0, got {value}")
    if not s.burn_in or min(s.burn_in) < 0:
        raise ValueError(f"burn_in: expected numbers of steps from 0, got {s.burn_in}")
    if s.network.kind != "equivariant" and (s.burn_in != (0,) or s.discover):
        raise ValueError(f"burn_in and discover: only the equivariant network has them, got kind {s.network.kind}")
    if s.discover and s.objective not in CHOOSING:
        raise ValueError(f"discover: expected an objective of {', '.join(CHOOSING)}, got {s.objective}")


def _numbers(settings: Any, prefix: str = "") -> Iterator[tuple[str, float]]:
    for f in dataclasses.fields(settings):
        value = getattr(settings, f.name)
        if dataclasses.is_dataclass(value):
            yield from _numbers(value, f"{prefix}{f.name}.")
        elif isinstance(value, float):
            yield prefix + f.name, value


def to_json(settings: Settings) -> dict[str, Any]:
    """A plain dictionary for config.json."""
    return dataclasses.asdict(settings)


def from_json(values: dict[str, Any]) -> Settings:
    """The settings of a config.json; ValueError names a field that this version does not know."""
    kept = {name: value for name, value in values.items() if (name, value) not in REMOVED.items()}
    return _build(Settings, kept, "")


REMOVED = {"starts": 1, "start_temperature": 0.0}
"""Settings of earlier versions, with the values that changed nothing: runs that have these are resumed as they were."""

_NESTED: dict[str, Any] = {
    "network": NetworkSettings,
    "selector": SelectorSettings,
    "first": PhaseSettings,
    "second": PhaseSettings,
    "selector_training": SelectorTraining,
}


def _build(kind: Any, values: dict[str, Any], prefix: str) -> Any:
    known = {f.name for f in dataclasses.fields(kind)}
    for name in values:
        if name not in known:
            raise ValueError(f"{prefix}{name}: this version has no such setting")
    resolved = {}
    for name, value in values.items():
        if kind is Settings and name in _NESTED:
            value = _build(_NESTED[name], value, f"{name}.")
        resolved[name] = tuple(value) if isinstance(value, list) else value
    return kind(**resolved)


def differences(ours: dict[str, Any], theirs: dict[str, Any], prefix: str = "") -> list[str]:
    """Sentences like ``first.lr: 0.001 there, 0.002 here`` for every setting that differs."""
    found = []
    for name in {**ours, **theirs}:
        here, there = ours.get(name), theirs.get(name)
        if isinstance(here, dict) and isinstance(there, dict):
            found += differences(here, there, f"{prefix}{name}.")
        elif _plain(here) != _plain(there):
            found.append(f"{prefix}{name}: {there} there, {here} here")
    return found


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
