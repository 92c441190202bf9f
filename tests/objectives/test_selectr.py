"""SelectR's two losses: which network each one trains, and the policy gradient."""

import math

import pytest
import torch

from oneofmany.objectives import BinaryNLL, SelectR, SequenceNLL, exact_match_reward, hamming_reward

from . import brute_force
from .cases import make_case


def make_scores(mask, seed=0, steps=None):
    shape = mask.shape if steps is None else (steps, *mask.shape)
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).requires_grad_()


def finite_differences(function, scores, step=1e-6):
    slopes = torch.zeros_like(scores)
    for place in torch.cartesian_prod(*[torch.arange(size) for size in scores.shape]):
        shift = torch.zeros_like(scores)
        shift[tuple(place)] = step
        slopes[tuple(place)] = (function(scores + shift) - function(scores - shift)) / (2 * step)
    return slopes


@pytest.mark.parametrize("steps", [None, 3])
@pytest.mark.parametrize("reward", [hamming_reward, exact_match_reward])
def test_the_exact_policy_gradient_is_the_derivative_of_the_expected_reward(reward, steps):
    case = make_case(11, T=steps, B=5, K=4, R=3, V=2)
    case.solutions[:, 0] = (case.logits if steps is None else case.logits[0]).argmax(-1)
    logits, solutions, mask, _ = case.lists()
    rewards = brute_force.mean_over_steps(
        brute_force.reward(logits, solutions, threshold=False, exact=reward is exact_match_reward)
    )[0]
    scores = make_scores(case.mask)
    loss = SelectR(reward=reward).selector_loss(case.logits, case.solutions, case.mask, scores)
    (gradient,) = torch.autograd.grad(loss, scores)
    wanted = finite_differences(lambda s: brute_force.expected_reward(rewards, s.tolist(), mask), scores.detach())
    assert wanted.abs().max() > 0.01
    torch.testing.assert_close(-gradient, wanted, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("epsilon", [0.0, 0.3])
@pytest.mark.parametrize("entropy_bonus", [0.0, 0.5])
def test_epsilon_and_entropy_bonus_by_finite_differences(epsilon, entropy_bonus):
    case = make_case(12, B=4, K=4)
    rewards = hamming_reward(case.logits, case.solutions)[0]

    def objective(scores):
        values = []
        for b in range(4):
            places = brute_force.listed(case.mask[b].tolist())
            if len(places) > 1:
                softmax = brute_force.softmax_over(scores[b].tolist(), places, 4)
                policy = [(1 - epsilon) * softmax[k] + epsilon / len(places) for k in places]
                entropy = -sum(p * math.log(p) for p in policy)
                reward = sum(p * float(rewards[b, k]) for p, k in zip(policy, places, strict=True))
                values.append(reward + entropy_bonus * entropy)
        return sum(values) / len(values)

    scores = make_scores(case.mask)
    selectr = SelectR(epsilon=epsilon, entropy_bonus=entropy_bonus)
    loss = selectr.selector_loss(case.logits, case.solutions, case.mask, scores)
    assert -loss.item() == pytest.approx(objective(scores), abs=1e-12)
    (gradient,) = torch.autograd.grad(loss, scores)
    torch.testing.assert_close(-gradient, finite_differences(objective, scores.detach()), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("epsilon", [0.0, 0.3])
@pytest.mark.parametrize("entropy_bonus", [0.0, 0.5])
def test_reinforce_agrees_with_the_exact_gradient_in_the_mean(epsilon, entropy_bonus):
    """100,000 draws of one query: every component is within 5 standard errors, so the baseline adds no bias."""
    draws = 100_000
    generator = torch.Generator().manual_seed(1)
    mask = torch.tensor([True, True, False, True])
    rewards = torch.tensor([3.0, 1.0, 99.0, 7.0], dtype=torch.float64)
    scores = torch.tensor([0.5, -1.0, 3.0, -0.2], dtype=torch.float64)
    options = {"epsilon": epsilon, "entropy_bonus": entropy_bonus}

    one = scores.clone().requires_grad_()
    loss = SelectR(**options).reduce_rewards(rewards[None], mask[None], one[None])
    (wanted,) = torch.autograd.grad(loss, one)

    many = scores.expand(draws, 4).clone().requires_grad_()
    wide_mask = mask.expand(draws, 4)
    selectr = SelectR(reinforce=True, **options)
    loss_drawn = selectr.reduce_rewards(rewards.expand(draws, 4), wide_mask, many, generator=generator)
    (gradients,) = torch.autograd.grad(loss_drawn, many)
    gradients = gradients * draws
    error = gradients.std(0) / draws**0.5
    assert ((gradients.mean(0) - wanted).abs() <= 5 * error + 1e-12).all()
    assert (error[mask] > 0).all()
    assert (gradients[:, 2] == 0).all()
    assert (wanted.abs() > 20 * error)[mask].any()
    assert loss_drawn.item() == pytest.approx(loss.item(), abs=0.05)


def test_the_baseline_of_reinforce_lowers_the_variance():
    """Rewards far from zero with small differences: without a baseline the noise would be as large as the rewards."""
    rewards = torch.tensor([[1000.0, 1001.0]], dtype=torch.float64).expand(1000, 2)
    scores = torch.zeros(1000, 2, dtype=torch.float64, requires_grad=True)
    loss = SelectR(reinforce=True).reduce_rewards(
        rewards, torch.ones(1000, 2, dtype=torch.bool), scores, generator=torch.Generator().manual_seed(0)
    )
    (gradients,) = torch.autograd.grad(loss, scores)
    assert (gradients * 1000).abs().max() <= 0.25 + 1e-9


def test_per_step_reinforce_draws_for_every_step():
    case = make_case(13, T=400, B=1, K=3, listed=1.0)
    scores = make_scores(case.mask, steps=400)
    selectr = SelectR(reinforce=True, per_step=True)
    noise = selectr.draw_noise(case.mask, torch.Generator().manual_seed(0), steps=400)
    assert noise is not None
    assert noise.shape == (400, 1, 3)
    rewards = torch.arange(3.0).expand(400, 1, 3)
    value = selectr.reduce_rewards(rewards, case.mask, scores * 0, noise=noise)
    assert -value.item() == pytest.approx(1.0, abs=5 * (2 / 3 / 400) ** 0.5)


def test_who_learns_from_which_loss():
    case = make_case(14, T=2).with_gradient()
    scores = make_scores(case.mask)
    selectr = SelectR()
    loss = selectr(case.logits, case.solutions, case.mask, scores)
    selector_loss = selectr.selector_loss(case.logits, case.solutions, case.mask, scores)
    assert torch.autograd.grad(loss, [case.logits, scores], allow_unused=True)[1] is None
    assert torch.autograd.grad(selector_loss, [case.logits, scores], allow_unused=True)[0] is None


def test_a_batch_without_ms_queries_gives_the_selector_a_zero_gradient():
    case = make_case(15, T=2, B=4, K=3)
    mask = torch.zeros(4, 3, dtype=torch.bool)
    mask[0, 1] = mask[1, 0] = mask[2, 2] = True
    solutions = case.solutions.clamp(0, 3)
    for options in ({}, {"reinforce": True}, {"entropy_bonus": 0.3}, {"epsilon": 0.3}):
        scores = make_scores(mask)
        selectr = SelectR(**options)
        loss = selectr.selector_loss(case.logits, solutions, mask, scores, generator=torch.Generator())
        assert loss.item() == 0
        (gradient,) = torch.autograd.grad(loss, scores)
        assert (gradient == 0).all(), options


@pytest.mark.parametrize("filler", [math.nan, math.inf, -1e30])
def test_rewards_of_padding_do_not_matter(filler):
    case = make_case(21, B=4, K=4)
    scores = make_scores(case.mask)
    rewards = hamming_reward(case.logits, case.solutions)
    for options in ({}, {"reinforce": True}):
        losses = [
            SelectR(**options).reduce_rewards(r, case.mask, scores, generator=torch.Generator().manual_seed(0))
            for r in (rewards, rewards.masked_fill(~case.mask, filler))
        ]
        assert torch.equal(*losses)
        assert torch.equal(*[torch.autograd.grad(loss, scores)[0] for loss in losses])


def test_an_all_masked_row_leaves_no_nan_behind():
    """Not even one that is masked later, which torch's anomaly mode would find."""
    case = make_case(20, B=3, K=3, listed=1.0)
    case.mask[1] = False
    scores = make_scores(case.mask)
    with torch.autograd.set_detect_anomaly(True):
        for options in ({}, {"epsilon": 0.2}, {"reinforce": True, "entropy_bonus": 0.1}):
            selectr = SelectR(**options)
            generator = torch.Generator().manual_seed(0)
            loss = selectr.selector_loss(case.logits, case.solutions, case.mask, scores, generator=generator)
            (gradient,) = torch.autograd.grad(loss, scores)
            assert (gradient[1] == 0).all()


def test_os_queries_do_not_dilute_the_mean():
    case = make_case(16, B=3, K=3, listed=1.0)
    case.mask[2, 1:] = False
    scores = make_scores(case.mask)
    both = SelectR().selector_loss(case.logits, case.solutions, case.mask, scores)
    ms_only = SelectR().selector_loss(case.logits[:2], case.solutions[:2], case.mask[:2], scores[:2])
    torch.testing.assert_close(both, ms_only)


@pytest.mark.parametrize("per_step", [False, True])
def test_a_selector_that_is_sure_of_itself_is_no_nan(per_step):
    case = make_case(17, T=1, K=3, listed=1.0).with_gradient()
    scores = torch.tensor([[1e5, 0.0, -1e5]], dtype=torch.float64).expand(3, 3).clone().requires_grad_()
    for options in ({}, {"entropy_bonus": 1.0}, {"epsilon": 0.1, "entropy_bonus": 1.0}, {"reinforce": True}):
        selectr = SelectR(per_step=per_step, **options)
        generator = torch.Generator().manual_seed(0)
        loss = selectr.selector_loss(case.logits, case.solutions, case.mask, scores, generator=generator)
        assert torch.isfinite(torch.autograd.grad(loss, scores)[0]).all()


def test_higher_scores_are_preferred_and_learning_raises_the_score_of_the_nearest():
    logits = torch.zeros(1, 4, 3)
    logits[..., 1] = 4.0
    solutions = torch.tensor([[[0, 0, 0, 0], [1, 1, 1, 2], [2, 1, 0, 0]]])
    mask = torch.ones(1, 3, dtype=torch.bool)
    scores = torch.zeros(1, 3, requires_grad=True)
    (gradient,) = torch.autograd.grad(SelectR().selector_loss(logits, solutions, mask, scores), scores)
    assert gradient.argmin() == 1
    weights = SelectR().weights(torch.zeros(1, 3), mask, torch.tensor([[0.0, 2.0, 1.0]]))
    torch.testing.assert_close(weights, torch.tensor([[0.0, 2.0, 1.0]]).softmax(-1))


def test_the_reward_follows_the_pair_loss():
    case = make_case(18, K=3, listed=1.0)
    scores = make_scores(case.mask)
    for selectr, threshold in ((SelectR(), False), (SelectR(pair_loss=BinaryNLL()), True)):
        rewards = brute_force.reward(*case.lists()[:2], threshold=threshold, exact=False)[0]
        wanted = brute_force.expected_reward(rewards, scores.tolist(), case.mask.tolist())
        actual = selectr.selector_loss(case.logits, case.solutions, case.mask, scores)
        assert -actual.item() == pytest.approx(wanted)


def test_a_pair_loss_of_ones_own_needs_a_reward_of_ones_own():
    case = make_case(19)
    scores = make_scores(case.mask)
    selectr = SelectR(pair_loss=lambda logits, solutions: torch.zeros(1, 3, 4))
    assert selectr(case.logits, case.solutions, case.mask, scores).item() == 0
    with pytest.raises(ValueError, match="reward: expected"):
        selectr.selector_loss(case.logits, case.solutions, case.mask, scores)
    selectr = SelectR(pair_loss=selectr.pair_loss, reward=lambda logits, solutions: torch.full((3, 4), 2.0))
    assert selectr.selector_loss(case.logits, case.solutions, case.mask, scores).item() == pytest.approx(-2.0)


def test_a_reward_of_sequences_gets_the_lengths():
    """The tokens after an answer's length may be anything, also for the selector's loss."""
    logits, scores = torch.randn(2, 2, 3, 5, dtype=torch.float64), torch.zeros(2, 2, requires_grad=True)
    tokens, lengths = torch.randint(0, 5, (2, 2, 3)), torch.tensor([[1, 3], [2, 2]])
    tokens[0, 0, 1:] = 777

    def reward(logits, solutions, lengths):
        return -SequenceNLL()(logits, solutions, lengths=lengths)

    selectr = SelectR(pair_loss=SequenceNLL(), reward=reward)
    loss = selectr.selector_loss(logits, tokens, scores=scores, lengths=lengths)
    torch.testing.assert_close(loss.double(), selectr(logits, tokens, scores=scores, lengths=lengths))
    with pytest.raises(ValueError, match="lengths: expected None, since CategoricalNLL takes none"):
        SelectR().selector_loss(logits[0], tokens[:, :, :3], scores=scores, lengths=lengths)
