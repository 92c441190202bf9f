"""One update: draw a batch, predict, weight the listed solutions, step. On a GPU all of this is one CUDA graph."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor, nn

from oneofmany.networks.kernels import running
from oneofmany.networks.protocol import arguments_of
from oneofmany.networks.settings import SEQUENCES
from oneofmany.objectives import SelectR, binary_hamming_reward, hamming_reward
from oneofmany.problems import Batch, SequenceBatch
from oneofmany.training.augmenting import augment, draw_augmentation
from oneofmany.training.discovering import discover
from oneofmany.training.distributed import Group
from oneofmany.training.following import follow_noise
from oneofmany.training.learners import Learners, Optimiser
from oneofmany.training.phases import Phase, build_objective
from oneofmany.training.repairing import repair
from oneofmany.training.revealing import draw_reveal, reveal
from oneofmany.training.rule_loss import RuleLoss
from oneofmany.training.sequence_losses import Losses, seeded, sequence_losses
from oneofmany.training.settings import Settings
from oneofmany.training.sparing import spare_settled
from oneofmany.training.streams import curriculum_at, generator_of, seed_of

MEASURED = (
    "loss",
    "gradient_norm",
    "skipped",
    "selector_loss",
    "selector_gradient_norm",
    "queries",
    "ms_queries",
    "exploratory_loss",
    "exploratory_hamming",
)
"""The sums that updates accumulate on the device; see the glossary of metrics."""
WARM_UPS = 3
"""Updates that run without a graph before one is captured."""


class Updater:
    """Runs the updates of one phase.

    Args:
        settings: the settings of the run.
        phase: the phase.
        learners: networks and optimisers.
        data: the training data on the device: a ``DeviceData`` or, for sequences, ``SequencesOnDevice``.
        group: the processes that share a batch.
    """

    def __init__(self, settings: Settings, phase: Phase, learners: Learners, data: Any, group: Group) -> None:
        self.settings, self.phase, self.learners, self.data, self.group = settings, phase, learners, data, group
        self.objective = build_objective(settings, phase)
        self.hamming = binary_hamming_reward if learners.network.readout == "threshold" else hamming_reward
        self.device = data.device
        self.rows = group.rows(phase.settings.batch)
        self.takes = arguments_of(learners.network)
        self.sums = torch.zeros(len(MEASURED), dtype=torch.float64, device=self.device)
        captures = settings.capture and settings.network.kind not in SEQUENCES
        self.capturing = captures and self.device.type == "cuda" and group.size == 1
        self._graphs: dict[int, tuple[torch.cuda.CUDAGraph, dict[str, Tensor]]] = {}
        self._warm: dict[int, int] = {}
        learners.network.train()

    def run(self, update: int, lr: float) -> None:
        """Run update number ``update``."""
        self._set_lr(lr)
        burn_in = self._burn_in(update)
        inputs = self.draw(update)
        if not self.capturing:
            self.step(inputs, burn_in)
        elif burn_in in self._graphs:
            graph, static = self._graphs[burn_in]
            for name, value in inputs.items():
                static[name].copy_(value)
            graph.replay()
        else:
            self._warm_up_or_capture(inputs, burn_in)
        if self.learners.lagged is not None and self.phase.trains == "both":
            self.learners.lagged.update()

    def measured(self) -> dict[str, float]:
        """Return the sums over all processes since the last call and reset them; this waits for the device."""
        sums = self.group.sum(self.sums).tolist()
        self.sums.zero_()
        return dict(zip(MEASURED, sums, strict=True))

    # ---- drawing ---------------------------------------------------------------------------------------------------

    def draw(self, update: int) -> dict[str, Tensor]:
        """Draw all random numbers of one update for the whole batch; return this process's slice."""
        s, phase = self.settings, self.phase
        generator = generator_of(self.device, s.seed, phase.stream, update)
        size, problem = phase.settings.batch, self.data.problem
        inputs = {"rows": self._draw_rows(update, generator)}
        if s.augment:
            inputs["augment"] = draw_augmentation(size, problem, generator)[self.rows]
        if s.reveal:
            inputs["reveal"] = draw_reveal(size, problem.variables, generator)[self.rows]
        if "noise" in self.takes:
            inputs["noise"] = torch.randn(size, problem.choices, generator=generator, device=self.device)[self.rows]
        if s.repair:
            uniform = torch.rand(size, problem.variables, problem.values, generator=generator, device=self.device)
            inputs["repair"] = uniform[self.rows]
        if "seed" in self.takes:
            inputs["seed"] = torch.randint(2**62, (1,), generator=generator, device=self.device)
        if s.network.kind in SEQUENCES:  # their dropout is PyTorch's; every process has its own
            seed = seed_of(s.seed, phase.stream, update, "dropout", self.rows.start)
            inputs["dropout"] = torch.tensor(seed)
        if self.objective.draws:
            listed = 1 if str(phase.settings.sampling).startswith("pairs") else self.data.most_listed
            places = listed + s.discover
            inputs["weights"] = torch.rand(size, places, generator=generator, device=self.device)[self.rows]
        return inputs

    def _draw_rows(self, update: int, generator: torch.Generator) -> Tensor:
        """This process's rows of the batch; every shard gives an equal part, drawn with a generator of its own."""
        s, phase = self.settings, self.phase.settings
        how = phase.sampling, curriculum_at(s.curriculum, update, phase.updates)
        if not self.data.shards:
            return self.data.draw_rows(phase.batch, generator, *how)[self.rows]
        generators = (
            generator_of(self.device, s.seed, self.phase.stream, update, "shard", n) for n in self.data.shards
        )
        parts = zip(self.data.shards.values(), generators, strict=True)
        return torch.cat([part.draw_rows(phase.batch // s.shards, own, *how) for part, own in parts])

    def _burn_in(self, update: int) -> int:
        choices = self.settings.burn_in
        return choices[seed_of(self.settings.seed, self.phase.stream, update, "burn-in") % len(choices)]

    # ---- the step --------------------------------------------------------------------------------------------------

    def step(self, inputs: dict[str, Tensor], burn_in: int = 0) -> None:
        """Losses, backward, clip, optimisers, moving average, sums. Nothing here waits for the device."""
        s, learners, phase = self.settings, self.learners, self.phase
        measured: dict[str, Tensor] = dict.fromkeys(MEASURED, torch.zeros((), device=self.device))
        for optimiser in (learners.optimiser, learners.selector_optimiser):
            if optimiser is not None:
                optimiser.zero_grad(set_to_none=True)
        counts, state = torch.zeros(2, dtype=torch.int64, device=self.device), None
        batch = self.batch(inputs)
        for _ in range(s.windows):
            own: dict[str, Tensor] = {}
            with seeded(inputs, self.device):
                (loss, selector_loss, trained), state = self.losses(batch, inputs, burn_in, own, state)
            losses = []
            if selector_loss is not None:
                losses.append(selector_loss / s.windows)
                own["selector_loss"] = selector_loss.detach()
            loss = loss * s.loss_scale
            if phase.trains != "selector":
                losses.append(loss / s.windows)
            torch.stack(losses).sum().backward()
            own["loss"] = loss.detach()
            counts = counts + trained
            measured |= {name: measured[name] + value / s.windows for name, value in own.items()}
        if phase.trains != "selector":
            measured["gradient_norm"], skipped = self._apply(learners.network, learners.optimiser, counts[0])
            measured["skipped"] = skipped
            self._follow(skipped)
        if phase.trains != "network" and learners.selector is not None and learners.selector_optimiser is not None:
            norm, _ = self._apply(learners.selector, learners.selector_optimiser, counts[1])
            measured["selector_gradient_norm"] = norm
        share = 1 / self.group.size
        per_process = {"gradient_norm", "skipped", "selector_gradient_norm"}
        values = [measured[name].double() * (share if name in per_process else 1) for name in MEASURED]
        self.sums += torch.stack(values)

    def batch(self, inputs: dict[str, Tensor]) -> Batch | SequenceBatch:
        """The queries of an update. All windows have the same one, whose tables a network makes once."""
        s, batch = self.settings, self.data.batch(inputs["rows"], self.phase.settings.sampling)
        if isinstance(batch, SequenceBatch):
            return batch
        if s.augment:
            batch = augment(batch, inputs["augment"])
        return reveal(batch, s.reveal, inputs["reveal"]) if s.reveal else batch

    def losses(
        self,
        batch: Batch | SequenceBatch,
        inputs: dict[str, Tensor],
        burn_in: int,
        measured: dict[str, Tensor],
        state: Tensor | None = None,
    ) -> tuple[Losses, Tensor | None]:
        """Forward pass and losses of a batch; adds its counts to ``measured``.

        Starts from a state, if there is one; returns the last state, detached, if there are several windows.
        """
        s, learners, phase = self.settings, self.learners, self.phase
        if isinstance(batch, SequenceBatch):
            assert not isinstance(self.objective, RuleLoss)  # sequences have no rules
            found = sequence_losses(
                self.objective,
                learners,
                batch,
                inputs.get("weights"),
                measured,
                trained=phase.trains != "selector",
                running=self._running,
                counted=self._counted,
            )
            return found, None
        with torch.set_grad_enabled(phase.trains != "selector"):
            logits, state = self._predict(learners.network, batch, inputs, burn_in, state)
        if s.discover:
            answers = logits[-1].argmax(-1)
            answers = repair(batch, answers, s.repair, inputs["repair"]) if s.repair else answers
            batch = discover(batch, answers, valid_only=s.repair > 0)
        if s.spare_settled:
            batch = spare_settled(batch, logits)
        solutions, mask = batch.solutions + learners.network.value_offset, batch.mask
        counts = self._counted(mask, measured)
        if isinstance(self.objective, SelectR):
            both = self._selectr(self.objective, batch, solutions, logits, inputs, burn_in, counts, measured)
            return Losses(*both, counts), state
        if isinstance(self.objective, RuleLoss):
            return Losses(self.objective(logits, batch, normaliser=counts[0]), None, counts), state
        pair_losses = self.objective.pair_losses(logits, solutions, mask)
        if s.follow_noise:
            mask = follow_noise(batch, pair_losses, inputs["noise"], s.follow_noise)
        loss = self.objective.reduce(pair_losses, mask, normaliser=counts[0], noise=inputs.get("weights"))
        return Losses(loss, None, counts), state

    def _predict(
        self, network: nn.Module, batch: Batch, inputs: dict[str, Tensor], burn_in: int, state: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Logits [B, R, V] or [T, B, R, V]; and the last state, if there are several windows."""
        arguments: dict[str, Tensor | int] = {}
        if "noise" in self.takes:
            arguments["noise"] = inputs["noise"]
        if "seed" in self.takes:
            arguments |= {"seed": inputs["seed"], "row_offset": self.rows.start}
        with self._running():
            if burn_in and state is None:
                with torch.no_grad():
                    _, state = network(batch, steps=burn_in, every_step=False, return_state=True, **arguments)
            if state is not None:
                arguments["state"] = state
            if self.settings.windows == 1:
                return network(batch, **arguments), None
            logits, last = network(batch, return_state=True, **arguments)
            return logits, last.detach()

    def _selectr(
        self,
        objective: SelectR,
        batch: Batch,
        solutions: Tensor,
        logits: Tensor,
        inputs: dict[str, Tensor],
        burn_in: int,
        counts: Tensor,
        measured: dict[str, Tensor],
    ) -> tuple[Tensor, Tensor]:
        """Both losses of section 3.4, before either network is updated; adds the exploratory counts to ``measured``."""
        learners, mask = self.learners, batch.mask
        assert learners.selector is not None
        lagged = learners.lagged
        copied = logits.detach() if lagged is None else self._predict(lagged, batch, inputs, burn_in)[0]
        with self._running():
            scores = learners.selector(copied, batch).float()
        pair_losses = objective.pair_losses(logits, solutions, mask)
        hamming = self.hamming(logits.detach(), solutions)
        exact = self.settings.selector_training.reward == "exact" and objective.reward is not None
        rewards = objective.reward(logits.detach(), solutions) if exact and objective.reward else hamming
        noise = inputs.get("weights")
        loss = objective.reduce(pair_losses, mask, scores, normaliser=counts[0], noise=noise)
        selector_loss = objective.reduce_rewards(rewards, mask, scores, normaliser=counts[1], noise=noise)
        with torch.no_grad():
            multiple = mask.sum(1) > 1
            favourite = scores.masked_fill(~mask, -torch.inf).argmax(1, keepdim=True)
            closest = pair_losses.mean(0).masked_fill(~mask, torch.inf).argmin(1, keepdim=True)
            agreement = hamming.mean(0).masked_fill(~mask, -torch.inf)
            nearer = agreement.amax(1, keepdim=True) > agreement.gather(1, favourite)
            measured["exploratory_loss"] = ((favourite != closest)[:, 0] & multiple).sum()
            measured["exploratory_hamming"] = (nearer[:, 0] & multiple).sum()
        return loss, selector_loss

    def _apply(self, network: nn.Module, optimiser: Optimiser, trained: Tensor) -> tuple[Tensor, Tensor]:
        """Sum gradients over processes, clip, step; skip the step if no query was trained on or the gradient is bad."""
        parameters = [p for p in network.parameters() if p.requires_grad]
        self.group.sum_gradients(parameters)
        limit = self.settings.clip if self.settings.clip is not None else float("inf")
        norm = nn.utils.clip_grad_norm_(parameters, limit, foreach=True)
        bad = ~norm.isfinite() | (trained == 0)
        if self.settings.largest_gradient is not None:
            bad = bad | (norm > self.settings.largest_gradient)
        skipped = bad.float()
        # The fused optimisers skip the whole step (momentum, decay, count) if this is 1.
        optimiser.found_inf = skipped  # pyright: ignore
        optimiser.step()
        return norm.nan_to_num(0.0, 0.0, 0.0), skipped

    @torch.no_grad()
    def _follow(self, skipped: Tensor) -> None:
        """Update the moving average, unless the step was skipped."""
        if self.learners.average is None:
            return
        weight = (1 - self.settings.ema) * (1 - skipped)
        for average, live in zip(self.learners.average.parameters(), self.learners.network.parameters(), strict=True):
            average.lerp_(live, weight)

    # ---- small things ----------------------------------------------------------------------------------------------

    def _counted(self, mask: Tensor, measured: dict[str, Tensor]) -> Tensor:
        """The number of queries that train the network and the selector, in all processes: [2].

        Those of this process's slice are added to ``measured``.
        """
        local = torch.stack([self.objective.count(mask), (mask.sum(1) > 1).sum()])
        measured |= {"queries": local[0], "ms_queries": local[1]}
        return self.group.sum(local)

    def _running(self) -> AbstractContextManager[object]:
        return running(self.device, self.learners.precision, cached=False)

    def _set_lr(self, lr: float) -> None:
        for group in self.learners.optimiser.param_groups:
            group["lr"].fill_(lr)

    def _warm_up_or_capture(self, inputs: dict[str, Tensor], burn_in: int) -> None:
        """Run the first few updates on a side stream without a graph; capture the next one and replay it."""
        if self._warm.get(burn_in, 0) < WARM_UPS:
            self._warm[burn_in] = self._warm.get(burn_in, 0) + 1
            _on_side_stream(lambda: self.step(inputs, burn_in))
            return
        static = {name: value.clone() for name, value in inputs.items()}
        graph = torch.cuda.CUDAGraph()
        pool = next(iter(self._graphs.values()))[0].pool() if self._graphs else None
        with torch.cuda.graph(graph, pool=pool):
            self.step(static, burn_in)
        self._graphs[burn_in] = (graph, static)
        graph.replay()


def _on_side_stream(work: Callable[[], None]) -> None:
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        work()
    torch.cuda.current_stream().wait_stream(side)
