"""Variables that differ from solution to solution, ignored values, label smoothing and weights."""

from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from torch.autograd import gradcheck, gradgradcheck
from torch.nn.functional import cross_entropy

from oneofmany.objectives import (
    BinaryNLL,
    CategoricalNLL,
    CCLoss,
    IExplR,
    MinLoss,
    SelectR,
    binary_exact_match_reward,
    binary_hamming_reward,
    exact_match_reward,
    hamming_reward,
)

from . import brute_force
from .cases import FORMS, Case, make_case
from .strategies import cases

quick = settings(max_examples=12, deadline=None)
LOSSES = {CategoricalNLL: brute_force.categorical, BinaryNLL: brute_force.binary}
both = pytest.mark.parametrize("pair_loss", LOSSES)
shares = st.sampled_from([0.2, 0.6, 1.0])


def ragged(case: Case, share, seed=0):
    """Which variables of every solution count, `[B,K,R]`."""
    return torch.rand(case.solutions.shape, generator=torch.Generator().manual_seed(seed)) < share


def by_hand(of_variable, case: Case, kept):
    """Pair losses [T,B,K] as loops over Python numbers."""
    logits, solutions, _, _ = case.lists()
    kept = kept.tolist()
    return torch.tensor(
        [
            [
                [
                    sum(of_variable(query[r], value) for r, value in enumerate(solution) if kept[b][k][r])
                    for k, solution in enumerate(solutions[b])
                ]
                for b, query in enumerate(step)
            ]
            for step in logits
        ],
        dtype=torch.float64,
    )


@both
@quick
@given(case=cases, share=shares)
def test_a_mask_of_every_solution(pair_loss, case: Case, share):
    """`[B,K,R]`, or the ignored value in its place, or both, give what loops give."""
    case = replace(case, solutions=case.solutions.clamp(0, case.logits.shape[-1] - 1), variable_mask=None)
    kept = ragged(case, share)
    wanted = by_hand(LOSSES[pair_loss], case, kept)
    torch.testing.assert_close(pair_loss()(case.logits, case.solutions, kept), wanted, rtol=1e-12, atol=1e-12)
    ignored = case.solutions.masked_fill(~kept, -100)
    torch.testing.assert_close(pair_loss()(case.logits, ignored), wanted, rtol=1e-12, atol=1e-12)
    other = case.solutions.masked_fill(~kept, 77)
    own = pair_loss(ignore_index=77)
    torch.testing.assert_close(own(case.logits, other), wanted, rtol=1e-12, atol=1e-12)
    few = ragged(case, 0.5, seed=1)
    torch.testing.assert_close(
        pair_loss()(case.logits, ignored, few.int()), by_hand(LOSSES[pair_loss], case, kept & few)
    )
    of_batch = few[:, 0]
    torch.testing.assert_close(
        pair_loss()(case.logits, ignored, of_batch),
        by_hand(LOSSES[pair_loss], case, kept & of_batch.unsqueeze(1)),
    )


@both
@pytest.mark.parametrize("at_once", [None, 2])
def test_its_gradient_is_exact(pair_loss, at_once):
    case = make_case(1, T=2, listed=1.0).with_gradient()
    kept = ragged(case, 0.5)
    function = pair_loss(solutions_at_once=at_once)
    assert gradcheck(lambda logits: function(logits, case.solutions, kept), case.logits)
    assert gradgradcheck(lambda logits: function(logits, case.solutions, kept), case.logits)


