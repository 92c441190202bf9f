"""The claims of the paper's section 4.3 and appendix, checked against our runs and the paper's numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import hypot

import numpy as np

from oneofmany.evaluation.record import Subset
from oneofmany.report.figures import Bin
from oneofmany.report.grid import TASKS, Grid, name_of
from oneofmany.report.table import signed
from reproduction import paper
from reproduction.evidence import OurResults, PapersResults, Results
from reproduction.paper import AWARE, BASELINES

HOLDS, FAILS, UNKNOWN = "holds", "does not hold", "not enough runs"


@dataclass(frozen=True)
class Finding:
    """A verdict (``holds``, ``does not hold`` or ``not enough runs``) and the numbers that it rests on."""

    verdict: str
    evidence: tuple[str, ...]


@dataclass(frozen=True)
class CheckedClaim:
    """A claim of the paper with the finding from our runs and the finding from the paper's published numbers."""

    claim: str
    where: str
    ours: Finding
    papers: Finding


def check_claims(grid: Grid) -> list[CheckedClaim]:
    """Check every claim against the runs that count and against the paper's numbers."""
    ours, papers = OurResults(grid), PapersResults()
    return [CheckedClaim(text, where, check(ours), check(papers)) for text, where, check in CLAIMS]


def claims_markdown(claims: Sequence[CheckedClaim]) -> str:
    """A numbered list: every claim with our verdict and its evidence."""
    lines = []
    for number, claim in enumerate(claims, 1):
        mark = f"{number}. "
        lines.append(f"{mark}**{claim.ours.verdict}**: {claim.claim} ({claim.where})")
        # Markdown needs this indent to nest the list in its item.
        lines += [f"{' ' * len(mark)}* {line}" for line in claim.ours.evidence]
    return "\n".join([*lines, ""])


def _all(parts: Iterable[tuple[str, bool | None]], enough: int | None = None) -> Finding:
    """Holds if all parts hold (or ``enough`` of them); a part without numbers is None."""
    parts = list(parts)
    needed = len(parts) if enough is None else enough
    true, known = sum(bool(held) for _, held in parts), sum(held is not None for _, held in parts)
    verdict = HOLDS if true >= needed else FAILS if len(parts) - (known - true) < needed else UNKNOWN
    return Finding(verdict, tuple(text if held is not False else f"{text} (not so)" for text, held in parts if text))


def _less(lower: float | None, higher: float | None) -> bool | None:
    return None if lower is None or higher is None else lower < higher


def _text(*values: tuple[str, float | None]) -> str:
    return ", ".join(f"{name} {'–' if value is None else format(value, '.2f')}" for name, value in values)


def _order(results: Results, subset: Subset, lower: str, higher: str, tasks: Iterable[str] = TASKS):
    for task in tasks:
        low, high = (results.mean(task, objective, subset) for objective in (lower, higher))
        where = f"{name_of(task)} {name_of(subset)}"
        yield f"{where}: {_text((name_of(lower), low), (name_of(higher), high))}", _less(low, high)


def naive_below_unique(subset: Subset) -> Callable[[Results], Finding]:
    """Naive and Random are worse than Unique on a subset, in all tasks."""
    return lambda results: _all(
        part for lower in ("naive", "random") for part in _order(results, subset, lower, "unique")
    )


def aware_above_baselines(results: Results) -> Finding:
    """Every multiplicity-aware objective beats every baseline, on MS queries and on all."""
    parts = []
    for task in TASKS:
        for subset in ("ms", "overall"):
            low = [results.mean(task, objective, subset) for objective in BASELINES]
            high = [results.mean(task, objective, subset) for objective in AWARE]
            best = max((x for x in low if x is not None), default=None)
            least = min((x for x in high if x is not None), default=None)
            # One reversed pair decides; only a whole row can confirm.
            held = None if best is None or least is None else best < least
            held = held if held is False or None not in low + high else None
            text = _text(("best baseline", best), ("worst of the others", least))
            parts.append((f"{name_of(task)} {name_of(subset)}: {text}", held))
    return _all(parts)


