"""Futoshiki without its inequalities: how often the best answer that never sees them is valid.

    python -m reproduction.blind    # writes without_inequalities.json from the benchmark's test data

A network uses the inequalities only if its accuracy is above this.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from oneofmany.data import Dataset
from oneofmany.data.benchmark import build_benchmark
from oneofmany.data.futoshiki import neighbour_pairs
from oneofmany.evaluation.record import SUBSETS
from oneofmany.exact import solve
from oneofmany.files import write_json

FILE = Path(__file__).with_name("without_inequalities.json")
DATA = "futoshiki-test"


def expected_validity(data: Dataset) -> np.ndarray:
    """float [Q]: the share of best blind answers that keep each query's inequalities.

    A blind answer is a Latin square that keeps the givens. Every such square may be the one that the query was made
    from. A query shows q inequalities of each direction, drawn with replacement from all neighbouring pairs of that
    square, so the probability that they hold in another square is known. The best blind answer has the highest mean
    probability; several may be equally good.
    """
    pairs = neighbour_pairs(data.problem.size, data.built["neighbours"])
    every, draws = solve(data.problem, data.query, limit=10**6), data.built["inequalities"]
    found = np.zeros(len(data))
    for query in range(len(data)):
        squares = every.of(query).astype(np.int64)
        rising = (squares[:, pairs[:, 0]] < squares[:, pairs[:, 1]]).astype(np.float64)
        # [answer, source]: the share of the source's rising (falling) pairs that rise (fall) in the answer too.
        kept = [(ordered @ ordered.T) / np.maximum(ordered.sum(1), 1) for ordered in (rising, 1 - rising)]
        probability = ((kept[0] * kept[1]) ** draws).mean(1)
        best = squares[np.isclose(probability, probability.max(), rtol=1e-9)]
        shown = data.relations[query][data.relations[query][:, 0] >= 0]
        found[query] = (best[:, shown[:, 0]] < best[:, shown[:, 1]]).all(1).mean()
    return found


def main() -> None:
    """Compute the accuracies on OS, MS and all queries, in percent, and write them."""
    data = build_benchmark(DATA)
    valid = expected_validity(data)
    rows = {"os": ~data.multiple, "ms": data.multiple, "overall": np.ones(len(data), bool)}
    levels = {subset: round(100 * float(valid[rows[subset]].mean()), 4) for subset in SUBSETS}
    write_json(FILE, {"data": {"name": DATA, "checksum": data.header()["checksum"]}, **levels})


def without_inequalities() -> dict[str, float]:
    """What the file says: subset -> accuracy in percent."""
    return json.loads(FILE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
