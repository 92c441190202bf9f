"""The settings of a run, all resolved and saved with it. The docstring of a field is its help text."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from oneofmany.data.batches import Sampling
from oneofmany.files import FileError
from oneofmany.networks.building import NetworkSettings, SelectorSettings
from oneofmany.networks.kernels import Precision
from oneofmany.networks.settings import SEQUENCES
from oneofmany.runs.folder import RunFolder
from oneofmany.training.ranges import check_fields

ObjectiveName = Literal["naive", "random", "unique", "ccloss", "minloss", "iexplr", "selectr", "rules"]
OBJECTIVES: tuple[ObjectiveName, ...] = tuple(name for name in get_args(ObjectiveName) if name != "rules")
"""The seven objectives, which learn from listed solutions; ``rules`` is a baseline that learns from the rules alone."""
TWO_PHASES: tuple[ObjectiveName, ...] = ("iexplr", "selectr")
"""Objectives that start from a pre-trained network (section 3.5)."""

CHOOSING: tuple[ObjectiveName, ...] = ("ccloss", "minloss", "iexplr", "selectr")
"""Objectives that weight the listed solutions by how close the network is to them."""


MACHINE = ("device", "threads", "capture", "compile", "checkpoint_minutes")
"""Settings about the machine, which may change when a run is resumed."""


@dataclass(frozen=True)
class PhaseSettings:
    """One training phase of the prediction network."""

    updates: int = 0
    """Number of updates; 0 skips the phase."""
    minutes: float | None = None
    """Time limit in minutes, with evaluation and compilation; a cosine then follows the clock. None: no limit."""
    batch: int = 512
    """Batch size: queries per update, summed over all devices."""
    sampling: Sampling = "uniform"
    """Which queries are drawn: uniform, (query, solution) pairs, only os, only ms, or the share of MS queries (0 to 1).
    pairs-padded repeats the padding mistake of the authors' code."""
    lr: float = 2e-3
    """Learning rate of the prediction network."""
    decay: float | None = None
    """Weight decay of the prediction network in this phase. None: that of the run."""
    warmup: int = 0
    """Updates over which the learning rate rises linearly from 0."""
    schedule: Literal["constant", "cosine", "plateau"] = "constant"
    """Schedule of the learning rate. cosine: falls to final_lr * lr.
    plateau (the paper's): times 0.2, down to 0.01 lr, after more than 7 evaluations without improvement.
    An improvement lowers the dev error by at least 1 % of its value."""
    final_lr: float = 0.01
    """Learning rate at the end of the cosine, as a share of lr."""
    stop_after: int | None = None
    """Early stopping: end after more than this many evaluations without 1 % relative improvement of the dev error.
    None: never."""


@dataclass(frozen=True)
class SelectorTraining:
    """Training of the selector (SelectR only)."""

    updates: int = 250
    """Updates of the selector's pre-training, with the prediction network frozen."""
    lr: float = 5e-4
    """Learning rate of the selector, constant."""
    decay: float = 1e-5
    """Weight decay of the selector."""
    copy_interval: int = 1
    """Updates between two refreshes of the lagged copy (the paper's copyitr)."""
    reward: Literal["hamming", "exact"] = "hamming"
    """Reward. hamming: the number of variables (for the NLM: choices) that agree. exact: 1 if all agree."""
    sample: bool = False
    """Train the network on one sampled solution instead of the expected loss, and the selector by REINFORCE."""


