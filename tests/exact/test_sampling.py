"""Random searches with restarts, and local search, against the checker and the enumerator."""

from dataclasses import replace

import numpy as np
import pytest

from oneofmany.exact import colour, count, sample, solve
from oneofmany.exact.sampling import far_apart, luby
from oneofmany.problems import colouring, futoshiki, nqueens, sudoku


def graphs(number, nodes, degree, seed):
    """Random edges int16 [number, M, 2]; some pairs are padding."""
    rng = np.random.default_rng(seed)
    every = np.array([(a, b) for a in range(nodes) for b in range(a + 1, nodes)], np.int16)
    edges = np.stack([rng.permutation(every)[: int(degree * nodes / 2)] for _ in range(number)])
    edges[rng.random(edges.shape[:2]) < 0.1] = -1
    return edges


def assert_solutions(problem, found, queries, relations=None):
    rows = np.repeat(np.arange(len(queries)), np.diff(found.offsets))
    pairs = None if relations is None else relations[rows]
    assert problem.check(found.solutions.astype(int) - 1, queries[rows], pairs).all()
    assert ((np.diff(found.offsets) > 0) == (found.solvable == 1)).all()
    for query in range(len(queries)):
        assert len(np.unique(found.of(query), axis=0)) == len(found.of(query))


@pytest.mark.parametrize("problem", [nqueens(20), sudoku(16), futoshiki(7)], ids=repr)
def test_queries_with_too_many_solutions(problem):
    queries = np.zeros((2, problem.variables), np.uint8)
    queries[1, 0] = 1
    found = sample(problem, queries, number=3, seed=1)
    assert np.diff(found.offsets).tolist() == [3, 3]
    assert_solutions(problem, found, queries)
    assert not np.array_equal(found.solutions, sample(problem, queries, number=3, seed=2).solutions)
    assert np.array_equal(found.solutions, sample(problem, queries, number=3, seed=1, threads=1).solutions)
    # The result of a query does not depend on those after it.
    assert np.array_equal(found.of(0), sample(problem, queries[:1], number=3, seed=1).solutions)


def test_the_first_solutions_of_an_enumeration_are_closer_together():
    problem, query = nqueens(20), np.zeros((1, 20), np.uint8)

    def least_distance(solutions):
        return min((a != b).sum() for i, a in enumerate(solutions) for b in solutions[:i])

    listed = solve(problem, query, limit=5, seed=1).solutions
    assert least_distance(sample(problem, query, number=5, seed=1).solutions) > least_distance(listed)


def test_states_of_graphs():
    """Few branches leave some graphs unknown; what is known agrees with the count."""
    problem, relations = colouring(24, 3), graphs(60, 24, 5.0, seed=3)
    queries = np.zeros((60, 24), np.uint8)
    exists = count(problem, queries, relations, limit=1) > 0
    found = sample(problem, queries, relations, number=2, tries=2, branches=14)
    assert_solutions(problem, found, queries, relations)
    assert set(found.solvable.tolist()) == {-1, 0, 1}
    known = found.solvable >= 0
    assert (found.solvable[known] == exists[known]).all()
    more = sample(problem, queries, relations, tries=40, branches=50)
    assert (more.solvable == exists).all()


@pytest.mark.parametrize(("colours", "degree"), [(3, 4.4), (5, 10.0)])
def test_local_search_colours_what_can_be_coloured(colours, degree):
    problem, relations = colouring(30, colours), graphs(40, 30, degree, seed=4)
    queries = np.zeros((40, 30), np.uint8)
    queries[:, 0] = 2
    exists = count(problem, queries, relations, limit=1) > 0
    assert 5 < exists.sum() < 40 or colours == 5
    found = colour(problem, queries, relations, number=4, tries=6, moves=5_000, seed=1)
    assert_solutions(problem, found, queries, relations)
    assert (found.solvable == np.where(exists, 1, -1)).all()
    assert np.array_equal(
        found.solutions,
        colour(problem, queries, relations, number=4, tries=6, moves=5_000, seed=1, threads=1).solutions,
    )
    hopeless = colour(problem, queries, relations, moves=1)
    assert (hopeless.solvable <= found.solvable).all()


def test_local_search_keeps_givens_that_clash():
    edge = np.array([[[0, 1]]], np.int16)
    found = colour(colouring(2, 3), np.array([[1, 1]], np.uint8), edge)
    assert found.solvable.tolist() == [-1]
    assert len(found.solutions) == 0
    assert colour(colouring(2, 3), np.array([[1, 0]], np.uint8), edge).solutions[0, 0] == 1


def test_far_apart():
    rows = np.array([[1, 1, 1], [1, 1, 2], [1, 1, 1], [2, 2, 2], [2, 2, 1]], np.uint8)
    assert far_apart(rows, 2).tolist() == [[1, 1, 1], [2, 2, 2]]
    assert len(far_apart(rows, 9)) == 4
    assert len(far_apart(rows[:0], 9)) == 0


def test_luby():
    assert [luby(place) for place in range(1, 16)] == [1, 1, 2, 1, 1, 2, 4, 1, 1, 2, 1, 1, 2, 4, 8]


def test_bad_arguments():
    query = np.zeros((1, 4), np.uint8)
    for name in ("number", "tries", "branches"):
        with pytest.raises(ValueError, match=f"{name}: expected at least 1, got 0"):
            sample(nqueens(4), query, **{name: 0})
    with pytest.raises(ValueError, match="problem: expected relations a != b and no rules"):
        colour(nqueens(4), query, np.zeros((1, 0, 2), np.int16))
    with pytest.raises(ValueError, match="moves: expected at least 1, got 0"):
        colour(colouring(4, 3), query, np.zeros((1, 0, 2), np.int16), moves=0)
    with pytest.raises(ValueError, match=r"relations: expected \[1, M, 2\], got \[2, 0, 2\]"):
        colour(colouring(4, 3), query, np.zeros((2, 0, 2), np.int16))


@pytest.mark.parametrize("search", [colour, sample, solve])
@pytest.mark.parametrize(
    ("query", "pair", "message"),
    [
        ([0, 0, 0], (0, 60), "relations: expected variables 0 to 2"),
        ([0, 0, 0], (2, -1), "relations: expected pairs of variables, or of -1 for padding, got half a pair"),
        ([0, 0, 0], (0.5, 1), "relations: expected variables 0 to 2"),
        ([0, 0, 9], (0, 1), "queries: expected values 0 to 3"),
    ],
)
def test_numbers_outside_of_the_graph_are_refused(search, query, pair, message):
    """The kernels check no index: they would read and write elsewhere."""
    with pytest.raises(ValueError, match=message):
        search(colouring(3, 3), np.array([query]), np.array([[pair]]))


def test_relations_beyond_16_bits_are_refused():
    problem = colouring(10, 2)
    large = replace(problem, variables=40_000, rules=())
    with pytest.raises(ValueError, match="relations: expected variables 0 to 32767"):
        count(large, np.zeros((1, 40_000), np.uint8), np.array([[[0, 39_999]]]))
