"""The answers that the pages begin with, as sentences with numbers from the records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from oneofmany.report.cells import summary_of
from oneofmany.report.grid import TASKS, Grid, name_of
from reproduction import paper
from reproduction.agreement import LEAST, ONE_SEED, compare, order_holds
from reproduction.claims import FAILS, HOLDS, UNKNOWN, check_claims
from reproduction.evidence import OurResults
from reproduction.ours import MAIN_OBJECTIVE, on, training_with_checker
from reproduction.runs import OUR_VARIANT, instead, ours


def reproduction_answer(grid: Grid) -> str:
    """How many means agree and how many claims hold; empty without runs."""
    found = compare(grid)
    if not found:
        return ""
    by_task = [[one.agrees for one in found if one.task == task] for task in TASKS]
    tasks = ", ".join(f"{name_of(t)} {_of(agree)}" for t, agree in zip(TASKS, by_task, strict=True) if agree)
    held = [order_holds(OurResults(grid), task) for task in TASKS]
    counts = Counter(claim.ours.verdict for claim in check_claims(grid))
    sentences = [
        f"**{_of([one.agrees for one in found])} means agree with the paper's** ({tasks}): they differ by at most "
        f"{LEAST:.0f} points or two standard errors."
    ]
    if any(record.apart == ONE_SEED for record in grid.apart):
        one_seed = _of([one.agrees for one in compare(instead(grid, ONE_SEED))])
        sentences.append(f"With the settings that a single seed chose, {one_seed} agree.")
    unknown = f", and {counts[UNKNOWN]} need more runs" if counts[UNKNOWN] else ""
    sentences += [
        f"On MS queries the paper's order of the objectives holds in {_of([one is True for one in held])} tasks.",
        f"Of the paper's {counts.total()} claims, {counts[HOLDS]} hold and {counts[FAILS]} do not{unknown}.",
    ]
    return "\n".join(sentences)


def results_answer(grid: Grid) -> str:
    """Accuracy of our network on all test queries, and the paper's best; empty without runs."""
    parts, seeds = [], set()
    for task in TASKS:
        runs = on(ours(grid).at(task, MAIN_OBJECTIVE, OUR_VARIANT), f"{task}-test")
        if (summary := summary_of(runs, "overall")) is not None:
            seeds |= {len(runs)}
            best = paper.TABLE_2[task, "selectr", "overall"].mean
            parts.append(f"**{summary.mean:.2f} %** of the {name_of(task)} queries (paper: {best:.2f} %)")
    if not parts:
        return ""
    count = " or ".join(map(str, sorted(seeds)))
    listed = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    return (
        f"Trained with {name_of(MAIN_OBJECTIVE)}, the network answers {listed}:\n"
        f"means over {count} seed{'' if count == '1' else 's'} on the whole test sets. "
        f"{training_with_checker(ours(grid).runs)}"
    )


def _of(held: list[bool]) -> str:
    return f"{sum(held)} of {len(held)}"


ANSWERS: dict[str, Callable[[Grid], str]] = {
    "reproduction-answer": reproduction_answer,
    "results-answer": results_answer,
}
"""Name of the block -> what writes its sentences."""