@dataclass(frozen=True)
class Settings:
    """All settings of a run."""

    recipe: str = ""
    """Name of the recipe."""
    task: str = "nqueens"
    """Task of the data, for example nqueens."""
    objective: ObjectiveName = "minloss"
    """Training objective: how several listed solutions become one loss. rules: the expected violation of the rules,
    without listed solutions."""
    seed: int = 42
    """Random seed of the initial parameters, the batches and the noise."""
    initial: str | None = None
    """Begin with the weights of this network: a bundled one, a weights file or a run folder. It has the same task, and
    the same network but for its steps; its boards may have another size. None: random weights."""
    listed: int | None = None
    """Use at most this many listed solutions per query, the first ones. None: all."""
    shards: int = 1
    """Draw every batch in this many equal parts from as many shards of the training file. Each of several processes
    then reads only its shards. 1: draw from the whole file, which every process reads."""
    network: NetworkSettings = field(default_factory=NetworkSettings)
    selector: SelectorSettings = field(default_factory=SelectorSettings)
    first: PhaseSettings = field(default_factory=PhaseSettings)
    """The first phase: the only one of most objectives, each pre-training of I-ExplR and SelectR."""
    second: PhaseSettings = field(default_factory=PhaseSettings)
    """The second phase: exploration (I-ExplR), joint training (SelectR), an equal-budget control (other objectives)."""
    pretraining: Literal["both", "minloss", "unique"] = "both"
    """Pre-training of I-ExplR and SelectR; both: the better one on dev.
    For the second phase of other objectives, both means their own first phase."""
    pretrained: tuple[str, ...] = ()
    """Run folders to start from instead of pre-training: same task, network and seed; the best on dev is used."""
    keep_pretrained: bool = False
    """Keep the pre-trained network if the second phase never reaches its dev accuracy (not in the paper)."""
    selector_training: SelectorTraining = field(default_factory=SelectorTraining)
    temperature: float = 1.0
    """Temperature of I-ExplR; 2 is the authors' annealing factor 0.5."""
    epsilon: float = 0.0
    """Probability that MinLoss takes a random listed solution, in the second phase only."""
    optimiser: Literal["adamw", "adam"] = "adamw"
    """adamw (the authors' code) or adam with L2 regularisation (the paper's text)."""
    betas: tuple[float, float] = (0.9, 0.999)
    """Decay rates of the optimisers' running averages."""
    decay: float = 1e-4
    """Weight decay of the prediction network; first.decay and second.decay override it."""
    clip: float | None = None
    """Largest gradient norm; larger gradients are scaled down, separately for each network. None: no clipping."""
    largest_gradient: float | None = None
    """Skip updates whose gradient norm before clipping is larger (1000 in the authors' code). None: no limit.
    Updates with a gradient that is not finite are always skipped."""
    loss_scale: float = 1.0
    """Factor on the loss; the paper's recipes use it for a mean over the variables or choices."""
    ema: float = 0.0
    """Decay of an exponential moving average of the weights, which is then evaluated and kept. 0: none."""
    reveal: float = 0.0
    """Share of queries (0 to 1) that show random cells of one listed solution; solutions that disagree are dropped."""
    augment: bool = False
    """Replace every query and its listed solutions by a random symmetric form (nqueens, futoshiki, sudoku). This tells
    a network without rules about the symmetries of the task."""
    burn_in: tuple[int, ...] = (0,)
    """Numbers of network steps without gradient before the trained steps; every update draws one of them."""
    windows: int = 1
    """Windows of network.steps steps per update. The state goes from one window to the next without a gradient, and
    the loss is the mean over all windows. Memory is that of one window."""
    curriculum: tuple[float, float] | None = None
    """Curriculum over the rating of 9x9 Sudokus: the mean place of a batch among the training queries sorted by
    rating (after pairs), from 0 (easiest) to 1, at the first and the last update of a phase, and linearly in between.
    0.5 is uniform. None: no curriculum."""
    discover: bool = False
    """Add a valid answer of the network to the listed solutions of its query, for this update only."""
    repair: int = 0
    """Moves of a local search that mends the network's answer before it is discovered; a query whose answer it cannot
    mend is left out. For graphs; 0: none."""
    spare_settled: bool = False
    """Leave a query out of an update if not all of its solutions are listed and the network's answer, unchanged for 8
    steps, is not one of them. Needs no checker."""
    follow_noise: float = 0.0
    """Weight of the noise in MinLoss's choice of a solution: smallest loss minus this weight times the noise of the
    solution's choices. Several starts then find more of the solutions. 0: the loss alone."""
    evaluate_every: int = 250
    """Updates between two evaluations on the dev set."""
    dev_queries: int | None = None
    """Evaluate only on this many dev queries, the first ones. None: all."""
    select_on: Literal["overall", "os", "ms"] = "overall"
    """Dev accuracy that decides the schedule, early stopping and the best weights: overall, os or ms."""
    precision: Precision = "float32"
    """Precision of activations on a GPU: float32, or bfloat16 (RRN, equivariant), float16 (NLM). CPUs use float32."""
    device: str = "auto"
    """cpu, cuda, cuda:1, ...; auto: a GPU if there is one."""
    threads: int | None = None
    """CPU threads of PyTorch. None: PyTorch's default."""
    capture: bool = True
    """On a GPU, capture the whole update as one CUDA graph."""
    compile: bool = True
    """On a GPU, compile the step of the equivariant network and of the Transformer."""
    log_every: int = 50
    """Updates between two lines of metrics; each line waits for the device."""
    checkpoint_minutes: float = 2.0
    """Minutes between two checkpoints (saved states)."""
    largest_loss: float = 1e6
    """Stop with an error if the mean loss is larger than this, or not finite."""

    def __post_init__(self) -> None:
        _check(self)


