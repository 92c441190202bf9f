"""The training loop: phases, evaluation on dev, the best weights, logging, checkpoints, stopping."""

from __future__ import annotations

import math
import signal
import time
from typing import Any

import numpy as np
import torch
from torch import Tensor

from oneofmany.data import Dataset, SequenceData
from oneofmany.data.batches import Share, place
from oneofmany.evaluation import evaluate
from oneofmany.files import FileError, write_json
from oneofmany.networks.protocol import TaskNetwork
from oneofmany.networks.saved import load_network, save_network
from oneofmany.problems import source_of
from oneofmany.runs.folder import RunFolder
from oneofmany.runs.signals import listening
from oneofmany.training.checkpoints import IN_PHASE, Candidate, Checkpoint, Clock, Position
from oneofmany.training.distributed import Group
from oneofmany.training.learners import Learners, load_weights, under, weights_of
from oneofmany.training.metrics import Watch, averages
from oneofmany.training.phases import Phase, phases_of
from oneofmany.training.schedule import Schedule
from oneofmany.training.settings import Settings, settings_of
from oneofmany.training.updating import MEASURED, Updater


class TrainingError(RuntimeError):
    """Training cannot continue; the last good state is kept."""


class Interrupted(Exception):  # noqa: N818 - not an error
    """The run was asked to stop and has saved its state."""

    def __init__(self, number: int, update: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name} at update {update}")
        self.number = number