def gains_on_ms(results: Results) -> Finding:
    """SelectR gains at least the paper's 13 points over Unique on MS queries, in all tasks."""
    parts = []
    for task in TASKS:
        low, high = (results.mean(task, objective, "ms") for objective in ("unique", "selectr"))
        points = None if low is None or high is None else high - low
        text = "–" if points is None else f"{signed(points)} points"
        parts.append((f"{name_of(task)}: {text}", None if points is None else points >= paper.MS_GAIN[0] - 0.5))
    return _all(parts)


def significantly_above_minloss(results: Results) -> Finding:
    """McNemar's test between the runs that dev picks, in favour of SelectR."""
    parts = []
    for task in TASKS:
        found = results.test(task)
        text = "–" if found is None else f"p = {found[0]:.3g}, {'SelectR' if found[1] else 'MinLoss'} is better"
        parts.append((f"{name_of(task)}: {text}", None if found is None else found[1] and found[0] < 0.05))
    return _all(parts)


def above_minloss_by_seed(results: Results) -> Finding:
    """SelectR gains over MinLoss for each of three seeds, in all tasks."""
    parts = []
    for task in TASKS:
        gains = results.gains(task)
        text = ", ".join(f"{signed(points)} (seed {seed})" for seed, points in gains.items()) or "–"
        held = False if any(points <= 0 for points in gains.values()) else True if len(gains) >= 3 else None
        parts.append((f"{name_of(task)}: {text}", held))
    return _all(parts)


def significant_with_five_listed(results: Results) -> Finding:
    """On Sudoku every aware objective is more than two standard errors above the best baseline."""
    baselines = {o: results.mean("sudoku", o, "overall") for o in BASELINES}
    known = {o: mean for o, mean in baselines.items() if mean is not None}
    if len(known) < len(BASELINES):
        return Finding(UNKNOWN, ())
    best = max(known, key=lambda objective: known[objective])
    parts = []
    for objective in AWARE:
        mean = results.mean("sudoku", objective, "overall")
        errors = [results.error("sudoku", o, "overall") for o in (best, objective)]
        joint = None if None in errors else hypot(*[e for e in errors if e is not None])
        points = None if mean is None else mean - known[best]
        text = "–" if points is None else f"{signed(points)} points over {name_of(best)}"
        text += "" if joint is None else f", joint standard error {joint:.2f}"
        held = None if points is None or joint is None else points > 2 * joint
        parts.append((f"{name_of(objective)}: {text}", held))
    return _all(parts)


def worse_with_more_solutions(results: Results) -> Finding:
    """The accuracy of Unique, MinLoss and SelectR falls with the number of solutions."""
    parts = []
    for objective in ("unique", "minloss", "selectr"):
        bins = results.curve(objective)
        held = None
        if len(bins) > 1:
            weights = np.sqrt([b.total for b in bins])
            held = bool(np.polyfit(range(len(bins)), [b.accuracy for b in bins], 1, w=weights)[0] < 0)
        parts.append((f"{name_of(objective)}: {_ends(bins)}", held))
    return _all(parts)


def most_robust(results: Results) -> Finding:
    """From few solutions to many, SelectR loses the fewest points."""
    curves = {objective: results.curve(objective) for objective in ("unique", "minloss", "selectr")}
    drops = {o: bins[0].accuracy - bins[-1].accuracy for o, bins in curves.items() if len(bins) > 1}
    held = None if len(drops) < 3 else drops["selectr"] == min(drops.values())
    return Finding(_all([("", held)]).verdict, tuple(f"{name_of(o)}: {_ends(bins)}" for o, bins in curves.items()))


def _ends(bins: list[Bin]) -> str:
    if len(bins) < 2:
        return "–"
    first, last = bins[0], bins[-1]
    return f"{first.accuracy:.1f} % with {first.label} to {last.accuracy:.1f} % with {last.label} solutions"


