"""Statistics of a dataset: those of the paper's Table 1 and more."""

from __future__ import annotations

from typing import Any

import numpy as np

from oneofmany.compiled import njit
from oneofmany.data.dataset import Dataset
from oneofmany.data.sequences import SequenceData

COMPARED = 4096
"""Hamming distances are computed between at most this many listed solutions of a query."""


def statistics(dataset: Dataset) -> dict[str, Any]:
    """Return Table 1's rows, histograms of solutions and givens, and the largest distance between two solutions."""
    known = np.where(dataset.total >= 0, dataset.total, dataset.listed)
    multiple = dataset.multiple
    header = dataset.header()
    return {
        "task": header["task"],
        "size": header["size"],
        "queries": len(dataset),
        "ms_queries": int(multiple.sum()),
        "ms_percent": round(100 * float(multiple.mean()), 2) if len(dataset) else 0.0,
        "solutions_per_ms_query": round(float(known[multiple].mean()), 4) if multiple.any() else 0.0,
        "listed_per_ms_query": round(float(dataset.listed[multiple].mean()), 4) if multiple.any() else 0.0,
        "most_solutions": int(known.max(initial=0)),
        "unknown_totals": int((dataset.total < 0).sum()),
        "largest_hamming_distance": largest_hamming_distance(dataset),
        "groups": len(np.unique(dataset.group)),
        "solution_counts": _histogram(known),
        "givens": _histogram((dataset.query > 0).sum(1)),
        "built": header["built"],
        "version": header["version"],
        "checksum": header["checksum"],
    }


def sequence_statistics(data: SequenceData) -> dict[str, Any]:
    """Return the same for a dataset of sequences: answers, lengths and vocabularies."""
    listed, multiple, header = data.listed, data.multiple, data.header()
    per_query = round(float(listed[multiple].mean()), 4) if multiple.any() else 0.0
    return {
        "task": header["task"],
        "size": data.problem.size,
        "queries": len(data),
        "ms_queries": int(multiple.sum()),
        "ms_percent": round(100 * float(multiple.mean()), 2) if len(data) else 0.0,
        "solutions_per_ms_query": per_query,
        "listed_per_ms_query": per_query,
        "most_solutions": int(listed.max(initial=0)),
        "unknown_totals": len(data),
        "vocabulary": {"inputs": len(data.problem.inputs), "outputs": len(data.problem.outputs)},
        "solution_counts": _histogram(listed),
        "input_lengths": _histogram(np.diff(data.input_offsets)),
        "output_lengths": _histogram(np.diff(data.output_offsets)),
        "built": header["built"],
        "version": None,
        "checksum": header["checksum"],
    }


def _histogram(numbers: np.ndarray) -> dict[str, int]:
    values, counts = np.unique(numbers, return_counts=True)
    return {str(value): int(count) for value, count in zip(values, counts, strict=True)}


def largest_hamming_distance(dataset: Dataset) -> int:
    """Return the largest number of variables in which two listed solutions of one query differ."""
    return int(_largest_distance(dataset.solutions, dataset.offsets, COMPARED))


@njit(cache=True)
def _largest_distance(solutions, offsets, compared):
    largest = 0
    for q in range(len(offsets) - 1):
        end = min(offsets[q + 1], offsets[q] + compared)
        for i in range(offsets[q], end):
            for j in range(i + 1, end):
                distance = 0
                for variable in range(solutions.shape[1]):
                    distance += solutions[i, variable] != solutions[j, variable]
                largest = max(largest, distance)
    return largest