@both
@pytest.mark.parametrize("validate", [True, False])
@quick
@given(case=cases, share=shares)
def test_objectives_leave_out_the_ignored_value(pair_loss, validate, case: Case, share):
    """Whether values are looked at or not, it is the same as a mask; NaN logits that no solution uses do no harm."""
    kept = ragged(case, share)
    ignored = case.solutions.masked_fill(~kept & case.mask.unsqueeze(-1), -100)
    used = (kept & case.mask.unsqueeze(-1)).any(1)
    if case.variable_mask is not None:
        used &= case.variable_mask
    spoiled = case.logits.masked_fill(~used.unsqueeze(-1), torch.nan).requires_grad_()
    clean = case.logits.clone().requires_grad_()
    for name, form in FORMS.items():
        objective = form(pair_loss=pair_loss(), validate=validate)
        loss = objective(spoiled, ignored, case.mask, variable_mask=case.variable_mask)
        mask = kept if case.variable_mask is None else kept & case.variable_mask.unsqueeze(1)
        without = form(pair_loss=pair_loss(ignore_index=None))
        wanted = without(clean, case.solutions, case.mask, variable_mask=mask)
        torch.testing.assert_close(loss, wanted, rtol=1e-12, atol=1e-12, msg=name)
        slopes = torch.autograd.grad(loss, spoiled)[0], torch.autograd.grad(wanted, clean)[0]
        torch.testing.assert_close(*slopes, rtol=1e-12, atol=1e-12, msg=name)


def test_without_an_ignored_value_minus_100_is_an_error():
    logits, solutions = torch.zeros(2, 3, 4), torch.zeros(2, 2, 3, dtype=torch.int64)
    solutions[1, 0, 2] = -100
    MinLoss()(logits, solutions)
    with pytest.raises(ValueError, match=r"solutions: expected values 0\.\.3 .* got -100 at solutions\[1, 0, 2\]"):
        MinLoss(pair_loss=CategoricalNLL(ignore_index=None))(logits, solutions)
    with pytest.raises(ValueError, match=r"got -100 at solutions\[1, 0, 2\]"):
        MinLoss(pair_loss=CategoricalNLL(ignore_index=-1))(logits, solutions)


REWARDS = [
    (hamming_reward, False, False),
    (exact_match_reward, False, True),
    (binary_hamming_reward, True, False),
    (binary_exact_match_reward, True, True),
]


