"""The numbers that claims are checked against: those of our runs and the published ones, with one interface."""

from __future__ import annotations

from statistics import fmean
from typing import Protocol

import numpy as np

from oneofmany.evaluation.record import Record, Subset
from oneofmany.evaluation.statistics import mcnemar
from oneofmany.report.figures import Bin, bins_of
from oneofmany.report.grid import Grid, over_runs, test_evaluation
from reproduction import paper
from reproduction.runs import by_seed, compared_pair, counting, unique_runs

FIRST_ENTRIES = 3
"""The first evaluations of the joint phase, our reading of "the initial several batches"."""


class Results(Protocol):
    """Numbers of our runs or of the paper; None or empty if there is no number."""

    def mean(self, task: str, objective: str, subset: Subset) -> float | None:
        """Mean accuracy over seeds in percent."""
        ...

    def error(self, task: str, objective: str, subset: Subset) -> float | None:
        """Its standard error."""
        ...

    def test(self, task: str) -> tuple[float, bool] | None:
        """p of SelectR against MinLoss, and whether SelectR is better."""
        ...

    def gains(self, task: str) -> dict[int, float]:
        """Seed -> points of SelectR over MinLoss."""
        ...

    def unique(self, size: str, stopped: str, subset: Subset) -> float | None:
        """Accuracy of the RRN on ``10k`` or ``180k`` OS queries, stopped on ``os`` or ``mixed`` dev queries."""
        ...

    def stopping(self, size: str) -> tuple[float | None, float | None]:
        """MS accuracy of the RRN trained on this number of OS queries, stopped on OS dev and on mixed dev."""
        ...

    def curve(self, objective: str) -> list[Bin]:
        """Sudoku accuracy by number of solutions, of the run that dev picks."""
        ...

    def exploratory(self, task: str) -> tuple[float, float] | None:
        """The smallest and largest percentage of exploratory training queries over the runs, at first."""
        ...


class PapersResults:
    """The published numbers."""

    def mean(self, task: str, objective: str, subset: Subset) -> float | None:
        """Table 2."""
        return paper.TABLE_2[task, objective, subset].mean

    def error(self, task: str, objective: str, subset: Subset) -> float | None:
        """The appendix's table with its headers corrected."""
        return paper.STANDARD_ERRORS[task, objective, subset]

    def test(self, task: str) -> tuple[float, bool] | None:
        """Section 4.3."""
        return paper.MCNEMAR[task], True

    def gains(self, task: str) -> dict[int, float]:
        """The appendix's table."""
        return paper.SEED_GAINS[task]

    def unique(self, size: str, stopped: str, subset: Subset) -> float | None:
        """Unique of Table 2 and the published network."""
        if (size, stopped) == ("10k", "mixed"):
            return self.mean("sudoku", "unique", subset)
        return paper.UNIQUE_180K.get(subset) if (size, stopped) == ("180k", "os") else None

    def stopping(self, size: str) -> tuple[float | None, float | None]:
        """For each size one of the two is published."""
        return self.unique(size, "os", "ms"), self.unique(size, "mixed", "ms")

    def curve(self, objective: str) -> list[Bin]:
        """Published only as a figure."""
        return []

    def exploratory(self, task: str) -> tuple[float, float] | None:
        """Not published by task."""
        return None


class OurResults:
    """The numbers of the runs that count."""

    def __init__(self, grid: Grid) -> None:
        self.grid, self.schedule = grid, counting(grid)

    def _at(self, task: str, objective: str) -> list[Record]:
        return self.grid.at(task, objective, self.schedule.variants[task])

    def mean(self, task: str, objective: str, subset: Subset) -> float | None:
        """Over the runs with the paper's network and settings."""
        summary = over_runs(self._at(task, objective), subset)
        return None if summary is None else summary.mean

    def error(self, task: str, objective: str, subset: Subset) -> float | None:
        """None with one seed."""
        summary = over_runs(self._at(task, objective), subset)
        return None if summary is None else summary.standard_error

    def test(self, task: str) -> tuple[float, bool] | None:
        """Exact, between the runs that dev picks."""
        pair = compared_pair(self.grid, task, self.schedule.variants[task])
        if pair is None:
            return None
        found = mcnemar(*pair[1])
        return found.p, found.only_first > found.only_second

    def gains(self, task: str) -> dict[int, float]:
        """For the seeds that both have."""
        selectr, minloss = (by_seed(self._at(task, o), "overall") for o in ("selectr", "minloss"))
        return {seed: selectr[seed] - minloss[seed] for seed in sorted(selectr.keys() & minloss.keys())}

    def unique(self, size: str, stopped: str, subset: Subset) -> float | None:
        """Mean over seeds."""
        summary = over_runs(unique_runs(self.grid, size, stopped, self.schedule), subset)
        return None if summary is None else summary.mean

    def stopping(self, size: str) -> tuple[float | None, float | None]:
        """Means over the seeds that both have: seeds can differ by more than the way of stopping."""
        runs = (unique_runs(self.grid, size, stopped, self.schedule) for stopped in ("os", "mixed"))
        only, mixed = (by_seed(records, "ms") for records in runs)
        shared = only.keys() & mixed.keys()
        return (fmean(only[s] for s in shared), fmean(mixed[s] for s in shared)) if shared else (None, None)

    def curve(self, objective: str) -> list[Bin]:
        """Bins of the test set."""
        record = self.grid.best("sudoku", objective, self.schedule.variants["sudoku"])
        evaluation = None if record is None else test_evaluation(record)
        return [] if evaluation is None else bins_of(evaluation)

    def exploratory(self, task: str) -> tuple[float, float] | None:
        """Over all training queries; the closest solution is the one with the smallest loss."""
        at_first = []
        for record in self._at(task, "selectr"):
            shares = [s for s in record.history.exploratory_all_loss if s is not None]
            at_first += [100 * float(np.mean(shares[:FIRST_ENTRIES]))] if shares else []
        return (min(at_first), max(at_first)) if at_first else None