def unique_overfits(results: Results) -> Finding:
    """The network of 180k OS queries, stopped on OS dev, is above Unique on OS and below it on MS queries."""
    parts = []
    for subset in ("os", "ms"):
        large, small = results.unique("180k", "os", subset), results.unique("10k", "mixed", subset)
        held = _less(small, large) if subset == "os" else _less(large, small)
        parts.append((f"{name_of(subset)}: {_text(('180k, OS dev', large), ('10k, mixed dev', small))}", held))
    return _all(parts)


def stopping_explains(results: Results) -> Finding:
    """With the same data, stopping on OS dev costs MS accuracy, and it explains most of the loss with more data."""
    found = {size: results.stopping(size) for size in ("10k", "180k")}
    parts = []
    for size, (only, mixed) in found.items():
        parts.append((f"{size}: {_text(('OS dev', only), ('mixed dev', mixed))}", _less(only, mixed)))
    (_, best), (worst, same_data) = found.values()
    if best is None or worst is None or same_data is None:
        return _all([*parts, ("how much of the difference it makes: –", None)])
    made, whole = same_data - worst, best - worst
    text = f"180k, OS dev to 10k, mixed dev: {made:.2f} of {whole:.2f} points by stopping on mixed dev"
    return _all([*parts, (text, 2 * made > whole)])


def explores_at_first(results: Results) -> Finding:
    """3 to 10 % of the training queries are exploratory in SelectR's first batches."""
    parts = []
    low, high = paper.EXPLORATORY
    for task in TASKS:
        found = results.exploratory(task)
        text = "–" if found is None else f"{found[0]:.1f} to {found[1]:.1f} %"
        parts.append((f"{name_of(task)}: {text}", None if found is None else low <= found[0] and found[1] <= high))
    return _all(parts)


CLAIMS: tuple[tuple[str, str, Callable[[Results], Finding]], ...] = (
    ("Naive and Random are worse than Unique on MS queries, in all tasks.", "section 4.3", naive_below_unique("ms")),
    (
        "Naive and Random are worse than Unique on OS queries, in all tasks.",
        "section 4.3",
        naive_below_unique("os"),
    ),
    ("All multiplicity-aware objectives beat all baselines, in all tasks.", "section 4.3", aware_above_baselines),
    ("SelectR gains 13 points or more over Unique on MS queries (the paper: 13 to 52).", "section 4.3", gains_on_ms),
    (
        "SelectR is better than MinLoss in all tasks.",
        "section 4.3",
        lambda results: _all(_order(results, "overall", "minloss", "selectr")),
    ),
    (
        "SelectR's gain over MinLoss is significant (McNemar, p < 0.05).",
        "section 4.3",
        significantly_above_minloss,
    ),
    ("SelectR is better than MinLoss for each of three seeds, in all tasks.", "appendix, 4.3", above_minloss_by_seed),
    (
        "I-ExplR is better than MinLoss in at least two of three tasks.",
        "section 4.3",
        lambda results: _all(_order(results, "overall", "minloss", "iexplr"), enough=2),
    ),
    (
        "I-ExplR is worse than SelectR in all tasks.",
        "section 4.3",
        lambda results: _all(_order(results, "overall", "iexplr", "selectr")),
    ),
    (
        "With at most five listed solutions (Sudoku) the gain over the baselines is still significant.",
        "section 4.3",
        significant_with_five_listed,
    ),
    ("All models get worse with the number of solutions (Sudoku).", "section 4.3", worse_with_more_solutions),
    ("SelectR is the most robust against many solutions (Sudoku).", "section 4.3", most_robust),
    (
        "Trained on 180k unique Sudokus, the RRN is better than Unique on OS and worse on MS queries.",
        "appendix, 4.1",
        unique_overfits,
    ),
    ("That is because it stops on OS dev queries alone.", "appendix, 4.1", stopping_explains),
    (
        "At first, 3 to 10 % of SelectR's training queries are exploratory.",
        "appendix, 4.3",
        explores_at_first,
    ),
)
"""(claim, where the paper makes it, its check)."""
