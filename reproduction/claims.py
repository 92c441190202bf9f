"""The claims of the paper's section 4.3 and appendix, tested on our runs, with the paper's numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from oneofmany.evaluation.record import Subset
from oneofmany.report.grid import TASKS, Grid
from reproduction import paper
from reproduction.evidence import FIRST_ENTRIES, OurResults, PapersResults, Results
from reproduction.paper import AWARE, BASELINES
from reproduction.verdicts import LEVEL, Comparison, Finding, judge, published

METHOD = (
    "Each claim is supported, contradicted or undecided. Differences are in points and paired by seed, with Student's "
    "t interval (95 %, not corrected); p is two-sided. Claims 6 and 7, and comparisons that only one seed has, are "
    "about given networks: their intervals are over the queries and say nothing about other seeds; two networks are "
    "compared by McNemar's exact test. The p of a claim combines its comparisons: for support all of them "
    "must be shown (the largest p), for contradiction one must be shown to be reversed (the smallest p times their "
    f"number). Holm corrects it for the number of claims; the level is {100 * LEVEL:.0f} %."
)


@dataclass(frozen=True)
class Claim:
    """A claim of the paper.

    Args:
        text: the claim, with the scope and the definitions that the test uses.
        where: the place in the paper.
        parts: the comparisons that it consists of, each with a direction.
        enough: how many of them it needs; None: all.
    """

    text: str
    where: str
    parts: Callable[[Results], Iterable[Comparison]]
    enough: int | None = None


@dataclass(frozen=True)
class CheckedClaim:
    """A claim of the paper with the verdict of our runs and the paper's published numbers."""

    claim: str
    where: str
    ours: Finding
    papers: Finding


def check_claims(grid: Grid) -> list[CheckedClaim]:
    """Judge all claims together by the runs that count; the paper's numbers are only shown."""
    ours, papers = OurResults(grid), PapersResults()
    found = judge((tuple(claim.parts(ours)), claim.enough) for claim in CLAIMS)
    return [
        CheckedClaim(claim.text, claim.where, finding, published(tuple(claim.parts(papers))))
        for claim, finding in zip(CLAIMS, found, strict=True)
    ]


def tally(claims: Sequence[CheckedClaim], corrected: bool = True) -> Counter[str]:
    """Verdict -> number of claims, with or without the correction for the number of claims."""
    return Counter(claim.ours.verdict if corrected else claim.ours.uncorrected for claim in claims)


def measured(claims: Sequence[CheckedClaim]) -> bool:
    """Whether our runs give any claim a number."""
    return any(claim.ours.measured for claim in claims)


def claims_markdown(claims: Sequence[CheckedClaim]) -> str:
    """A numbered list: every claim with our verdict, its p-values and its comparisons."""
    lines = []
    for number, claim in enumerate(claims, 1):
        mark = f"{number}. "
        lines.append(f"{mark}**{claim.ours.verdict}** ({claim.ours.p_values}): {claim.claim} ({claim.where})")
        # Markdown needs this indent to nest the list in its item.
        lines += [f"{' ' * len(mark)}* {line}" for line in claim.ours.evidence]
    return "\n".join([*lines, "", METHOD, ""])


def _gains(higher: str, lower: str, subset: Subset = "overall", bound: float = 0.0):
    return lambda results: [results.gain(task, higher, lower, subset, bound) for task in TASKS]


def _unique_is_better(subset: Subset) -> Callable[[Results], Iterable[Comparison]]:
    return lambda results: [
        results.gain(task, "unique", lower, subset) for lower in ("naive", "random") for task in TASKS
    ]


def _aware_above_baselines(results: Results) -> Iterable[Comparison]:
    for task in TASKS:
        for subset in ("ms", "overall"):
            for higher in AWARE:
                for lower in BASELINES:
                    yield results.gain(task, higher, lower, subset, group=f"{task} {subset}")


def _with_five_listed(results: Results) -> Iterable[Comparison]:
    for higher in AWARE:
        for lower in BASELINES:
            yield results.gain("sudoku", higher, lower, "ms", group=higher)


CLAIMS = (
    Claim(
        "Naive and Random are worse than Unique on MS queries, in all tasks.", "section 4.3", _unique_is_better("ms")
    ),
    Claim(
        "Naive and Random are worse than Unique on OS queries, in all tasks.", "section 4.3", _unique_is_better("os")
    ),
    Claim(
        "All multiplicity-aware objectives beat all baselines on MS queries and overall, in all tasks (shown: the "
        "weakest of each 12 pairs).",
        "section 4.3",
        _aware_above_baselines,
    ),
    Claim(
        f"SelectR gains {paper.MS_GAIN[0]:g} points or more over Unique on MS queries, in all tasks (the paper: "
        f"{paper.MS_GAIN[0]:g} to {paper.MS_GAIN[1]:g}).",
        "section 4.3",
        _gains("selectr", "unique", "ms", paper.MS_GAIN[0]),
    ),
    Claim("SelectR is better than MinLoss overall, in all tasks.", "section 4.3", _gains("selectr", "minloss")),
    Claim(
        "The SelectR that dev picks is better than the MinLoss that dev picks (McNemar's test), in all tasks.",
        "section 4.3",
        lambda results: [results.picked(task) for task in TASKS],
    ),
    Claim(
        "SelectR is better than MinLoss for each of three seeds, in all tasks.",
        "appendix, 4.3",
        lambda results: [one for task in TASKS for one in results.each_seed(task)],
    ),
    Claim(
        "I-ExplR is better than MinLoss overall in at least two of three tasks.",
        "section 4.3",
        _gains("iexplr", "minloss"),
        enough=2,
    ),
    Claim("I-ExplR is worse than SelectR overall, in all tasks.", "section 4.3", _gains("selectr", "iexplr")),
    Claim(
        "With at most five listed solutions (Sudoku) all multiplicity-aware objectives still beat all baselines on MS "
        "queries, the only ones with a list (shown: the weakest of each 3 pairs).",
        "section 4.3",
        _with_five_listed,
    ),
    Claim(
        "All models (tested: Unique, MinLoss, SelectR) get worse with the number of solutions (Sudoku).",
        "section 4.3",
        lambda results: [results.slope(objective) for objective in ("unique", "minloss", "selectr")],
    ),
    Claim(
        "SelectR is the most robust against many solutions (Sudoku): from the fewest to the most it loses fewer points "
        "than Unique and MinLoss.",
        "section 4.3",
        lambda results: [results.drop(other) for other in ("unique", "minloss")],
    ),
    Claim(
        "Trained on 180k unique Sudokus, the RRN is better than Unique on OS and worse on MS queries.",
        "appendix, 4.1",
        lambda results: [results.unique("os"), results.unique("ms").reversed()],
    ),
    Claim(
        "That is because it stops on OS dev queries alone: mixed dev is better on MS queries and explains more than "
        "half of the difference.",
        "appendix, 4.1",
        lambda results: [results.stopping("10k"), results.stopping("180k"), results.explained()],
    ),
    Claim(
        "At first, {:g} to {:g} % of SelectR's training queries are exploratory, in all tasks (mean of the first {} "
        "evaluations of the joint phase, over all training queries; the closest solution is the one with the smallest "
        "loss).".format(*paper.EXPLORATORY, FIRST_ENTRIES),
        "appendix, 4.3",
        lambda results: [one for task in TASKS for one in results.exploratory(task)],
    ),
)
