"""Accuracy on graphs by their number of nodes and mean degree: percentages of the graphs that can be coloured."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from oneofmany.data import Dataset
from oneofmany.data.graphs import degrees_of, nodes_of
from oneofmany.evaluation.outcomes import Outcomes
from oneofmany.evaluation.scores import Score

By = Literal["nodes", "degree"]


def by_graph(data: Dataset, outcomes: Outcomes, by: By = "nodes") -> list[dict[str, Any]]:
    """Return the scores of every number of nodes or, by degree, of every number of nodes and mean degree.

    Only graphs that are known to have a colouring count: one is listed, counted or found by the network.

    Args:
        data: graphs; ValueError if the queries have no relations a != b.
        outcomes: the answers to them.
        by: how to split them.

    Returns:
        rows of ``nodes`` (and ``degree``), ``graphs`` (how many the data has, solvable or not), and ``Score.as_dict()``
        of ``one`` trajectory, of the start ``chosen`` without the rules and of any start (``checked``), each None with
        one start. The last row, with ``nodes`` None, is of all graphs.
    """
    if data.problem.relation_kind is None or data.problem.relation != "!=":
        raise ValueError(f"by: expected graphs (relations a != b), got {data.problem.task}")
    if len(data) != len(outcomes):
        raise ValueError(f"outcomes: expected those of {len(data)} queries, got {len(outcomes)}")
    views = {"one": outcomes.valid, "chosen": outcomes.chosen, "checked": outcomes.checked}
    found = outcomes.valid if outcomes.checked is None else outcomes.valid | outcomes.checked
    solvable = (data.listed > 0) | (data.total > 0) | found
    nodes = nodes_of(data.query, data.relations)
    degree = degrees_of(data.query, data.relations).round(2) if by == "degree" else np.zeros(len(data))
    keys = np.stack([nodes, degree], 1)
    rows = []
    for key in [*np.unique(keys, axis=0), None]:
        own = np.ones(len(data), bool) if key is None else (keys == key).all(1)
        row: dict[str, Any] = {"nodes": None if key is None else int(key[0])}
        if by == "degree":
            row["degree"] = None if key is None else float(key[1])
        row["graphs"] = int(own.sum())
        for name, right in views.items():
            part = None if right is None else right[own & solvable]
            row[name] = None if part is None else Score(int(part.sum()), len(part)).as_dict()
        rows.append(row)
    return rows
