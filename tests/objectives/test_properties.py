"""Relations between the objectives, and changes that must not matter."""

from dataclasses import replace

import pytest
import torch
from hypothesis import assume, given, settings

from oneofmany.objectives import BinaryNLL, CategoricalNLL, CCLoss, IExplR, MinLoss, Naive, Random, SelectR, Unique

from .cases import FORMS, Case, make_case
from .strategies import cases

quick = settings(max_examples=25, deadline=None)
EXACT = {"rtol": 1e-12, "atol": 1e-12}


def value_and_gradient(objective, case: Case, *scores):
    case = case.with_gradient()
    loss = objective(case.logits, case.solutions, case.mask, *scores, variable_mask=case.variable_mask)
    (gradient,) = torch.autograd.grad(loss, case.logits)
    return loss.detach(), gradient


def shuffled(case: Case, order) -> Case:
    return replace(case, solutions=case.solutions[:, order], mask=case.mask[:, order])


@quick
@given(case=cases)
def test_the_order_of_the_solutions_does_not_matter(case: Case):
    order = torch.randperm(case.mask.shape[1], generator=torch.Generator().manual_seed(1))
    for name, form in FORMS.items():
        if name == "Random":
            continue
        for before, after in zip(
            value_and_gradient(form(), case), value_and_gradient(form(), shuffled(case, order)), strict=True
        ):
            torch.testing.assert_close(before, after, **EXACT, msg=name)
    scores = torch.randn(case.mask.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    for before, after in zip(
        value_and_gradient(SelectR(), case, scores),
        value_and_gradient(SelectR(), shuffled(case, order), scores[:, order]),
        strict=True,
    ):
        torch.testing.assert_close(before, after, **EXACT)


@quick
@given(case=cases)
def test_weights_are_equal_where_it_is_said(case: Case):
    said = {name for name, form in FORMS.items() if form().equal_weights}
    assert said == {"Naive", "Naive mean", "Random", "Unique", "MinLoss", "MinLoss per step"}
    drawn = MinLoss(epsilon=0.5), {"generator": torch.Generator().manual_seed(3)}
    for objective, options in [*((FORMS[name](), {}) for name in sorted(said)), drawn]:
        losses = objective.pair_losses(case.logits, case.solutions, case.mask, variable_mask=case.variable_mask)
        weights = objective.weights(losses, case.mask, **options)
        largest = weights.amax(-1, keepdim=True).expand_as(weights)
        assert torch.equal(weights[weights != 0], largest[weights != 0]), objective


def test_random_does_depend_on_the_order():
    case = make_case(0, listed=1.0)
    there, back = (value_and_gradient(Random(), shuffled(case, order))[0] for order in ([0, 1, 2, 3], [3, 2, 1, 0]))
    assert there != back


@quick
@given(case=cases)
def test_padding_does_not_matter(case: Case):
    """Any content and amount of padding, before and after the listed solutions."""
    batch, _, variables = case.solutions.shape
    garbage = torch.tensor([-1, 10**9, -(10**9)])[:, None].expand(3, variables).expand(batch, 3, variables)
    nothing = torch.zeros(batch, 3, dtype=torch.bool)
    padded = replace(
        case,
        solutions=torch.cat([garbage, case.solutions.masked_fill(~case.mask.unsqueeze(-1), 12345), garbage], 1),
        mask=torch.cat([nothing, case.mask, nothing], 1),
    )
    for name, form in FORMS.items():
        for pair_loss in (CategoricalNLL(), BinaryNLL()):
            objective = form(pair_loss=pair_loss)
            for before, after in zip(
                value_and_gradient(objective, case), value_and_gradient(objective, padded), strict=True
            ):
                torch.testing.assert_close(before, after, **EXACT, msg=name)
    scores = torch.randn(case.mask.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    wide = torch.cat([torch.full((batch, 3), torch.nan), scores, torch.full((batch, 3), torch.inf)], 1)
    selectr = SelectR()
    torch.testing.assert_close(
        value_and_gradient(selectr, case, scores), value_and_gradient(selectr, padded, wide), **EXACT
    )
    options = [
        selectr.selector_loss(c.logits, c.solutions, c.mask, s, variable_mask=c.variable_mask)
        for c, s in ((case, scores), (padded, wide))
    ]
    torch.testing.assert_close(*options, **EXACT)


@pytest.mark.parametrize("filler", [torch.nan, torch.inf, -torch.inf, 1e30])
def test_pair_losses_of_padding_do_not_matter(filler):
    case = make_case(1, T=2)
    losses = CategoricalNLL()(case.logits, case.solutions)
    spoiled = losses.masked_fill(~case.mask, filler).requires_grad_()
    for name, form in FORMS.items():
        loss = form().reduce(spoiled, case.mask)
        torch.testing.assert_close(loss, form().reduce(losses, case.mask), **EXACT, msg=name)
        (gradient,) = torch.autograd.grad(loss, spoiled)
        assert torch.isfinite(gradient).all(), name
        assert (gradient[:, ~case.mask] == 0).all(), name


@quick
@given(case=cases)
def test_the_chain_of_inequalities(case: Case):
    assume(case.mask.any())
    slack = 1e-9
    losses = CategoricalNLL()(case.logits, case.solutions, case.variable_mask)
    cc_step, cc_mean = (CCLoss(per_step=flag).reduce(losses, case.mask) for flag in (True, False))
    min_step, min_mean = (MinLoss(per_step=flag).reduce(losses, case.mask) for flag in (True, False))
    assert cc_step <= cc_mean + slack
    assert cc_mean <= min_mean + slack
    assert cc_step <= min_step + slack
    assert min_step <= min_mean + slack
    for row in case.mask.any(-1).nonzero().flatten():
        one = slice(int(row), int(row) + 1)
        least = MinLoss().reduce(losses[:, one], case.mask[one])
        for k in case.mask[row].nonzero().flatten():
            assert least <= losses[:, row, k].mean() + slack


@pytest.mark.parametrize("pair_loss", [CategoricalNLL, BinaryNLL])
@pytest.mark.parametrize("per_step", [True, False])
@quick
@given(case=cases)
def test_ccloss_and_iexplr_have_the_same_gradient(per_step, pair_loss, case: Case):
    _, of_ccloss = value_and_gradient(CCLoss(per_step=per_step, pair_loss=pair_loss()), case)
    _, of_iexplr = value_and_gradient(IExplR(per_step=per_step, pair_loss=pair_loss()), case)
    assert (of_ccloss - of_iexplr).abs().max() <= 1e-12


def test_their_gradients_differ_at_another_temperature_or_step_form():
    case = make_case(0, T=3, listed=1.0)
    _, of_ccloss = value_and_gradient(CCLoss(), case)
    for other in (IExplR(per_step=True, temperature=2.0), IExplR(per_step=False), CCLoss(per_step=False)):
        assert (value_and_gradient(other, case)[1] - of_ccloss).abs().max() > 1e-4


@quick
@given(case=cases)
def test_cclosses_value_is_its_weighted_loss_less_the_entropy_of_its_weights(case: Case):
    losses = CategoricalNLL()(case.logits, case.solutions, case.variable_mask)
    objective = CCLoss()
    weights = objective.weights(losses, case.mask)
    weighted = (weights * losses.masked_fill(~case.mask, 0.0)).sum(-1) - torch.special.entr(weights).sum(-1)
    listed = case.mask.any(-1).expand(weighted.shape)
    wanted = weighted[listed].mean() if listed.any() else torch.zeros((), dtype=torch.float64)
    torch.testing.assert_close(objective.reduce(losses, case.mask), wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("per_step", [True, False])
def test_minloss_learns_from_one_solution_only(per_step):
    """Its gradient with respect to the pair losses has one entry per query (and step), at the least loss."""
    case = make_case(5, T=3, B=6, K=5, listed=0.7)
    losses = CategoricalNLL()(case.logits, case.solutions).detach().requires_grad_()
    (gradient,) = torch.autograd.grad(MinLoss(per_step=per_step).reduce(losses, case.mask), losses)
    queries = case.mask.any(-1)
    for t in range(3):
        for b in queries.nonzero().flatten().tolist():
            row = losses[t, b] if per_step else losses[:, b].mean(0)
            chosen = row.detach().masked_fill(~case.mask[b], torch.inf).argmin()
            wanted = torch.zeros(5, dtype=torch.float64)
            wanted[chosen] = 1 / (3 * queries.sum())
            torch.testing.assert_close(gradient[t, b], wanted)


def test_minloss_takes_the_first_in_a_tie():
    losses = torch.tensor([[5.0, 2.0, 2.0, 2.0], [3.0, 3.0, 3.0, 3.0]])
    mask = torch.tensor([[True, True, True, True], [False, False, True, True]])
    assert MinLoss().weights(losses, mask).tolist() == [[0, 1, 0, 0], [0, 0, 1, 0]]


def test_iexplr_lies_between_minloss_and_the_mean():
    case = make_case(2, T=2)
    losses = CategoricalNLL()(case.logits, case.solutions)
    for temperature, limit in ((1e-6, MinLoss()), (1e9, Naive(mean_over_listed=True))):
        torch.testing.assert_close(
            IExplR(temperature=temperature).weights(losses, case.mask), limit.weights(losses, case.mask)
        )


@pytest.mark.parametrize("pair_loss", [CategoricalNLL, BinaryNLL])
def test_with_one_listed_solution_all_objectives_are_its_loss(pair_loss):
    case = make_case(3, T=2, K=1, listed=1.0)
    wanted = pair_loss()(case.logits, case.solutions).mean()
    for name, form in FORMS.items():
        actual = form(pair_loss=pair_loss())(case.logits, case.solutions, case.mask)
        torch.testing.assert_close(actual, wanted, **EXACT, msg=name)


def test_all_masked_rows_are_left_out_of_the_mean():
    case = make_case(4, T=2, B=4, K=3, listed=1.0)
    case.mask[1] = False
    rest = [0, 2, 3]
    scores = torch.randn(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for name, form in FORMS.items():
        torch.testing.assert_close(
            form()(case.logits, case.solutions, case.mask),
            form()(case.logits[:, rest], case.solutions[rest], case.mask[rest]),
            **EXACT,
            msg=name,
        )
    torch.testing.assert_close(
        SelectR()(case.logits, case.solutions, case.mask, scores),
        SelectR()(case.logits[:, rest], case.solutions[rest], case.mask[rest], scores[rest]),
        **EXACT,
    )


def test_a_batch_with_nothing_to_train_on_gives_a_zero_that_back_propagates():
    case = make_case(5, T=2).with_gradient()
    nothing = torch.zeros_like(case.mask)
    scores = torch.randn(case.mask.shape, requires_grad=True)
    losses = {name: form()(case.logits, case.solutions, nothing) for name, form in FORMS.items()}
    losses["Unique on MS queries"] = Unique()(case.logits, make_case(5, T=2, listed=1.0).solutions, ~nothing)
    losses["SelectR"] = SelectR()(case.logits, case.solutions, nothing, scores)
    for name, loss in losses.items():
        assert loss.item() == 0, name
        (gradient,) = torch.autograd.grad(loss, case.logits)
        assert (gradient == 0).all(), name


def test_unique_is_the_mean_over_the_os_queries():
    losses = torch.tensor([[1.0, 7.0], [9.0, 2.0], [30.0, 4.0], [0.5, 0.5]], requires_grad=True)
    mask = torch.tensor([[True, True], [False, True], [False, True], [False, False]])
    loss = Unique().reduce(losses, mask)
    assert loss.item() == 3.0
    loss.backward()
    assert losses.grad is not None
    assert losses.grad.tolist() == [[0, 0], [0, 0.5], [0, 0.5], [0, 0]]


def test_random_keeps_its_choice_over_epochs_shuffles_and_restarts():
    """In any batch and with any instance of the objective, the same solution of a query is learnt."""
    generator = torch.Generator().manual_seed(0)
    solutions = torch.stack([torch.randperm(7, generator=generator)[:5] for _ in range(40)]).unsqueeze(-1)
    mask = torch.rand(40, 5, generator=generator) < 0.7
    mask[:, 4] |= ~mask.any(-1)
    learnt = {}
    for epoch in range(6):
        objective = Random()
        for rows in torch.randperm(40, generator=generator).split(4 + epoch):
            logits = torch.randn(len(rows), 1, 7, generator=generator).requires_grad_()
            objective(logits, solutions[rows], mask[rows]).backward()
            assert logits.grad is not None
            # The one value whose logit is pushed up is the one that is learnt.
            for row, value in zip(rows.tolist(), logits.grad[:, 0].argmin(-1).tolist(), strict=True):
                assert learnt.setdefault(row, value) == value
    first = [next(k for k in range(5) if row[k]) for row in mask.tolist()]
    assert learnt == {row: int(solutions[row, k, 0]) for row, k in enumerate(first)}


def test_a_pair_loss_of_the_users():
    """It gets no padding, and a variable mask only if one is used."""
    case = make_case(6, T=2)
    seen = []

    def squared_distance(logits, solutions, **options):
        seen.append((solutions, options))
        return ((logits.mean(-1).unsqueeze(2) - solutions) ** 2).sum(-1)

    loss = MinLoss(pair_loss=squared_distance)(case.logits, case.solutions, case.mask)
    clean, options = seen[-1]
    assert options == {}
    assert torch.equal(clean, case.solutions.masked_fill(~case.mask.unsqueeze(-1), 0))
    torch.testing.assert_close(loss, MinLoss().reduce(squared_distance(case.logits, clean), case.mask))
    variables = torch.ones(3, 3, dtype=torch.bool)
    MinLoss(pair_loss=squared_distance)(case.logits, case.solutions, case.mask, variable_mask=variables)
    assert seen[-1][1] == {"variable_mask": variables}
    # Without steps, and for any model: real-valued answers need no logits.
    answers = torch.randn(3, 4, 2, dtype=torch.float64)
    output = torch.randn(3, 2, dtype=torch.float64)
    loss = MinLoss(pair_loss=lambda o, a: ((o.unsqueeze(1) - a) ** 2).sum(-1))(output, answers, case.mask)
    losses = ((output.unsqueeze(1) - answers) ** 2).sum(-1).masked_fill(~case.mask, torch.inf).amin(-1)
    torch.testing.assert_close(loss, losses[case.mask.any(-1)].mean())
