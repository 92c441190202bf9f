"""The kernels of the RRN against plain PyTorch and its autograd.

They need a GPU. Without one, Triton's interpreter runs them slowly (triton must be installed):

    TRITON_INTERPRET=1 pytest tests/networks/rrn/test_rrn_kernels.py
"""

from contextlib import nullcontext
from functools import partial

import pytest
import torch

from kernels import DEVICE, INTERPRETED, needs_kernels
from oneofmany.networks.rrn import RRN
from oneofmany.networks.rrn.dropout import kept_counts, scale_of, step_keys, threshold_of
from oneofmany.networks.rrn.graph import returning, sudoku_slots
from oneofmany.networks.rrn.plain import Graph, Layer, plain_messages
from oneofmany.problems import sudoku

# The GPU multiplies in bfloat16; the interpreter allows a tighter tolerance.
DTYPE, TOLERANCE = (torch.float32, 1e-5) if INTERPRETED else (torch.bfloat16, 2e-2)
WIDTH = 96
pytestmark = needs_kernels

BOARDS = {
    "2 x 2, a whole block of 64": (2, 2, 4),
    "2 x 3, neither block whole": (2, 3, 3),
    "3 x 3": (3, 3, 2),
    "one slot a board, every slot double": (1, 2, 9),
}


def close(ours: torch.Tensor, theirs: torch.Tensor, name: str = "", times: int = 1) -> None:
    assert ours.shape == theirs.shape
    assert (ours.float() - theirs).norm() <= times * TOLERANCE * theirs.norm(), name


@pytest.mark.parametrize("cells", [64, 16], ids="blocks of {}".format)
@pytest.mark.parametrize(("dropout", "distinct"), [(0.1, False), (0.1, True), (0.0, False), (0.0, True)])
@pytest.mark.parametrize("boards", BOARDS)
def test_messages_and_their_gradients(boards, dropout, distinct, cells, monkeypatch):
    from oneofmany.networks.rrn import triton

    monkeypatch.setattr(triton, "MANY_CELLS", 0 if cells == 64 else 10**9)
    torch.manual_seed(len(boards))
    (box_rows, box_columns, B), row_offset = BOARDS[boards], 7
    table, doubles = sudoku_slots(box_rows, box_columns)
    R, D = table.shape
    doubles = 0 if distinct else doubles
    neighbours, back = (torch.from_numpy(t).to(DEVICE) for t in (table, returning(table)))

    pq = torch.randn(B, R, 2 * WIDTH, device=DEVICE).to(DTYPE)
    grad = torch.randn(B, R, WIDTH, device=DEVICE).to(DTYPE)
    weights = (torch.randn(3, WIDTH, WIDTH, device=DEVICE) * (2 / WIDTH) ** 0.5).to(DTYPE).float().requires_grad_()
    biases = torch.randn(3, WIDTH, device=DEVICE, requires_grad=True)
    threshold, scale = threshold_of(dropout), scale_of(dropout)
    key = step_keys(torch.tensor([3], device=DEVICE), 2)[1] if dropout else None
    counts = None if key is None else kept_counts(key, threshold, row_offset, (B, R, D, WIDTH), doubles)

    halves = pq.float().requires_grad_()
    layers = [Layer(weight, bias) for weight, bias in zip(weights, biases, strict=True)]
    p, q = halves.split(WIDTH, 2)
    expected = plain_messages(p, q, layers, Graph(neighbours, back, doubles), counts) * scale
    gradients = torch.autograd.grad((expected * grad.float()).sum(), (halves, weights, biases))

    messages = triton.Messages(neighbours.T.contiguous().int(), doubles, threshold, scale, row_offset)
    rest = (*triton.operands(weights.detach(), biases.detach(), DTYPE), messages, key)
    out, grad_pq = torch.empty_like(grad), torch.empty_like(pq)
    triton.message_forward(pq, *rest, out)
    close(out, expected)
    grad_layers = torch.ones(3, WIDTH, triton.ROW, device=DEVICE)  # to which they are added
    triton.message_backward(grad, pq, *rest, grad_pq, grad_layers)
    ours = grad_pq, grad_layers[..., :WIDTH] - 1, grad_layers[..., WIDTH] - 1
    for name, mine, theirs in zip(("pq", "weights", "biases"), ours, gradients, strict=True):
        # In 16 bits some activations fall on the other side of a ReLU.
        close(mine, theirs, name, times=1 if INTERPRETED else 4)


@pytest.mark.parametrize("changes", [{"dropout": 0.1}, {"dropout": 0.0}, {"lstm_bias": True, "distinct": True}])
def test_all_steps_and_their_gradients(changes, monkeypatch):
    from oneofmany.networks.rrn import triton

    monkeypatch.setattr(triton, "run_steps", partial(triton.run_steps, dtype=DTYPE))
    torch.manual_seed(0)
    problem = sudoku(2, 2)
    network = RRN(problem, steps=3, **changes).to(DEVICE)
    x = torch.randn(3, 16, WIDTH, device=DEVICE).to(DTYPE)
    keys = list(step_keys(torch.tensor([3], device=DEVICE), 3)) if network.dropout else [None] * 3
    parameters = [p for name, p in network.named_parameters() if name.startswith(("message", "lstm"))]

    plain = x.float().requires_grad_()
    expected = torch.stack(network._recur(plain, keys, 7))
    weights = torch.randn_like(expected)
    gradients = torch.autograd.grad((expected * weights).sum(), (plain, *parameters))

    ours = x.clone().requires_grad_()
    with nullcontext() if INTERPRETED else torch.autocast("cuda", torch.bfloat16):
        hidden = network._run(ours, keys, 7, True)
        close(hidden, expected)
        with torch.no_grad():
            close(network._run(ours, keys, 7, True), expected)
            close(network._run(ours, keys, 7, False), expected[-1:])
    found = torch.autograd.grad((hidden * weights).sum(), (ours, *parameters))
    for number, (mine, theirs) in enumerate(zip(found, gradients, strict=True)):
        close(mine, theirs, str(number), times=5)
