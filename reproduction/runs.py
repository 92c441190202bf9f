"""The published runs: reading their records, and choosing those of a table."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from oneofmany.evaluation.record import Record, Subset
from oneofmany.evaluation.record_file import read_record
from oneofmany.report.grid import OBJECTIVES, TASKS, Grid, name_of, test_evaluation, tested, variant_of

RECORDS = Path(__file__).parent / "records"
PAPER_NETWORKS = ("nlm", "rrn")
TABLE_2 = "table-2"
PAPER_VARIANTS = ("", "large-batch", TABLE_2)
"""Variants in the paper's tables: its literal settings, larger batches, and the settings that dev chose."""
OUR_VARIANT = "equivariant"
"""Recipes ``TASK/OBJECTIVE/equivariant``; ``equivariant-flags`` sees inequalities like the paper's NLM."""
CHECKER_VARIANT = f"{OUR_VARIANT}-checker"
"""Recipes ``sudoku/OBJECTIVE/equivariant-checker``: trained with the rules checker (``discover``)."""
LITERAL, TUNING, CONTROLS, EXPERIMENTS = "literal", "tuning", "controls", "experiments"
"""Folders of records that are kept apart from the runs that count and never replace them."""
THESIS, OUR_RECIPE, TEN_SEEDS = (f"{CONTROLS}/{name}" for name in ("equal-budget", "our-recipe", "ten-seeds"))
"""Controls with their own tables: every second phase from both starts, the paper's networks under our recipe, and more
seeds of Table 2."""
SEEDS_OF_THESIS = (42, 1729, 3120, 7, 2024)
"""The paper's seeds and two more."""
UNIQUE_DATA = {"sudoku-train": "10k", "sudoku-os-train": "180k"}
"""Name of a training set -> its number of OS queries in the comparison."""
UNIQUE_CHANGES = ("os-dev", "180k", "180k-os-dev")
"""The controls of Table 2's Unique in the comparison."""


def read_published(folder: Path = RECORDS) -> list[Record]:
    """All records below a folder; those that are kept apart name their folder."""
    return [replace(read_record(path), apart=_apart(path, folder)) for path in sorted(folder.rglob("*.json"))]


def _apart(path: Path, folder: Path) -> str:
    """``controls/NAME``, ``literal``; empty for the runs that count."""
    where = path.parent.relative_to(folder).parts
    where = where[1:] if where[:1] == ("paper",) else where
    return "/".join(where) if where[:1] and where[0] in (LITERAL, TUNING, CONTROLS, EXPERIMENTS) else ""


def base_of(record: Record) -> str:
    """The recipe that a record is compared with: ``sudoku/unique/table-2`` for ``sudoku/unique/table-2/180k``.

    Tuning is compared with Table 2.
    """
    parts = record.recipe.split("/")[:3]
    return "/".join(TABLE_2 if place == 2 and part == TUNING else part for place, part in enumerate(parts))


def base_variant(record: Record) -> str:
    """The variant of ``base_of`` a record: ``table-2`` for its controls and its tuning too."""
    return variant_of(replace(record, recipe=base_of(record)))


def change_of(record: Record) -> str:
    """The change that a recipe's name adds to another recipe: ``180k`` for ``sudoku/unique/table-2/180k``."""
    return "/".join(record.recipe.split("/")[3:])


def apart_in(grid: Grid, kind: str) -> list[Record]:
    """The records of one kind that are kept apart: ``controls``."""
    return [record for record in grid.apart if record.apart.split("/")[0] == kind]


def instead(grid: Grid, apart: str) -> Grid:
    """The runs, with those of a folder that is kept apart replacing the others of their recipes."""
    others = [replace(record, recipe=base_of(record)) for record in grid.apart if record.apart == apart]
    recipes = {record.recipe for record in others}
    return Grid((*(record for record in grid.runs if record.recipe not in recipes), *others))


def ours(grid: Grid) -> Grid:
    """The runs of our network's recipes, including those that are kept apart."""
    return _part(grid, True)


def others(grid: Grid) -> Grid:
    """All other runs, without experiments, which have their own tables."""
    found = _part(grid, False)
    return replace(found, apart=tuple(record for record in found.apart if not record.apart.startswith(EXPERIMENTS)))


def _part(grid: Grid, own: bool) -> Grid:
    runs, apart = ([record for record in records if is_ours(record) == own] for records in (grid.runs, grid.apart))
    return Grid(tuple(runs), apart=tuple(apart))


def is_ours(record: Record) -> bool:
    """Whether a run has one of our network's recipes, except the tiny ones of the demo."""
    return record.network == "equivariant" and base_variant(record).split("-")[0] == OUR_VARIANT


def goes_on(record: Record) -> bool:
    """Whether a run has a second phase."""
    return bool(record.setting("second.updates"))


