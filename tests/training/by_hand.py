"""One update written by hand in plain PyTorch, as the reference for the updater."""

import copy
from dataclasses import replace

import numpy as np
import torch

from oneofmany.data import Dataset, DeviceData
from oneofmany.exact import solve
from oneofmany.problems import Problem, Rule
from oneofmany.training.distributed import Group
from oneofmany.training.learners import Learners
from oneofmany.training.phases import phases_of
from oneofmany.training.revealing import reveal
from oneofmany.training.updating import Updater
from small_runs import files


def updater_of(settings, folder, which=-1, group=Group(), data=None):  # noqa: B008 - frozen
    """The updater of one phase, on new networks."""
    data = data or Dataset.load(files(folder, settings)[0])
    phase = phases_of(settings)[which]
    learners = Learners(settings, data.problem, torch.device("cpu"))
    learners.begin(None, with_selector=phase.trains != "network")
    return Updater(settings, phase, learners, DeviceData(data, listed=settings.listed), group)


def literal_pair_losses(logits, batch, offset, binary):
    """[T, B, K]: minus the log-probability of every solution, listed or padding."""
    logits = logits if logits.ndim == 4 else logits[None]
    of_solutions = []
    for k in range(batch.solutions.shape[1]):
        target = torch.nn.functional.one_hot(batch.solutions[:, k] + offset, logits.shape[-1]).to(logits.dtype)
        if binary:
            p = logits.sigmoid()
            chosen = target * p.log() + (1 - target) * (1 - p).log()
        else:
            chosen = target * logits.log_softmax(-1)
        of_solutions.append(-chosen.sum((-1, -2)))
    return torch.stack(of_solutions, -1)


def literal_agreement(logits, batch, offset, binary):
    """[T, B, K]: variables (choices, if binary) that agree with every solution."""
    logits = logits if logits.ndim == 4 else logits[None]
    of_solutions = []
    for k in range(batch.solutions.shape[1]):
        target = batch.solutions[:, k] + offset
        if binary:
            same = (logits > 0) == torch.nn.functional.one_hot(target, logits.shape[-1]).bool()
            of_solutions.append(same.sum((-1, -2)))
        else:
            of_solutions.append((logits.argmax(-1) == target).sum(-1))
    return torch.stack(of_solutions, -1).double()


SGD = {"lr": 1e-3, "weight_decay": 0.1, "momentum": 0.9}