def _check(s: Settings) -> None:
    """Raise ValueError for settings that cannot be; ``ranges`` has the checks of single fields."""
    check_fields(s)
    if s.first.updates < 1 and not s.pretrained:
        raise ValueError(f"first.updates: expected at least 1, got {s.first.updates}")
    if s.objective in TWO_PHASES and s.second.updates < 1:
        raise ValueError(f"second.updates: {s.objective} has a second phase, expected at least 1, got 0")
    for name, phase in (("first", s.first), ("second", s.second)):
        if s.shards > 1 and phase.updates and phase.batch % s.shards:
            raise ValueError(f"{name}.batch: expected a multiple of the {s.shards} shards, got {phase.batch}")
        if s.shards > 1 and phase.updates and str(phase.sampling).startswith("pairs"):
            raise ValueError(f"shards: expected 1 with {name}.sampling {phase.sampling}, got {s.shards}")
    if not s.burn_in:
        raise ValueError("burn_in: expected at least one number of steps, got none")
    ours = s.burn_in != (0,) or s.windows > 1 or s.discover or s.spare_settled
    if s.network.kind not in ("equivariant", "transformer") and ours:
        raise ValueError(
            "burn_in, windows, discover and spare_settled: only the equivariant network and the transformer have them, "
            f"got kind {s.network.kind}"
        )
    if s.windows > 1 and s.objective == "selectr" and s.selector_training.copy_interval > 1:
        raise ValueError(
            f"windows: expected 1 for SelectR with a copy that lags behind, got {s.windows} with "
            f"selector_training.copy_interval {s.selector_training.copy_interval}"
        )
    if s.curriculum is not None and "pairs-padded" in (s.first.sampling, s.second.sampling):
        raise ValueError("curriculum: expected another sampling than pairs-padded")
    if s.network.kind in SEQUENCES and (s.reveal or s.augment):
        raise ValueError(f"reveal and augment: expected neither for sequences, got kind {s.network.kind}")
    for name, asked in (("discover", s.discover), ("spare_settled", s.spare_settled)):
        if asked and s.objective not in CHOOSING:
            raise ValueError(f"{name}: expected an objective of {', '.join(CHOOSING)}, got {s.objective}")
    if s.follow_noise and (s.network.kind, s.objective) != ("equivariant", "minloss"):
        raise ValueError(
            "follow_noise: expected 0, or a weight for MinLoss with the equivariant network, "
            f"got {s.follow_noise} for {s.objective} with {s.network.kind}"
        )
    if s.objective == "rules" and (s.network.kind not in ("equivariant", "transformer") or s.reveal):
        raise ValueError(
            "objective rules: expected the equivariant network or the transformer, and no reveal, which shows listed "
            f"solutions, got {s.network.kind} and reveal {s.reveal}"
        )
    if s.repair and not s.discover:
        raise ValueError(f"repair: expected 0 without discover, got {s.repair}")
    if s.discover and s.spare_settled:
        raise ValueError("discover and spare_settled: expected one of them at most, got both")


def to_json(settings: Settings) -> dict[str, Any]:
    """A plain dictionary for config.json."""
    return dataclasses.asdict(settings)


def from_json(values: dict[str, Any]) -> Settings:
    """The settings of a config.json; ValueError if this version does not know a field or a value cannot be."""
    if not isinstance(values, dict):
        raise TypeError(f"settings: expected an object, got {values!r}")
    kept = {name: value for name, value in values.items() if (name, value) not in REMOVED.items()}
    return _build(Settings, kept, "")


def settings_of(run: RunFolder) -> Settings:
    """The settings of a run; FileError, which names the file, if they are damaged or cannot be."""
    file = run.path / "config.json"
    try:
        return from_json(run.config["settings"])
    except (KeyError, TypeError) as error:
        raise FileError(f"{file} is damaged ({type(error).__name__}: {error})") from None
    except ValueError as error:
        raise FileError(f"{file}: {error}") from None


REMOVED = {"starts": 1, "start_temperature": 0.0}
"""Removed settings, with the values that had no effect: runs with these values can still be resumed."""

_NESTED: dict[str, Any] = {
    "network": NetworkSettings,
    "selector": SelectorSettings,
    "first": PhaseSettings,
    "second": PhaseSettings,
    "selector_training": SelectorTraining,
}


def _build(kind: Any, values: dict[str, Any], prefix: str) -> Any:
    if not isinstance(values, dict):
        raise TypeError(f"{prefix.removesuffix('.')}: expected an object, got {values!r}")
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
