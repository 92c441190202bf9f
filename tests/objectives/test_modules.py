"""Objectives as modules: settings in the repr, reductions, optional masks of any type, the chosen solution."""

import copy
import pickle

import pytest
import torch
from torch import nn

from oneofmany.objectives import (
    CategoricalNLL,
    IExplR,
    MinLoss,
    Naive,
    Random,
    SelectR,
    SequenceNLL,
    SetNLL,
    SquaredError,
    Unique,
    hamming_reward,
)

from .cases import make_case
from .every import EVERY, extras

every = pytest.mark.parametrize("form", EVERY.values(), ids=EVERY)


def call(objective, case, given, mask="own", **options):
    scores, noise = given
    mask = case.mask if isinstance(mask, str) else mask
    named = {"scores": scores[0]} if scores else {}
    return objective(case.logits, case.solutions, mask, **named, **noise, **options)


def test_the_repr_shows_the_settings():
    shown = repr(IExplR(temperature=2.5, reduction="sum", pair_loss=CategoricalNLL(label_smoothing=0.1)))
    for part in (
        "IExplR",
        "temperature=2.5",
        "sample=False",
        "reduction='sum'",
        "CategoricalNLL",
        "label_smoothing=0.1",
    ):
        assert part in shown
    own = repr(SelectR(reward=hamming_reward, pair_loss=lambda logits, solutions: logits))
    assert "reward=hamming_reward" in own
    assert "pair_loss=<lambda>" in own
    weighted = SequenceNLL(weight=torch.ones(7))
    assert repr(weighted) == "SequenceNLL(label_smoothing=0.0, weight=tensor of shape [7], ignore_index=-100)"
    assert repr(SquaredError(variance=2.0)) == "SquaredError(variance=2.0)"


@every
def test_a_module_like_any_other(form):
    """It can be a part of a module, copied, pickled; weights of the pair loss follow it to a device or type."""
    objective = form(pair_loss=CategoricalNLL(weight=torch.ones(4)))
    model = nn.Sequential()
    model.add_module("objective", objective)
    assert list(model.parameters()) == []
    assert list(model.state_dict()) == ["objective.pair_loss.weight"]
    model.to(torch.float64)
    assert model.get_submodule("objective.pair_loss").get_buffer("weight").dtype == torch.float64
    assert list(form().state_dict()) == []
    case = make_case(1, T=2)
    given = extras(objective, case.mask)
    for again in (copy.deepcopy(objective), pickle.loads(pickle.dumps(objective))):
        assert torch.equal(call(again, case, given), call(objective, case, given))


@every
@pytest.mark.parametrize("T", [None, 3])
def test_reductions(form, T):
    """The loss of every query, their sum, and the mean over the trained ones."""
    case = make_case(0, T=T, B=6, K=3, listed=0.4).with_gradient()
    objective = form()
    given = extras(objective, case.mask)
    single = call(form(reduction="none"), case, given)
    assert single.shape == (6,)
    trained = case.mask.sum(-1) == 1 if isinstance(objective, Unique) else case.mask.any(-1)
    assert 0 < trained.sum() < 6
    assert (single[~trained] == 0).all()
    assert objective.count(case.mask) == trained.sum()
    torch.testing.assert_close(call(form(reduction="sum"), case, given), single.sum())
    torch.testing.assert_close(call(objective, case, given), single.sum() / trained.sum())
    torch.testing.assert_close(call(objective, case, given, normaliser=7), single.sum() / 7)
    for normaliser in (torch.tensor(7), torch.tensor([7.0]), torch.tensor(7, dtype=torch.int32)):
        torch.testing.assert_close(call(objective, case, given, normaliser=normaliser), single.sum() / 7)
    alone = torch.stack([call(form(), _one(case, b), (_row(given, b))) for b in range(6)])
    torch.testing.assert_close(single, alone)


def _one(case, b):
    logits = case.logits[..., b : b + 1, :, :]
    return type(case)(logits, case.solutions[b : b + 1], case.mask[b : b + 1])


def _row(given, b):
    scores, noise = given
    return [s[b : b + 1] for s in scores], {name: n[b : b + 1] for name, n in noise.items()}


def test_reductions_of_the_selectors_loss():
    case = make_case(2, B=6, K=3, listed=0.6)
    (scores,), _ = extras(SelectR(), case.mask)
    single = SelectR(reduction="none").selector_loss(case.logits, case.solutions, case.mask, scores)
    multiple = case.mask.sum(-1) > 1
    assert (single[~multiple] == 0).all()
    count = SelectR().selector_count(case.mask)
    assert count == multiple.sum()
    mean = SelectR().selector_loss(case.logits, case.solutions, case.mask, scores)
    torch.testing.assert_close(mean, single.sum() / count)
    by_ten = SelectR().selector_loss(case.logits, case.solutions, case.mask, scores, normaliser=10)
    torch.testing.assert_close(by_ten, single.sum() / 10)


