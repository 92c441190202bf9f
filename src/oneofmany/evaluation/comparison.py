"""Compare two runs on the same queries.

Example::

    from oneofmany.evaluation import compare_runs

    compared = compare_runs("runs/nqueens/selectr/42", "runs/nqueens/minloss/42", "data/nqueens-test.safetensors")
    print(compared.ms.first.accuracy, compared.ms.second.accuracy, compared.ms.mcnemar.p)
"""

from __future__ import annotations

import shlex
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from oneofmany.data import Dataset, SequenceData, load_data
from oneofmany.evaluation.record_file import read_record
from oneofmany.evaluation.scores import Score
from oneofmany.evaluation.statistics import McNemar, mcnemar
from oneofmany.files import FileError


@dataclass(frozen=True)
class Compared:
    """Two runs on the same queries.

    Args:
        first: score of the first run.
        second: score of the second run.
        mcnemar: queries that only one run answered correctly, with the exact test.
        both: number of queries that both answered correctly.
        neither: number of queries that neither answered correctly.
    """

    first: Score
    second: Score
    mcnemar: McNemar
    both: int
    neither: int

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers for JSON."""
        scores = {"first": self.first.as_dict(), "second": self.second.as_dict()}
        return scores | asdict(self.mcnemar) | {"both": self.both, "neither": self.neither}


@dataclass(frozen=True)
class Comparison:
    """Two runs on a data file, by subset of its queries.

    Args:
        data: the data's name, checksum and number of queries, and what judges answers: ``rules`` or ``listed``.
        os: on the queries with one solution.
        ms: on the queries with several.
        overall: on all queries.
    """

    data: dict[str, Any]
    os: Compared
    ms: Compared
    overall: Compared

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers for JSON."""
        subsets = {"os": self.os, "ms": self.ms, "overall": self.overall}
        return {"data": self.data} | {name: compared.as_dict() for name, compared in subsets.items()}


def compare_runs(first: str | Path, second: str | Path, data: str | Path, *, name: str | None = None) -> Comparison:
    """Compare two runs by one trajectory (the first start). Both runs must already be evaluated on the data.

    Args:
        first: a run folder or a record (.json).
        second: another run folder or record.
        data: the data file.
        name: of the predictions in both runs; by default the name of the data file.
    """
    data = Path(data)
    dataset = load_data(data)
    pair = [_valid(Path(run), data, dataset, name or data.stem) for run in (first, second)]

    def on(rows: np.ndarray) -> Compared:
        ours, theirs = (valid[rows] for valid in pair)
        first, second = (Score(int(valid.sum()), len(valid)) for valid in (ours, theirs))
        both, neither = int((ours & theirs).sum()), int((~ours & ~theirs).sum())
        return Compared(first, second, mcnemar(ours, theirs), both, neither)

    judge = "rules" if dataset.problem.has_rules else "listed"
    header = dataset.header()
    about = {"name": data.stem, "checksum": header["checksum"], "queries": len(dataset), "judged_by": judge}
    return Comparison(about, on(~dataset.multiple), on(dataset.multiple), on(np.ones(len(dataset), bool)))


def _valid(run: Path, data: Path, dataset: Dataset | SequenceData, name: str) -> np.ndarray:
    """bool [Q]: which queries a run answered correctly, from its saved predictions."""
    evaluations = read_record(run).evaluations
    if name not in evaluations:
        others = f" (but on {', '.join(evaluations)})" if evaluations else ""
        command = ["oneofmany", "evaluate", str(run), str(data), *([] if name == data.stem else ["--name", name])]
        raise FileError(f"{run} has no predictions on {name}{others}: make them with `{shlex.join(command)}`")
    there, here = evaluations[name].data, dataset.header()["checksum"]
    if there.checksum != here:
        raise FileError(
            f"{run} was evaluated on other data ({there.name}, {there.checksum}) than {data} ({here}): use the "
            "same data, or evaluate again with --force"
        )
    return evaluations[name].valid
