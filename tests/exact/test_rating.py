import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exact.slow_rating import candidates_of, own_draws, search, seeded
from oneofmany.data.sudoku import make_minimal, random_grids
from oneofmany.exact import count, rate, solve
from oneofmany.exact.boards import DEPTH, ENDLESS, STATE, start
from oneofmany.exact.boards import search as compiled
from oneofmany.problems import sudoku
from oneofmany.problems.tasks.sudoku import parse

HARDEST = parse("8..........36......7..9.2...5...7.......457.....1...3...1....68..85...1..9....4..").values
SINGLES = parse("53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79").values
TWO = parse("53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5.......79").values


@pytest.fixture(scope="module")
def minimal():
    """Minimal puzzles uint8 [30, 81], most of which need some search."""
    rng = np.random.default_rng(3)
    return make_minimal(sudoku(), random_grids(sudoku(), 30, rng), rng)


@pytest.mark.parametrize("pairs", [False, True])
def test_the_same_draws_try_the_same_values(minimal, pairs):
    for puzzle in [*minimal[:8], HARDEST, SINGLES, np.zeros(81, np.uint8)]:
        draw = seeded(5, puzzle.tolist())
        slow = [search(candidates_of(puzzle.tolist()), draw, pairs=pairs) for _ in range(2)]
        fast = rate(puzzle[None], searches=2, seed=5, pairs=pairs)
        assert fast.rating[0] == sum(tried for tried, _ in slow) / 2
        assert fast.solutions[0] == slow[-1][1]


@settings(deadline=None, max_examples=25)
@given(st.data())
def test_the_same_draws_on_any_givens(minimal, data):
    """With givens removed, added or wrong there are no, one or several solutions."""
    puzzle = minimal[data.draw(st.integers(0, 29))].copy()
    for cell in data.draw(st.lists(st.integers(0, 80), max_size=4)):
        puzzle[cell] = data.draw(st.integers(0, 9))
    draw = seeded(1, puzzle.tolist())
    pairs = data.draw(st.booleans())
    fast = rate(puzzle[None], searches=1, seed=1, pairs=pairs)
    tried, solutions = search(candidates_of(puzzle.tolist()), draw, pairs=pairs)
    assert (fast.rating[0], fast.solutions[0]) == (tried, solutions)
    assert solutions == count(sudoku(), puzzle[None], limit=2)[0]


def test_another_generator_gives_the_same_mean():
    draw = own_draws(1)
    slow = np.array([search(candidates_of(HARDEST.tolist()), draw)[0] for _ in range(6)])
    fast = rate(HARDEST[None], searches=1000).rating[0]
    # One search has a standard deviation of 36: the mean of 6 is within four standard errors.
    assert abs(slow.mean() - fast) < 4 * 36 / np.sqrt(6)


def test_what_ratings_mean():
    rated = rate(np.stack([SINGLES, HARDEST, TWO]))
    assert rated.rating[0] == 0
    assert 200 < rated.rating[1] < 350
    assert rated.solutions.tolist() == [1, 1, int(count(sudoku(), TWO[None], limit=2)[0])]


def test_a_rating_depends_on_the_seed_and_the_puzzle_only(minimal):
    whole = rate(minimal, seed=3, threads=4).rating
    assert (whole[::-1] == rate(minimal[::-1], seed=3, threads=1).rating).all()
    assert (whole != rate(minimal, seed=4).rating).any()


def test_the_search_lists_all_solutions(minimal):
    stack, random = np.empty((DEPTH, STATE), np.uint32), np.array([9], np.uint64)
    grids = np.empty((500, 81), np.uint8)
    for puzzle in minimal[:10]:
        fewer = puzzle.copy()
        fewer[np.flatnonzero(puzzle)[:2]] = 0
        expected = solve(sudoku(), fewer[None], limit=500).solutions
        assert start(fewer, stack[0])
        assert compiled(stack, 500, ENDLESS, random, grids, False)[1] == len(expected)
        if len(expected) < 500:
            assert set(map(bytes, grids[: len(expected)])) == set(map(bytes, expected))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"puzzles": np.zeros((1, 16), np.uint8)}, r"expected integers \[Q, 81\], got uint8 \[1, 16\]"),
        ({"puzzles": np.full((1, 81), 10)}, "values 0 to 9, got 10 to 10"),
        ({"puzzles": np.zeros((1, 81), np.uint8), "searches": 0}, "searches: expected at least 1, got 0"),
    ],
)
def test_bad_puzzles(arguments, message):
    with pytest.raises(ValueError, match=message):
        rate(**arguments)


def test_no_puzzles():
    assert rate(np.zeros((0, 81), np.uint8)).rating.shape == (0,)
