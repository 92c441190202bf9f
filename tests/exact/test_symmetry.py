"""The canonical form of a Sudoku grid."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oneofmany.exact import solve
from oneofmany.exact.symmetry import canonical_sudoku
from oneofmany.problems import sudoku


def random_symmetry(grid, rng):
    """Apply a random symmetry to a grid [81], step by step."""
    square = grid.reshape(9, 9)
    if rng.random() < 0.5:
        square = square.T
    for _ in range(2):
        bands = rng.permutation(3)
        rows = np.concatenate([3 * band + rng.permutation(3) for band in bands])
        square = square[rows].T
    return (rng.permutation(9) + 1)[square - 1].ravel().astype(np.uint8)


@given(st.integers(0, 2**32))
def test_equal_for_every_image(seed):
    rng = np.random.default_rng(seed)
    grid = solve(sudoku(), np.zeros((1, 81), np.uint8), limit=1, seed=seed).solutions[0]
    images = np.stack([grid, *(random_symmetry(grid, rng) for _ in range(3))])
    forms = canonical_sudoku(images)
    assert (forms == forms[0]).all()
    assert (forms[0, :9] == np.arange(1, 10)).all()
    assert forms[0].tolist() <= min(image.tolist() for image in images)


def test_the_most_symmetric_grid():
    cyclic = np.array([[(3 * (r % 3) + r // 3 + c) % 9 + 1 for c in range(9)] for r in range(9)], np.uint8).ravel()
    images = np.stack([random_symmetry(cyclic, np.random.default_rng(seed)) for seed in range(20)])
    forms = canonical_sudoku(images)
    assert len(np.unique(forms, axis=0)) == 1
    # It is an image of the grid, so its own canonical form is itself.
    assert (canonical_sudoku(forms[:1]) == forms[:1]).all()


def test_grid_classes_of_the_17_clue_list(sudoku17, reference):
    known = np.array(reference("sudoku17_gridclass.txt").read_text().split(), int)
    forms = canonical_sudoku(solve(sudoku(), sudoku17, limit=2).solutions)
    ours = np.unique(forms, axis=0, return_inverse=True)[1].ravel()
    assert len(np.unique(ours)) == 46_294
    assert len(np.unique(np.stack([ours, known], 1), axis=0)) == 46_294  # the same partition


@pytest.mark.parametrize("grids", [np.ones((1, 80)), np.ones((1, 81)), np.zeros((1, 81), np.uint8)])
def test_bad_grids(grids):
    with pytest.raises(ValueError, match="grids: expected"):
        canonical_sudoku(grids)
