"""Drawn forms: the right frequencies, one solution at a time, and the same noise gives the same draw."""

import pytest
import torch

from oneofmany.objectives import CCLoss, IExplR, MinLoss, Naive, SelectR

from .cases import make_case

LOSSES = torch.tensor([1.0, 0.3, 5.0, 2.0], dtype=torch.float64)
MASK = torch.tensor([True, True, True, False])
SCORES = torch.tensor([0.2, -1.0, 0.9, 7.0], dtype=torch.float64)
N = 50_000


def drawn_weights(objective, *scores, **noise):
    wide = [score.expand(N, 4) for score in scores]
    return objective.weights(LOSSES.expand(N, 4), MASK.expand(N, 4), *wide, **noise)


DRAWING = [
    (MinLoss(epsilon=0.3), [], torch.tensor([0.1, 0.8, 0.1, 0.0])),
    (MinLoss(epsilon=1.0), [], torch.tensor([1 / 3, 1 / 3, 1 / 3, 0.0])),
    (IExplR(sample=True), [], torch.cat([(-LOSSES[:3]).softmax(0), torch.zeros(1)])),
    (IExplR(sample=True, temperature=3.0), [], torch.cat([(-LOSSES[:3] / 3).softmax(0), torch.zeros(1)])),
    (SelectR(sample=True), [SCORES], torch.cat([SCORES[:3].softmax(0), torch.zeros(1)])),
    (SelectR(sample=True, epsilon=0.5), [SCORES], torch.cat([SCORES[:3].softmax(0) / 2 + 1 / 6, torch.zeros(1)])),
]


@pytest.mark.parametrize(("objective", "scores", "probabilities"), DRAWING)
def test_frequencies(objective, scores, probabilities):
    weights = drawn_weights(objective, *scores, generator=torch.Generator().manual_seed(3))
    assert ((weights == 0) | (weights == 1)).all()
    assert (weights.sum(-1) == 1).all()
    assert (weights[:, 3] == 0).all()
    error = (probabilities * (1 - probabilities) / N).sqrt()
    assert ((weights.mean(0) - probabilities).abs() <= 5 * error + 1e-12).all()


@pytest.mark.parametrize(("objective", "scores", "_"), DRAWING)
def test_the_same_noise_gives_the_same_draw(objective, scores, _):
    first = drawn_weights(objective, *scores, generator=torch.Generator().manual_seed(3))
    again = drawn_weights(objective, *scores, generator=torch.Generator().manual_seed(3))
    noise = objective.draw_noise(MASK.expand(N, 4), torch.Generator().manual_seed(3))
    assert torch.equal(first, again)
    assert torch.equal(first, drawn_weights(objective, *scores, noise=noise))
    assert not torch.equal(first, drawn_weights(objective, *scores, generator=torch.Generator().manual_seed(4)))


def test_the_loss_is_that_of_the_drawn_solution():
    case = make_case(1, T=3, B=6, K=4)
    for objective in (IExplR(sample=True), MinLoss(epsilon=0.5), IExplR(sample=True, per_step=True)):
        noise = objective.draw_noise(case.mask, torch.Generator().manual_seed(0), steps=3)
        assert noise is not None
        assert noise.shape == ((3, 6, 4) if objective.per_step else (6, 4))
        losses = objective.pair_losses(case.logits, case.solutions, case.mask)
        weights = objective.weights(losses, case.mask, noise=noise)
        used = losses if objective.per_step else losses.mean(0)
        rows = case.mask.any(-1).expand(used.shape[:-1])
        wanted = (weights * used).where(weights > 0, 0.0).sum(-1)[rows].mean()
        torch.testing.assert_close(objective(case.logits, case.solutions, case.mask, noise=noise), wanted)
        torch.testing.assert_close(
            objective(case.logits, case.solutions, case.mask, generator=torch.Generator().manual_seed(0)), wanted
        )


@pytest.mark.parametrize("extreme", [0.0, 1 - 2**-24])
def test_extreme_noise_never_draws_padding(extreme):
    """Even if a weight is close to 0."""
    losses = torch.tensor([[700.0, 0.0, 50.0], [1.0, 1.0, 1.0]])
    mask = torch.tensor([[True, False, True], [False, False, False]])
    for objective in (IExplR(sample=True), MinLoss(epsilon=0.5)):
        weights = objective.weights(losses, mask, noise=torch.full((2, 3), extreme))
        assert weights[0, 1] == 0
        assert weights.sum(-1).tolist() == [1, 0]


def test_a_sample_needs_a_source():
    case = make_case(2)
    for objective in (IExplR(sample=True), MinLoss(epsilon=0.1)):
        with pytest.raises(ValueError, match=r"generator: expected a torch\.Generator.*got None"):
            objective(case.logits, case.solutions, case.mask)


def test_noise_that_nobody_uses_is_an_error():
    case = make_case(3)
    noise = torch.rand(case.mask.shape)
    for objective in (Naive(), CCLoss(), MinLoss(), IExplR()):
        assert objective.draw_noise(case.mask, torch.Generator()) is None
        objective(case.logits, case.solutions, case.mask, generator=torch.Generator())
        with pytest.raises(ValueError, match="noise: expected None"):
            objective(case.logits, case.solutions, case.mask, noise=noise)
    with pytest.raises(ValueError, match="noise: expected None"):
        SelectR()(case.logits, case.solutions, case.mask, torch.zeros(3, 4), noise=noise)
