"""Every objective, pair loss and reward against loops over Python numbers."""

import pytest
import torch
from hypothesis import given, settings

from oneofmany.objectives import (
    BinaryNLL,
    CategoricalNLL,
    SelectR,
    binary_exact_match_reward,
    binary_hamming_reward,
    exact_match_reward,
    hamming_reward,
)

from . import brute_force
from .cases import FORMS, Case, make_case
from .strategies import cases

quick = settings(max_examples=40, deadline=None)
PAIR_LOSSES = [(CategoricalNLL, brute_force.categorical), (BinaryNLL, brute_force.binary)]
TOLERANCE = {torch.float64: {"rtol": 1e-12, "atol": 1e-12}, torch.float32: {"rtol": 2e-5, "atol": 2e-5}}

WEIGHTS = {
    "Naive": brute_force.naive_weights,
    "Naive mean": brute_force.naive_mean_weights,
    "Random": brute_force.random_weights,
    "Unique": brute_force.unique_weights,
    "CCLoss": brute_force.iexplr_weights(1.0),
    "CCLoss mean of steps": brute_force.iexplr_weights(1.0),
    "MinLoss": brute_force.minloss_weights,
    "MinLoss per step": brute_force.minloss_weights,
    "IExplR": brute_force.iexplr_weights(1.0),
    "IExplR temperature": brute_force.iexplr_weights(2.5),
    "IExplR per step": brute_force.iexplr_weights(1.0),
}
PER_STEP = {"CCLoss", "MinLoss per step", "IExplR per step"}


def expected(name, losses, mask):
    """Loss and weights [T][B][K] (T = 1 for one weight vector) by brute force, from pair losses [T][B][K]."""
    used = losses if name in PER_STEP else brute_force.mean_over_steps(losses)
    weights = brute_force.weights(WEIGHTS[name], used, mask)
    if name.startswith("CCLoss"):
        return brute_force.ccloss(used, mask), weights
    return brute_force.weighted_mean(used, weights), weights


