"""Batches: the right tensors, the right distributions, generators that can be saved."""

import numpy as np
import pytest
import torch

from oneofmany.data import DeviceData
from oneofmany.data.futoshiki import build_futoshiki
from oneofmany.data.nqueens import build_nqueens


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def dataset():
    return build_nqueens(7, 4, seed=1)


@pytest.fixture(scope="module")
def data(dataset):
    return DeviceData(dataset)


def test_every_query_with_its_solutions(dataset, data):
    seen = 0
    for batch in data.in_order(100):
        assert batch.problem is dataset.problem
        assert batch.query.dtype == batch.solutions.dtype == batch.total.dtype == torch.int64
        for i in range(len(batch)):
            row = seen + i
            assert batch.query[i].tolist() == dataset.query[row].tolist()
            listed = batch.solutions[i][batch.mask[i]] + 1
            assert listed.tolist() == dataset.solutions_of(row).tolist()
            assert int(batch.total[i]) == dataset.total[row]
        seen += len(batch)
    assert seen == len(dataset)


def test_relations_travel():
    dataset = build_futoshiki(4, 8, 2, 20, seed=1)
    batch = next(DeviceData(dataset).in_order(20))
    assert batch.relations is not None
    assert (batch.relations.numpy() == dataset.relations).all()
    assert batch.problem.check(batch.solutions[:, 0], batch.query, batch.relations).all()
    assert (batch[3:5].relations == batch.relations[3:5]).all()


def frequencies(data, sampling, n=200_000):
    rows = data.draw_rows(n, generator(), sampling)
    return torch.bincount(rows, minlength=len(data)).double() / n


def test_uniform_over_queries(data):
    share = frequencies(data, "uniform")
    assert abs(share * len(data) - 1).max() < 0.5
    assert (share > 0).all()


def test_uniform_over_pairs_lists_that_one_solution(dataset, data):
    n = 100_000
    batch = data.draw(n, generator(), "pairs")
    assert batch.mask.shape == (n, 1)
    assert batch.mask.all()
    pairs, counts = np.unique(
        torch.cat([batch.query, batch.solutions[:, 0] + 1], 1).numpy(), axis=0, return_counts=True
    )
    assert len(pairs) == len(dataset.solutions)
    assert abs(counts.mean() / n * len(pairs) - 1) < 1e-9
    assert counts.std() < 2 * np.sqrt(counts.mean())
    multiple = batch.total > 1
    expected = dataset.total[dataset.multiple].sum() / dataset.total.sum()
    assert abs(float(multiple.double().mean()) - expected) < 0.01


@pytest.mark.parametrize("listed", [None, 2])
def test_padded_pairs_favour_the_last_solution(listed):
    dataset = build_nqueens(7, 5, seed=1)
    data, n = DeviceData(dataset, listed=listed), 400_000
    most = data.most_listed
    assert most == (listed or 4)
    rows = data.draw_rows(n, generator(), "pairs-padded")
    batch = data.batch(rows, "pairs-padded")
    assert batch.mask.shape == (n, 1)
    assert batch.mask.all()
    assert dataset.problem.check(batch.solutions[:, 0], batch.query).all()
    # Queries are drawn as with pairs: in proportion to their number of listed solutions.
    used = np.minimum(dataset.listed, most)
    query = data.pair_query[rows].numpy()
    drawn = np.bincount(query, minlength=len(dataset)) / n
    assert abs(drawn - used / used.sum()).max() < 5 * np.sqrt(used.max() / used.sum() / n)
    # As if the list were padded with its last solution to the longest list, and one entry drawn.
    place = (rows - data.first_pair[data.pair_query[rows]]).numpy()
    for count in range(1, most + 1):
        places = place[used[query] == count]
        shares = np.bincount(places, minlength=count) / len(places)
        wanted = [1 / most] * (count - 1) + [(most - count + 1) / most]
        assert shares == pytest.approx(wanted, abs=5 * np.sqrt(0.25 / len(places)))
    # The drawn solution is the one at that index of the query's list.
    for i in range(30):
        solution = dataset.solutions_of(query[i])[place[i]]
        assert (batch.solutions[i, 0] + 1).tolist() == solution.tolist()