@pytest.mark.parametrize(("reward", "threshold", "exact"), REWARDS)
def test_rewards_leave_out_the_same(reward, threshold, exact):
    case = make_case(2, T=2, listed=1.0)
    kept = ragged(case, 0.4)
    actual = reward(case.logits, case.solutions, kept)
    logits, solutions, _, _ = case.lists()
    for b in range(3):
        for k in range(4):
            one = [[step[b] for step in logits]], [[solutions[b][k]]], [kept[b, k].tolist()]
            for t in range(2):
                wanted = brute_force.reward(
                    [[one[0][0][t]]], one[1], threshold=threshold, exact=exact, variable_mask=one[2]
                )
                assert actual[t, b, k] == wanted[0][0][0]
    # SelectR hands it the ignored value as a mask.
    scores = torch.randn(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    pair_loss = BinaryNLL() if threshold else CategoricalNLL()
    ignored = case.solutions.masked_fill(~kept, -100)
    for validate in (True, False):
        selectr = SelectR(reward=reward, pair_loss=pair_loss, validate=validate)
        loss = selectr.selector_loss(case.logits, ignored, case.mask, scores)
        torch.testing.assert_close(loss, selectr.reduce_rewards(actual, case.mask, scores))


def test_a_reward_of_the_users_sees_what_the_user_passed():
    seen = []

    def reward(logits, solutions, **options):
        seen.append((solutions, options))
        return torch.zeros(solutions.shape[:2])

    solutions = torch.tensor([[[0, -100], [1, 1]]])
    SelectR(reward=reward).selector_loss(torch.zeros(1, 2, 3), solutions, scores=torch.zeros(1, 2))
    assert torch.equal(seen[0][0], solutions)
    assert seen[0][1] == {}


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("shape", [None, (4,), (3, 4), (3, 1)])
def test_label_smoothing_and_weights(smoothing, shape):
    """Against numpy, and against torch's cross-entropy where it can do the same."""
    case = make_case(3, T=2, listed=1.0)
    kept = ragged(case, 0.7)
    generator = torch.Generator().manual_seed(0)
    weight = None if shape is None else torch.rand(shape, generator=generator, dtype=torch.float64)
    function = CategoricalNLL(label_smoothing=smoothing, weight=weight, solutions_at_once=2)
    ignored = case.solutions.masked_fill(~kept, -100)
    actual = function(case.logits, ignored)

    logits, solutions = case.logits.numpy(), case.solutions.numpy()
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    w = np.ones((3, 4)) if weight is None else np.broadcast_to(weight.numpy(), (3, 4))
    wanted = np.zeros((2, 3, 4))
    for t, b, k, r in np.ndindex(2, 3, 4, 3):
        if kept[b, k, r]:
            target = smoothing / 4 + (1 - smoothing) * (np.arange(4) == solutions[b, k, r])
            wanted[t, b, k] -= (target * w[r] * log_p[t, b, r]).sum()
    torch.testing.assert_close(actual, torch.from_numpy(wanted))
    if shape in (None, (4,)):
        theirs = cross_entropy(
            case.logits[:, :, None].expand(2, 3, 4, 3, 4).flatten(0, 3),
            ignored.expand(2, 3, 4, 3).flatten(),
            weight=weight,
            label_smoothing=smoothing,
            reduction="none",
        )
        torch.testing.assert_close(actual, theirs.view(2, 3, 4, 3).sum(-1))
    case = case.with_gradient()
    assert gradcheck(lambda x: function(x, ignored), case.logits)
    assert gradgradcheck(lambda x: function(x, ignored), case.logits)


def test_a_value_of_weight_0_does_not_count_even_if_it_is_impossible():
    logits = torch.zeros(1, 1, 3, dtype=torch.float64)
    logits[..., 0] = -torch.inf
    logits.requires_grad_()
    weight = torch.tensor([0.0, 1.0, 1.0])
    losses = CategoricalNLL(weight=weight)(logits, torch.tensor([[[0], [1]]]))
    assert losses.flatten().tolist() == [0.0, pytest.approx(np.log(2))]
    assert torch.isfinite(torch.autograd.grad(losses.sum(), logits)[0]).all()


@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch", "ignore:.*deprecated:DeprecationWarning")
def test_compiled():
    """One graph, with masks of every solution, smoothing and weights; the normaliser is an input."""
    torch._dynamo.reset()
    case = make_case(4, T=2, dtype=torch.float32).with_gradient()
    kept = ragged(case, 0.6)
    for objective in (CCLoss(), IExplR(pair_loss=CategoricalNLL(label_smoothing=0.1, weight=torch.rand(4)))):

        def loss(logits, count, objective=objective):
            return objective(logits, case.solutions, case.mask.int(), variable_mask=kept, normaliser=count)

        count = objective.count(case.mask) * 2
        compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(compiled(case.logits, count), loss(case.logits, count))
        slopes = [torch.autograd.grad(f(case.logits, count), case.logits)[0] for f in (compiled, loss)]
        torch.testing.assert_close(*slopes)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CategoricalNLL(label_smoothing=1.5), r"label_smoothing: expected a number in \[0, 1\], got 1\.5"),
        (lambda: CategoricalNLL(weight=[1.0]), r"weight: expected a torch\.Tensor, got list"),  # pyright: ignore
        (lambda: CategoricalNLL(weight=torch.ones(4, dtype=torch.int64)), "weight: expected a floating-point dtype"),
        (
            lambda: CategoricalNLL(weight=torch.ones(5))(torch.zeros(2, 3, 4), torch.zeros(2, 1, 3, dtype=torch.int64)),
            r"weight: expected shape \[V\] or \[R,V\] with R, V = \[3, 4\], got shape \[5\]",
        ),
    ],
)
def test_bad_options(make, message):
    with pytest.raises(ValueError, match=message):
        make()
