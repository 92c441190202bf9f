"""The contents of the published report: tables, claims and figures, in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from oneofmany.evaluation.searching import Searched
from oneofmany.report import Chart, Grid, Section, Table
from oneofmany.report.answer import Answer
from oneofmany.report.figures import user_charts
from oneofmany.report.results import every_run, other_data, several_starts
from reproduction import paper
from reproduction.agreement import agreement, agreement_by_mean, ms_order, summary
from reproduction.answers import reproduction_answer, results_answer
from reproduction.budgets import cost, schedule
from reproduction.choosing import small_boards, small_sequences
from reproduction.claims import METHOD, CheckedClaim, check_claims, measured, tally
from reproduction.comparisons import seed_gains, significance, unique_training
from reproduction.completion import completion, completion_by_solutions, completion_runs
from reproduction.conditions import conditions, hard_conditions
from reproduction.controls import naive_authors, other_settings, repeated, second_phase
from reproduction.curves import in_a_table, sizes, starts, steps
from reproduction.example2 import example_chart
from reproduction.experiments import experiments, listed, our_repeated, splits
from reproduction.figures import page_charts, results_chart
from reproduction.gallery import gallery
from reproduction.given_rules import given_rules
from reproduction.graph_objectives import objectives_tables
from reproduction.graphs import graph_tables
from reproduction.hard import hard_ratings, hard_sudokus
from reproduction.ingredients import alike, factorial, factorial_effects, factorial_steps, listed_checker
from reproduction.large_boards import large_boards
from reproduction.literal import literal_charts, literal_runs, literal_tests
from reproduction.more_seeds import more_seeds
from reproduction.networks import network_effects, networks
from reproduction.ours import each_run, fixed_givens, main_table, objectives, same_queries
from reproduction.paper_tables import accuracy, data_statistics, standard_errors
from reproduction.pronunciations import pronunciation_gains, pronunciations
from reproduction.provenance import provenance
from reproduction.runs import counting, others, ours, schedules
from reproduction.searches import search_table
from reproduction.thesis import thesis
from reproduction.tuning import tuning
from reproduction.verdicts import CONTRADICTED, SUPPORTED, UNDECIDED

TALLY = {
    SUPPORTED: "of the paper's claims are supported",
    CONTRADICTED: "are contradicted",
    UNDECIDED: "are undecided",
}
TEMPLATE = Path(__file__).parent / "claims.html"


def sections(grid: Grid, searches: Sequence[Searched] = ()) -> list[Section]:
    """The sections of the report, from the runs and the searches by noise."""
    return [
        Section("results", "The paper's tables", paper_tables(grid)),
        Section("ours", "Our network", our_tables(grid)),
        Section("choosing", "Which objective for which network", objective_tables(grid)),
        Section("hard", "Hard Sudokus", hard_tables(grid, searches)),
        Section("claims", "The paper's claims", html=claims_html(grid, check_claims(grid))),
        Section("figures", "Figures", charts=all_charts(grid, searches)),
        Section("provenance", "Where the records come from", [provenance(grid)]),
    ]


def answer(grid: Grid) -> Answer:
    """What the report begins with: how good our network is, how well the paper's means agree, and a figure of both."""
    first, *how = results_answer(grid).split("\n")[:2]
    agreeing = reproduction_answer(grid).split("\n")[0]
    lines = (first.replace(":", "."), *(line[:1].upper() + line[1:] for line in how), agreeing)
    sentences = [line.replace("**", "") for line in lines if line]
    note = "OS: queries with one solution. MS: queries with several solutions."
    return Answer(sentences, results_chart(grid), note) if sentences else Answer()


def all_tables(grid: Grid, searches: Sequence[Searched] = ()) -> list[Table]:
    """Every table of the report, in order, and the summary of the README."""
    own = [*our_tables(grid), *objective_tables(grid), *hard_tables(grid, searches)]
    return [*paper_tables(grid), *own, summary(grid), provenance(grid)]


def objective_tables(grid: Grid) -> list[Table]:
    """Which objective for which network."""
    tables = (small_boards, small_sequences, given_rules, pronunciations, pronunciation_gains)
    return [table(grid) for table in tables]


def hard_tables(grid: Grid, searches: Sequence[Searched] = ()) -> list[Table]:
    """Hard Sudokus."""
    return [
        hard_sudokus(grid),
        hard_conditions(grid),
        hard_ratings(grid),
        search_table(searches),
        large_boards(grid, searches),
    ]


def paper_tables(grid: Grid) -> list[Table]:
    """The paper's tables and all others without our network, including those that no run fills."""
    first, *more = schedules(grid)
    by_schedule = (standard_errors, seed_gains, significance, unique_training)
    return [
        accuracy(grid),
        *(table(grid) for table in (schedule, agreement, agreement_by_mean, ms_order)),
        *(accuracy(grid, other) for other in more),
        *(table(grid, one) for one in (first, *more) for table in by_schedule),
        *(table(grid) for table in (second_phase, thesis, more_seeds, naive_authors, other_settings)),
        *(table(grid) for table in (literal_tests, literal_runs, tuning, repeated, cost)),
        several_starts(others(grid)),
        other_data(others(grid)),
        data_statistics(grid),
        every_run(others(grid)),
    ]


def our_tables(grid: Grid) -> list[Table]:
    """Every table of our network, in order, including those that no run fills."""
    rest = other_data(ours(grid), in_a_table)
    tables = (
        main_table,
        same_queries,
        conditions,
        completion,
        each_run,
        objectives,
        sizes,
        steps,
        starts,
        listed,
        fixed_givens,
        splits,
        experiments,
        completion_by_solutions,
        completion_runs,
        factorial,
        factorial_effects,
        factorial_steps,
        listed_checker,
        alike,
        networks,
        network_effects,
    )
    return [
        *(table(grid) for table in (*tables, our_repeated)),
        *graph_tables(grid),
        *objectives_tables(grid),
        gallery(grid),
        replace(rest, name="our-other-data", title=f"Our network: {rest.title.lower()}"),
    ]


def all_charts(grid: Grid, searches: Sequence[Searched] = ()) -> list[Chart]:
    """Every other figure with numbers, in order."""
    shown = [chart for chart in page_charts(grid, searches) if chart.name != "results"]  # the page begins with it
    return [*shown, *user_charts(grid, paper.EXPLORATORY), *literal_charts(grid), example_chart()]


def claims_html(grid: Grid, claims: Sequence[CheckedClaim]) -> str:
    """The list of claims with our verdicts and the numbers; empty without runs."""
    from jinja2 import Environment, StrictUndefined

    if not measured(claims):
        return ""
    counts = tally(claims)
    pages = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return pages.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        claims=claims,
        verdicts=[(verdict, counts[verdict], words) for verdict, words in TALLY.items() if counts[verdict]],
        schedule=str(counting(grid)),
        method=METHOD,
    )