@pytest.mark.parametrize(("sampling", "share"), [("os", 0.0), ("ms", 1.0), (0.25, 0.25), (0.0, 0.0), (1.0, 1.0)])
def test_share_of_ms_queries(dataset, data, sampling, share):
    rows = data.draw_rows(20_000, generator(), sampling).numpy()
    assert abs(dataset.multiple[rows].mean() - share) < 0.015
    if share:
        drawn = np.bincount(rows[dataset.multiple[rows]], minlength=len(dataset))[dataset.multiple]
        assert drawn.min() > 0.5 * drawn.mean()


@pytest.mark.parametrize("sampling", ["uniform", "os", "ms", "pairs", 0.3])
def test_drawing_towards_a_place_among_rated_queries(dataset, sampling):
    """The mean place of what is drawn is the one asked for, among the queries of that sampling."""
    data, rating = DeviceData(dataset), np.random.default_rng(1).random(len(dataset))
    data.rate(rating)
    for kind in ("os", "ms") if sampling == 0.3 else (sampling,):
        of_kind = {"uniform": dataset.total > 0, "os": ~dataset.multiple, "ms": dataset.multiple}
        of_pairs = np.repeat(rating, dataset.listed)
        known = np.sort(of_pairs if kind == "pairs" else rating[of_kind[kind]])
        for towards in (0.2, 0.5, 0.8):
            rows = data.draw_rows(200_000, generator(), sampling, towards).numpy()
            drawn = of_pairs[rows] if kind == "pairs" else rating[rows[of_kind[kind][rows]]]
            place = (np.searchsorted(known, drawn, "left") + np.searchsorted(known, drawn, "right")) / 2 / len(known)
            assert place.mean() == pytest.approx(towards, abs=0.01)
    assert len(np.unique(data.draw_rows(200_000, generator(), sampling, 0.5))) == len(
        np.unique(data.draw_rows(200_000, generator(), sampling))
    )


def test_drawing_towards_a_place_needs_ratings(data):
    with pytest.raises(ValueError, match="towards: expected rated queries"):
        data.draw_rows(4, generator(), "uniform", 0.5)


def test_a_part_draws_its_own_queries_by_rating(dataset):
    data = DeviceData(dataset)
    data.rate(np.arange(len(dataset)))
    part = data.within(range(10, 30))
    rows = part.draw_rows(5000, generator(), "uniform", 0.7)
    assert set(rows.tolist()) == set(range(10, 30))
    assert rows.float().mean() == pytest.approx(10 + 0.7 * 20 - 0.5, abs=0.3)


def test_a_generator_can_be_saved_and_restored(data):
    draws = generator(3)
    data.draw_rows(10, draws)
    state = draws.get_state()
    first = [data.draw_rows(10, draws, s) for s in ("uniform", "pairs", "pairs-padded", 0.3)]
    other = torch.Generator()
    other.set_state(state)
    again = [data.draw_rows(10, other, s) for s in ("uniform", "pairs", "pairs-padded", 0.3)]
    assert all((a == b).all() for a, b in zip(first, again, strict=True))


def test_at_most_so_many_listed(dataset):
    data = DeviceData(dataset, listed=1)
    batch = data.draw(500, generator(), "ms")
    assert batch.mask.shape[1] == 1
    for i in range(20):
        row = np.flatnonzero((dataset.query == batch.query[i].numpy()).all(1))[0]
        assert (batch.solutions[i, 0] + 1).tolist() == dataset.solutions_of(row)[0].tolist()
    pairs = data.draw(500, generator(), "pairs")
    assert len(data.pair_query) == len(dataset)
    assert dataset.problem.check(pairs.solutions[:, 0], pairs.query).all()


def test_impossible_sampling(dataset):
    single = DeviceData(dataset.take(np.flatnonzero(~dataset.multiple)))
    for sampling in ("ms", 0.5):
        with pytest.raises(ValueError, match="no MS query to draw"):
            single.draw(4, generator(), sampling)
    for sampling in ("all", 1.5, -0.1):
        with pytest.raises(ValueError, match="sampling: expected"):
            single.draw(4, generator(), sampling)
    with pytest.raises(ValueError, match="size: expected at least 1"):
        single.draw(0, generator())
    with pytest.raises(ValueError, match="no queries"):
        DeviceData(dataset.take(np.array([], int)))
    with pytest.raises(ValueError, match="listed"):
        DeviceData(dataset, listed=0)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_on_a_gpu(dataset):
    data = DeviceData(dataset, "cuda")
    draws = torch.Generator("cuda").manual_seed(0)
    batch = data.draw(64, draws, 0.5)
    assert batch.query.is_cuda
    assert dataset.problem.check(batch.solutions[:, 0], batch.query).all()
