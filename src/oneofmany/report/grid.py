"""The runs of a report: which of them count, and the results of their evaluations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from oneofmany.evaluation.record import SUBSETS, Evaluation, Record, Subset, flattened
from oneofmany.evaluation.statistics import SeedSummary, over_seeds_or_queries

TASKS = ("nqueens", "futoshiki", "sudoku")
OBJECTIVES = ("naive", "random", "unique", "ccloss", "minloss", "iexplr", "selectr")
"""Their order in tables; other objectives follow."""
NAMES = {
    "nqueens": "N-Queens",
    "futoshiki": "Futoshiki",
    "sudoku": "Sudoku",
    "naive": "Naive",
    "random": "Random",
    "unique": "Unique",
    "ccloss": "CC-Loss",
    "minloss": "MinLoss",
    "iexplr": "I-ExplR",
    "selectr": "SelectR",
    "rules": "Rules only",
    "os": "OS",
    "ms": "MS",
    "overall": "Overall",
    "nlm": "NLM",
    "rrn": "RRN",
}
"""The names of tasks, objectives, subsets and networks for readers."""
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
"""Settings that do not decide the result: two runs of one experiment may differ in them."""


def name_of(word: str) -> str:
    """The name of a task, objective, network or subset for readers; other names are returned unchanged."""
    return NAMES.get(word, word)


def order_of(task: str, objective: str) -> tuple[int, str, int, str]:
    """A sort key by task and objective; unknown ones come last."""
    at_task = TASKS.index(task) if task in TASKS else len(TASKS)
    at_objective = OBJECTIVES.index(objective) if objective in OBJECTIVES else len(OBJECTIVES)
    return at_task, task, at_objective, objective


def deciding(record: Record) -> dict[str, Any]:
    """The settings that decide the result; those of the selector only if one is trained."""
    unused = set() if record.objective == "selectr" else {"selector", "selector_training"}
    return {name: value for name, value in record.settings.items() if name not in NO_RESULT | unused}


def variant_of(record: Record) -> str:
    """What the recipe's name adds to ``TASK/OBJECTIVE``; empty for the paper's network and settings.

    ``large-batch`` for ``sudoku/unique/large-batch``, ``180k`` for ``sudoku/unique-180k``, ``hard/equivariant`` for
    ``sudoku-hard/unique/equivariant``.
    """
    first, *parts = record.recipe.split("/")
    data = first.removeprefix(f"{record.task}-") if first.startswith(f"{record.task}-") else ""
    own = parts[0].removeprefix(record.objective).strip("-") if parts else ""
    return "/".join([part for part in (data, own, *parts[1:]) if part])


def labels_of(records: Iterable[Record]) -> dict[str, str]:
    """Recipe -> the shortest name that tells it from the others: ``MinLoss``, ``MinLoss (tiny)`` or the recipe."""
    one_of_each = list({record.recipe: record for record in records}.values())
    longer = (
        lambda r: name_of(r.objective),
        lambda r: f"{name_of(r.objective)} ({variant_of(r) or 'plain'})",
        lambda r: r.recipe,
    )
    found: dict[str, str] = {}
    for record in one_of_each:
        for name in longer:
            if sum(name(other) == name(record) for other in one_of_each) == 1:
                found[record.recipe] = name(record)
                break
    return found


def titled(record: Record, name: str) -> str:
    """A record's name or recipe, with its folder if it is kept apart."""
    return name + (f" ({record.apart})" if record.apart else "")


def dev_score(record: Record) -> float:
    """The validation (dev) accuracy that chose the kept weights; -1 without one."""
    asked = record.setting("select_on")
    score = record.dev and record.dev.of(asked if asked in SUBSETS else "overall")
    return -1.0 if score is None else float(score)


def test_evaluation(record: Record) -> Evaluation | None:
    """The evaluation on the task's test set, or else the first one."""
    evaluations, name = record.evaluations, f"{record.task}-test"
    named = [evaluation for evaluation in evaluations.values() if evaluation.data.name == name]
    return evaluations.get(name) or next(iter(named or evaluations.values()), None)


def tested(records: Iterable[Record]) -> list[tuple[Record, Evaluation]]:
    """The runs that have a test evaluation, each with it."""
    return [(record, evaluation) for record in records if (evaluation := test_evaluation(record)) is not None]


def commands_of(records: Iterable[Record], evaluations: Iterable[Evaluation | None] = ()) -> tuple[str, ...]:
    """The commands that made these runs and evaluations, each once."""
    made = [record.command for record in records]
    made += [evaluation.command or "" for evaluation in evaluations if evaluation is not None]
    return tuple(dict.fromkeys(command for command in made if command))


