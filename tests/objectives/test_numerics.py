"""Precision, extreme probabilities and exact gradients."""

import math

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from oneofmany.objectives import BinaryNLL, CategoricalNLL, CCLoss, IExplR, MinLoss, Naive, SelectR, pair_losses

from .cases import FORMS, make_case

PAIR_LOSSES = [CategoricalNLL, BinaryNLL]


@pytest.mark.parametrize("pair_loss", PAIR_LOSSES)
@pytest.mark.parametrize("with_variables", [False, True])
@pytest.mark.parametrize("solutions_at_once", [None, 1, 3])
def test_the_gradients_of_pair_losses_are_exact(pair_loss, with_variables, solutions_at_once):
    case = make_case(1, T=2, K=4, with_variables=with_variables).with_gradient()
    function = pair_loss(solutions_at_once=solutions_at_once)
    assert gradcheck(lambda logits: function(logits, case.solutions, case.variable_mask), case.logits)
    assert gradgradcheck(lambda logits: function(logits, case.solutions, case.variable_mask), case.logits)


@pytest.mark.parametrize("pair_loss", PAIR_LOSSES)
@pytest.mark.parametrize("name", [name for name in FORMS if not name.startswith("IExplR")])
def test_the_gradients_of_objectives_are_exact(name, pair_loss):
    case = make_case(2, T=2, with_variables=True).with_gradient()
    objective = FORMS[name](pair_loss=pair_loss())
    assert gradcheck(
        lambda logits: objective(logits, case.solutions, case.mask, variable_mask=case.variable_mask), case.logits
    )


@pytest.mark.parametrize("pair_loss", PAIR_LOSSES)
@pytest.mark.parametrize("name", ["IExplR", "IExplR temperature", "IExplR per step", "SelectR"])
def test_weights_are_constants_to_the_gradient(name, pair_loss):
    """I-ExplR and SelectR have the gradient of the weighted loss with constant weights."""
    case = make_case(3, T=2).with_gradient()
    scores = torch.randn(case.mask.shape, dtype=torch.float64).requires_grad_()
    objective = SelectR(pair_loss=pair_loss()) if name == "SelectR" else FORMS[name](pair_loss=pair_loss())
    extra = [scores] if name == "SelectR" else []
    losses = pair_loss()(case.logits, case.solutions)
    weights = objective.weights(losses, case.mask, *extra)
    used = losses if weights.dim() == 3 else losses.mean(0)
    rows = case.mask.any(-1).sum() * (2 if weights.dim() == 3 else 1)
    (wanted,) = torch.autograd.grad((weights * used.masked_fill(~case.mask, 0.0)).sum() / rows, case.logits)
    loss = objective(case.logits, case.solutions, case.mask, *extra)
    (actual,) = torch.autograd.grad(loss, case.logits, retain_graph=True)
    torch.testing.assert_close(actual, wanted, rtol=1e-12, atol=1e-14)
    assert torch.autograd.grad(loss, scores, allow_unused=True) == (None,)


@pytest.mark.parametrize("largest", [1.0, 300.0, 1e4, 1e7, 1e30])
def test_a_large_logit_does_not_swallow_the_loss_of_the_other_choices(largest):
    """In float32, as close to float64 as its digits allow: 4.254 for logits (1e7, 4, -1), not 4.0."""
    logits = torch.tensor([[largest, 4.0, -1.0], [0.5, -largest, 2.0], [largest, largest, -3.0]])
    solutions = torch.tensor(
        [[[first, second, third] for first in range(3) for second in range(3) for third in range(3)]]
    )
    function = BinaryNLL()
    exact = function(logits.double()[None, None], solutions)
    torch.testing.assert_close(function(logits[None, None], solutions).double(), exact, rtol=1e-5, atol=1e-4)
    # The right choice of the first variable costs only what its others do.
    others = torch.nn.functional.softplus(torch.tensor([4.0, -1.0])).sum()
    alone = function(logits[None, None, :1], torch.zeros(1, 1, 1, dtype=torch.int64))
    assert float(alone) == pytest.approx(float(others + torch.nn.functional.softplus(torch.tensor(-largest))), rel=1e-5)


