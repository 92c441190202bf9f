"""The answers that the pages begin with, as sentences with numbers from the records."""

from __future__ import annotations

from collections.abc import Callable

from oneofmany.report.grid import TASKS, Grid, name_of, summary_of
from oneofmany.report.table import Table
from reproduction import paper
from reproduction.agreement import LESS_MS, ONE_SEED, Compared, before, compare, in_order, order_holds
from reproduction.choosing import choosing_answer
from reproduction.claims import check_claims, tally
from reproduction.evidence import OurResults, PapersResults
from reproduction.given_rules import given_rules_answer
from reproduction.graph_objectives import objectives_answer
from reproduction.graphs import graph_answer
from reproduction.hard import hard_answer
from reproduction.ingredients import alike, alike_answer, factorial, factorial_answer, listed_answer, listed_checker
from reproduction.networks import networks, networks_answer
from reproduction.ours import MAIN_OBJECTIVE, TESTS, TITLES, headline_test, on, reproduced, training_with_checker
from reproduction.paired import LEAST_SEEDS
from reproduction.pronunciations import pronunciations, pronunciations_answer
from reproduction.replication import LEAST, exact_replication
from reproduction.runs import OUR_VARIANT, ours
from reproduction.thesis import thesis, thesis_answer
from reproduction.verdicts import CONTRADICTED, LEVEL, SUPPORTED, UNDECIDED


def reproduction_answer(grid: Grid) -> str:
    """How many means agree and how many claims are supported; empty without runs."""
    found = compare(grid)
    if not found:
        return ""
    by_task = [[one.agrees for one in found if one.task == task] for task in TASKS]
    tasks = ", ".join(f"{name_of(t)} {_of(agree)}" for t, agree in zip(TASKS, by_task, strict=True) if agree)
    held = [order_holds(OurResults(grid), task) for task in TASKS]
    whole = [in_order(OurResults(grid), task) == in_order(PapersResults(), task) for task in TASKS]
    claims = check_claims(grid)
    counts, plain = tally(claims), tally(claims, corrected=False)
    sentences = [
        f"**{_agree(found)} means agree with the paper's** ({tasks}): they differ by at most "
        f"{LEAST:.0f} points or two standard errors."
    ]
    expected = exact_replication()
    sentences.append(
        f"With a flat bound of {LEAST:.0f} points {_of([one.within_least for one in found])} agree; an exact "
        f"replication would score {expected.mean:.0f} [{expected.low}, {expected.high}]."
    )
    if one_seed := before(grid, ONE_SEED):
        post_hoc = f"The count is post hoc. With the settings that a single seed chose it is {_agree(one_seed)}"
        if first := before(grid, ONE_SEED, LESS_MS):
            post_hoc += f", with the first sampling grid too {_agree(first)}"
        sentences.append(f"{post_hoc}; both were changed after test results were read.")
    sentences += [
        "By their means on MS queries, every multiplicity-aware objective is above Unique, and Unique above Naive and "
        f"Random, in {_of([one is True for one in held])} tasks; the paper's order of all seven holds in {_of(whole)}.",
        f"Of the paper's {counts.total()} claims, {counts[SUPPORTED]} {'is' if counts[SUPPORTED] == 1 else 'are'} "
        f"supported, {counts[CONTRADICTED]} contradicted and {counts[UNDECIDED]} undecided at the "
        f"{100 * LEVEL:.0f} % level (Holm); without the correction {plain[SUPPORTED]}, "
        f"{plain[CONTRADICTED]} and {plain[UNDECIDED]}.",
    ]
    decided = [claim.ours for claim in claims if claim.ours.verdict != UNDECIDED]
    if decided and all(finding.given_networks for finding in decided):
        sentences.append("Those decided with it compare given networks and say nothing about other seeds.")
    return "\n".join(sentences)


def results_answer(grid: Grid) -> str:
    """Accuracy of our network, and of the paper's networks on the same queries; empty without runs."""
    parts, others, seeds, fresh, used = [], [], set(), True, []
    for task in TASKS:
        records = ours(grid).at(task, MAIN_OBJECTIVE, OUR_VARIANT)
        name = headline_test(records, TITLES[task])
        if (summary := summary_of(on(records, name), "overall")) is None:
            continue
        seeds |= {len(on(records, name))}
        used += records
        fresh = fresh and TESTS[name].sample == "fresh"
        parts.append(f"**{summary.mean:.2f} %** of the {name_of(task)} queries")
        here, there = (summary_of(runs, "overall") for runs in (on(records, f"{task}-test"), reproduced(grid, task)))
        if here is not None and there is not None:
            published = paper.TABLE_2[task, "selectr", "overall"].mean
            others.append(
                f"{name_of(task)} {here.mean:.2f} % against {there.mean:.2f} % (published: {published:.2f} %)"
            )
    if not parts:
        return ""
    count = " or ".join(map(str, sorted(seeds)))
    read = "test sets that were read once for each run" if fresh else "the test sets"
    sentences = [
        f"Trained with {name_of(MAIN_OBJECTIVE)}, the network answers {_and(parts)}:\n"
        f"means over {count} seed{'' if count == '1' else 's'} on {read}. The rules are part of its input. "
        f"{training_with_checker(used)}"
    ]
    if others:
        sentences.append(
            f"On the same queries, the first test sets, ours against the paper's networks with SelectR, trained by us: "
            f"{_and(others)}."
        )
    return "\n".join(sentences)


def _and(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _agree(means: list[Compared]) -> str:
    return _of([one.agrees for one in means])


def _of(held: list[bool]) -> str:
    return f"{sum(held)} of {len(held)}"


FEW = f"**Undecided**: a comparison needs {LEAST_SEEDS} seeds that all of its runs have."


def _or_few(answer: Callable[[Grid], str], table: Callable[[Grid], Table]) -> Callable[[Grid], str]:
    """The answer or, if there are runs but too few seeds for it, a sentence that says so."""
    return lambda grid: answer(grid) or (FEW if table(grid).filled else "")


ANSWERS: dict[str, Callable[[Grid], str]] = {
    "reproduction-answer": reproduction_answer,
    "results-answer": results_answer,
    "choosing-answer": choosing_answer,
    "given-rules-answer": given_rules_answer,
    "pronunciations-answer": _or_few(pronunciations_answer, pronunciations),
    "hard-answer": hard_answer,
    "colouring-answer": graph_answer,
    "colouring-objectives-answer": objectives_answer,
    "factorial-answer": _or_few(factorial_answer, factorial),
    "listed-answer": _or_few(listed_answer, listed_checker),
    "alike-answer": _or_few(alike_answer, alike),
    "networks-answer": _or_few(networks_answer, networks),
    "thesis-answer": _or_few(thesis_answer, thesis),
}
"""Name of the block -> what writes its sentences."""
