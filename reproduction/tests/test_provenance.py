"""Which published records come from a dirty commit, and which from one that is not in the history."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from oneofmany.report import Grid
from reproduction.ours import headline
from reproduction.provenance import LOST, provenance
from reproduction.publish import read_grid
from reproduction.runs import RECORDS, ours
from reproduction.tests.our_records import our_runs

ROOT = Path(__file__).parents[2]
DETAILS = ROOT / "docs" / "results-details.md"


def test_the_page_counts_the_dirty_records():
    """Counted here from the JSON of the records."""
    texts = [json.loads(path.read_text()) for path in RECORDS.rglob("*.json")]
    dirty = [
        record
        for record in texts
        for made in [[record["environment"], *(e.get("environment") for e in record["evaluations"].values())]]
        if any((one or {}).get("revision", "").endswith("+") for one in made)
    ]
    table = provenance(read_grid())
    assert f"{len(dirty)} of the {len(texts)} records come from a dirty commit" in table.note
    assert f"{len(dirty)} of the {len(texts)} records" in DETAILS.read_text()
    assert sum(row[1].numbers[""] for row in table.rows) == len(texts)
    assert sum(row[2].numbers[""] for row in table.rows) == len(dirty)
    assert all(any(record["recipe"] in row[3].text for row in table.rows) for record in dirty)


def git(*arguments):
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.split() if done.returncode == 0 else None


def test_all_other_revisions_are_in_the_history():
    if git("rev-parse", "--is-shallow-repository") != ["false"]:
        pytest.skip("needs a git clone with its whole history: git fetch --unshallow")
    history = git("log", "--format=%H")
    named = {revision.removesuffix("+") for record in read_grid().all for revision in record.revisions}
    missing = {revision for revision in named if not any(commit.startswith(revision) for commit in history)}
    assert missing == LOST


def test_the_headline_comes_from_clean_commits():
    grid = read_grid()
    for task in ("nqueens", "futoshiki", "sudoku"):
        runs = headline(ours(grid).at(task, "minloss", "equivariant"), task)
        assert len(runs) == 3
        assert all(evaluation.data.name == f"{task}-fresh-test" for _, evaluation in runs)
        assert not any(record.dirty for record, _ in runs)


def test_a_dirty_record_is_named():
    first, *others = our_runs(queries=30)
    assert not any(row[3].text for row in provenance(Grid.of([first, *others])).rows)
    dirty = replace(first, environment={**first.environment, "revision": "c0ffee+"})
    table = provenance(Grid.of([dirty, *others]))
    assert table.rows[0][3].text == f"{first.recipe} ({first.seed})"
    assert table.note.startswith(f"1 of the {len(others) + 1} records come")


def test_a_lost_record_is_named():
    first, *others = our_runs(queries=30)
    lost = replace(first, environment={**first.environment, "revision": min(LOST)})
    table = provenance(Grid.of([lost, *others]))
    assert (table.rows[0][4].text, table.rows[0][5].text) == ("1", f"{first.recipe} ({first.seed})")
    assert ". 1 come from a clean commit that is not in the history" in table.note