@every
def test_without_a_mask_all_are_listed(form):
    case = make_case(3, T=2, listed=1.0)
    objective = form()
    given = extras(objective, case.mask)
    assert torch.equal(call(objective, case, given, mask=None), call(objective, case, given))
    losses = objective.pair_losses(case.logits, case.solutions)
    scores, noise = given
    named = {"scores": scores[0]} if scores else {}
    assert torch.equal(objective.reduce(losses, **named, **noise), call(objective, case, given))
    assert torch.equal(
        objective.weights(losses, **named, **noise), objective.weights(losses, case.mask, *scores, **noise)
    )


@every
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
def test_masks_of_any_integer_type(form, dtype):
    case = make_case(4, T=2, with_variables=True)
    objective = form()
    given = extras(objective, case.mask)
    wanted = call(objective, case, given, variable_mask=case.variable_mask)
    actual = call(objective, case, given, mask=case.mask.to(dtype), variable_mask=case.variable_mask.to(dtype))
    assert torch.equal(actual, wanted)
    assert objective.count(case.mask.to(dtype)) == objective.count(case.mask)
    if isinstance(objective, SelectR):
        options = {"noise": given[1]["noise"]} if objective.reinforce else {}
        arguments = case.logits, case.solutions, case.mask.to(dtype), given[0][0]
        loss = objective.selector_loss(*arguments, variable_mask=case.variable_mask.to(dtype), **options)
        arguments = case.logits, case.solutions, case.mask, given[0][0]
        assert torch.equal(loss, objective.selector_loss(*arguments, variable_mask=case.variable_mask, **options))


@every
def test_the_chosen_solution(form):
    losses = torch.tensor([[3.0, 1.0, 2.0], [0.0, 5.0, 4.0], [1.0, 1.0, 1.0], [9.0, 9.0, 2.0]], dtype=torch.float64)
    mask = torch.tensor([[True, True, True], [False, True, True], [False, False, False], [True, False, False]])
    objective = form()
    scores, noise = extras(objective, mask)
    chosen = objective.chosen(losses, mask, *scores, **noise)
    weights = objective.weights(losses, mask, *scores, **noise)
    for b, k in enumerate(chosen.tolist()):
        row = weights[b].tolist() if weights.dim() == 2 else weights[0, b].tolist()
        assert k == (-1 if not any(row) else row.index(max(row)))
    assert chosen[2] == -1
    assert chosen[3] == 0
    wanted = {MinLoss: 1, Random: 0, Naive: 0, Unique: -1}
    if type(objective) in wanted and not objective.draws:
        assert chosen[0] == wanted[type(objective)]


def test_the_chosen_solution_of_every_step():
    losses = torch.tensor([[[3.0, 1.0]], [[0.0, 5.0]]])
    assert MinLoss(per_step=True).chosen(losses).tolist() == [[1], [0]]
    assert MinLoss().chosen(losses).tolist() == [0]


@every
@pytest.mark.parametrize("filler", [torch.nan, torch.inf, -torch.inf])
def test_what_padding_holds_does_not_matter(form, filler):
    """Values and gradients of `reduce`, in every reduction; nor do the scores there matter."""
    case = make_case(5, T=2, B=5)
    losses = CategoricalNLL()(case.logits, case.solutions)
    for reduction in ("mean", "sum", "none"):
        objective = form(reduction=reduction)
        scores, noise = extras(objective, case.mask)
        spoiled = losses.masked_fill(~case.mask, filler).requires_grad_()
        spoiled_scores = [s.masked_fill(~case.mask, filler).requires_grad_() for s in scores]
        loss = objective.reduce(spoiled, case.mask, *spoiled_scores, **noise)
        torch.testing.assert_close(loss, objective.reduce(losses, case.mask, *scores, **noise))
        (gradient,) = torch.autograd.grad(loss.sum(), spoiled)
        assert torch.isfinite(gradient).all()
        assert (gradient[:, ~case.mask] == 0).all()
        if isinstance(objective, SelectR):
            options = noise if objective.reinforce else {}
            value = objective.reduce_rewards(spoiled, case.mask, *spoiled_scores, **options)
            torch.testing.assert_close(value, objective.reduce_rewards(losses, case.mask, *scores, **options))
            (gradient,) = torch.autograd.grad(value.sum(), spoiled_scores[0])
            assert torch.isfinite(gradient).all()
            assert (gradient[~case.mask] == 0).all()


