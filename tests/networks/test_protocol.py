"""The interface of networks: how their answers are read, and which problems they can answer."""

import re

import numpy as np
import pytest
import torch
from torch import nn

from oneofmany.networks import NLM, RRN, EquivariantNetwork, nlm_for
from oneofmany.networks.building import NETWORKS, NetworkSettings, build_network
from oneofmany.networks.protocol import PredictionNetwork, readout_of
from oneofmany.problems import Problem, Rule, futoshiki, nqueens, sudoku

HORIZONTAL, VERTICAL = np.array([[0, 1], [-1, -1]]), np.array([[0, 3]])
PADDING = np.full((2, 2), -1)


def test_every_network_says_how_it_is_read():
    assert (NLM.readout, RRN.readout, EquivariantNetwork.readout) == ("threshold", "argmax", "argmax")
    for kind, problem in (("nlm", nqueens(3)), ("rrn", sudoku(2, 2)), ("equivariant", nqueens(3))):
        network = build_network(NetworkSettings(kind, width=4, depth=1), problem)
        assert type(network) is NETWORKS[kind]
        assert isinstance(network, PredictionNetwork)
        assert readout_of(network) == readout_of(torch.compile(network, backend="eager")) == network.readout


def test_a_network_that_says_nothing_is_read_by_argmax():
    assert readout_of(lambda batch: batch) == "argmax"
    network = nn.Linear(2, 2)
    network.readout = nn.Linear(2, 2)  # a layer of this name is not the setting
    assert readout_of(network) == "argmax"
    network = nn.Linear(2, 2)
    network.readout = "threshold"
    assert readout_of(network) == "threshold"


@pytest.mark.parametrize(
    ("network", "problem", "relations", "why"),
    [
        (lambda: nlm_for("nqueens", depth=1), nqueens(7), None, None),
        (lambda: nlm_for("nqueens", depth=1), sudoku(2, 2), None, "trained on nqueens and cannot answer sudoku 4"),
        (lambda: nlm_for("futoshiki", depth=1), futoshiki(3), None, None),
        (lambda: nlm_for("futoshiki", depth=1), futoshiki(3), HORIZONTAL, None),
        (lambda: nlm_for("futoshiki", depth=1), futoshiki(3), VERTICAL, "horizontal neighbours.* got cells 0 and 3"),
        (lambda: nlm_for("futoshiki", depth=1), futoshiki(3, [(0, 3)]), None, "horizontal neighbours"),
        (lambda: nlm_for("futoshiki", depth=1, relations="any"), futoshiki(3), VERTICAL, None),
        (lambda: RRN(sudoku(2, 2), width=4), sudoku(2, 2), None, None),
        (lambda: RRN(sudoku(2, 3), width=4), sudoku(3, 2), None, "bound to sudoku 6"),
        (lambda: RRN(sudoku(2, 2), width=4), nqueens(4), None, "trained on sudoku 4 and cannot answer nqueens 4"),
        (lambda: EquivariantNetwork(nqueens(5), width=4), nqueens(9), None, None),
        (
            lambda: EquivariantNetwork(nqueens(5), width=4),
            sudoku(2, 2),
            None,
            "no weights for rules of kind cell and box",
        ),
        (lambda: EquivariantNetwork(sudoku(2, 2), width=4), futoshiki(4), None, None),
        (lambda: EquivariantNetwork(sudoku(2, 2), width=4), futoshiki(4), PADDING, None),
        (
            lambda: EquivariantNetwork(sudoku(2, 2), width=4),
            futoshiki(4),
            HORIZONTAL,
            "no weights for rules of kind inequality",
        ),
        (lambda: EquivariantNetwork(sudoku(2, 2), width=4), futoshiki(4, [(0, 1)]), None, "of kind inequality"),
        (lambda: EquivariantNetwork(futoshiki(3), 4, inequalities="flags"), futoshiki(4), VERTICAL, None),
        (lambda: EquivariantNetwork(nqueens(5), width=4), Problem("own", 1, 1, 2, (Rule("x", (0,)),)), None, "kind x"),
    ],
)
def test_accepts(network, problem, relations, why):
    found = network().accepts(problem, relations)
    assert found is None if why is None else re.search(why, found)
