"""Scoring without gradients and training on the chosen solution: the gradient of the full computation, less memory."""

import pytest
import torch
from torch import nn

from oneofmany.objectives import CCLoss, IExplR, MinLoss, Naive, Random, SequenceNLL, Unique, train_on_chosen

from .every import EVERY, extras

B, K, L, V, WIDTH = 5, 4, 3, 7, 8
nll = SequenceNLL()


class Decoder(nn.Module):
    """Logits [N,L,V] from inputs [N,..] and the tokens of an answer, shifted by one."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(V + 1, WIDTH)
        self.cell = nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.read = nn.Linear(WIDTH, V)

    def forward(self, inputs, answers):
        tokens = torch.cat([torch.full_like(answers[:, :1], V), answers[:, :-1]], 1)
        states, _ = self.cell(self.embed(tokens), inputs.unsqueeze(0))
        return self.read(states)


@pytest.fixture
def task():
    generator = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    model = Decoder().double()
    inputs = torch.randn(B, WIDTH, generator=generator, dtype=torch.float64)
    answers = torch.randint(V, (B, K, L), generator=generator)
    mask = torch.tensor([[1, 1, 1, 1], [1, 0, 1, 0], [0, 0, 0, 0], [0, 0, 1, 0], [1, 1, 0, 1]])
    return model, inputs, answers, mask


def slopes(loss, model):
    return torch.autograd.grad(loss, list(model.parameters()))


@pytest.mark.parametrize("at_once", [None, 1, 3, 100])
@pytest.mark.parametrize("form", EVERY.values(), ids=EVERY)
def test_the_gradient_of_the_full_computation(task, form, at_once):
    model, inputs, answers, mask = task
    objective = form()
    scores, noise = extras(objective, mask)
    sizes = []

    def losses_of(rows, chosen):
        sizes.append((len(rows), torch.is_grad_enabled()))
        return nll(model(inputs[rows], chosen), chosen)

    result = train_on_chosen(objective, losses_of, answers, mask, *scores, at_once=at_once, **noise)
    everything = nll(model(inputs.repeat_interleave(K, 0), answers.flatten(0, 1)), answers.flatten(0, 1)).view(B, K)
    wanted = objective.reduce(everything, mask, *scores, **noise)
    torch.testing.assert_close(result.loss, wanted, rtol=1e-12, atol=0)
    for actual, expected in zip(slopes(result.loss, model), slopes(wanted, model), strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-10, atol=1e-13)
    torch.testing.assert_close(result.pair_losses, everything.detach().where(mask == 1, 0.0))
    assert not result.pair_losses.requires_grad
    chosen = objective.chosen(everything, mask, *scores, **noise)
    assert torch.equal(result.chosen, chosen)
    # The listed solutions are scored in chunks, then those of non-zero weight are trained on.
    *scored, trained = sizes
    assert sum(size for size, _ in scored) == mask.sum()
    assert all(size <= (at_once or B) and not graded for size, graded in scored)
    weights = objective.weights(everything, mask, *scores, **noise)
    assert trained == (int((weights != 0).sum()), True)
    if isinstance(objective, (MinLoss, Random)) or objective.draws:
        assert trained[0] == 4
    loss = train_on_chosen(objective, losses_of, answers, mask, *scores, normaliser=9, **noise).loss
    torch.testing.assert_close(loss, wanted * objective.count(mask) / 9)


@pytest.mark.parametrize("form", [MinLoss, CCLoss, lambda: MinLoss(per_step=True), lambda: CCLoss(per_step=False)])
def test_models_with_steps(form):
    """Losses [T,N]; with per_step, the solutions that any step chooses are trained on."""
    generator = torch.Generator().manual_seed(0)
    outputs = torch.randn(3, B, 2, generator=generator, dtype=torch.float64).requires_grad_()
    answers = torch.randn(B, K, 2, generator=generator, dtype=torch.float64)

    def losses_of(rows, chosen):
        return (outputs[:, rows] - chosen).square().sum(-1)

    objective = form()
    result = train_on_chosen(objective, losses_of, answers)
    wanted = objective.reduce((outputs.unsqueeze(2) - answers).square().sum(-1))
    torch.testing.assert_close(result.loss, wanted)
    torch.testing.assert_close(torch.autograd.grad(result.loss, outputs), torch.autograd.grad(wanted, outputs))


@pytest.mark.parametrize("reduction", ["sum", "none"])
def test_reductions(task, reduction):
    model, inputs, answers, mask = task
    loss = train_on_chosen(
        MinLoss(reduction=reduction), lambda rows, chosen: nll(model(inputs[rows], chosen), chosen), answers, mask
    ).loss
    assert loss.shape == ((B,) if reduction == "none" else ())


def test_nothing_to_train_on(task):
    model, inputs, answers, mask = task
    for objective, listed in ((MinLoss(), torch.zeros_like(mask)), (Unique(), torch.ones_like(mask))):
        result = train_on_chosen(
            objective, lambda rows, chosen: nll(model(inputs[rows], chosen), chosen), answers, listed
        )
        assert result.loss.item() == 0
        assert all((slope == 0).all() for slope in slopes(result.loss, model))
        assert (result.chosen == -1).all()


def test_a_generator_is_drawn_from_once(task):
    model, inputs, answers, mask = task

    def losses_of(rows, chosen):
        return nll(model(inputs[rows], chosen), chosen)

    objective = IExplR(sample=True)
    first = train_on_chosen(objective, losses_of, answers, mask, generator=torch.Generator().manual_seed(3))
    noise = objective.draw_noise(mask, torch.Generator().manual_seed(3))
    again = train_on_chosen(objective, losses_of, answers, mask, noise=noise)
    assert torch.equal(first.loss, again.loss)
    assert torch.equal(first.chosen, again.chosen)


def test_it_needs_less_memory(task):
    """Numbers that are kept for the gradient, by torch's own hooks: one of K answers, not all."""
    model, inputs, answers, _ = task
    kept = 0

    def count(tensor):
        nonlocal kept
        kept += tensor.numel()
        return tensor

    def losses_of(rows, chosen):
        return nll(model(inputs[rows], chosen), chosen)

    parameters = sum(p.numel() for p in model.parameters())
    found = []
    for work in (
        lambda: train_on_chosen(MinLoss(), losses_of, answers).loss,
        lambda: MinLoss().reduce(losses_of(torch.arange(B).repeat_interleave(K), answers.flatten(0, 1)).view(B, K)),
    ):
        kept = 0
        with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
            work()
        found.append(kept - parameters)
    assert found[0] < found[1] / 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"at_once": 0}, "at_once: expected 1 or more, got 0"),
        ({"losses_of": lambda rows, answers: torch.zeros(3)}, r"losses_of: expected shape \[N\] or \[T,N\] with N = 5"),
        ({"losses_of": lambda rows, answers: [1.0]}, r"losses_of: expected a torch\.Tensor, got list"),
        ({"solutions": torch.zeros(B)}, r"solutions: expected shape \[B,K,..\], got shape \[5\]"),
        (
            {"mask": torch.ones(B, K + 1).int()},
            r"solutions: expected a tensor of shape \[B,K,..\] with B, K = \[5, 5\]",
        ),
        ({"objective": IExplR(sample=True)}, r"generator: expected a torch\.Generator, or noise="),
        ({"objective": EVERY["SelectR"]()}, r"scores: expected a torch\.Tensor, got NoneType"),
        ({"objective": Naive(), "scores": torch.zeros(B, K)}, "scores: expected None, since Naive has no selector"),
    ],
)
def test_bad_arguments(arguments, message):
    given = {
        "objective": MinLoss(),
        "losses_of": lambda rows, answers: torch.zeros(len(rows), requires_grad=True),
        "solutions": torch.zeros(B, K, L),
    }
    with pytest.raises(ValueError, match=message):
        train_on_chosen(**given | arguments)
