"""The kernels of the NLM against plain PyTorch.

They need a GPU. Without one, Triton's interpreter runs them slowly (triton must be installed):

    TRITON_INTERPRET=1 pytest tests/networks/nlm/test_nlm_kernels.py
"""

import pytest
import torch

from kernels import DEVICE, needs_kernels
from oneofmany.networks.nlm import layers, nlm_for, nlm_selector_for, plain

pytestmark = needs_kernels

CASES = {
    "a layer in the middle": (8, 4, 25, 20, 25, True, True),
    "many channels, more than a round": (8, 2, 100, 300, 150, True, True),
    "odd numbers": (10, 3, 7, 11, 9, True, True),
    "the last layer": (8, 3, 9, 24, 40, False, False),
    "one object": (3, 2, 1, 5, 4, True, True),
}


def random(*shape):
    return torch.randn(shape, device=DEVICE).half()


def close(ours, theirs, name):
    assert ours.shape == theirs.shape
    error = (ours.float() - theirs.float()).abs().max()
    assert error <= 2e-3 * (1 + theirs.float().abs().max()), name


@pytest.mark.parametrize("case", CASES)
def test_forward(case):
    from oneofmany.networks.nlm import triton

    W, B, n, z, u, nullary, reduced = CASES[case]
    torch.manual_seed(0)
    # Slices of larger matrices, as the layers pass them.
    nul, obj = ((random(rows * W, count + 5) / count**0.5)[:, :count] for rows, count in ((2, z), (3, u)))
    Z, U = random(z, B), random(u, B, n)
    found = []
    for module in (plain, triton):
        new_z, new_u = random(3 * W, B).fill_(9), random(W, B, n).fill_(9)
        extreme = torch.full((2, W, B), -1, dtype=torch.int16, device=DEVICE) if reduced else None
        ends = module.object_forward(nul, obj, Z, U, new_z, new_u, extreme, nullary)
        found.append((ends, new_u, new_z, extreme))
    for ours, theirs, name in zip(found[1], found[0], ("ends", "u", "z"), strict=False):
        close(ours, theirs, name)
    if reduced:  # among nearly equal objects another one may be the largest
        new_u, extreme = found[1][1].float(), found[1][3].long()
        for side, best in enumerate((new_u.amax(-1), new_u.amin(-1))):
            close(new_u.gather(-1, extreme[side][..., None])[..., 0], best, "extreme")
    else:
        assert (found[1][2][W:] == 9).all()


@pytest.mark.parametrize("case", CASES)
def test_backward(case):
    from oneofmany.networks.nlm import triton

    W, B, n, z, u, nullary, reduced = CASES[case]
    torch.manual_seed(0)
    nul, obj = ((random(count, 3 * W + 5) / count**0.5)[:, 2 : 3 * W + 2] for count in (z, u))
    grad_Z, grad_U, out_z, out_u = random(z, B), random(u, B, n), random(W, B).tanh(), random(W, B, n).tanh()
    extreme = torch.randint(n, (2, W, B), dtype=torch.int16, device=DEVICE) if reduced else None
    found = []
    for module in (plain, triton):
        new_z, new_u = random(2 * W, B).fill_(9), random(W, B, n).fill_(9)
        grad_reduced = module.object_backward(nul, obj, grad_Z, grad_U, out_z, out_u, extreme, new_z, new_u, nullary)
        found.append((grad_reduced, new_u, new_z))
    for ours, theirs, name in zip(found[1], found[0], ("reduced", "u", "z"), strict=True):
        close(ours, theirs, name)
    assert nullary or (found[1][2][:W] == 9).all()


@pytest.mark.parametrize("make", [nlm_for, nlm_selector_for], ids=["network", "selector"])
def test_a_whole_machine(make, monkeypatch):
    """All layers with the kernels and without, in float16."""
    from oneofmany.networks.nlm import triton

    torch.manual_seed(0)
    machine = make("nqueens", depth=4, precision="float16").to(DEVICE).machine
    spec = machine.spec
    B, n = 3, 9
    unary = torch.rand(B, n, spec.unary, device=DEVICE)
    binary = (torch.rand(n, n, spec.binary, device=DEVICE) < 0.3).float()
    found = []
    for module in (plain, triton):
        monkeypatch.setattr(layers, "_layer_functions", lambda X, module=module: module)
        logits = machine(unary, binary)
        weights = torch.linspace(1, 2, logits.numel(), device=DEVICE).view(logits.shape)
        gradients = torch.autograd.grad((logits * weights).sum(), list(machine.parameters()), allow_unused=True)
        found.append((logits, torch.cat([g.flatten() for g in gradients if g is not None])))
    for ours, theirs in zip(found[1], found[0], strict=True):
        assert (ours - theirs).norm() <= 1e-2 * theirs.norm()


PAIRS = {
    "odd": (8, 3, 7, 16),
    "even, whose last pairs stand twice": (8, 2, 10, 8),
    "more pairs than a round, more objects than a block": (3, 1, 131, 6),
    "no channels of the group yet": (5, 2, 9, 0),
}


@pytest.mark.parametrize("case", PAIRS)
def test_pairs(case):
    from oneofmany.networks.nlm import triton

    W, B, n, C = PAIRS[case]
    H = n // 2
    torch.manual_seed(0)
    near, weight = twice(random(2, C, B, H, n) / 3, n), random(2, W, C) / 3
    early, ends = twice(random(2, W, B, H, n), n).flatten(2), torch.randn(2, W, B, n, device=DEVICE)
    found = []
    for module in (plain, triton):
        new, reduced = random(2, W, B, H, n), random(2, W, B, n)
        extreme = torch.empty(2, W, B, n, dtype=torch.int16, device=DEVICE)
        module.pair_forward(given(early, module), weight, near, ends, new, reduced, extreme)
        found.append((new, reduced, extreme))
    for ours, theirs, name in zip(found[1], found[0], ("new", "reduced"), strict=False):
        close(ours, theirs, name)

    # The stored positions hold the extremes; the backward pass then uses the same positions for both.
    out, reduced, extreme = found[1]
    orders = torch.stack([out[0] + out[1], out[0] - out[1]]).flatten()
    close(orders[plain._place(extreme, H)], reduced, "extreme")
    grad_reduced = torch.randn(2, W, B, n, device=DEVICE)
    found = []
    for module in (plain, triton):
        new, grad_ends = random(2, W, B, H, n), random(2, W, B, n)
        module.pair_backward(given(early, module), weight, near, grad_reduced, extreme, out, new, grad_ends)
        found.append((new, grad_ends))
    for ours, theirs, name in zip(found[1], found[0], ("new", "ends"), strict=True):
        close(ours, theirs, name)


def given(early, module):
    """Plain PyTorch takes products in float32, and may overwrite them."""
    return early.float() if module is plain else early.clone()


def twice(x, n):
    """For even n the last pairs are stored twice, as (i, j) and as (j, i): s is equal and d has the opposite sign."""
    if n % 2 == 0:
        s, d = x[0, :, :, -1], x[1, :, :, -1]
        s[..., n // 2 :], d[..., n // 2 :] = s[..., : n // 2], -d[..., : n // 2]
    return x
