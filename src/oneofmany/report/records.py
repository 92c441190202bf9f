"""Records of runs as the report reads them: checked, grouped into a grid, their arrays decoded."""

from __future__ import annotations

import binascii
import json
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from oneofmany.evaluation.statistics import SeedSummary, over_seeds
from oneofmany.files import FileError
from oneofmany.report.paper import OBJECTIVES, TASKS, name_of, order_of
from oneofmany.runs import decode, valid_bits

Record = dict[str, Any]
"""One run as JSON (``oneofmany.runs.read_record``)."""
Evaluation = dict[str, Any]
"""One entry of a record's ``evaluations``."""
Score = dict[str, Any]
"""correct, total, accuracy, low, high."""

PAPER_NETWORKS = ("nlm", "rrn")
PAPER_VARIANTS = ("", "large-batch", "table-2")
"""Variants that the paper's tables are made of: its literal settings, larger batches, and what dev chose."""
NO_RESULT = {
    "recipe",
    "seed",
    "device",
    "threads",
    "capture",
    "compile",
    "log_every",
    "checkpoint_minutes",
    "pretrained",
}
"""Settings that two runs of one experiment may differ in."""


def deciding(record: Record) -> dict[str, Any]:
    """The settings that decide what comes out: those of the selector only where one is trained."""
    unused = set() if record["objective"] == "selectr" else {"selector", "selector_training"}
    return {name: value for name, value in record["settings"].items() if name not in NO_RESULT | unused}


def check_record(record: Any, where: str) -> Record:
    """The record itself; FileError in one sentence where it is not what the report can read."""
    kinds = {"recipe": str, "task": str, "objective": str, "network": str, "seed": int, "evaluations": dict}
    kinds |= {"name": str, "command": str, "settings": dict}
    if not isinstance(record, dict):
        raise FileError(f"{where} is no record of a run: expected a JSON object")
    for key, kind in kinds.items():
        if not isinstance(record.get(key), kind):
            raise FileError(f"{where} is no record of a run or damaged: {key!r} is missing or has the wrong type")
    for name, evaluation in record["evaluations"].items():
        try:
            queries = evaluation["data"]["queries"]
            for score in (evaluation[subset] for subset in ("os", "ms", "overall")):
                if not 0 <= score["correct"] <= score["total"] <= queries:
                    raise ValueError
            if int(valid_of(evaluation).sum()) != evaluation["overall"]["correct"]:
                raise ValueError
            for decode in (totals_of, givens_of):
                if len(decode(evaluation)) != queries:
                    raise ValueError
        except (KeyError, TypeError, ValueError, binascii.Error, zlib.error):
            raise FileError(f"{where} is damaged: its evaluation {name!r} does not fit together") from None
    return record


def valid_of(evaluation: Evaluation) -> np.ndarray:
    """bool [Q]: which queries one trajectory answered with a solution."""
    return valid_bits(evaluation)


def totals_of(evaluation: Evaluation) -> np.ndarray:
    """int32 [Q]: all solutions that exist; -1 unknown."""
    return decode(evaluation["total"])


def givens_of(evaluation: Evaluation) -> np.ndarray:
    """int32 [Q]: how many variables are given."""
    return decode(evaluation["givens"])


def goes_on(record: Record) -> bool:
    """Whether a run has a second phase."""
    return bool((record["settings"].get("second") or {}).get("updates"))


def variant_of(record: Record) -> str:
    """What the recipe's name adds to ``TASK/OBJECTIVE``, changes aside: empty for the paper's literal settings.

    ``large-batch`` for ``sudoku/unique/large-batch``, ``180k`` for ``sudoku/unique-180k``, ``table-2`` for its controls
    and tuning too.
    """
    _, *parts = base_of(record).split("/")
    own = parts[0].removeprefix(record["objective"]).strip("-") if parts else ""
    return "/".join([part for part in (own, *parts[1:]) if part])


def base_of(record: Record) -> str:
    """The recipe that a record is compared with: ``sudoku/unique/table-2`` for ``sudoku/unique/table-2/180k``.

    What was tried in tuning is compared with Table 2.
    """
    parts = record["recipe"].split("/")[:3]
    return "/".join("table-2" if place == 2 and part == "tuning" else part for place, part in enumerate(parts))


