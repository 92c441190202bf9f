"""Search: one Optuna study for every objective, whose trials are jobs of one queue.

The study's journal and the run folders are the state, so a search that was stopped or killed continues when it is made
again. Trials see the dev set only: a job of a search evaluates nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from oneofmany.data import load_data
from oneofmany.extras import require
from oneofmany.files import FileError, read_json
from oneofmany.launching import Launcher
from oneofmany.recipes import recipe
from oneofmany.recipes.fields import resolve
from oneofmany.recipes.finding import DataFiles
from oneofmany.training.jobs import Job, check_settings, state_of
from oneofmany.training.phases import phases_of
from oneofmany.training.queue import Entry, Queue, QueueWatch
from oneofmany.training.settings import Settings
from oneofmany.tuning.budget import budget_of, with_budget
from oneofmany.tuning.space import Space

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import Trial

JOURNAL = "journal.log"
Pruner = Literal["median", "halving", "none"]


@dataclass(frozen=True)
class Search:
    """A search.

    Args:
        recipe: the recipe; TASK/OBJECTIVE/VARIANT with every objective of ``objectives``.
        space: the fields and their values.
        trials: the number of trials of every objective.
        objectives: the objectives; empty for that of the recipe.
        updates: the updates of every trial; None is the largest number among the recipes of the objectives.
        pruner: how trials that fall behind on dev are stopped early.
        seed: the seed of every run, and of the search.
        out: the folder of the journal and of the runs, OUT/OBJECTIVE/NUMBER, on shared storage.
        fields: changed fields of every run, as arguments of ``oneofmany train``.
        data: the location of the data.
    """

    recipe: str
    space: Space
    trials: int = 50
    objectives: Sequence[str] = ()
    updates: int | None = None
    pruner: Pruner = "median"
    seed: int = 42
    out: Path = Path("tuning")
    fields: Sequence[str] = ()
    data: DataFiles = field(default_factory=DataFiles)

    def __post_init__(self) -> None:
        if self.trials < 1:
            raise ValueError(f"--trials: expected at least 1, got {self.trials}")
        if self.pruner not in ("median", "halving", "none"):
            raise ValueError(f"--pruner: expected median, halving or none, got {self.pruner!r}")
        if unknown := set(self.space.own) - set(self.recipes):
            raise ValueError(f"--space: {', '.join(sorted(unknown))} is not among the objectives of this search")

    @property
    def recipes(self) -> dict[str, str]:
        """The recipe of every objective."""
        task, own, *rest = recipe(self.recipe).recipe.split("/")
        return {name: recipe("/".join([task, name, *rest])).recipe for name in self.objectives or (own,)}

    def settings(self) -> dict[str, Settings]:
        """The settings of every objective before a trial changes them, all with the same number of updates."""
        every = {name: resolve(one, self.fields) for name, one in self.recipes.items()}
        updates = self.updates or max(map(budget_of, every.values()))
        return {name: replace(with_budget(one, updates), seed=self.seed) for name, one in every.items()}


class Tuner:
    """Runs the trials of a search in a queue, reports every evaluation on dev, and prunes.

    Args:
        search: the search.
        at_once: the number of trials at a time.
        launcher: the launcher of a cluster; None is this machine.
        deadline: the time to stop, by ``time.monotonic()``.
        watch: called with every change of a run.
    """

    def __init__(
        self,
        search: Search,
        *,
        at_once: int = 1,
        launcher: Launcher | None = None,
        deadline: float | None = None,
        watch: QueueWatch | None = None,
    ) -> None:
        self.search, self.at_once, self.watch = search, at_once, watch
        self.settings = search.settings()
        _check_data(search)
        search.out.mkdir(parents=True, exist_ok=True)
        self.studies = {name: open_study(search, name) for name in self.settings}
        self.queue = Queue([], at_once=at_once, deadline=deadline, watch=self, cluster=launcher)
        self._trials: dict[Entry, tuple[Study, Trial]] = {}
        self._told: dict[Entry, int] = {}

    def run(self) -> int | None:
        """Run until every objective has its trials; return the signal that stopped it, if any."""
        from optuna.trial import Trial, TrialState

        for name, study in self.studies.items():  # trials of a search that was stopped
            for left in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
                self._add(name, study, Trial(study, left._trial_id))
        self._ask()
        return self.queue.run()

    def changed(self, entry: Entry) -> None:
        """Tell the study how a trial ended."""
        if self.watch is not None:
            self.watch.changed(entry)
        if entry not in self._trials or entry.state not in ("finished", "failed", "stopped"):
            return
        if entry.state == "stopped" and not entry.cancelled:
            return  # the next search resumes it
        from optuna.trial import TrialState

        study, trial = self._trials.pop(entry)
        if entry.state == "finished":
            self._report(entry, study, trial)
            study.tell(trial, read_json(entry.job.folder / "result.json")["dev"]["score"], skip_if_finished=True)
        else:
            state = TrialState.PRUNED if entry.state == "stopped" else TrialState.FAIL
            study.tell(trial, state=state, skip_if_finished=True)

    def look(self, entries: Sequence[Entry]) -> None:
        """Report new evaluations, stop trials that fall behind, and ask for more trials."""
        for entry in entries:
            if entry.state == "running" and entry in self._trials:
                study, trial = self._trials[entry]
                if self._report(entry, study, trial) and trial.should_prune():
                    self.queue.cancel(entry)
        self._ask()
        if self.watch is not None:
            self.watch.look(entries)

    def _ask(self) -> None:
        """Ask for trials as long as there is a free place; objectives take turns, so their numbers stay equal."""
        while len(self._trials) < self.at_once:
            started = {name: len(study.get_trials(deepcopy=False)) for name, study in self.studies.items()}
            name = min(started, key=lambda name: started[name])
            if started[name] >= self.search.trials:
                return
            study = self.studies[name]
            self._add(name, study, study.ask(self.search.space.of(name)))

    def _add(self, name: str, study: Study, trial: Trial) -> None:
        chosen = [part for field, value in trial.params.items() for part in (f"--{field}", *_words(value))]
        settings = self.settings[name]
        fields = [*self.search.fields, *_budget_fields(settings), *chosen, "--seed", str(settings.seed)]
        own = resolve(self.search.recipes[name], fields)
        job_name = f"{name}/{trial.number}"
        arguments = (self.search.recipes[name], *fields, *self.search.data.options())
        job = Job(job_name, own, self.search.out / job_name, arguments)
        check_settings([job])
        entry = self.queue.add(job)
        self._trials[entry] = (study, trial)
        if state_of(job.folder) == "finished":  # by a search that was killed before it could tell
            self.changed(entry)

    def _report(self, entry: Entry, study: Study, trial: Trial) -> bool:
        """Tell the study about the evaluations since the last look; True if there are any."""
        points = evaluations(entry.job)
        known = self._told.get(entry)
        if known is None:
            known = len(study.trials[trial.number].intermediate_values)
        for step, score in points[known:]:
            trial.report(score, step)
        self._told[entry] = len(points)
        return len(points) > known


def open_study(search: Search, objective: str) -> Study:
    """The study of an objective in the journal of a search."""
    require("optuna")
    import optuna
    from optuna.pruners import MedianPruner, NopPruner, SuccessiveHalvingPruner
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    path = str(search.out / JOURNAL)
    # A lock that is a file, because network storage does not reliably pass flock on.
    storage = JournalStorage(JournalFileBackend(path, lock_obj=JournalFileOpenLock(path)))
    pruners = {"median": MedianPruner(n_startup_trials=4), "halving": SuccessiveHalvingPruner(), "none": NopPruner()}
    study = optuna.create_study(
        storage=storage,
        study_name=objective,
        direction="maximize",
        load_if_exists=True,
        pruner=pruners[search.pruner],
    )
    # Another seed for every continuation: otherwise it would propose the first trials again.
    study.sampler = optuna.samplers.TPESampler(seed=search.seed + len(study.trials), constant_liar=True)
    about = {"recipe": search.recipes[objective], "updates": budget_of(search.settings()[objective])}
    if study.user_attrs and study.user_attrs != about:
        raise FileError(
            f"{search.out} holds a search with other settings ({json.dumps(study.user_attrs)}, here "
            f"{json.dumps(about)}): choose another folder with --out"
        )
    for name, value in about.items():
        study.set_user_attr(name, value)
    return study


def evaluations(job: Job) -> list[tuple[int, float]]:
    """(updates of all phases so far, dev score) of every evaluation of a run."""
    before, starts = 0, {}
    for phase in phases_of(job.settings):
        starts[phase.name] = before
        before += phase.settings.updates
    path = job.folder / "metrics.jsonl"
    points: dict[int, float] = {}
    for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            line = json.loads(text)
        except ValueError:  # a line that is being written
            continue
        if line.get("kind") == "dev" and line.get(f"dev_{job.settings.select_on}") is not None:
            points[starts[line["phase"]] + line["update"]] = line[f"dev_{job.settings.select_on}"]
    return sorted(points.items())


def _check_data(search: Search) -> None:
    """Raise ValueError if dev or training data is a test set."""
    for one in dict.fromkeys(search.recipes.values()):
        for file in search.data.find(one):
            if load_data(file).built.get("split") == "test":
                raise ValueError(f"{file} is a test set: a search sees training and dev data only")


def _budget_fields(settings: Settings) -> list[str]:
    """The fields that ``with_budget`` has set, as arguments of ``oneofmany train``."""
    fields = ["--selector-training.updates", str(settings.selector_training.updates)]
    for name, phase in (("first", settings.first), ("second", settings.second)):
        fields += [f"--{name}.updates", str(phase.updates), f"--{name}.minutes", str(phase.minutes)]
        fields += [f"--{name}.stop-after", str(phase.stop_after)]
    return fields


def _words(value: Any) -> list[str]:
    return str(value).split()