class ByHand:
    """Algorithm 1's inner loop with non-fused optimisers and explicit sums.

    The selector's scores are always in single precision. So that rounding is not blown up, it is compared with SGD.
    """

    def __init__(self, updater):
        s, learners = updater.settings, updater.learners
        self.s, self.updater = s, updater
        self.network = copy.deepcopy(learners.network)
        self.selector = copy.deepcopy(learners.selector)
        self.copied = copy.deepcopy(learners.network)
        kind = torch.optim.AdamW if s.optimiser == "adamw" else torch.optim.Adam
        common = {"betas": s.betas, "foreach": False, "fused": False}
        self.optimiser = kind(self.network.parameters(), lr=1.0, weight_decay=s.decay, **common)
        self.selector_optimiser = torch.optim.SGD(self.selector.parameters(), **SGD)
        self.updates = self.discovered = self.spared = 0

    def predict(self, network, batch, inputs, burn_in):
        arguments = {name: inputs[name] for name in ("noise", "seed") if name in inputs}
        if burn_in:
            with torch.no_grad():
                _, state = network(batch, steps=burn_in, return_state=True, **arguments)
            arguments["state"] = state
        return network(batch, **arguments)

    def batch(self, inputs):
        batch = self.updater.data.batch(inputs["rows"], self.updater.phase.settings.sampling)
        relations = None if batch.relations is None else batch.relations.numpy()
        total = solve(batch.problem, batch.query.numpy(), relations).total
        self.complete = [int(listed) == count for listed, count in zip(batch.mask.sum(1), total, strict=True)]
        return reveal(batch, self.s.reveal, inputs["reveal"]) if self.s.reveal else batch

    def losses(self, batch, inputs, burn_in):
        """The losses of network and selector, and the exploratory counts by loss and by Hamming distance."""
        binary, offset = self.network.readout == "threshold", self.network.value_offset
        logits = self.predict(self.network, batch, inputs, burn_in)
        if self.s.discover:
            batch = with_discovered(batch, logits[-1])
            self.discovered += int(batch.mask[:, -1].sum())
        if self.s.spare_settled:
            batch, spared = without_settled(batch, logits, self.complete)
            self.spared += spared
        with torch.no_grad():
            copied = self.predict(self.copied, batch, inputs, burn_in)
        scores = self.selector(copied, batch)
        pairs = literal_pair_losses(logits, batch, offset, binary).mean(0)
        rewards = literal_agreement(logits.detach(), batch, offset, binary).mean(0)
        loss, selector_loss, trained, multiple = torch.zeros(()), torch.zeros(()), 0, 0
        exploratory = [0, 0]
        for b in range(len(batch)):
            listed = batch.mask[b].nonzero()[:, 0]
            if not len(listed):
                continue
            policy = scores[b, listed].softmax(0)
            loss = loss + (policy.detach() * pairs[b, listed]).sum()
            trained += 1
            if len(listed) > 1:
                selector_loss = selector_loss - (policy * rewards[b, listed]).sum()
                multiple += 1
                favourite = policy.argmax()
                exploratory[0] += int(favourite != pairs[b, listed].argmin())
                exploratory[1] += int(rewards[b, listed][favourite] < rewards[b, listed].max())
        loss = self.s.loss_scale * loss / max(trained, 1)
        return loss, selector_loss / max(multiple, 1), trained, multiple, exploratory

    def update(self, number, lr):
        inputs = self.updater.draw(number)
        batch, burn_in = self.batch(inputs), self.updater._burn_in(number)
        loss, selector_loss, trained, multiple, exploratory = self.losses(batch, inputs, burn_in)
        # Both gradients are taken before either network moves.
        steps = [(loss, self.network, self.optimiser, trained)]
        steps.append((selector_loss, self.selector, self.selector_optimiser, multiple))
        gradients = [
            torch.autograd.grad(value, list(network.parameters()), allow_unused=True) if count else None
            for value, network, _, count in steps
        ]
        self.optimiser.param_groups[0]["lr"] = lr
        for (_, network, optimiser, _), grads in zip(steps, gradients, strict=True):
            if grads is None:
                continue
            norm = torch.stack([g.square().sum() for g in grads if g is not None]).sum().sqrt()
            scale = min(1.0, (self.s.clip or float("inf")) / (float(norm) + 1e-6))
            for parameter, gradient in zip(network.parameters(), grads, strict=True):
                parameter.grad = None if gradient is None else gradient * scale
            optimiser.step()
        if self.updates % self.s.selector_training.copy_interval == 0:
            self.copied.load_state_dict(self.network.state_dict())
        self.updates += 1
        return loss.item(), selector_loss.item(), trained, multiple, exploratory


# ---- discovering ---------------------------------------------------------------------------------------------------


def with_discovered(batch, logits):
    """The definition of discovering, with all solutions from the enumerator."""
    answers = logits.argmax(-1)
    relations = None if batch.relations is None else batch.relations.numpy()
    every = solve(batch.problem, batch.query.numpy(), relations)
    taken = []
    for b, answer in enumerate(answers.tolist()):
        listed = [solution for solution, real in zip(batch.solutions[b].tolist(), batch.mask[b], strict=True) if real]
        taken.append([value + 1 for value in answer] in every.of(b).tolist() and answer not in listed)
    solutions = torch.cat([batch.solutions, answers[:, None]], 1)
    return replace(batch, solutions=solutions, mask=torch.cat([batch.mask, torch.tensor(taken)[:, None]], 1))


# ---- sparing -------------------------------------------------------------------------------------------------------


def without_settled(batch, logits, complete):
    """The definition of sparing, and the number of queries that it spares; complete lists are those of the data."""
    mask, spared = batch.mask.clone(), 0
    for b in range(len(batch)):
        answers = [step.argmax(-1).tolist() for step in logits[-8:, b]]
        listed = batch.solutions[b][batch.mask[b]].tolist()
        if not complete[b] and all(answer == answers[0] for answer in answers) and answers[0] not in listed:
            mask[b] = False
            spared += 1
    return replace(batch, mask=mask), spared


def loose_data():
    """Queries with so few rules that an untrained network finds solutions; few of them are listed."""
    problem = Problem("loose", 4, 4, 3, (Rule("edge", (0, 3), exact=False),), relation_kind="inequality")
    rng = np.random.default_rng(0)
    queries = np.zeros((60, 4), np.uint8)
    queries[::3, 1] = rng.integers(1, 4, 20)
    relations = np.where(np.arange(60)[:, None] % 2, [2, 3], [-1, -1])[:, None]
    every = solve(problem, queries, relations, seed=0)
    listed = [every.of(q)[: 1 + q % 4 % 3] for q in range(60)]
    offsets = np.cumsum([0, *map(len, listed)])
    return Dataset(problem, queries, np.concatenate(listed), offsets, every.total, relations, np.arange(60))