def train_name(record: Record) -> str | None:
    """The name of its training data."""
    return record.data["train"].name if "train" in record.data else None


@dataclass(frozen=True)
class Schedule:
    """The variant of ``PAPER_VARIANTS`` that the paper's tables show for each task; they are never mixed.

    Args:
        variants: task -> variant; a task that is missing has no rows.
        name: added to the tables' names; empty for the schedule that counts.
    """

    variants: dict[str, str]
    name: str = ""

    def __str__(self) -> str:
        """``Recipes: TASK/OBJECTIVE/large-batch (N-Queens, Futoshiki), TASK/OBJECTIVE (Sudoku).``"""
        found: dict[str, list[str]] = defaultdict(list)
        for task, variant in self.variants.items():
            found["/".join(filter(None, ("TASK/OBJECTIVE", variant)))].append(name_of(task))
        return "Recipes: " + ", ".join(f"{name} ({', '.join(tasks)})" for name, tasks in found.items()) + "."

    @property
    def title(self) -> str:
        """Added to a table's title; empty for the schedule that counts."""
        return f" ({self.name})" if self.name else ""


def schedules(grid: Grid) -> list[Schedule]:
    """The schedule of every task with the most tested runs, then the other one if it has such runs."""
    with_test = Counter((record.task, variant_of(record)) for record, _ in tested(grid.runs))
    every = Counter((record.task, variant_of(record)) for record in grid.runs)
    ranked = {t: sorted(PAPER_VARIANTS, key=lambda v, t=t: (-with_test[t, v], -every[t, v])) for t in TASKS}
    second = {task: other for task, (_, other, *_) in ranked.items() if with_test[task, other]}
    found = [Schedule({task: first for task, (first, *_) in ranked.items()})]
    return [*found, Schedule(second, "other schedule")] if second else found


def counting(grid: Grid) -> Schedule:
    """The first of ``schedules``, against which the claims are checked."""
    return schedules(grid)[0]


def table_2(grid: Grid, task: str, *objectives: str) -> list[Record]:
    """The runs of Table 2, with the schedule that counts; of all objectives unless some are named."""
    variant = counting(grid).variants.get(task, "")
    return [record for objective in objectives or OBJECTIVES for record in grid.at(task, objective, variant)]


def by_seed(records: Sequence[Record], subset: Subset) -> dict[int, float]:
    """Seed -> accuracy on these test queries, in percent."""
    found = {record.seed: evaluation.scores.of(subset).accuracy for record, evaluation in tested(records)}
    return {seed: 100 * share for seed, share in found.items() if share is not None}


def compared_pair(grid: Grid, task: str, variant: str = "") -> tuple[list[Record], list[np.ndarray]] | None:
    """The runs of SelectR and MinLoss that dev picks, and which queries each got right; None for different data."""
    records = [record for o in ("selectr", "minloss") if (record := grid.best(task, o, variant)) is not None]
    evaluations = [evaluation for record in records if (evaluation := test_evaluation(record)) is not None]
    if len(evaluations) < 2 or evaluations[0].data.checksum != evaluations[1].data.checksum:
        return None
    return records, [evaluation.valid for evaluation in evaluations]


def training_data_of(record: Record) -> tuple[str, str, str] | None:
    """(10k or 180k, os or mixed, one of ``PAPER_VARIANTS``): the cell of a run in the comparison, or None."""
    size = UNIQUE_DATA.get(train_name(record) or "")
    if (record.task, record.objective, record.network) != ("sudoku", "unique", "rrn") or size is None:
        return None
    only_os = record.setting("select_on") == "os" or record.dev is None or record.dev.ms is None
    last = base_variant(record).split("/")[-1]
    return size, "os" if only_os else "mixed", last if last in PAPER_VARIANTS else ""


def unique_runs(grid: Grid, size: str, stopped: str, schedule: Schedule) -> list[Record]:
    """The runs of a cell of the comparison, from those that count and from the controls, ordered by seed."""
    # Other controls of Table 2's Unique, such as a second phase, are other experiments.
    controls = [
        record
        for record in apart_in(grid, CONTROLS)
        if base_variant(record) not in PAPER_VARIANTS or change_of(record) in UNIQUE_CHANGES
    ]
    found: dict[int, Record] = {}
    for record in (*grid.runs, *controls):
        if training_data_of(record) == (size, stopped, schedule.variants.get("sudoku")):
            found.setdefault(record.seed, record)
    return [found[seed] for seed in sorted(found)]


def is_authors_naive(record: Record) -> bool:
    """Whether a run has ``nqueens/naive-authors``, in any schedule, or the control of Table 2 like it."""
    return record.task == "nqueens" and "naive-authors" in record.recipe.split("/")
