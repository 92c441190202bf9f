"""The phases of Algorithm 1, derived from the settings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from oneofmany.networks.building import NETWORKS
from oneofmany.networks.settings import SEQUENCES
from oneofmany.objectives import (
    CTCNLL,
    BinaryNLL,
    CategoricalNLL,
    CCLoss,
    IExplR,
    MinLoss,
    Naive,
    Objective,
    Random,
    SelectR,
    SequenceNLL,
    Unique,
    binary_exact_match_reward,
    binary_hamming_reward,
    exact_match_reward,
    hamming_reward,
)
from oneofmany.training.rule_loss import RuleLoss
from oneofmany.training.settings import TWO_PHASES, ObjectiveName, PhaseSettings, Settings

PhaseName = Literal["train", "pretrain-minloss", "pretrain-unique", "selector", "joint", "exploration", "second"]


@dataclass(frozen=True)
class Phase:
    """One phase of a run.

    Args:
        name: the name in the metrics.
        settings: the settings of the phase, weight decay included; a selector phase uses only batch and sampling.
        objective: the objective that the phase minimises.
        trains: the networks that are updated.
        fresh: start from the initial parameters of the seed, not from the best candidate so far.
        stream: the random stream; phases with the same stream see the same batches, so that MinLoss and SelectR's
            pre-training with MinLoss are the same run.
    """

    name: PhaseName
    settings: PhaseSettings
    objective: ObjectiveName
    trains: Literal["network", "selector", "both"] = "network"
    fresh: bool = False
    stream: Literal["first", "selector", "second"] = "first"


def phases_of(settings: Settings) -> tuple[Phase, ...]:
    """The phases of a run, in order (Algorithm 1; section 3.5)."""
    first, second = (_with_decay(phase, settings.decay) for phase in (settings.first, settings.second))
    objective = settings.objective
    if objective not in TWO_PHASES and (not second.updates or settings.pretraining == "both"):
        phases = () if settings.pretrained else (Phase("train", _sampled(first, objective), objective, fresh=True),)
        if second.updates:
            phases += (Phase("second", _sampled(second, objective), objective, stream="second"),)
        return phases
    phases = ()
    if not settings.pretrained:
        candidates: tuple[tuple[PhaseName, ObjectiveName], ...] = (
            ("pretrain-minloss", "minloss"),
            ("pretrain-unique", "unique"),
        )
        phases = tuple(
            Phase(name, _sampled(first, how), how, fresh=True)
            for name, how in candidates
            if settings.pretraining in ("both", how)
        )
    if objective not in TWO_PHASES:
        return (*phases, Phase("second", _sampled(second, objective), objective, stream="second"))
    if objective == "iexplr":
        return (*phases, Phase("exploration", second, "iexplr", stream="second"))
    warm = settings.selector_training.updates
    if warm:
        of_selector = replace(second, updates=warm, minutes=None, schedule="constant", warmup=0, stop_after=None)
        phases += (Phase("selector", of_selector, "selectr", trains="selector", stream="selector"),)
    return (*phases, Phase("joint", second, "selectr", trains="both", stream="second"))


def pretrainings(settings: Settings) -> list[Phase]:
    """The pre-trainings of a run, each as the only phase of the MinLoss or Unique run that can replace it."""
    own = [phase for phase in phases_of(settings) if phase.fresh and phase.name != "train"]
    return [replace(phase, name="train") for phase in own]


def _with_decay(phase: PhaseSettings, decay: float) -> PhaseSettings:
    """The phase with its weight decay filled in."""
    return replace(phase, decay=decay) if phase.decay is None else phase


def _sampled(phase: PhaseSettings, objective: ObjectiveName) -> PhaseSettings:
    """The phase with the sampling of its objective: Unique draws only OS queries."""
    return replace(phase, sampling="os") if objective == "unique" else phase


def build_objective(settings: Settings, phase: Phase) -> Objective | SelectR | RuleLoss:
    """The objective of a phase, with the pair loss that fits the network."""
    binary = NETWORKS[settings.network.kind].readout == "threshold"
    # Every variable of a listed solution counts.
    pair_loss: Any = BinaryNLL(ignore_index=None) if binary else CategoricalNLL(ignore_index=None)
    if settings.network.kind in SEQUENCES:
        pair_loss = CTCNLL() if settings.network.kind == "ctc" else SequenceNLL()
    # The data was checked when it was loaded; checking values again would wait for the device at every update.
    common: dict[str, Any] = {"pair_loss": pair_loss, "validate": False}
    match phase.objective:
        case "rules":
            return RuleLoss()
        case "naive":
            return Naive(**common)
        case "random":
            return Random(**common)
        case "unique":
            return Unique(**common)
        case "ccloss":
            return CCLoss(**common)
        case "minloss":
            return MinLoss(epsilon=settings.epsilon if phase.stream == "second" else 0.0, **common)
        case "iexplr":
            return IExplR(temperature=settings.temperature, **common)
        case "selectr":
            training = settings.selector_training
            exact = training.reward == "exact"
            hamming = binary_hamming_reward if binary else hamming_reward
            match_all = binary_exact_match_reward if binary else exact_match_reward
            return SelectR(
                reward=match_all if exact else hamming,
                sample=training.sample,
                reinforce=training.sample,
                **common,
            )
