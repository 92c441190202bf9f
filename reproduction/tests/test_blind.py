"""Futoshiki without its inequalities."""

import json
from itertools import product

import numpy as np
import pytest

from oneofmany.data.benchmark import build_benchmark
from oneofmany.data.futoshiki import build_futoshiki, neighbour_pairs
from oneofmany.exact import solve
from reproduction import blind


def test_the_published_numbers_come_from_the_data(tmp_path, monkeypatch):
    monkeypatch.setattr(blind, "FILE", tmp_path / "levels.json")
    blind.main()
    there = json.loads((blind.Path(blind.__file__).with_name("without_inequalities.json")).read_text())
    assert json.loads((tmp_path / "levels.json").read_text()) == there
    assert there["data"]["checksum"] == build_benchmark("futoshiki-test").header()["checksum"]


def test_against_every_draw_of_inequalities():
    """The best blind answer by its definition: try every draw of one inequality per direction."""
    data = build_futoshiki(3, 7, 1, 12, seed=5)
    pairs, every = neighbour_pairs(3, data.built["neighbours"]).tolist(), solve(data.problem, data.query)
    for query, found in enumerate(blind.expected_validity(data)):
        squares = every.of(query).astype(int).tolist()
        chances = []
        for answer in squares:
            chance = []
            for source in squares:
                up = [(a, b) for a, b in pairs if source[a] < source[b]]
                down = [(b, a) for a, b in pairs if source[a] > source[b]]
                held = [all(answer[x] < answer[y] for x, y in draw) for draw in product(up, down)]
                chance.append(np.mean(held))
            chances.append(np.mean(chance))
        best = [square for square, chance in zip(squares, chances, strict=True) if chance > max(chances) - 1e-9]
        shown = [pair for pair in data.relations[query].tolist() if pair[0] >= 0]
        assert found == pytest.approx(np.mean([all(one[a] < one[b] for a, b in shown) for one in best]))