def change_of(record: Record) -> str:
    """What the recipe's name adds to a recipe that it changes: ``180k`` for ``sudoku/unique/table-2/180k``."""
    return "/".join(record["recipe"].split("/")[3:])


def titled(record: Record, field: str) -> str:
    """A record's name or recipe, with where it stands apart."""
    return record[field] + (f" ({record['apart']})" if "apart" in record else "")


def dev_score(record: Record) -> float:
    """What dev says about the kept weights, on the dev queries that training looked at; -1 without dev."""
    score = (record.get("dev") or {}).get(record["settings"].get("select_on", "overall"))
    return -1.0 if score is None else float(score)


def test_evaluation(record: Record) -> Evaluation | None:
    """The evaluation on the task's test set; of a network that is not the paper's, the first one serves as well."""
    evaluations: dict[str, Evaluation] = record["evaluations"]
    name = f"{record['task']}-test"
    if name in evaluations:
        return evaluations[name]
    named = [e for e in evaluations.values() if e["data"].get("name") == name]
    return next(iter(named or (() if record["network"] in PAPER_NETWORKS else evaluations.values())), None)


def percent(score: Score | None, key: str = "accuracy") -> float | None:
    """A score's accuracy (or ``low``, ``high``) in percent."""
    return None if score is None or score.get(key) is None else 100 * score[key]


def commands_of(records: Iterable[Record], evaluations: Iterable[Evaluation | None] = ()) -> tuple[str, ...]:
    """The commands that made these runs and evaluations, each once."""
    made = [record["command"] for record in records]
    made += [evaluation.get("command", "") for evaluation in evaluations if evaluation is not None]
    return tuple(dict.fromkeys(command for command in made if command))


def over_runs(records: Sequence[Record], subset: str) -> SeedSummary | None:
    """Mean, best by dev, standard error and t interval over seeds of the test evaluations, in percent."""
    evaluations = [(record, test_evaluation(record)) for record in records]
    return summarise([(record, evaluation[subset]) for record, evaluation in evaluations if evaluation is not None])


def over_dev(records: Iterable[Record], subset: str) -> SeedSummary | None:
    """The same of the dev queries, the kept weights, as training saw them."""
    return summarise((record, {"accuracy": (record.get("dev") or {}).get(subset)}) for record in records)


def summarise(scores: Iterable[tuple[Record, Score | None]]) -> SeedSummary | None:
    """Mean, best by dev, standard error and t interval of one score a run, in percent; None without a number."""
    values = [(percent(score), dev_score(record)) for record, score in scores]
    known = [(value, dev) for value, dev in values if value is not None]
    return over_seeds([value for value, _ in known], [dev for _, dev in known]) if known else None


@dataclass(frozen=True)
class Schedule:
    """Which of ``PAPER_VARIANTS`` the paper's tables show of every task; runs of two of them are never mixed.

    Args:
        variants: task -> variant; a task that is not in it has no rows.
        name: what it adds to the tables' names; empty for the schedule that counts.
    """

    variants: dict[str, str]
    name: str = ""

    def __str__(self) -> str:
        """``Recipes: TASK/OBJECTIVE/large-batch (N-Queens, Futoshiki), TASK/OBJECTIVE (Sudoku).``"""
        found: dict[str, list[str]] = defaultdict(list)
        for task, variant in self.variants.items():
            found["/".join(filter(None, ("TASK/OBJECTIVE", variant)))].append(name_of(task))
        return "Recipes: " + ", ".join(f"{name} ({', '.join(tasks)})" for name, tasks in found.items()) + "."


def of_schedule(schedule: Schedule) -> str:
    """What a title says about a schedule; nothing about the one that counts."""
    return f" ({schedule.name})" if schedule.name else ""