def over_runs(records: Iterable[Record], subset: Subset) -> SeedSummary | None:
    """Accuracy over seeds on the test set, in percent: mean, best by dev, standard error and interval."""
    return summary_of(tested(records), subset)


def summary_of(runs: Sequence[tuple[Record, Evaluation]], subset: Subset) -> SeedSummary | None:
    """The same for runs with one evaluation each."""
    scores = [evaluation.scores.of(subset) for _, evaluation in runs]
    shares = [(record, score.accuracy) for (record, _), score in zip(runs, scores, strict=True)]
    return summarise(shares, [score.total for score in scores])


def over_dev(records: Sequence[Record], subset: Subset) -> SeedSummary | None:
    """The same on the validation (dev) queries, for the kept weights, as training measured it."""
    queries = [record.data["dev"].count(subset) for record in records if "dev" in record.data]
    return summarise([(record, record.dev and record.dev.of(subset)) for record in records], queries)


def summarise(shares: Iterable[tuple[Record, float | None]], queries: Sequence[int | None] = ()) -> SeedSummary | None:
    """Mean, best by dev, standard error and interval of one share per run, in percent; None without a number.

    ``queries`` is the number of queries of each run, as in ``over_seeds_or_queries``.
    """
    known = [(share, dev_score(record)) for record, share in shares if share is not None]
    return over_seeds_or_queries([share for share, _ in known], [dev for _, dev in known], queries) if known else None


@dataclass(frozen=True)
class Grid:
    """The runs that count, one for each recipe and seed.

    Args:
        runs: the records, ordered by variant, task, objective and seed.
        left_out: the name of every other record and why it does not count.
        apart: records that are kept apart (``record.apart``), which never replace the others.
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

        If a recipe was run with several settings, those with the most seeds count, and among them those with the best
        mean on dev.
        """
        left_out: list[tuple[str, str]] = []
        recipes: dict[str, list[tuple[dict[str, Any], dict[int, Record]]]] = defaultdict(list)
        apart: dict[tuple[str, str], dict[int, Record]] = defaultdict(dict)
        for record in records:
            if record.apart:
                seeds = apart[record.recipe, record.apart]
            else:
                seeds = _with_settings_of(record, recipes[record.recipe])
            if not record.finished:
                left_out.append((record.name, "it is not finished"))
            elif record.seed in seeds:
                left_out.append((record.name, "it appears twice"))
            else:
                seeds[record.seed] = record
        runs: list[Record] = []
        for groups in recipes.values():
            kept, *others = sorted((seeds for _, seeds in groups), key=_preference)
            runs += kept.values()
            why = "other settings of the same recipe have more seeds or are better on dev"
            left_out += [(record.name, why) for other in others for record in other.values()]
        others = [record for seeds in apart.values() for record in seeds.values()]
        runs.sort(key=_place)
        others.sort(key=lambda record: (*_place(record)[:-1], record.apart, record.seed))
        return cls(tuple(runs), tuple(left_out), tuple(others))

    def at(self, task: str, objective: str, variant: str = "") -> list[Record]:
        """The runs of one task, objective and variant, ordered by seed."""
        cell = (task, objective, variant)
        return [r for r in self.runs if (r.task, r.objective, variant_of(r)) == cell]

    def best(self, task: str, objective: str, variant: str = "") -> Record | None:
        """The run that dev picks among those with a test evaluation."""
        return max((record for record, _ in tested(self.at(task, objective, variant))), key=dev_score, default=None)

    def by_recipe(self) -> list[list[Record]]:
        """The runs of each recipe, in order."""
        found: dict[str, list[Record]] = defaultdict(list)
        for record in self.runs:
            found[record.recipe].append(record)
        return list(found.values())


def _with_settings_of(record: Record, groups: list[tuple[dict[str, Any], dict[int, Record]]]) -> dict[int, Record]:
    """The runs with the settings of a record. A setting that only one of two versions has is not compared."""
    own = flattened(deciding(record))
    for settings, seeds in groups:
        if all(settings[name] == own[name] for name in settings.keys() & own.keys()):
            return seeds
    groups.append((own, {}))
    return groups[-1][1]


def _place(record: Record) -> tuple[str | int, ...]:
    return (variant_of(record), *order_of(record.task, record.objective), record.seed)


def _preference(seeds: dict[int, Record]) -> tuple[float, ...]:
    return (-len(seeds), -sum(map(dev_score, seeds.values())) / max(len(seeds), 1))


def shared_data(runs: Sequence[tuple[Record, Evaluation]]) -> bool:
    """Whether all evaluations have the same queries."""
    return len({evaluation.data.checksum for _, evaluation in runs}) == 1
