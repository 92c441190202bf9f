"""N-Queens with many solutions: coverage counted query by query, and what the page says about the published runs."""

import re
from pathlib import Path

import numpy as np
import pytest

from oneofmany.data.benchmark import build_benchmark
from oneofmany.report import Grid
from reproduction.completion import (
    SPLITS,
    completion,
    completion_by_solutions,
    completion_of,
    completion_runs,
    parameters,
    uniform_coverage,
)
from reproduction.experiments import experiments
from reproduction.publish import read_grid
from reproduction.tests.our_records import many_solutions, our_runs

RUNS = many_solutions()
GRID = Grid.of([*our_runs(queries=30), *RUNS])
RESULTS = Path(__file__).parents[2] / "docs" / "results.md"


def found(folder):
    return [next(iter(r.evaluations.values())) for r in RUNS if r.apart == f"experiments/{folder}"]


def counted(evaluation, keep=lambda total: True):
    """Coverage in percent, one query at a time."""
    pairs = zip(evaluation.distinct.tolist(), evaluation.total.tolist(), strict=True)
    shares = [distinct / total for distinct, total in pairs if keep(total)]
    return 100 * sum(shares) / len(shares)


def test_accuracy_and_coverage_are_means_over_seeds():
    table = completion(GRID)
    ours = [row for row in table.rows if row[0].text == "ours"]
    assert [row[1].text for row in ours] == ["by query", "by symmetry class"]
    for row, split in zip(ours, SPLITS, strict=True):
        for place, size in ((3, 8), (5, 10)):
            evaluations = found(f"completion-{size}{split}")
            right = np.mean([100 * sum(e.valid.tolist()) / len(e.valid) for e in evaluations])
            assert row[place].numbers["mean"] == pytest.approx(right)
            assert row[place + 1].numbers["mean"] == pytest.approx(np.mean([counted(e) for e in evaluations]))
            assert row[place + 1].numbers["low"] < row[place + 1].numbers["high"]
            assert any(f"completion-{size}{split} --seed 42" in command for command in row[place].commands)
    published = {row[0].text: [cell.text for cell in row[3:7]] for row in table.rows if "published" in row[0].text}
    assert published["GRAM, published"] == ["99.7", "90.3", "89.7", "57.5"]
    assert published["TRM, published"] == ["66.8", "", "17.5", ""]
    assert not completion(Grid.of(our_runs(queries=30))).rows


def test_a_uniform_sampler_covers_what_sampling_says():
    total = np.array([1, 2, 7, 40])
    rng = np.random.default_rng(0)
    drawn = [len(set(rng.integers(0, n, 20).tolist())) / n for n in total.tolist() for _ in range(4000)]
    assert uniform_coverage(total) == pytest.approx(np.mean(drawn), abs=0.005)
    row = next(row for row in completion(GRID).rows if row[0].text.startswith("a uniform"))
    assert row[4].numbers[""] == pytest.approx(100 * uniform_coverage(found("completion-8")[0].total))


def test_bins_of_the_number_of_solutions():
    rows = [row for row in completion_by_solutions(GRID).rows if row[0].text == "10x10, by symmetry class"]
    evaluations = found("completion-10-by-class")
    assert sum(row[2].numbers[""] for row in rows) == len(evaluations[0].total)
    row = next(row for row in rows if row[1].text == "16 or more")
    assert row[4].numbers[""] == pytest.approx(np.mean([counted(e, lambda total: total > 15) for e in evaluations]))


def test_every_run_is_shown_here_and_not_among_other_experiments():
    assert [row[1].text for row in completion_runs(GRID).rows] == [record.name for record in RUNS]
    assert not any("completion" in row[1].text for row in experiments(GRID).rows)


def test_what_the_page_says_of_the_published_runs():
    page, grid = " ".join(RESULTS.read_text().split()), read_grid()
    for size, count in ((8, 5_148), (10, 43_420)):
        assert f"{count:,} " in page
        for split in SPLITS:
            runs = completion_of(grid, size, split)
            assert {record.seed for record, _ in runs} == {42, 1729, 3120}
            for record, evaluation in runs:
                queries = [record.data["train"].queries, record.data["dev"].queries, evaluation.data.queries]
                assert sum(queries) == count
                assert np.array(queries) / count == pytest.approx([0.8, 0.05, 0.15], abs=0.015)
                assert record.setting("follow_noise") == 3
    assert 45_000 < parameters() < 55_000  # "some 50 thousand"
    assert re.search("On 8x8 accuracy is lower then; the wrong answers are all on queries with one solution", page)
    by_query, by_class = (np.mean([e.valid.mean() for _, e in completion_of(grid, 8, split)]) for split in SPLITS)
    assert by_class < by_query
    assert all((e.total[~e.valid] == 1).all() for _, e in completion_of(grid, 8, "-by-class"))


def test_the_two_test_samples_share_what_the_page_says():
    first, fresh = ({row.tobytes() for row in build_benchmark(f"nqueens{s}-test").query} for s in ("", "-fresh"))
    text = " ".join((RESULTS.parent / "data.md").read_text().split())
    assert f"share {len(first & fresh)} of {len(fresh):,} queries of N-Queens" in text
