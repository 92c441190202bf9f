from functools import partial

import numpy as np
import pytest

from oneofmany.data import hard_sudoku
from oneofmany.data.benchmark import HARD, build_benchmark, file_name
from oneofmany.data.hard_sudoku import OF_A_CLASS, build_hard_sudoku, hard_puzzles, in_order
from oneofmany.data.splits import SPLITS, in_split
from oneofmany.exact import count, rate, solve
from oneofmany.exact.symmetry import canonical_sudoku
from oneofmany.problems import sudoku


@pytest.fixture(autouse=True)
def short_chains(monkeypatch):
    monkeypatch.setattr(hard_sudoku, "STEPS", 1500)


@pytest.fixture(scope="module")
def parts():
    """20 puzzles of every split from the same seed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hard_sudoku, "STEPS", 1500)
        return {split: hard_puzzles(20, split, (5, 500), seed=1) for split in SPLITS}


def without_each_given(puzzles):
    rows, cells = np.nonzero(puzzles)
    fewer = puzzles[rows]
    fewer[np.arange(len(rows)), cells] = 0
    return fewer


def test_every_puzzle_has_one_solution_and_is_minimal(parts):
    for part in parts.values():
        assert (count(sudoku(), part.puzzle, limit=2) == 1).all()
        assert (count(sudoku(), without_each_given(part.puzzle), limit=2) == 2).all()


def test_ratings_are_in_the_range_and_those_of_the_command(parts):
    for part in parts.values():
        assert ((part.rating >= 5) & (part.rating <= 500)).all()
        assert (part.rating == rate(part.puzzle, seed=1).rating).all()


def test_splits_share_no_grid_class_and_no_chain(parts):
    classes = {}
    for split, part in parts.items():
        forms = canonical_sudoku(solve(sudoku(), part.puzzle).solutions)
        assert (forms == part.key).all()
        assert in_split(forms, split).all()
        classes[split] = set(map(bytes, forms))
    assert not classes["train"] & classes["dev"]
    assert not classes["train"] & classes["test"]
    assert not classes["dev"] & classes["test"]
    # Neighbours in a chain share most givens; puzzles of different chains have few in common.
    shared = ((parts["train"].puzzle[:, None] == parts["test"].puzzle) & (parts["test"].puzzle > 0)).sum(2)
    assert shared.max() < 15


def test_puzzles_differ(parts):
    puzzles = parts["train"].puzzle
    apart = (puzzles[:, None] != puzzles).sum(2)
    assert apart[~np.eye(len(puzzles), dtype=bool)].min() >= hard_sudoku.DIFFERENT


def test_at_most_20_puzzles_of_a_grid_class(monkeypatch):
    """A chain that stays on one grid gives 20 puzzles at most, however many chains there are."""
    made = hard_puzzles(30, None, (0, 500), seed=2, threads=1)
    repeated = hard_sudoku.RatedPuzzles(made.puzzle, np.repeat(made.key[[0, 1]], 15, axis=0), made.rating)
    monkeypatch.setattr(hard_sudoku._Source, "_chain", lambda self, index: repeated)
    found = hard_puzzles(40, None, (0, 500), threads=1)
    assert max(np.unique(found.key, axis=0, return_counts=True)[1]) == OF_A_CLASS == 20
    with pytest.raises(ValueError, match="only 40 of 41 puzzles from 0 to 500 were found: ask for fewer"):
        hard_puzzles(41, None, (0, 500), threads=1)


def test_the_same_seed_gives_the_same_bytes_with_any_number_of_threads(tmp_path):
    build = partial(build_hard_sudoku, 12, "test", (2, 200), ms_queries=5)
    for name, seed, threads in (("a", 1, 1), ("b", 1, 3), ("c", 2, 3)):
        build(seed=seed, threads=threads).save(tmp_path / name)
    contents = [(tmp_path / name).read_bytes() for name in "abc"]
    assert contents[0] == contents[1] != contents[2]


def test_ms_queries_lack_one_given_of_a_puzzle(parts):
    dataset = build_hard_sudoku(20, "train", (5, 500), seed=1, ms_queries=15, listed=60)
    multiple = dataset.multiple
    assert multiple.sum() == 15
    assert dataset.total.max() <= 50
    assert (dataset.listed == dataset.total).all()
    assert (dataset.total == count(sudoku(), dataset.query)).all()
    assert len(np.unique(dataset.query, axis=0)) == 20
    puzzles = parts["train"].puzzle  # the same 20 puzzles: all of these can lose a given
    for query, several in zip(dataset.query, multiple, strict=True):
        kept = ((query > 0) & (puzzles == query)).sum(1) == (query > 0).sum()
        missing = (puzzles > 0).sum(1) - (query > 0).sum()
        assert (kept & (missing == several)).any()


def test_training_lists_five_solutions_and_groups_are_grid_classes():
    dataset = build_hard_sudoku(20, "train", (2, 100), seed=3, ms_queries=20)
    assert dataset.listed.max() <= 5 < dataset.total.max()
    single = build_hard_sudoku(20, "train", (2, 100), seed=3, ms_queries=0)
    forms = canonical_sudoku(single.solutions)
    pairs = {(int(group), form.tobytes()) for group, form in zip(single.group, forms, strict=True)}
    assert len(pairs) == len(np.unique(single.group)) == len(np.unique(forms, axis=0))


def test_the_range_decides_the_ratings():
    easy, hard = (hard_puzzles(15, None, bounds, seed=1).rating for bounds in ((0, 4), (30, 300)))
    assert easy.max() <= 4
    assert hard.min() >= 30


def test_chains_aim_at_several_ranges_in_turn():
    both = hard_puzzles(40, None, ((0, 4), (30, 300)), seed=1)
    easy, hard = ((both.rating >= low) & (both.rating <= high) for low, high in ((0, 4), (30, 300)))
    assert (easy | hard).all()
    assert min(easy.sum(), hard.sum()) >= 5
    dataset = build_hard_sudoku(6, "dev", ((0, 4), (30, 300)), seed=1)
    assert dataset.built["rating"] == [[0.0, 4.0], [30.0, 300.0]]
    with pytest.raises(ValueError, match="rating: expected 0 <= lowest <= highest, got 9 and 5"):
        hard_puzzles(1, None, ((0, 4), (9, 5)))


def test_work_is_taken_in_order():
    made = in_order(lambda index: index * index, 3)
    assert [next(made) for _ in range(20)] == [i * i for i in range(20)]


def test_an_error_in_a_chain_is_raised():
    def work(index):
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        next(in_order(work, 2))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"queries": 0}, "at least 1 query"),
        ({"ms_queries": 11}, "0 to all of them"),
        ({"rating": (30, 20)}, "rating: expected 0 <= lowest <= highest, got 30 and 20"),
        ({"rating": (-1, 20)}, "rating: expected"),
        ({"rating": (0, float("inf"))}, "rating: expected"),
        ({"rating": (1, 2, 3)}, r"rating: expected lowest and highest, got \(1, 2, 3\)"),
        ({"rating": 5}, "rating: expected lowest and highest, got 5"),
        ({"split": "valid"}, "split: expected one of train, dev, test"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        build_hard_sudoku(**({"queries": 10, "split": "train", "rating": (0, 9)} | arguments))


def test_no_puzzles():
    with pytest.raises(ValueError, match="number: expected at least 1 puzzle, got 0"):
        hard_puzzles(0, None, (0, 9))


def test_the_named_data_sets():
    """Splits by name; the extreme test sets hold high ratings only."""
    for name, build in HARD.items():
        assert name.endswith(f"-{build.args[1]}")
        assert file_name(name, None) == f"{name}.safetensors"
        assert "extreme" not in name or build.args[2][0] >= 50
        assert "rating" not in name or name == f"sudoku-rating-{build.args[2][0]}-{build.args[2][1]}-test"
    assert len({build.keywords["seed"] for build in HARD.values()}) == len(HARD)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sudoku-extreme-test", "sudoku-extreme-ms-test"])
def test_the_extreme_test_sets(monkeypatch, name):
    monkeypatch.undo()  # the chains of their real length
    dataset = build_benchmark(name)
    assert len(dataset) == 2_000
    assert dataset.multiple.all() == (name == "sudoku-extreme-ms-test")
    if name == "sudoku-extreme-test":
        assert in_split(canonical_sudoku(dataset.solutions), "test").all()
        ratings = rate(dataset.query, seed=4).rating
        assert ratings.min() >= 50
        assert np.median(ratings) >= 150
        assert (count(sudoku(), without_each_given(dataset.query), limit=2) == 2).all()
