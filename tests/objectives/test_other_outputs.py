"""Pair losses of sequences, sets and real numbers, against loops and numpy."""

import itertools
import math

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from torch.autograd import gradcheck
from torch.nn.functional import cross_entropy

from oneofmany.objectives import (
    CTCNLL,
    CategoricalNLL,
    CCLoss,
    IExplR,
    MinLoss,
    Naive,
    SelectR,
    SequenceNLL,
    SetNLL,
    SquaredError,
)

quick = settings(max_examples=15, deadline=None)
seeds = st.integers(0, 2**31)
EXACT = {"rtol": 1e-11, "atol": 1e-11}


def numbers(seed, *shape, scale=2.0):
    return scale * torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def integers(seed, low, high, *shape):
    return torch.randint(low, high, shape, generator=torch.Generator().manual_seed(seed))


def log_softmax(x):
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


# ---- sequences under a decoder --------------------------------------------------------------------------------------


def sequence_case(seed, B=3, K=4, L=5, V=6):
    lengths = integers(seed + 1, 0, L + 1, B, K)
    return numbers(seed, B, K, L, V), integers(seed + 2, 0, V, B, K, L), lengths


@quick
@given(seed=seeds)
def test_sequences(seed):
    """Lengths, a mask, ignored tokens, and log-likelihoods of tokens all give the sum over the tokens that count."""
    logits, answers, lengths = sequence_case(seed)
    log_p = log_softmax(logits.numpy())
    wanted = np.zeros((3, 4))
    for b, k in np.ndindex(3, 4):
        for i in range(lengths[b, k]):
            wanted[b, k] -= log_p[b, k, i, answers[b, k, i]]
    wanted = torch.from_numpy(wanted)
    within = torch.arange(5) < lengths.unsqueeze(-1)
    ignored = answers.masked_fill(~within, -100)
    nll = SequenceNLL()
    for losses in (
        nll(logits, answers, lengths=lengths),
        nll(logits, answers, within),
        nll(logits, ignored),
        nll(logits, ignored, lengths=lengths.int()),
        nll(logits.log_softmax(-1).gather(-1, answers.unsqueeze(-1)).squeeze(-1), ignored),
        nll(logits.flatten(0, 1), ignored.flatten(0, 1)).view(3, 4),
        MinLoss(pair_loss=nll).pair_losses(logits, answers, lengths=lengths),
    ):
        torch.testing.assert_close(losses, wanted, **EXACT)


