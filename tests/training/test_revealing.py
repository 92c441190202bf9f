"""Revealing against brute force: every solution that stays listed solves the new query."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from oneofmany.data import DeviceData
from oneofmany.data.sudoku import build_sudoku
from oneofmany.training.revealing import draw_reveal, reveal

SUDOKUS = build_sudoku(30, "train", seed=3, size=4, givens=(4, 7), listed=50)
DATA = DeviceData(SUDOKUS)
INCOMPLETE = DeviceData(SUDOKUS, listed=2)
EXTREMES = (0.0, 1 - 2**-24)


def brute_force(batch, share, uniform):
    """The definition, one query after the other: (query, mask, total) as lists."""
    queries, masks, totals = [], [], []
    for b in range(len(batch)):
        query, mask = batch.query[b].tolist(), batch.mask[b].tolist()
        changed, which, amount, *cells = uniform[b].tolist()
        listed, shown = [k for k, real in enumerate(mask) if real], []
        if changed < share and listed:
            solution = batch.solutions[b, listed[int(which * len(listed))]].tolist()
            shown = [r for r, number in enumerate(cells) if number < amount]
            for r in shown:
                query[r] = query[r] or solution[r] + 1
            for k in listed:
                mask[k] = all(batch.solutions[b, k, r] == solution[r] for r in shown)
        queries.append(query)
        masks.append(mask)
        if len(listed) == batch.total[b]:
            totals.append(sum(mask))
        else:
            totals.append(-1 if shown else int(batch.total[b]))
    return queries, masks, totals


@given(
    st.integers(0, 2**32),
    st.sampled_from([0.0, 0.3, 1.0]),
    st.sampled_from([None, *EXTREMES]),
    st.sampled_from([DATA, INCOMPLETE]),
)
def test_against_brute_force(seed, share, extreme, data):
    draw = torch.Generator().manual_seed(seed)
    batch = data.draw(6, draw)
    uniform = draw_reveal(6, 16, draw)
    if extreme is not None:
        uniform[:, 1:3] = extreme
    revealed = reveal(batch, share, uniform)
    queries, masks, totals = brute_force(batch, share, uniform)
    assert revealed.query.tolist() == queries
    assert revealed.mask.tolist() == masks
    assert revealed.total.tolist() == totals
    for b in range(6):
        givens = batch.query[b] > 0
        assert (revealed.query[b][givens] == batch.query[b][givens]).all()
        assert revealed.mask[b].any()
        listed = revealed.solutions[b][revealed.mask[b]]
        now = revealed.query[b] > 0
        assert (listed[:, now] + 1 == revealed.query[b][now]).all()


def test_nothing_is_shown_at_share_0():
    draw = torch.Generator().manual_seed(0)
    batch = DATA.draw(50, draw)
    revealed = reveal(batch, 0.0, draw_reveal(50, 16, draw))
    assert torch.equal(revealed.query, batch.query)
    assert torch.equal(revealed.mask, batch.mask)
    assert torch.equal(revealed.total, batch.total)


def test_queries_without_listed_solutions_stay_as_they_are():
    draw = torch.Generator().manual_seed(0)
    batch = DATA.draw(20, draw)
    batch.mask[:] = False
    revealed = reveal(batch, 1.0, draw_reveal(20, 16, draw))
    assert torch.equal(revealed.query, batch.query)
    assert not revealed.mask.any()


def test_how_many_queries_change_and_how_many_cells_are_shown():
    draw = torch.Generator().manual_seed(0)
    batch = DATA.draw(20_000, draw)
    blank = batch.query == 0
    shown = (reveal(batch, 0.4, draw_reveal(20_000, 16, draw)).query != batch.query).sum(1) / blank.sum(1)
    assert abs(float((shown > 0).float().mean()) - 0.4 * (1 - 1 / 11)) < 0.04  # a few changed queries show no blank
    # Uniform between none and all of the cells: the mean share is one half of the changed ones.
    assert abs(float(shown.mean()) - 0.2) < 0.01