class Trainer:
    """Trains one run until its end or until a signal.

    Args:
        settings: the settings of the run.
        folder: the run folder; only the first process writes into it.
        train: the training data.
        dev: the validation (dev) data, used for schedules, early stopping and the best weights.
        device: the device of this process.
        group: the processes of the run.
        watch: called with every line of metrics.
    """

    def __init__(
        self,
        settings: Settings,
        folder: RunFolder,
        train: Dataset | SequenceData | Share,
        dev: Dataset | SequenceData,
        *,
        device: torch.device,
        group: Group = Group(),  # noqa: B008 - frozen
        watch: Watch | None = None,
    ) -> None:
        self.settings, self.folder, self.group, self.device = settings, folder, group, device
        self.watch: Watch = watch or (lambda line: None)
        self.train = place(train, device, settings.listed, rated=settings.curriculum is not None)
        if isinstance(train, SequenceData) and isinstance(dev, SequenceData):
            dev = dev.in_words_of(train.problem)
        some = dev if settings.dev_queries is None else dev.take(np.arange(min(settings.dev_queries, len(dev))))
        self.dev = place(some, device)
        self.phases = phases_of(settings)
        self.learners = Learners(settings, train.problem, device)
        self.at = Position()
        self.best: Candidate | None = None
        self.candidate: Candidate | None = None
        self._end: dict[str, Tensor] = {}
        self._signal: int | None = None
        self._checked = time.monotonic()
        self._skipped = 0

    # ---- the run ---------------------------------------------------------------------------------------------------

    def run(self) -> dict[str, Any]:
        """Train to the end and return the content of result.json; Interrupted and TrainingError leave a good state."""
        resumed = self._resume()
        if self.at.finished:
            return self._finish()
        if self.settings.pretrained and self.candidate is None:
            self._take_pretrained()
        with listening(self._remember):
            while self.at.phase < len(self.phases):
                tensors = self._run_phase(self.phases[self.at.phase], resumed)
                resumed = None
                if self.at.phase == len(self.phases) - 1:
                    self.at.end, self._end = {name: getattr(self.at, name) for name in IN_PHASE}, tensors
                self.at.phase, self.at.update, self.at.phase_seconds, self.at.progress = self.at.phase + 1, 0, 0.0, 0.0
                self.at.schedule, self.at.since_evaluation = None, {}
                self._checkpoint(self._between_phases())
        if self.candidate is not None:
            self._keep(self.candidate)
        self.at.finished = True
        self._checkpoint(self._between_phases())
        return self._finish()

    def _run_phase(self, phase: Phase, resumed: dict[str, Tensor] | None) -> dict[str, Tensor]:
        """Train one phase; return the tensors at its end."""
        s, at, learners = self.settings, self.at, self.learners
        start = None if phase.fresh or self.candidate is None else self.candidate.weights
        learners.begin(start, with_selector=phase.trains != "network", decay=phase.settings.decay)
        schedule = Schedule(phase.settings)
        updater = Updater(s, phase, learners, self.train, self.group)
        if resumed is None:
            stays = self.candidate if s.keep_pretrained and phase.stream == "second" else None
            self.best = None if stays is None else stays.copy()
        else:
            learners.restore(resumed)
            updater.sums.copy_(resumed["sums"])
            schedule.restore(at.schedule or schedule.state())
        at.schedule = schedule.state()
        self.watch({"phase": phase.name, "updates": phase.settings.updates, "minutes": phase.settings.minutes})
        clock, self._skipped = Clock(at), 0
        over = at.update >= phase.settings.updates
        while not over:
            lr = schedule.lr(at.update, at.progress)
            updater.run(at.update, lr)
            at.update += 1
            at.all_updates += 1
            over = at.update >= phase.settings.updates
            at.progress = max(at.progress, at.update / phase.settings.updates)
            look = over or at.update % s.log_every == 0
            evaluating = phase.trains != "selector" and (over or at.update % s.evaluate_every == 0)
            if look or evaluating or (self.device.type == "cpu" and self.group.size == 1):
                looked = look or evaluating
                if looked:
                    self._measure(updater, phase, lr, clock)
                if phase.settings.minutes is not None:
                    used = self.group.from_first(at.phase_seconds / 60 / phase.settings.minutes, self.device)
                    at.progress = max(at.progress, used)
                    if used >= 1 and not over:
                        over, evaluating = True, phase.trains != "selector"
                        if not looked:
                            self._measure(updater, phase, lr, clock)
                if evaluating:
                    over = self._evaluate(phase, schedule, lr, clock) or over
                at.schedule = schedule.state()
                clock.tick()
                if not over:  # a phase that is over is saved below, as the beginning of the next
                    self._look_around(updater, looked)
            elif self._signal is not None and self.group.size == 1:
                clock.tick()
                self._stop(updater)
        if self.best is not None and self.best.better_than(self.candidate):
            self.candidate = self.best
        if phase.stream == "second" and self.best is not None:
            self.candidate = self.best  # as in the paper, even if the first phase was better
        self.best = None
        return self._tensors(updater)

    def _measure(self, updater: Updater, phase: Phase, lr: float, clock: Clock) -> None:
        """Write a line of metrics for the updates since the last line."""
        at = self.at
        sums = updater.measured()
        clock.tick()
        updates = max(1, at.all_updates - at.logged)
        at.logged = at.all_updates
        for name in MEASURED:
            at.since_evaluation[name] = at.since_evaluation.get(name, 0.0) + sums[name]
        at.since_evaluation["updates"] = at.since_evaluation.get("updates", 0) + updates
        line = {
            "kind": "train",
            "phase": phase.name,
            "update": at.update,
            "seconds": round(at.seconds, 3),
            "lr": lr,
            "queries_per_second": round(clock.rate(updates * phase.settings.batch), 1),
            **averages(sums, updates, phase),
        }
        loss = line["selector_loss"] if phase.trains == "selector" else line["loss"]
        if not math.isfinite(loss) or abs(loss) > self.settings.largest_loss:
            raise TrainingError(
                f"the loss is {loss} at update {at.update} of phase {phase.name}: training stopped, the last "
                "checkpoint is kept; try a smaller learning rate or clip"
            )
        self._skipped = self._skipped + updates if round(sums["skipped"]) == updates else 0
        if self._skipped >= 10:
            raise TrainingError(
                f"all {self._skipped} updates before update {at.update} of phase {phase.name} were skipped (gradient "
                f"norm {line['gradient_norm']:.3g}, {sums['queries']:.0f} queries to train on): training stopped; "
                "check largest_gradient, the sampling and the data"
            )
        self._log(line)

    def _evaluate(self, phase: Phase, schedule: Schedule, lr: float, clock: Clock) -> bool:
        """Evaluate on dev and keep the best weights; return True if the phase should stop."""
        s, at = self.settings, self.at
        dev = self._dev(self.learners.evaluated)
        clock.tick()
        since = at.since_evaluation
        line = {
            "kind": "dev",
            "phase": phase.name,
            "update": at.update,
            "seconds": round(at.seconds, 3),
            "lr": lr,
            **averages(since, int(since["updates"]), phase),
            **{f"dev_{name}": dev[name] for name in ("os", "ms", "overall")},
            "judged_by": dev["judged_by"],
        }
        at.since_evaluation = {}
        self._log(line)
        score = self.group.from_first(dev["score"], self.device)
        found = Candidate({}, dev | {"score": score, "update": at.update, "phase": phase.name})
        if self.best is None or not self.best.better_than(found):  # on a tie, keep the later weights
            found.weights = weights_of(self.learners.evaluated)
            self.best = found
            self._keep(found)
        if schedule.evaluated(score):
            return True
        return line["loss"] / s.loss_scale < 1e-5 and phase.settings.stop_after is not None

    def _dev(self, network: TaskNetwork) -> dict[str, Any]:
        """OS, MS and overall accuracy on dev, its judge, and the score: the one named by select_on."""
        s = self.settings
        with torch.compiler.set_stance("force_eager"):
            outcomes = evaluate(
                network,
                self.dev,
                steps=s.network.test_steps,
                device=self.device,
                precision=self.learners.precision,
            )
        summary = outcomes.summary()
        shares = {name: summary[name]["accuracy"] for name in ("os", "ms", "overall")}
        return shares | {"judged_by": outcomes.judged_by, "score": shares[s.select_on]}

    def _keep(self, found: Candidate) -> None:
        if not self.group.writes:
            return
        self.folder.check_lock()
        s = self.settings
        card: dict[str, Any] = {"recipe": s.recipe, "objective": s.objective, "seed": s.seed, "dev": found.dev}
        if source := source_of(s.task, whole_path=False):
            card["task_file"] = source
        save_network(self.folder.weights, found.weights, s.network, self.learners.problem, card, force=True)

    # ---- between phases --------------------------------------------------------------------------------------------

    def _take_pretrained(self) -> None:
        """Start from the other run whose weights are best on dev."""
        s = self.settings
        for path in s.pretrained:
            run = RunFolder.open(path)
            theirs = settings_of(run)
            saved = load_network(
                run.weights, self.learners.problem, device=self.device, precision=self.learners.precision
            )
            dev = self._dev(saved.network)
            score = self.group.from_first(dev["score"], self.device)
            about = dev | {"score": score, "update": 0, "phase": f"pretrained {theirs.objective}"}
            found = Candidate(weights_of(saved.network), about)
            if found.better_than(self.candidate):
                self.candidate = found
        if self.candidate is not None:
            self._log({"kind": "start", "seconds": round(self.at.seconds, 3), "dev": self.candidate.dev})

    def _finish(self) -> dict[str, Any]:
        """Write the result if it is missing: a run may be killed after its last state."""
        kept, path = self.candidate, self.folder.path / "result.json"
        if kept is None:
            raise FileError(f"the newest state of {self.folder.path} is damaged: it has no weights; delete its file")
        seconds = round(self.at.seconds, 3)
        result = {"dev": kept.dev, "seconds": seconds, "updates": self.at.all_updates, "finished": self.at.finished}
        if self.group.writes and not path.exists():
            self.folder.check_lock()
            write_json(path, result)
        return result

    # ---- state -----------------------------------------------------------------------------------------------------

    def _look_around(self, updater: Updater, at_a_line: bool) -> None:
        """Save a checkpoint if one is due; stop if a signal came."""
        asked = float(self._signal or 0)
        if at_a_line and self.group.size > 1:
            asked = self.group.from_first(asked, self.device)
        if asked and (at_a_line or self.group.size == 1):
            self._signal = int(asked)
            self._stop(updater)
        due = time.monotonic() - self._checked >= 60 * self.settings.checkpoint_minutes
        if at_a_line and due:
            self._checkpoint(self._tensors(updater))

    def _stop(self, updater: Updater) -> None:
        assert self._signal is not None
        self._checkpoint(self._tensors(updater))
        raise Interrupted(self._signal, self.at.update)

    def _tensors(self, updater: Updater) -> dict[str, Tensor]:
        return self.learners.state() | {"sums": updater.sums}

    def _between_phases(self) -> dict[str, Tensor]:
        """The tensors of a state between phases: the selector, since the next phase starts from the candidate.

        After the last phase, all tensors of its end, so that the run can be extended.
        """
        selector, end = self.learners.selector, {f"end/{name}": tensor for name, tensor in self._end.items()}
        return end if selector is None else end | {f"selector/{k}": v for k, v in weights_of(selector).items()}

    def _checkpoint(self, tensors: dict[str, Tensor]) -> None:
        self._checked = time.monotonic()
        if self.group.writes:
            Checkpoint(self.at, self.best, self.candidate, tensors).save(self.folder)

    def _resume(self) -> dict[str, Tensor] | None:
        """Load the folder's newest state; return its tensors if it is inside a phase."""
        found = Checkpoint.load(self.folder, self.device)
        if found is None:
            if self.group.writes:
                self.folder.cut_metrics(0)
            return None
        state, complaints = found
        for complaint in complaints:
            self.watch({"kind": "warning", "text": complaint})
        self.at, self.best, self.candidate = state.at, state.best, state.candidate
        self._end = under(state.tensors, "end")
        if self.group.writes:
            self.folder.cut_metrics(self.at.metrics)
        if self.best is not None and not self.at.finished:
            self._keep(self.best)  # the weights file may be newer than the state
        if "sums" in state.tensors:
            return state.tensors
        if self.learners.selector is not None:
            load_weights(self.learners.selector, under(state.tensors, "selector"))
        return None

    def _log(self, line: dict[str, Any]) -> None:
        if self.group.writes:
            self.folder.log(line)
        self.watch(line)

    def _remember(self, number: int) -> None:
        """Remember a signal until the update is done."""
        self._signal = number