@dataclass(frozen=True)
class Grid:
    """The runs that count, one for every recipe and seed.

    Args:
        runs: the records, ordered as in the paper and by seed.
        left_out: name of every other record and why it does not count.
        apart: records that say where they stand apart (``record["apart"]``, as ``reading`` has it): experiments, the
            literal runs, tried settings, controls; shown beside the others and never in their place.
    """

    runs: tuple[Record, ...]
    left_out: tuple[tuple[str, str], ...] = ()
    apart: tuple[Record, ...] = ()

    @property
    def all(self) -> tuple[Record, ...]:
        """The runs that count, then those apart."""
        return self.runs + self.apart

    @classmethod
    def of(cls, records: Iterable[Record]) -> Grid:
        """Choose the runs that count.

        A recipe may have been run with several settings (the paper tunes some of them on dev): those with the most
        seeds count, and among them those with the best mean on dev.
        """
        left_out: list[tuple[str, str]] = []
        recipes: dict[str, dict[str, dict[int, Record]]] = defaultdict(lambda: defaultdict(dict))
        apart: dict[tuple[str, str], dict[int, Record]] = defaultdict(dict)
        for record in records:
            if "apart" in record:
                seeds = apart[record["recipe"], record["apart"]]
            else:
                seeds = recipes[record["recipe"]][json.dumps(deciding(record), sort_keys=True)]
            if not record.get("finished", True):
                left_out.append((record["name"], "it is not finished"))
            elif record["seed"] in seeds:
                left_out.append((record["name"], "it is there twice"))
            else:
                seeds[record["seed"]] = record
        runs: list[Record] = []
        for groups in recipes.values():
            kept, *others = sorted(groups.values(), key=_preference)
            runs += kept.values()
            why = "other settings of the same recipe have more seeds or are better on dev"
            left_out += [(record["name"], why) for other in others for record in other.values()]
        others = [record for seeds in apart.values() for record in seeds.values()]
        runs.sort(key=_place)
        others.sort(key=lambda record: (*_place(record)[:-1], record["apart"], record["seed"]))
        return cls(tuple(runs), tuple(left_out), tuple(others))

    def at(self, task: str, objective: str, variant: str = "") -> list[Record]:
        """The runs of one cell of a table, ordered by seed."""
        cell = (task, objective, variant)
        return [r for r in self.runs if (r["task"], r["objective"], variant_of(r)) == cell]

    def best(self, task: str, objective: str, variant: str = "") -> Record | None:
        """The run that dev picks among those of a cell that have a test evaluation."""
        tested = [record for record in self.at(task, objective, variant) if test_evaluation(record)]
        return max(tested, key=dev_score, default=None)

    def set_apart(self, kind: str) -> list[Record]:
        """The records of one kind that stand apart: ``controls``."""
        return [record for record in self.apart if record["apart"].split("/")[0] == kind]

    def instead(self, apart: str) -> Grid:
        """The runs, with those that stand apart in this folder in the place of the others of their recipes."""
        others = [record for record in self.apart if record["apart"] == apart]
        recipes = {base_of(record) for record in others}
        return Grid((*(record for record in self.runs if record["recipe"] not in recipes), *others))

    def schedules(self) -> list[Schedule]:
        """The schedule of every task with the most tested runs; then, where there are such runs, the other one."""
        tested = Counter((r["task"], variant_of(r)) for r in self.runs if test_evaluation(r) is not None)
        every = Counter((r["task"], variant_of(r)) for r in self.runs)
        ranked = {t: sorted(PAPER_VARIANTS, key=lambda v, t=t: (-tested[t, v], -every[t, v])) for t in TASKS}
        others = {task: other for task, (_, other, *_) in ranked.items() if tested[task, other]}
        found = [Schedule({task: first for task, (first, *_) in ranked.items()})]
        return [*found, Schedule(others, "other schedule")] if others else found

    def counting(self) -> Schedule:
        """The first of ``schedules``, which the claims are checked against."""
        return self.schedules()[0]

    def table_2(self, task: str, *objectives: str) -> list[Record]:
        """The runs of Table 2, which have the schedule that counts; of all objectives unless some are named."""
        variant = self.counting().variants.get(task, "")
        return [record for objective in objectives or OBJECTIVES for record in self.at(task, objective, variant)]

    def other_variants(self) -> list[str]:
        """The variants other than the paper's, in alphabetical order."""
        return sorted({variant_of(record) for record in self.runs} - set(PAPER_VARIANTS))


def _place(record: Record) -> tuple[str | int, ...]:
    return (variant_of(record), *order_of(record["task"], record["objective"]), record["seed"])


def _preference(seeds: dict[int, Record]) -> tuple[float, ...]:
    return (-len(seeds), -sum(map(dev_score, seeds.values())) / max(len(seeds), 1))
