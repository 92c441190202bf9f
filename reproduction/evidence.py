"""The comparisons that claims rest on: of our runs and of the published numbers, with one interface."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from oneofmany.evaluation.record import Evaluation, Record, Subset
from oneofmany.evaluation.statistics import p_text
from oneofmany.report.figures import Bin, bins_of
from oneofmany.report.grid import Grid, name_of, over_runs, tested
from reproduction import paper
from reproduction.runs import by_seed, compared_pair, counting, unique_runs
from reproduction.verdicts import Comparison, over_queries, over_seeds

FIRST_ENTRIES = 3
"""The first evaluations of the joint phase, our reading of "the initial several batches"."""


class Results(Protocol):
    """Numbers of our runs or of the paper; a comparison without an estimate if there is no number."""

    def mean(self, task: str, objective: str, subset: Subset) -> float | None:
        """Mean accuracy over seeds in percent."""
        ...

    def gain(
        self, task: str, higher: str, lower: str, subset: Subset, bound: float = 0.0, group: str = ""
    ) -> Comparison:
        """Accuracy of one objective minus that of another, paired by seed."""
        ...

    def picked(self, task: str) -> Comparison:
        """SelectR minus MinLoss, the two networks that dev picks."""
        ...

    def each_seed(self, task: str) -> list[Comparison]:
        """SelectR minus MinLoss, for each of the three seeds the two networks."""
        ...

    def unique(self, subset: Subset) -> Comparison:
        """The RRN on 180k OS queries, stopped on OS dev, minus Unique (10k, mixed dev)."""
        ...

    def stopping(self, size: str) -> Comparison:
        """MS accuracy of the RRN on ``10k`` or ``180k`` OS queries: stopped on mixed dev minus stopped on OS dev."""
        ...

    def explained(self) -> Comparison:
        """Twice what stopping on mixed dev regains with 180k, minus the whole distance to 10k on mixed dev."""
        ...

    def slope(self, objective: str) -> Comparison:
        """Sudoku accuracy against the number of solutions: points per bin, claimed to be below 0."""
        ...

    def drop(self, other: str) -> Comparison:
        """What another objective loses from the first to the last bin, minus what SelectR loses."""
        ...

    def exploratory(self, task: str) -> list[Comparison]:
        """Share of exploratory training queries at first, against both ends of the paper's range."""
        ...


def _gain_label(task: str, higher: str, lower: str, subset: Subset) -> str:
    return f"{name_of(task)} {name_of(subset)}, {name_of(higher)} − {name_of(lower)}"


UNIQUE_LABEL = "180k, OS dev − 10k, mixed dev"
EXPLAINED_LABEL = "twice the gain by mixed dev (180k) − the whole distance (180k, OS dev to 10k, mixed dev)"