def close(actual, wanted, dtype=torch.float64):
    torch.testing.assert_close(actual, torch.tensor(wanted, dtype=actual.dtype), **TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(("pair_loss", "of_variable"), PAIR_LOSSES)
@quick
@given(case=cases)
def test_pair_losses(pair_loss, of_variable, dtype, case: Case):
    case = case.to(dtype)
    logits, solutions, mask, variable_mask = case.lists()
    actual = pair_loss()(case.logits, case.solutions, case.variable_mask)
    assert actual.dtype == dtype
    wanted = brute_force.pair_losses(of_variable, logits, solutions, mask, variable_mask)
    close(actual.where(case.mask, 0.0), wanted, dtype)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(("pair_loss", "of_variable"), PAIR_LOSSES)
@quick
@given(case=cases)
def test_objectives(pair_loss, of_variable, dtype, case: Case):
    case = case.to(dtype)
    logits, solutions, mask, variable_mask = case.lists()
    losses = brute_force.pair_losses(of_variable, logits, solutions, mask, variable_mask)
    for name, form in FORMS.items():
        objective = form(pair_loss=pair_loss())
        wanted, wanted_weights = expected(name, losses, mask)
        actual = objective(case.logits, case.solutions, case.mask, variable_mask=case.variable_mask)
        assert actual.shape == (), name
        assert actual.dtype == dtype, name
        close(actual, wanted, dtype)

        own = torch.tensor(losses, dtype=dtype)
        close(objective.reduce(own, case.mask), wanted, dtype)
        weights = objective.weights(own, case.mask)
        close(weights, wanted_weights if name in PER_STEP else wanted_weights[0], dtype)


@quick
@given(case=cases)
def test_pair_losses_without_a_step_axis_are_those_of_one_step(case: Case):
    losses = CategoricalNLL()(case.logits, case.solutions, case.variable_mask)[0]
    for name, form in FORMS.items():
        torch.testing.assert_close(
            form().reduce(losses, case.mask), form().reduce(losses.unsqueeze(0), case.mask), rtol=0, atol=0, msg=name
        )
        assert form().weights(losses, case.mask).shape == case.mask.shape


@quick
@given(case=cases)
def test_what_the_weights_sum_to(case: Case):
    losses = CategoricalNLL()(case.logits, case.solutions, case.variable_mask)
    count = case.mask.sum(-1)
    for name, form in FORMS.items():
        weights = form().weights(losses, case.mask)
        total = {"Naive": count, "Unique": count == 1}.get(name, count > 0)
        torch.testing.assert_close(weights.sum(-1), total.double().expand(weights.shape[:-1]), msg=name)
        assert (weights[..., ~case.mask] == 0).all()
        assert not weights.requires_grad


REWARDS = [
    (hamming_reward, False, False),
    (exact_match_reward, False, True),
    (binary_hamming_reward, True, False),
    (binary_exact_match_reward, True, True),
]


@pytest.mark.parametrize(("reward", "threshold", "exact"), REWARDS)
@quick
@given(case=cases)
def test_rewards(reward, threshold, exact, case: Case):
    logits, solutions, _, variable_mask = case.lists()
    wanted = brute_force.reward(logits, solutions, threshold=threshold, exact=exact, variable_mask=variable_mask)
    actual = reward(case.logits, case.solutions, case.variable_mask)
    listed = case.mask.expand(actual.shape)
    close(actual.where(listed, 0.0), torch.tensor(wanted, dtype=actual.dtype).where(listed, 0.0).tolist())


@pytest.mark.parametrize(("reward", "threshold", "exact"), REWARDS)
def test_rewards_of_predicted_solutions(reward, threshold, exact):
    """Random solutions rarely match exactly, so list the prediction itself."""
    case = make_case(3, T=2, B=5, K=3, R=3, V=3)
    case.solutions[:, 0] = case.logits[0].argmax(-1)
    sharp = case.logits.clone()
    sharp[0] = torch.where(torch.nn.functional.one_hot(case.logits[0].argmax(-1), 3) == 1, 5.0, -5.0)
    wanted = brute_force.reward(sharp.tolist(), case.solutions.tolist(), threshold=threshold, exact=exact)
    actual = reward(sharp, case.solutions.clamp(0, 2))
    close(actual[..., 0], torch.tensor(wanted)[..., 0].tolist())
    full = {False: 3.0, True: 9.0}[threshold]
    assert (actual[0, :, 0] == (1.0 if exact else full)).all()


@pytest.mark.parametrize("per_step", [False, True])
@pytest.mark.parametrize(("pair_loss", "of_variable"), PAIR_LOSSES)
@quick
@given(case=cases)
def test_selectr(pair_loss, of_variable, per_step, case: Case):
    logits, solutions, mask, variable_mask = case.lists()
    losses = brute_force.pair_losses(of_variable, logits, solutions, mask, variable_mask)
    rewards = brute_force.reward(
        logits, solutions, threshold=pair_loss is BinaryNLL, exact=False, variable_mask=variable_mask
    )
    if not per_step:
        losses, rewards = brute_force.mean_over_steps(losses), brute_force.mean_over_steps(rewards)
    generator = torch.Generator().manual_seed(int(case.logits.abs().sum() * 1000))
    scores = 3 * torch.randn(len(losses), *case.mask.shape, generator=generator, dtype=torch.float64)
    weights = [brute_force.weights(lambda row, places: brute_force.softmax_over(row, places, len(row)), [step], mask)[0]
               for step in scores.tolist()]  # fmt: skip
    wanted = brute_force.weighted_mean(losses, weights)
    wanted_selector = [brute_force.expected_reward(r, s, mask) for r, s in zip(rewards, scores.tolist(), strict=True)]
    given_scores = scores if per_step else scores[0]

    selectr = SelectR(pair_loss=pair_loss(), per_step=per_step)
    options = {"variable_mask": case.variable_mask}
    close(selectr(case.logits, case.solutions, case.mask, given_scores, **options), wanted)
    actual = selectr.selector_loss(case.logits, case.solutions, case.mask, given_scores, **options)
    close(actual, -sum(wanted_selector) / len(wanted_selector))
    own = torch.tensor(losses, dtype=torch.float64)
    close(selectr.weights(own, case.mask, given_scores), weights if per_step else weights[0])
    close(selectr.reduce(own, case.mask, given_scores), wanted)