NESTED = {
    "strided": lambda: torch.nested.nested_tensor([torch.zeros(5, 6), torch.zeros(4, 6)]),
    "jagged": lambda: torch.nested.nested_tensor([torch.zeros(5, 6), torch.zeros(4, 6)], layout=torch.jagged),
    "sparse": lambda: torch.zeros(2, 5, 6).to_sparse(),
}


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
@pytest.mark.parametrize("kind", NESTED)
def test_nested_tensors_are_refused_in_one_sentence(kind):
    wrong = NESTED[kind]()
    wanted = "a dense tensor, got layout" if kind == "sparse" else r"a padded tensor \(torch\.nested\.to_padded_tensor"
    solutions, mask = torch.zeros(2, 3, 5, dtype=torch.int64), torch.ones(2, 3, dtype=torch.bool)
    for name, arguments in {
        "logits": (wrong, solutions, mask),
        "solutions": (torch.zeros(2, 5, 6), wrong, mask),
        "mask": (torch.zeros(2, 5, 6), solutions, wrong),
    }.items():
        with pytest.raises(ValueError, match=rf"^{name}: expected {wanted}") as error:
            MinLoss()(*arguments)
        assert "\n" not in str(error.value)
    with pytest.raises(ValueError, match=rf"^pair_losses: expected {wanted}"):
        MinLoss().reduce(wrong)
    with pytest.raises(ValueError, match=rf"^solutions: expected {wanted}"):
        MinLoss(pair_loss=SetNLL())(torch.zeros(2, 5, 6), wrong)
    with pytest.raises(ValueError, match=rf"^output: expected {wanted}"):
        SquaredError()(wrong, torch.zeros(2, 3, 5))


@pytest.mark.parametrize(
    ("normaliser", "reduction", "message"),
    [
        (3, "sum", "normaliser: expected None with reduction 'sum', got a number"),
        (-1, "mean", "normaliser: expected a number of 0 or more, got -1"),
        (float("nan"), "mean", "normaliser: expected a number of 0 or more, got nan"),
        ("3", "mean", "normaliser: expected a number of 0 or more, got 3"),
        (torch.tensor(-2), "mean", "normaliser: expected a number of 0 or more, got -2"),
        (torch.ones(3), "mean", r"normaliser: expected one real number, got shape \[3\] of torch.float32"),
        (torch.tensor(True), "mean", r"normaliser: expected one real number, got shape \[\] of torch.bool"),
        (torch.zeros((), device="meta"), "mean", "normaliser: expected device cpu, got device meta"),
    ],
)
def test_bad_normalisers(normaliser, reduction, message):
    with pytest.raises(ValueError, match=message):
        MinLoss(reduction=reduction).reduce(torch.zeros(2, 3), normaliser=normaliser)


def test_other_bad_arguments():
    with pytest.raises(ValueError, match="reduction: expected mean, sum or none, got average"):
        MinLoss(reduction="average")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match=r"pair_losses: expected shape \[B,K\] or \[T,B,K\], got shape \[3\]"):
        MinLoss().reduce(torch.zeros(3))
    with pytest.raises(ValueError, match=r"solutions: expected shape \[B,K,..\], got shape \[3, 4\]"):
        MinLoss()(torch.zeros(3, 4, 5), torch.zeros(3, 4, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"mask: expected a torch\.Tensor, got NoneType"):
        MinLoss().count(None)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="lengths: expected None, since CategoricalNLL takes none"):
        MinLoss()(torch.zeros(3, 4, 5), torch.zeros(3, 2, 4, dtype=torch.int64), lengths=torch.ones(3))
    with pytest.raises(ValueError, match=r"weights: expected shape .* got shape \[3, 3\]"):
        MinLoss().reduce_weighted(torch.zeros(3, 2), torch.zeros(3, 3))


def test_a_normaliser_of_nothing():
    """No process has a query to train on: a zero with a gradient, not a NaN."""
    losses = torch.ones(2, 3, requires_grad=True)
    mask = torch.zeros(2, 3, dtype=torch.bool)
    for normaliser in (0, 0.0, torch.tensor(0), MinLoss().count(mask)):
        loss = MinLoss().reduce(losses, mask, normaliser=normaliser)
        assert loss.item() == 0
        assert (torch.autograd.grad(loss, losses)[0] == 0).all()