@pytest.mark.parametrize("pair_loss", PAIR_LOSSES)
def test_the_written_out_gradient_is_that_of_the_formula(pair_loss):
    """Compiled functions use the formula itself, also on impossible solutions and NaN in variables left out."""
    case = make_case(10, T=2, K=6, with_variables=True)
    assert case.variable_mask is not None
    case.logits[0, 0, 0, 0] = -torch.inf
    case.logits[~case.variable_mask.expand(2, -1, -1)] = torch.nan
    case = case.with_gradient()
    weights = torch.rand(2, 3, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    functions = [pair_losses._pair_losses, pair_losses._PairLosses.apply]
    written_out, formula = (f(case.logits, case.solutions, case.variable_mask, pair_loss.binary, 4) for f in functions)
    assert torch.equal(written_out, formula)
    assert torch.isinf(formula).any()
    slopes = [torch.autograd.grad((f * weights).sum(), case.logits)[0] for f in (written_out, formula)]
    torch.testing.assert_close(*slopes, rtol=1e-12, atol=1e-14)
    assert torch.isfinite(slopes[0]).all()


def test_logits_without_a_step_axis_get_their_gradient_too():
    case = make_case(4, T=None).with_gradient()
    for name, form in FORMS.items():
        (gradient,) = torch.autograd.grad(form()(case.logits, case.solutions, case.mask), case.logits)
        stacked = case.logits.detach().unsqueeze(0).requires_grad_()
        (wanted,) = torch.autograd.grad(form()(stacked, case.solutions, case.mask), stacked)
        assert torch.equal(gradient, wanted[0]), name


def test_torch_func():
    case = make_case(5, T=2).with_gradient()
    objective = CCLoss(validate=False)
    actual = torch.func.grad(lambda logits: objective(logits, case.solutions, case.mask))(case.logits.detach())
    (wanted,) = torch.autograd.grad(objective(case.logits, case.solutions, case.mask), case.logits)
    torch.testing.assert_close(actual, wanted)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("pair_loss", PAIR_LOSSES)
def test_16_bit_logits_are_computed_in_float32(pair_loss, dtype):
    case = make_case(6, T=3, R=30, dtype=torch.float32).to(dtype).with_gradient()
    wide = case.to(torch.float32).with_gradient()
    for name, form in FORMS.items():
        objective = form(pair_loss=pair_loss())
        narrow_loss = objective(case.logits, case.solutions, case.mask)
        wide_loss = objective(wide.logits, case.solutions, case.mask)
        assert narrow_loss.dtype == torch.float32, name
        assert torch.equal(narrow_loss, wide_loss), name
        (narrow_gradient,) = torch.autograd.grad(narrow_loss, case.logits)
        (wide_gradient,) = torch.autograd.grad(wide_loss, wide.logits)
        assert narrow_gradient.dtype == dtype
        assert torch.equal(narrow_gradient, wide_gradient.to(dtype)), name
    losses = pair_loss()(case.logits, case.solutions).to(dtype)
    assert CCLoss().reduce(losses, case.mask).dtype == torch.float32
    scores = torch.randn(case.mask.shape, dtype=dtype, generator=torch.Generator().manual_seed(0))
    selectr = SelectR(pair_loss=pair_loss())
    for loss in (selectr, selectr.selector_loss):
        narrow_loss = loss(case.logits, case.solutions, case.mask, scores)
        assert narrow_loss.dtype == torch.float32
        assert torch.equal(narrow_loss, loss(wide.logits, case.solutions, case.mask, scores.float()))


def test_float16_does_not_overflow():
    """81 variables of 3e4 nats each are far beyond the largest float16, 65504."""
    logits = torch.zeros(1, 81, 9, dtype=torch.float16)
    logits[..., 0] = 3e4
    loss = MinLoss()(logits, torch.full((1, 2, 81), 5), torch.ones(1, 2, dtype=torch.bool))
    assert loss.item() == pytest.approx(81 * 3e4, rel=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_probabilities_of_9_to_the_minus_81(dtype):
    """A fresh network on a 9x9 Sudoku: each solution has probability 5e-78, below the least float32."""
    generator = torch.Generator().manual_seed(0)
    solutions = torch.randint(9, (2, 5, 81), generator=generator)
    mask = torch.ones(2, 5, dtype=torch.bool)
    logits = torch.zeros(2, 81, 9, dtype=dtype, requires_grad=True)
    one = 81 * math.log(9)
    wanted = {"Naive": 5 * one, "CCLoss": one - math.log(5), "CCLoss mean of steps": one - math.log(5), "Unique": 0}
    for name, form in FORMS.items():
        loss = form()(logits, solutions, mask)
        assert loss.item() == pytest.approx(wanted.get(name, one), rel=1e-5), name
        (gradient,) = torch.autograd.grad(loss, logits)
        assert torch.isfinite(gradient).all(), name
        assert (gradient.abs().max() > 0) == (name != "Unique"), name


def test_confident_networks():
    """Losses of thousands of nats, and equally large differences between the listed solutions."""
    case = make_case(7, T=2, R=81, V=9, scale=500.0, dtype=torch.float32, listed=1.0).with_gradient()
    for pair_loss in PAIR_LOSSES:
        for name, form in FORMS.items():
            loss = form(pair_loss=pair_loss())(case.logits, case.solutions, case.mask)
            (gradient,) = torch.autograd.grad(loss, case.logits)
            assert torch.isfinite(loss), name
            assert torch.isfinite(gradient).all(), name


def test_a_common_offset_of_the_logits_costs_no_precision():
    case = make_case(8, R=81, V=9, dtype=torch.float64)
    narrow = (case.logits.float() + 2.0**14).requires_grad_()
    wanted = CategoricalNLL()(narrow.double(), case.solutions)
    torch.testing.assert_close(CategoricalNLL()(narrow, case.solutions).double(), wanted, rtol=1e-6, atol=1e-5)


def impossible_case(pair_loss):
    """Two listed solutions, of which the first has probability zero, and a query where both have."""
    solutions = torch.tensor([[[0, 1], [2, 0]], [[0, 1], [0, 0]]])
    logits = torch.randn(2, 2, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    logits[:, 0, 0] = -torch.inf
    logits.requires_grad_()
    return logits, solutions, torch.ones(2, 2, dtype=torch.bool), pair_loss()


@pytest.mark.parametrize("pair_loss", PAIR_LOSSES)
def test_a_listed_solution_of_probability_zero(pair_loss):
    """It gets no weight if another solution is possible; otherwise the loss is inf. Never a NaN."""
    logits, solutions, mask, pair_loss = impossible_case(pair_loss)
    losses = pair_loss(logits, solutions)
    assert torch.isinf(losses[0, 0, 0])
    assert torch.isfinite(losses[0, 0, 1])
    possible = mask.clone()
    possible[0, 0] = False
    scores = torch.tensor([[-torch.inf, 0.0], [0.0, 0.0]], dtype=torch.float64)
    choosing = {name: form for name, form in FORMS.items() if name.startswith(("CCLoss", "MinLoss", "IExplR"))}
    for name, form in choosing.items():
        objective = form(pair_loss=pair_loss)
        loss = objective(logits[:1], solutions[:1], mask[:1])
        (gradient,) = torch.autograd.grad(loss, logits)
        wanted = objective(logits[:1], solutions[:1], possible[:1])
        torch.testing.assert_close(loss, wanted, msg=name)
        torch.testing.assert_close(gradient, torch.autograd.grad(wanted, logits)[0], msg=name)
        assert not gradient.isnan().any(), name
        assert objective.weights(losses[:, :1], mask[:1]).flatten().tolist() == [0, 1]
    loss = SelectR(pair_loss=pair_loss)(logits[:1], solutions[:1], mask[:1], scores[:1])
    assert torch.isfinite(loss)
    assert not torch.autograd.grad(loss, logits)[0].isnan().any()
    # Naive trains on the impossible solution, and the second query has no other: inf, and a gradient without NaN.
    for name, form in {**choosing, "Naive": Naive}.items():
        loss = form(pair_loss=pair_loss)(logits, solutions, mask)
        assert loss.item() == math.inf, name
        (gradient,) = torch.autograd.grad(loss, logits)
        assert torch.isfinite(gradient).all(), name


@pytest.mark.parametrize("temperature", [1e-3, 0.1, 0.3, 0.7, 0.9, 1.0, 1e3])
def test_equal_infinite_losses_share_the_weight(temperature):
    losses = torch.full((1, 3), math.inf)
    mask = torch.tensor([[True, False, True]])
    assert IExplR(temperature=temperature).weights(losses, mask).tolist() == [[0.5, 0, 0.5]]
    assert CCLoss().weights(losses, mask).tolist() == [[0.5, 0, 0.5]]
    assert MinLoss().weights(losses, ~mask).tolist() == [[0, 1, 0]]


def test_a_choice_that_is_forced_on():
    """A sigmoid's logit of +inf is a given: only the solution that takes it is possible."""
    logits = torch.tensor([[[math.inf, -1.0, 0.5]]], dtype=torch.float64)
    losses = BinaryNLL()(logits, torch.tensor([[[0], [1]]]))
    rest = sum(math.log1p(math.exp(x)) for x in (-1.0, 0.5))
    assert losses.flatten().tolist() == [pytest.approx(rest), math.inf]


def test_a_nan_is_not_hidden():
    losses = torch.tensor([[1.0, math.nan], [1.0, 2.0]])
    mask = torch.ones(2, 2, dtype=torch.bool)
    for name, form in FORMS.items():
        if name not in ("Random", "Unique"):
            assert form().reduce(losses, mask).isnan(), name


def test_variables_left_out_may_hold_anything():
    """Even NaN logits and values out of range; so may all variables of a query without listed solutions."""
    case = make_case(9, T=2, with_variables=True)
    case.mask[0] = False
    for variables in (case.variable_mask, None):
        used = torch.ones_like(case.variable_mask) if variables is None else variables
        used = used & case.mask.any(-1, keepdim=True)
        spoiled = case.logits.masked_fill(~used.unsqueeze(-1), math.nan).requires_grad_()
        for pair_loss in PAIR_LOSSES:
            for name, form in FORMS.items():
                objective = form(pair_loss=pair_loss())
                loss = objective(spoiled, case.solutions, case.mask, variable_mask=variables)
                wanted = objective(case.logits, case.solutions, case.mask, variable_mask=variables)
                assert torch.equal(loss, wanted), name
                (gradient,) = torch.autograd.grad(loss, spoiled)
                assert torch.isfinite(gradient).all()