def test_sequences_have_the_gradient_of_cross_entropy():
    logits, answers, lengths = sequence_case(0)
    logits.requires_grad_()
    weight = torch.rand(6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    nll = SequenceNLL(label_smoothing=0.1, weight=weight)
    ignored = answers.masked_fill(torch.arange(5) >= lengths.unsqueeze(-1), -100)
    theirs = cross_entropy(logits.flatten(0, 2), ignored.flatten(), weight, label_smoothing=0.1, reduction="none")
    losses = nll(logits, ignored)
    torch.testing.assert_close(losses, theirs.view(3, 4, 5).sum(-1))
    mix = numbers(1, 3, 4)
    slopes = [torch.autograd.grad((x * mix).sum(), logits)[0] for x in (losses, theirs.view(3, 4, 5).sum(-1))]
    torch.testing.assert_close(*slopes)
    assert gradcheck(lambda x: SequenceNLL()(x, ignored), logits)


def test_padding_of_a_decoder_may_be_nan():
    """A padded answer, and the end of a short one: neither values nor gradients see it."""
    logits, answers, lengths = sequence_case(0)
    mask = torch.tensor([[True, True, False, True], [True, False, False, False], [False] * 4])
    within = (torch.arange(5) < lengths.unsqueeze(-1)) & mask.unsqueeze(-1)
    spoiled = logits.masked_fill(~within.unsqueeze(-1), math.nan).requires_grad_()
    clean = logits.clone().requires_grad_()
    for objective in (
        MinLoss(pair_loss=SequenceNLL()),
        CCLoss(pair_loss=SequenceNLL()),
        Naive(pair_loss=SequenceNLL()),
    ):
        loss, wanted = (objective(x, answers, mask, lengths=lengths) for x in (spoiled, clean))
        torch.testing.assert_close(loss, wanted)
        slopes = torch.autograd.grad(loss, spoiled)[0], torch.autograd.grad(wanted, clean)[0]
        torch.testing.assert_close(*slopes)


def test_16_bit_sequences_are_computed_in_float32():
    logits, answers, _ = sequence_case(0)
    narrow = logits.to(torch.bfloat16).requires_grad_()
    losses = SequenceNLL()(narrow, answers)
    assert losses.dtype == torch.float32
    torch.testing.assert_close(losses, SequenceNLL()(narrow.detach().float(), answers))
    assert torch.autograd.grad(losses.sum(), narrow)[0].dtype == torch.bfloat16


# ---- CTC -------------------------------------------------------------------------------------------------------------


def ctc_by_hand(log_p, answer, blank):
    """Minus the log of the summed probability of all paths of frames that collapse to the answer."""
    total = 0.0
    for path in itertools.product(range(log_p.shape[1]), repeat=len(log_p)):
        collapsed = [token for token, _ in itertools.groupby(path) if token != blank]
        if collapsed == list(answer):
            total += math.exp(sum(log_p[s, token] for s, token in enumerate(path)))
    return -math.log(total) if total else math.inf


@settings(max_examples=10, deadline=None)
@given(seed=seeds, blank=st.sampled_from([0, 2]))
def test_ctc(seed, blank):
    """Every path is counted; answers of all lengths, too long ones too, padded in any place."""
    B, K, S, V, L = 2, 4, 4, 3, 5
    logits, frames = numbers(seed, B, S, V), integers(seed + 1, 1, S + 1, B)
    generator = np.random.default_rng(seed)
    tokens = [t for t in range(V) if t != blank]
    answers = [[generator.choice(tokens, generator.integers(0, L)).tolist() for _ in range(K)] for _ in range(B)]
    padded = torch.full((B, K, L), -100)
    for b, k in np.ndindex(B, K):
        places = np.sort(generator.choice(L, len(answers[b][k]), replace=False))
        padded[b, k, places] = torch.tensor(answers[b][k], dtype=torch.int64)
    log_p = log_softmax(logits.numpy())
    wanted = [[ctc_by_hand(log_p[b, : frames[b]], answers[b][k], blank) for k in range(K)] for b in range(B)]
    nll = CTCNLL(blank=blank)
    torch.testing.assert_close(nll(logits, padded, lengths=frames), torch.tensor(wanted, dtype=torch.float64))
    objective = MinLoss(pair_loss=nll)
    torch.testing.assert_close(
        objective.pair_losses(logits, padded, lengths=frames), torch.tensor(wanted, dtype=torch.float64)
    )
    masked = nll(logits, padded.clamp(min=tokens[0]), padded != -100, lengths=frames)
    torch.testing.assert_close(masked, torch.tensor(wanted, dtype=torch.float64))


def test_ctc_gradients():
    logits = numbers(0, 2, 5, 4).requires_grad_()
    answers = torch.tensor([[[1, 2, -100], [3, 3, 3]], [[2, -100, -100], [1, 1, 2]]])
    assert gradcheck(lambda x: CTCNLL()(x, answers), logits)
    frames = torch.tensor([5, 2])
    # The second query has two frames: its second answer is impossible, and frames after them may hold a NaN.
    spoiled = logits.detach().clone()
    spoiled[1, 2:] = math.nan
    spoiled.requires_grad_()
    losses = CTCNLL()(spoiled, answers, lengths=frames)
    assert losses.isinf().tolist() == [[False, False], [False, True]]
    for objective in (MinLoss(), CCLoss(), IExplR()):
        loss = objective.reduce(losses)
        assert torch.isfinite(loss)
        (gradient,) = torch.autograd.grad(loss, spoiled, retain_graph=True)
        assert torch.isfinite(gradient).all()
        assert (gradient[1, 2:] == 0).all()


def test_ctc_with_tokens_of_probability_zero():
    logits = torch.zeros(1, 3, 3, dtype=torch.float64)
    logits[..., 1] = -math.inf
    logits.requires_grad_()
    losses = CTCNLL()(logits, torch.tensor([[[1], [2]]]))
    assert losses[0, 0] == math.inf
    assert losses[0, 1].item() == pytest.approx(-math.log(6 / 8))
    (gradient,) = torch.autograd.grad(MinLoss().reduce(losses), logits)
    assert torch.isfinite(gradient).all()


# ---- sets ------------------------------------------------------------------------------------------------------------


def set_by_hand(log_p, elements):
    """The least loss over all ways to give each element a slot of its own."""
    orders = itertools.permutations(range(len(log_p)), len(elements))
    return min(-sum(log_p[slot, v] for slot, v in zip(order, elements, strict=True)) for order in orders)


@quick
@given(seed=seeds, size=st.integers(1, 4), steps=st.sampled_from([None, 2]))
def test_sets(seed, size, steps):
    B, K, R, V = 2, 3, 4, 5
    shape = (B, R, V) if steps is None else (steps, B, R, V)
    logits, sets = numbers(seed, *shape), integers(seed + 1, 0, V, B, K, size)
    kept = torch.rand(B, K, size, generator=torch.Generator().manual_seed(seed)) < 0.7
    log_p = log_softmax(logits.numpy()).reshape(-1, B, R, V)
    wanted = np.zeros((len(log_p), B, K))
    for t, b, k in np.ndindex(*wanted.shape):
        wanted[t, b, k] = set_by_hand(log_p[t, b], sets[b, k][kept[b, k]].tolist())
    ignored = sets.masked_fill(~kept, -100)
    for losses in (SetNLL()(logits, ignored), SetNLL()(logits, sets, kept)):
        torch.testing.assert_close(losses, torch.from_numpy(wanted), **EXACT)
    shuffled = ignored[..., torch.randperm(size, generator=torch.Generator().manual_seed(seed))]
    torch.testing.assert_close(SetNLL()(logits, shuffled), torch.from_numpy(wanted), **EXACT)
    torch.testing.assert_close(
        MinLoss(pair_loss=SetNLL()).pair_losses(logits, ignored), torch.from_numpy(wanted), **EXACT
    )


def test_a_set_is_minloss_over_its_orders():
    """Value and gradient, without listing them."""
    logits, one = numbers(0, 2, 4, 5).requires_grad_(), integers(1, 0, 5, 2, 1, 4)
    orders = torch.tensor(list(itertools.permutations(range(4))))
    listed = one[:, 0, orders]
    assert listed.shape == (2, 24, 4)
    loss, wanted = MinLoss(pair_loss=SetNLL())(logits, one), MinLoss(pair_loss=CategoricalNLL())(logits, listed)
    torch.testing.assert_close(loss, wanted)
    torch.testing.assert_close(torch.autograd.grad(loss, logits), torch.autograd.grad(wanted, logits))


def test_gradients_of_sets():
    logits, sets = numbers(0, 2, 3, 4, 5).requires_grad_(), integers(1, 0, 5, 3, 2, 3)
    sets[0, 1, 2] = -100
    smooth = SetNLL(label_smoothing=0.2, weight=torch.rand(5, dtype=torch.float64))
    for nll in (SetNLL(), smooth):
        assert gradcheck(lambda x, nll=nll: nll(x, sets), logits)


def test_impossible_sets():
    """inf if no order is possible, and no NaN in the gradient of the others."""
    logits = torch.zeros(1, 2, 3, dtype=torch.float64)
    logits[..., 0] = -math.inf
    logits.requires_grad_()
    losses = SetNLL()(logits, torch.tensor([[[0, 1], [1, 2]]]))
    assert losses.flatten().tolist() == [math.inf, pytest.approx(2 * math.log(2))]
    (gradient,) = torch.autograd.grad(MinLoss().reduce(losses), logits)
    assert torch.isfinite(gradient).all()
    assert SetNLL()(torch.full((1, 2, 3), math.nan), torch.tensor([[[0, 1]]])).isnan().all()


# ---- real numbers ----------------------------------------------------------------------------------------------------


@quick
@given(seed=seeds, steps=st.sampled_from([None, 2]), variance=st.sampled_from([0.5, 3.0]))
def test_real_numbers(seed, steps, variance):
    B, K, R = 3, 4, 5
    output = numbers(seed, *((B, R) if steps is None else (steps, B, R)))
    answers = numbers(seed + 1, B, K, R)
    kept = torch.rand(B, K, R, generator=torch.Generator().manual_seed(seed)) < 0.6
    squares = (output.numpy()[..., :, None, :] - answers.numpy()) ** 2
    loss = SquaredError(variance=variance)
    wanted = torch.from_numpy(squares.sum(-1) / 2 / variance)
    torch.testing.assert_close(loss(output, answers), wanted, **EXACT)
    left = torch.from_numpy((squares * kept.numpy()).sum(-1) / 2 / variance)
    torch.testing.assert_close(loss(output, answers, kept), left, **EXACT)
    spoiled = answers.masked_fill(~kept, math.nan)
    torch.testing.assert_close(loss(output, spoiled, kept.int()), left, **EXACT)
    rows = torch.from_numpy((squares * kept[:, :1].numpy()).sum(-1) / 2 / variance)
    torch.testing.assert_close(loss(output, answers, kept[:, 0]), rows, **EXACT)


def test_gradients_of_real_numbers():
    output, answers = numbers(0, 3, 5).requires_grad_(), numbers(1, 3, 4, 5)
    kept = torch.rand(3, 4, 5, generator=torch.Generator().manual_seed(0)) < 0.6
    assert gradcheck(lambda x: SquaredError()(x, answers, kept), output)
    # An unknown number: its solution has no loss, and does not spoil the gradient of the others.
    mask = torch.ones(3, 4, dtype=torch.bool)
    mask[0, 1] = False
    spoiled = answers.clone()
    spoiled[0, 1, 2] = math.nan
    losses = SquaredError()(output, spoiled)
    assert losses.isnan().nonzero().tolist() == [[0, 1]]
    for objective in (MinLoss(), CCLoss(), Naive()):
        loss = objective.reduce(losses, mask)
        (gradient,) = torch.autograd.grad(loss, output, retain_graph=True)
        assert torch.isfinite(gradient).all()
        torch.testing.assert_close(loss, type(objective)(pair_loss=SquaredError())(output, spoiled, mask))


# ---- what all of them share ------------------------------------------------------------------------------------------

OUTPUTS = {
    "sequence": (SequenceNLL, lambda s: (numbers(s, 3, 4, 5, 6), integers(s + 1, 0, 6, 3, 4, 5))),
    "ctc": (CTCNLL, lambda s: (numbers(s, 3, 6, 5), integers(s + 1, 1, 5, 3, 4, 3))),
    "set": (SetNLL, lambda s: (numbers(s, 3, 4, 5), integers(s + 1, 0, 5, 3, 4, 3))),
    "real": (SquaredError, lambda s: (numbers(s, 3, 5), numbers(s + 1, 3, 4, 5))),
}


@pytest.mark.parametrize("kind", OUTPUTS)
@quick
@given(seed=seeds)
def test_order_and_padding_of_the_listed_solutions_do_not_matter(kind, seed):
    pair_loss, make = OUTPUTS[kind]
    output, answers = make(seed)
    mask = torch.rand(3, 4, generator=torch.Generator().manual_seed(seed)) < 0.6
    order = torch.randperm(4, generator=torch.Generator().manual_seed(seed))
    garbage = torch.full_like(answers[:, :2], 10**6)
    padded = torch.cat([garbage, answers.masked_fill(~mask.reshape(3, 4, 1), -1)], 1)
    wide = torch.cat([torch.zeros(3, 2, dtype=torch.bool), mask], 1)
    own = kind == "sequence"  # its output has the axis K
    wide_output = torch.cat([torch.full_like(output[:, :2], math.nan), output], 1) if own else output
    for objective in (MinLoss(pair_loss=pair_loss()), CCLoss(pair_loss=pair_loss()), Naive(pair_loss=pair_loss())):
        wanted = objective(output, answers, mask)
        torch.testing.assert_close(objective(wide_output, padded, wide), wanted)
        turned = output[:, order] if own else output
        torch.testing.assert_close(objective(turned, answers[:, order], mask[:, order]), wanted)


@pytest.mark.parametrize("kind", OUTPUTS)
def test_selectr_takes_them_with_a_reward(kind):
    pair_loss, make = OUTPUTS[kind]
    output, answers = make(0)
    scores = numbers(3, 3, 4).requires_grad_()
    selectr = SelectR(pair_loss=pair_loss())
    with pytest.raises(ValueError, match="reward: expected one, since only CategoricalNLL and BinaryNLL have a reward"):
        selectr.selector_loss(output, answers, scores=scores)
    losses = selectr.pair_losses(output, answers)
    loss = selectr.reduce(losses, scores=scores) + selectr.reduce_rewards(-losses, scores=scores)
    (gradient,) = torch.autograd.grad(loss, scores)
    assert torch.isfinite(gradient).all()
    assert gradient.abs().max() > 0


def long(*shape):
    return torch.zeros(shape, dtype=torch.int64)


BAD = [
    (SequenceNLL(), torch.zeros(2, 3, 4, 5), long(2, 3, 6), r"logits: expected shape \[B,K,L,V\] or \[B,K,L\] with"),
    (SequenceNLL(), torch.zeros(2, 3, 4, 5), long(2, 3, 4).int(), r"solutions: expected dtype torch\.int64"),
    (SequenceNLL(label_smoothing=0.1), torch.zeros(2, 3, 4), long(2, 3, 4), r"logits: expected shape \[B,K,L,V\] for"),
    (SequenceNLL(), torch.zeros(2, 3, 4, 5), long(2, 3, 4) + 5, r"solutions: expected values 0\.\.4 where .* got 5"),
    (CTCNLL(), torch.zeros(2, 3), long(2, 3, 4), r"logits: expected shape \[B,S,V\]"),
    (CTCNLL(), torch.zeros(2, 6, 5), long(3, 3, 4), r"solutions: expected shape \[B,K,L\] with B = 2"),
    (CTCNLL(blank=5), torch.zeros(2, 6, 5), long(2, 3, 4), r"blank: expected a token 0\.\.4, got 5"),
    (CTCNLL(), torch.zeros(2, 6, 5), long(2, 3, 4), r"solutions: expected values 0\.\.4 without the blank 0 .* got 0"),
    (
        SetNLL(),
        torch.zeros(2, 3, 5),
        long(2, 3, 4),
        r"solutions: expected shape \[B,K,N\] with B = 2, K >= 1 and 1 to 3",
    ),
    (SetNLL(), torch.zeros(2, 3, 5), long(2, 3, 3) + 7, r"solutions: expected values 0\.\.4 where .* got 7"),
    (SquaredError(), torch.zeros(2, 3), long(2, 3, 3), "solutions: expected a floating-point dtype"),
    (
        SquaredError(),
        torch.zeros(2, 3),
        torch.zeros(2, 3, 4),
        r"solutions: expected shape \[B,K,R\] with B, R = \[2, 3\]",
    ),
]


@pytest.mark.parametrize(("pair_loss", "output", "answers", "message"), BAD, ids=[bad[-1][:50] for bad in BAD])
def test_bad_arguments(pair_loss, output, answers, message):
    with pytest.raises(ValueError, match=message):
        MinLoss(pair_loss=pair_loss)(output, answers)


def test_bad_lengths_masks_and_options():
    logits, answers = torch.zeros(2, 3, 4, 5), long(2, 3, 4)
    for lengths, message in (
        (torch.ones(2, 3), "lengths: expected an integer dtype, got torch.float32"),
        (long(2), r"lengths: expected shape \[B,K\] = \[2, 3\], got shape \[2\]"),
        ([1], r"lengths: expected a torch\.Tensor, got list"),
    ):
        with pytest.raises(ValueError, match=message):
            SequenceNLL()(logits, answers, lengths=lengths)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match=r"lengths: expected shape \[B\] = \[2\], got shape \[2, 3\]"):
        CTCNLL()(torch.zeros(2, 6, 5), answers + 1, lengths=long(2, 3))
    with pytest.raises(ValueError, match="lengths: expected values 0 to 6, got 6 to 7"):
        CTCNLL()(torch.zeros(2, 6, 5), answers + 1, lengths=torch.tensor([7, 6]))
    with pytest.raises(ValueError, match="lengths: expected values 0 to 6, got -1 to 6"):
        CTCNLL()(torch.zeros(2, 6, 5), answers + 1, lengths=torch.tensor([-1, 6]))
    mask = torch.tensor([[True, True, False], [True, True, True]])
    for length, got in ((5, "0 to 5"), (-1, "-1 to 1")):
        lengths = torch.tensor([[length, 1, 9], [0, 1, 1]])
        with pytest.raises(ValueError, match=f"lengths: expected values 0 to 4, got {got}"):
            MinLoss(pair_loss=SequenceNLL())(logits, answers, mask, lengths=lengths)
        MinLoss(pair_loss=SequenceNLL())(logits, answers, mask, lengths=lengths.clamp(0, 4).where(mask, 9))
    with pytest.raises(ValueError, match="lengths: expected None, since SetNLL takes none"):
        MinLoss(pair_loss=SetNLL())(torch.zeros(2, 4, 5), answers, lengths=long(2, 3))
    with pytest.raises(ValueError, match=r"variable_mask: expected shape \[B,K,L\] = \[2, 3, 4\]"):
        SequenceNLL()(logits, answers, torch.ones(2, 3).bool())
    with pytest.raises(ValueError, match="variance: expected a number above 0, got 0"):
        SquaredError(variance=0)
    with pytest.raises(ValueError, match="blank: expected 0 or more, got -1"):
        CTCNLL(blank=-1)
