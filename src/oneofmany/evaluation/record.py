"""The record: settings and results of a run. Reports read records only.

Example::

    record = read_record("runs/nqueens/minloss/42")
    record.evaluations["nqueens-test"].scores.ms.accuracy
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from oneofmany.evaluation.scores import Judge, Score, judged

Subset = Literal["os", "ms", "overall"]
SUBSETS: tuple[Subset, ...] = ("os", "ms", "overall")


@dataclass(frozen=True)
class DataInfo:
    """A data set of a run. Evaluations have ``task`` and ``size``; training data has the last two fields."""

    name: str
    checksum: str
    queries: int
    task: str | None = None
    size: int | None = None
    ms_queries: int | None = None
    solutions_per_ms_query: float | int | None = None

    def count(self, subset: Subset) -> int | None:
        """The number of queries of a subset; None if it is not known."""
        if subset == "overall" or self.ms_queries is None:
            return self.queries if subset == "overall" else None
        return self.ms_queries if subset == "ms" else self.queries - self.ms_queries


@dataclass(frozen=True)
class Dev:
    """Validation (dev) accuracy of the kept weights, 0 to 1, and the update at which it was measured.

    ``judged_by`` is ``listed`` if an answer is correct when it is among the listed ones; else the rules decide.
    """

    os: float | int | None
    ms: float | int | None
    overall: float | int | None
    update: int
    phase: str
    judged_by: str | None = None

    def of(self, subset: Subset) -> float | None:
        """The accuracy on a subset of the queries; None if the subset is empty."""
        return getattr(self, subset)


Numbers = tuple[float | None, ...]


@dataclass(frozen=True)
class History:
    """One entry for every evaluation on dev; None for values that were not logged."""

    phase: tuple[str, ...] = ()
    update: tuple[int, ...] = ()
    seconds: Numbers = ()
    time: Numbers = ()
    loss: Numbers = ()
    dev_os: Numbers = ()
    dev_ms: Numbers = ()
    dev_overall: Numbers = ()
    lr: Numbers = ()
    exploratory_ms_loss: Numbers = ()
    exploratory_all_loss: Numbers = ()
    exploratory_ms_hamming: Numbers = ()
    exploratory_all_hamming: Numbers = ()

    def __len__(self) -> int:
        return len(self.update)


@dataclass(frozen=True)
class Scores:
    """Scores of the queries with one solution (OS), of those with several (MS), and of all."""

    os: Score
    ms: Score
    overall: Score

    def of(self, subset: Subset) -> Score:
        """The score of a subset of the queries."""
        return getattr(self, subset)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A network's answers to Q queries, and how they were made.

    Args:
        name: of the predictions file.
        data: the queries.
        scores: of one trajectory, the first start.
        chosen: of the start chosen without knowledge of the rules; None with one start.
        checked: of the queries for which any start is valid; None with one start.
        listed: answers that are a listed solution, among the queries with listed solutions.
        cell_accuracy: share of variables that agree with the closest listed solution; None if none is listed.
        valid: bool [Q], which queries one trajectory answered correctly.
        total: int32 [Q], number of solutions; -1 if unknown.
        givens: int32 [Q], number of given variables.
        made_by: the original command, if ``command`` is a later, shorter form of it.
        distinct: int32 [Q], number of different valid answers of all starts; None with one start.
        error_rate: of sequences, the edits to the nearest listed answers over the tokens of these; else None.
        judged_by: what ``valid`` means: valid by the rules, or among the listed answers.
    """

    name: str
    data: DataInfo
    scores: Scores
    chosen: Scores | None
    checked: Scores | None
    listed: Score
    cell_accuracy: float | int | None
    network: str | None
    readout: str
    steps: int | None
    starts: int
    choose: str
    seed: int
    patience: int | None
    batch: int | None
    precision: str | None
    weights: str | None
    command: str | None
    environment: dict | None
    seconds: float | int | None
    time: float | int | None
    valid: np.ndarray
    total: np.ndarray
    givens: np.ndarray
    made_by: str | None = None
    distinct: np.ndarray | None = None
    error_rate: float | int | None = None
    judged_by: Judge = "rules"

    @property
    def judge_mark(self) -> str:
        """A mark behind the name of data without rules: its answers are judged by the listed ones."""
        return "" if self.judged_by == "rules" else f" ({judged(self.judged_by)})"

    def __post_init__(self) -> None:
        queries, scores = self.data.queries, self.scores
        if not len(self.valid) == len(self.total) == len(self.givens) == queries:
            raise ValueError(f"expected {queries} entries in valid, total and givens")
        for one in (scores, self.chosen, self.checked):
            if one and (one.os.correct + one.ms.correct, one.os.total + one.ms.total, queries) != (
                one.overall.correct,
                one.overall.total,
                one.overall.total,
            ):
                raise ValueError("the scores of OS and MS queries do not add up")
        if self.listed.total > queries or int(self.valid.sum()) != scores.overall.correct:
            raise ValueError("the answers do not match the score")
        # If the number of solutions is unknown, the query may be OS or MS.
        least, most = (int((self.valid & several).sum()) for several in (self.total > 1, self.total != 1))
        if not least <= scores.ms.correct <= most:
            raise ValueError("the answers do not match the score on MS queries")
        if self.distinct is not None and not (len(self.distinct) == queries and (self.distinct >= self.valid).all()):
            raise ValueError("the number of different answers does not match the answers")


@dataclass(frozen=True, eq=False)
class Record:
    """A run, finished or not.

    Args:
        settings: all training settings, as in the run folder's configuration.
        made_by: the original command, if ``command`` is a later, shorter form of it.
        extended: for every extension of the finished run, the ``phase`` (first or second), ``from`` how many ``to`` how
            many updates, and whether it was ``exact``: with the state of the optimiser.
        task_file: name (``path``) and ``sha256`` of the file that defines a task of the user's; None for other tasks.
        data: ``train`` and ``dev``.
        dev: None before the first evaluation.
        apart: the group of a record that is reported separately from the main runs, else empty; never in a file.
    """

    recipe: str
    task: str
    objective: str
    network: str
    seed: int
    settings: dict
    command: str
    environment: dict
    data: Mapping[str, DataInfo]
    seconds: float | int | None
    updates: int | None
    finished: bool
    dev: Dev | None
    history: History
    evaluations: Mapping[str, Evaluation]
    made_by: str | None = None
    extended: list | None = None
    task_file: dict | None = None
    apart: str = ""
    flat: Mapping[str, Any] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "flat", flattened(self.settings))

    @property
    def name(self) -> str:
        """Recipe and seed, ``nqueens/minloss/42``."""
        return f"{self.recipe}/{self.seed}"

    @property
    def device(self) -> str:
        """The device that the run was trained on, for display."""
        return str(self.environment.get("device") or "")

    @property
    def revisions(self) -> set[str]:
        """The revisions of the source tree that trained and evaluated the run; a + marks uncommitted changes."""
        made_in = [self.environment, *(evaluation.environment for evaluation in self.evaluations.values())]
        return {str((environment or {}).get("revision") or "") for environment in made_in} - {""}

    @property
    def dirty(self) -> bool:
        """Whether the run or one of its evaluations was made with uncommitted changes in the source tree."""
        return any(revision.endswith("+") for revision in self.revisions)

    def setting(self, name: str) -> Any:
        """A setting by its full name, ``first.lr``; None if the run's version has no such setting."""
        return self.flat.get(name)


def flattened(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested settings by their full names, ``first.lr``."""
    found = {}
    for name, value in settings.items():
        found |= flattened(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return found
