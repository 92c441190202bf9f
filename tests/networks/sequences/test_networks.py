"""Networks for sequences: losses against brute force, padding, decoding, the selector."""

from itertools import product

import pytest
import torch

from oneofmany.data import import_sequences
from oneofmany.data.batches import SequencesOnDevice
from oneofmany.networks.building import NetworkSettings, build_network, build_selector
from oneofmany.networks.sequences import CTCNetwork, Seq2SeqNetwork, TokenSelector
from oneofmany.networks.sequences.plain import aligned
from oneofmany.networks.settings import SelectorSettings
from oneofmany.objectives import CTCNLL, SequenceNLL
from oneofmany.problems import SequenceBatch, SequenceProblem, nqueens

SMALL = {"width": 16, "layers": 1, "heads": 2}
RECORDS = [
    {"input": "ab", "output": "xy"},
    {"input": "ab", "output": "y"},
    {"input": "cab", "output": "xyx"},
    {"input": "b", "output": "xx"},
]


@pytest.fixture(scope="module")
def data():
    return import_sequences(RECORDS)[0]


@pytest.fixture
def batch(data):
    return SequencesOnDevice(data).batch(torch.arange(3))


def one(data, query) -> SequenceBatch:
    return SequencesOnDevice(data).batch(torch.tensor([query]))


@pytest.mark.parametrize("kind", [Seq2SeqNetwork, CTCNetwork])
def test_padding_changes_nothing(data, batch, kind):
    torch.manual_seed(0)
    network = kind(data.problem, **SMALL).eval()
    tokens = network.token_log_likelihoods(network(batch), batch)
    assert tokens.shape == network.targets(batch).shape
    for query in range(3):
        alone = one(data, query)
        own = network.token_log_likelihoods(network(alone), alone)
        for k in range(int(alone.mask.sum())):
            length = int((network.targets(alone)[0, k] != -100).sum())
            assert torch.allclose(tokens[query, k, :length], own[0, k, :length], atol=1e-5)
            assert (tokens[query, k, length:] == 0).all()


def test_the_decoder_is_a_distribution_over_answers(data):
    """The likelihoods of all answers of at most two tokens, and of all longer beginnings, sum to one."""
    torch.manual_seed(0)
    network = Seq2SeqNetwork(data.problem, **SMALL).eval()
    query = one(data, 0)
    short = [list(answer) for n in range(3) for answer in product((1, 2), repeat=n)]
    solutions = torch.full((1, len(short), 2), -100)
    for place, answer in enumerate(short):
        solutions[0, place, : len(answer)] = torch.tensor(answer)
    many = SequenceBatch(
        query.query, query.lengths, solutions, torch.ones(1, len(short), dtype=torch.bool), data.problem
    )
    found = network(many)
    whole = (-SequenceNLL()(found, network.targets(many))).exp()
    begun = found[0, 3:, :2].sum(-1).exp()  # the four answers of two tokens, without their end
    longer = begun - whole[0, 3:]
    assert torch.allclose(whole.sum() + longer.sum(), torch.tensor(1.0), atol=1e-5)


def test_greedy_decoding_follows_the_most_likely_tokens(data, batch):
    torch.manual_seed(1)
    network = Seq2SeqNetwork(data.problem, **SMALL).eval()
    answers, confidence = network.answers(batch)
    for query in range(3):
        found = [t for t in answers[query].tolist() if t]
        own = one(data, query)
        solutions = torch.tensor([[found or [-100]]])
        alone = SequenceBatch(own.query, own.lengths, solutions, torch.ones(1, 1, dtype=torch.bool), data.problem)
        if len(found) < answers.shape[1]:  # it has ended by itself
            assert torch.allclose(network(alone).sum(), confidence[query], atol=1e-4)


def literal_alignments(log_probabilities, answer):
    """All paths of CTC for one answer: the log-likelihood, and the expected log-probability of every token's frames."""
    frames = len(log_probabilities)
    total, parts = [], []
    for path in product(range(log_probabilities.shape[1]), repeat=frames):
        squeezed = [t for place, t in enumerate(path) if t and (place == 0 or path[place - 1] != t)]
        if squeezed != answer:
            continue
        values = [log_probabilities[f, t].item() for f, t in enumerate(path)]
        per_token, token = [0.0] * len(answer), -1
        for place, t in enumerate(path):
            token += bool(t) and (place == 0 or path[place - 1] != t)
            per_token[max(token, 0)] += values[place]
        total.append(sum(values))
        parts.append(per_token)
    weights = torch.tensor(total).softmax(0)
    return torch.tensor(total).logsumexp(0), (weights[:, None] * torch.tensor(parts)).sum(0)


@pytest.mark.parametrize("answer", [[1], [1, 2], [2, 2], [1, 2, 1]])
def test_alignments_by_brute_force(answer):
    torch.manual_seed(len(answer))
    log_probabilities = torch.randn(1, 5, 3).log_softmax(-1)
    answers = torch.full((1, 2, 4), -100)
    answers[0, 0, : len(answer)] = torch.tensor(answer)
    answers[0, 1, 0] = 2
    found = aligned(log_probabilities, torch.tensor([4]), answers)
    total, expected = literal_alignments(log_probabilities[0, :4], answer)
    assert torch.allclose(found[0, 0, : len(answer)], expected, atol=1e-4)
    assert (found[0, 0, len(answer) :] == 0).all()
    loss = CTCNLL()(log_probabilities, answers, lengths=torch.tensor([4]))
    assert torch.allclose(-loss[0, 0], total, atol=1e-4)


def test_ctc_decoding(data, batch):
    network = CTCNetwork(data.problem, frames=2, **SMALL).eval()
    paths = torch.tensor([[1, 1, 0, 1, 2, 2], [0, 2, 2, 0, 0, 2], [0, 0, 1, 1, 1, 1]])

    class Fixed(torch.nn.Module):
        def forward(self, x):
            return torch.nn.functional.one_hot(paths, 3).float() * 9

    network.classes = Fixed()  # pyright: ignore
    answers, _ = network.answers(batch)
    assert batch.lengths.tolist() == [2, 3, 1]
    assert [[t for t in row if t] for row in answers.tolist()] == [[1, 1], [2, 2], []]


def test_the_selector_sees_the_likelihoods_and_not_the_padding(data, batch):
    torch.manual_seed(0)
    network, selector = Seq2SeqNetwork(data.problem, **SMALL).eval(), TokenSelector(data.problem, 8)
    tokens, targets = network(batch).detach(), network.targets(batch)
    scores = selector(tokens, batch, targets)
    assert scores.shape == batch.mask.shape
    disturbed = tokens + (targets == -100) * 7.0
    assert torch.allclose(selector(disturbed, batch, targets)[batch.mask], scores[batch.mask])
    assert not torch.allclose(selector(tokens - 1, batch, targets)[batch.mask], scores[batch.mask], atol=1e-4)


def test_kinds_and_problems(data):
    with pytest.raises(ValueError, match="expected seq2seq or ctc for sequences, got 'transformer'"):
        build_network(NetworkSettings("transformer"), data.problem)
    with pytest.raises(ValueError, match="expected a network over variables"):
        build_network(NetworkSettings("ctc"), nqueens(6))
    with pytest.raises(ValueError, match="tokens is for sequences"):
        build_selector(SelectorSettings("equivariant"), NetworkSettings("ctc"), data.problem)
    assert CTCNetwork(data.problem, **SMALL).accepts(nqueens(6)) is not None
    assert isinstance(data.problem, SequenceProblem)