class PapersResults:
    """The published numbers: estimates without tests, except for gains by seed."""

    def mean(self, task: str, objective: str, subset: Subset) -> float | None:
        """Table 2."""
        return paper.TABLE_2[task, objective, subset].mean

    def gain(
        self, task: str, higher: str, lower: str, subset: Subset, bound: float = 0.0, group: str = ""
    ) -> Comparison:
        """Table 2; of SelectR and MinLoss the appendix's gains by seed."""
        label = _gain_label(task, higher, lower, subset)
        if (higher, lower, subset) == ("selectr", "minloss", "overall"):
            return over_seeds(label, paper.SEED_GAINS[task], bound, group=group)
        one, other = (paper.TABLE_2[task, objective, subset].mean for objective in (higher, lower))
        return Comparison(label, one - other, group=group)

    def picked(self, task: str) -> Comparison:
        """Table 2 and section 4.3."""
        best = [paper.TABLE_2[task, objective, "overall"].best for objective in ("selectr", "minloss")]
        return Comparison(name_of(task), best[0] - best[1], about=f"p = {p_text(paper.MCNEMAR[task])}")

    def each_seed(self, task: str) -> list[Comparison]:
        """The appendix's table."""
        return [Comparison(f"{name_of(task)}, seed {seed}", one) for seed, one in paper.SEED_GAINS[task].items()]

    def unique(self, subset: Subset) -> Comparison:
        """The published network and Unique of Table 2."""
        ours = paper.TABLE_2["sudoku", "unique", subset].mean
        return Comparison(f"{name_of(subset)}, {UNIQUE_LABEL}", paper.UNIQUE_180K[subset] - ours)

    def stopping(self, size: str) -> Comparison:
        """One of the two is published for each size."""
        return Comparison(size)

    def explained(self) -> Comparison:
        """Not published."""
        return Comparison(EXPLAINED_LABEL)

    def slope(self, objective: str) -> Comparison:
        """Published only as a figure."""
        return Comparison(name_of(objective))

    def drop(self, other: str) -> Comparison:
        """Published only as a figure."""
        return Comparison(name_of(other))

    def exploratory(self, task: str) -> list[Comparison]:
        """Not published by task."""
        return [Comparison(name_of(task))]


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

    def gain(
        self, task: str, higher: str, lower: str, subset: Subset, bound: float = 0.0, group: str = ""
    ) -> Comparison:
        """For the seeds that both have."""
        one, other = (by_seed(self._at(task, objective), subset) for objective in (higher, lower))
        return over_seeds(_gain_label(task, higher, lower, subset), _paired(one, other), bound, group=group)

    def picked(self, task: str) -> Comparison:
        """Exact, over the test queries."""
        pair = compared_pair(self.grid, task, self.schedule.variants[task])
        return over_queries(name_of(task), None if pair is None else _minus(*pair[1]))

    def each_seed(self, task: str) -> list[Comparison]:
        """Exact, over the test queries."""
        runs = [_evaluations(self._at(task, objective)) for objective in ("selectr", "minloss")]
        return [
            over_queries(f"{name_of(task)}, seed {seed}", _contrast(runs, seed, (1, -1), "overall"))
            for seed in sorted({*paper.SEEDS, *(runs[0].keys() & runs[1].keys())})
        ]

    def _unique(self, size: str, stopped: str) -> list[Record]:
        return unique_runs(self.grid, size, stopped, self.schedule)

    def _contrasted(self, label: str, cells: Sequence[tuple[str, str]], weights: tuple[int, ...], subset: Subset):
        """A weighted sum of accuracies of the RRN on OS queries: over seeds, or over queries if they share one seed."""
        records = [self._unique(*cell) for cell in cells]
        values = [by_seed(runs, subset) for runs in records]
        shared = sorted(set.intersection(*(set(one) for one in values)))
        if len(shared) != 1:
            each = {s: sum(w * one[s] for w, one in zip(weights, values, strict=True)) for s in shared}
            return over_seeds(label, each)
        contrast = _contrast([_evaluations(runs) for runs in records], shared[0], weights, subset)
        return over_queries(label, contrast, f"over queries, the networks of seed {shared[0]}")

    def unique(self, subset: Subset) -> Comparison:
        """For the seeds that both have: seeds can differ by more than the data."""
        label = f"{name_of(subset)}, {UNIQUE_LABEL}"
        return self._contrasted(label, (("180k", "os"), ("10k", "mixed")), (1, -1), subset)

    def stopping(self, size: str) -> Comparison:
        """For the seeds that both have."""
        return self._contrasted(f"{size}, mixed dev − OS dev", ((size, "mixed"), (size, "os")), (1, -1), "ms")

    def explained(self) -> Comparison:
        """2 (180k mixed - 180k OS) - (10k mixed - 180k OS), for the seeds that all have."""
        cells = (("180k", "mixed"), ("180k", "os"), ("10k", "mixed"))
        return self._contrasted(EXPLAINED_LABEL, cells, (2, -1, -1), "ms")

    def _curves(self, objective: str) -> dict[int, list[Bin]]:
        runs = _evaluations(self._at("sudoku", objective))
        return {seed: bins for seed, one in runs.items() if len(bins := bins_of(one)) > 1}

    def slope(self, objective: str) -> Comparison:
        """By seed: a line through the bins of the test set, weighted by their queries."""
        each = {seed: _slope(bins) for seed, bins in self._curves(objective).items()}
        return over_seeds(f"{name_of(objective)}, points per bin", each, below=True)

    def drop(self, other: str) -> Comparison:
        """For the seeds that both have."""
        lost = [{s: b[0].accuracy - b[-1].accuracy for s, b in self._curves(o).items()} for o in (other, "selectr")]
        return over_seeds(f"points lost by {name_of(other)} − by SelectR", _paired(*lost))

    def exploratory(self, task: str) -> list[Comparison]:
        """Over all training queries; the closest solution is the one with the smallest loss."""
        each = {}
        for record in self._at(task, "selectr"):
            shares = [s for s in record.history.exploratory_all_loss if s is not None]
            if shares:
                each[record.seed] = 100 * float(np.mean(shares[:FIRST_ENTRIES]))
        low, high = paper.EXPLORATORY
        return [
            over_seeds(name_of(task), each, low, unit="%"),
            over_seeds(name_of(task), each, high, below=True, unit="%"),
        ]


def _paired(one: dict[int, float], other: dict[int, float]) -> dict[int, float]:
    return {seed: one[seed] - other[seed] for seed in sorted(one.keys() & other.keys())}


def _evaluations(records: Sequence[Record]) -> dict[int, Evaluation]:
    return {record.seed: evaluation for record, evaluation in tested(records)}


def _minus(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return first.astype(int) - second.astype(int)


def _contrast(
    runs: Sequence[dict[int, Evaluation]], seed: int, weights: tuple[int, ...], subset: Subset
) -> np.ndarray | None:
    """int [Q]: the weighted sum of which queries the networks of a seed got right; None for different data."""
    found = [one[seed] for one in runs if seed in one]
    if len(found) < len(runs) or len({one.data.checksum for one in found}) > 1:
        return None
    several = found[0].total > 1
    rows = {"os": ~several, "ms": several, "overall": np.ones_like(several)}[subset]
    return np.array(weights) @ np.stack([one.valid[rows].astype(int) for one in found])


def _slope(bins: list[Bin]) -> float:
    weights = np.sqrt([b.total for b in bins])
    return float(np.polyfit(range(len(bins)), [b.accuracy for b in bins], 1, w=weights)[0])
