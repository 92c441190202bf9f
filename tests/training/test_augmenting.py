"""Symmetries: solutions stay solutions, queries keep their givens and their lists, relations hold."""

import numpy as np
import pytest
import torch

from oneofmany.data import DeviceData
from oneofmany.data.futoshiki import build_futoshiki
from oneofmany.data.nqueens import build_nqueens
from oneofmany.data.sudoku import build_sudoku
from oneofmany.exact import count
from oneofmany.training.augmenting import augment, draw_augmentation

DATA = {
    "nqueens": lambda: build_nqueens(6, 4, seed=1),
    "futoshiki": lambda: build_futoshiki(4, 9, 3, 40, seed=1),
    "sudoku": lambda: build_sudoku(40, "train", seed=1, size=4, givens=(5, 8), listed=50),
    "sudoku 6": lambda: build_sudoku(20, "train", seed=1, size=6, givens=(12, 16), listed=50),
}


@pytest.mark.parametrize("name", DATA)
def test_symmetric_queries(name):
    data = DeviceData(DATA[name]())
    generator = torch.Generator().manual_seed(0)
    batch = data.draw(64, generator)
    made = augment(batch, draw_augmentation(64, batch.problem, generator))
    assert ((made.query > 0).sum(1) == (batch.query > 0).sum(1)).all()
    assert (made.query != batch.query).any()
    for k in range(batch.mask.shape[1]):
        own = batch.mask[:, k]
        relations = None if made.relations is None else made.relations[own]
        assert made.problem.check(made.solutions[own, k], made.query[own], relations).all()
    # The new query has as many solutions as the old one.
    arrays = [
        (
            b.query.numpy().astype(np.uint8),
            np.zeros((64, 0, 2), np.int16) if b.relations is None else b.relations.numpy(),
        )
        for b in (batch, made)
    ]
    before, after = (count(batch.problem, *one) for one in arrays)
    assert (before == after).all()


def test_all_eight_symmetries_of_a_board_come():
    data = DeviceData(build_nqueens(5, 0, seed=1))
    row = data.batch(torch.zeros(400, dtype=torch.int64))
    made = augment(row, draw_augmentation(400, row.problem, torch.Generator().manual_seed(0)))
    board = torch.nn.functional.one_hot(row.solutions[0, 0], 5)
    forms = {tuple(turned.argmax(-1).tolist()) for k in range(4) for b in (board, board.T) for turned in [b.rot90(k)]}
    assert {tuple(one) for one in made.solutions[:, 0].tolist()} == forms
