"""The recurrent relational network for Sudoku (Palm et al. 2018, arXiv:1711.08028), as the paper's authors used it.

The defaults are those of the DGL example that the paper builds on, with message dropout 0.1. Cells are nodes. Row,
column and box edges are added separately, so a cell in the same line *and* box sends twice (1,944 edges on 9 x 9). In
each step the message MLP acts on [sender, receiver], messages are dropped element-wise and summed at the receiver, an
LSTM cell without bias takes [x, sum], and a linear layer on its hidden state gives logits over V + 1 classes. Class 0
("blank") is never a target. The LSTM starts at zero; the first messages are computed from x.

Exact rewrites: the first message layer acts once per cell (81 rows instead of 1,944), as does the last one without
dropout; a double edge is computed once; the part of x in the LSTM's gates is computed once for all steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from oneofmany.networks.kernels import Kernel, has_triton, takes_triton
from oneofmany.networks.protocol import TaskNetwork
from oneofmany.networks.rrn.dropout import kept_counts, scale_of, step_keys, threshold_of
from oneofmany.networks.rrn.graph import returning, sudoku_slots
from oneofmany.networks.rrn.operators import cached_messages
from oneofmany.networks.rrn.plain import Graph, Layer, plain_messages
from oneofmany.problems import Batch, Problem

Arrive = Callable[[Tensor, Tensor | None], Tensor]
"""Messages summed at each cell [B, R, H] from states [B, R, H] and a step's dropout keys (None without dropout)."""


def _mlp(inputs: int, width: int) -> nn.Sequential:
    """Four linear layers with ReLU between them."""
    layers: list[nn.Module] = [nn.Linear(inputs, width)]
    for _ in range(3):
        layers += [nn.ReLU(), nn.Linear(width, width)]
    return nn.Sequential(*layers)


def _linears(mlp: nn.Module) -> list[nn.Linear]:
    return [layer for layer in mlp.children() if isinstance(layer, nn.Linear)]


class RRN(TaskNetwork):
    """Recurrent relational network: batch in, logits [T, B, R, V + 1] of all steps out.

    Args:
        problem: a Sudoku of any box shape; rows and columns have embeddings, so the size is fixed.
        steps: default number of steps.
        dropout: probability of dropping a component of a message in training.
        distinct: whether each pair of cells sends once (1,620 edges on 9 x 9), as in Palm's network.
        latent: number of learned inputs, shared by all cells, appended to the embeddings; 16 in the authors' working
            repository (192,666 parameters), 0 in the published one (191,114).
        post_mlp: whether [x, sum] passes through four linear layers before the LSTM, as in Palm's network.
        lstm_bias: whether the LSTM has a bias, as in Palm's network.
        width: of the hidden state and of all hidden layers.
        embedding: width of the embeddings of digits, rows and columns.
        kernel: ``plain`` is PyTorch only, which autograd and torch.compile fully support; ``triton`` uses fused CUDA
            kernels that multiply in bfloat16, accumulate in float32 and store the LSTM's state in float32 (width 96
            only); ``auto`` uses them if possible.
    """

    value_offset: int = 1

    neighbours: Tensor
    returning: Tensor
    slots: Tensor

    def __init__(
        self,
        problem: Problem,
        *,
        steps: int = 32,
        dropout: float = 0.1,
        distinct: bool = False,
        latent: int = 0,
        post_mlp: bool = False,
        lstm_bias: bool = False,
        width: int = 96,
        embedding: int = 16,
        kernel: Kernel = "auto",
    ) -> None:
        super().__init__()
        if problem.task != "sudoku":
            raise ValueError(f"problem: RRN needs a Sudoku, got {problem}")
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout: expected a probability of at least 0 and below 1, got {dropout}")
        if width < 2 or width % 2:
            raise ValueError(f"width: expected an even number of at least 2, got {width}")
        if kernel not in ("auto", "plain", "triton"):
            raise ValueError(f"kernel: expected auto, plain or triton, got {kernel!r}")
        self._supported = width == 96 and not post_mlp
        if kernel == "triton" and not (self._supported and has_triton() and torch.cuda.is_available()):
            raise ValueError(
                f"kernel: triton needs CUDA, the triton package, width 96 and no post_mlp, got width {width} and "
                f"post_mlp {post_mlp}"
            )
        self.problem, self.steps, self.dropout, self.kernel = problem, _at_least_1(steps), dropout, kernel
        n, slots = problem.size, sudoku_slots(problem.options["box_rows"], problem.options["box_columns"])
        self.doubles = 0 if distinct else slots.doubles
        self.register_buffer("neighbours", torch.from_numpy(slots.neighbours), persistent=False)
        self.register_buffer("returning", torch.from_numpy(returning(slots.neighbours)), persistent=False)
        self.register_buffer("slots", torch.from_numpy(slots.neighbours.T.copy()).int(), persistent=False)

        self.digit = nn.Embedding(n + 1, embedding)
        self.row = nn.Embedding(n, embedding)
        self.column = nn.Embedding(n, embedding)
        self.latent = nn.Parameter(torch.randn(latent)) if latent else None
        self.input = _mlp(3 * embedding + latent, width)
        self.message = _mlp(2 * width, width)
        self.post = _mlp(2 * width, width) if post_mlp else None
        self.lstm = nn.LSTMCell(width if post_mlp else 2 * width, width, bias=lstm_bias)
        self.output = nn.Linear(width, n + 1)

    @classmethod
    def palm(cls, problem: Problem, **settings: Any) -> RRN:
        """Palm's network: distinct edges, no dropout, four layers before an LSTM with bias.

        Widths, steps, edges and the order of the parts follow Palm's paper and published code. Initialisation and the
        forget gate's bias are PyTorch's defaults, not TensorFlow's. The published code multiplies the row and column
        embeddings by 0; here they are used, as the paper describes.
        """
        return cls(problem, **{"dropout": 0.0, "distinct": True, "post_mlp": True, "lstm_bias": True, **settings})

    def accepts(self, problem: Problem, relations: np.ndarray | None = None) -> str | None:
        """Return None for the problem that the network was built for, else the reason."""
        trained, asked = (f"{p.task} {p.size}" for p in (self.problem, problem))
        if problem.task != self.problem.task:
            return f"the network was trained on {trained} and cannot answer {asked}: use a network for {problem.task}"
        if not problem.same_as(self.problem):
            return f"the network is bound to {trained}, the size it was trained on, and cannot answer {asked}"
        return None

    def forward(
        self,
        batch: Batch,
        steps: int | None = None,
        *,
        seed: Tensor | None = None,
        row_offset: int = 0,
        last_only: bool = False,
    ) -> Tensor:
        """Return logits [T, B, R, V + 1], or [B, R, V + 1] of the last step.

        Args:
            batch: queries of the network's problem.
            steps: T; the network's own number by default.
            seed: int64 [1] on the batch's device; dropout in training is a function of it (see ``dropout``). By default
                it is drawn from PyTorch's generator of that device. Not used in evaluation.
            row_offset: index of the batch's first row in the whole batch; with it, dropout in data-parallel training is
                the same as for the whole batch.
            last_only: return only the last step.
        """
        steps = self.steps if steps is None else _at_least_1(steps)
        self._check(batch, seed)
        dropping = self.training and self.dropout > 0
        keys: list[Tensor | None] = [None] * steps
        if dropping:
            if seed is None:
                seed = torch.randint(2**62, (1,), device=batch.query.device)
            keys = list(step_keys(seed, steps).unbind())

        if not self._uses_triton():
            outputs = self._recur(self.input(self._embed(batch.query)), keys, row_offset)
            return self.output(outputs[-1] if last_only else torch.stack(outputs))
        with torch.autocast("cuda", torch.bfloat16, cache_enabled=False):
            x = self.input(self._embed(batch.query))
            hidden = self._run(x, keys, row_offset, not last_only)
            logits = self.output(hidden[-1] if last_only else hidden)
        return logits.float()

    def _recur(self, x: Tensor, keys: list[Tensor | None], row_offset: int) -> list[Tensor]:
        """The hidden states [B, R, H] of all steps."""
        width = self.output.in_features
        w_in, w_hidden = self.lstm.weight_ih, self.lstm.weight_hh
        bias = self._lstm_bias()
        after = _linears(self.post) if self.post is not None else []
        # The first layer on [x, sum]; the part of x is the same in every step.
        w, b = (after[0].weight, after[0].bias) if after else (w_in, bias)
        of_x = F.linear(x, w[:, :width], b)
        arrive = self._plain_messages(row_offset)
        h, hidden, outputs = x, None, []
        c = torch.zeros_like(x)
        for key in keys:
            gates = _add_linear(of_x, arrive(h, key), w[:, width:])
            for layer in after[1:]:
                gates = layer(gates.relu())
            if after:
                gates = F.linear(gates, w_in, bias)
            if hidden is not None:
                gates = _add_linear(gates, hidden, w_hidden)
            i, f, g, o = gates.chunk(4, -1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = hidden = o.sigmoid() * c.tanh()
            outputs.append(hidden)
        return outputs

    def _run(self, x: Tensor, keys: list[Tensor | None], row_offset: int, every_step: bool) -> Tensor:
        """The same with kernels: [T, B, R, H]; T = 1, the last step only, if not every_step."""
        from oneofmany.networks.rrn import triton

        (halves, bias), *layers = self._message_layers()
        weights, biases = torch.stack([layer.weight for layer in layers]), torch.stack([layer.bias for layer in layers])
        of_x, of_sums = self.lstm.weight_ih.chunk(2, 1)
        gate_bias, drop = self._lstm_bias(), (threshold_of(self.dropout), scale_of(self.dropout))
        if keys[0] is None:  # merge the last message layer, which acts on the sum, into the gates
            edges, drop = len(self.slots) + self.doubles, (0, 1.0)
            with torch.autocast("cuda", enabled=False):
                of_last = of_sums @ (edges * biases[2])
                gate_bias = of_last if gate_bias is None else gate_bias + of_last
                of_sums = of_sums @ weights[2]
        into = torch.cat((of_sums, self.lstm.weight_hh), 1)
        messages = triton.Messages(self.slots, self.doubles, *drop, row_offset)
        gates = F.linear(x, of_x, gate_bias)
        return triton.run_steps(x, gates, into, halves, bias, weights, biases, messages, keys, every_step)

    def _lstm_bias(self) -> Tensor | None:
        return self.lstm.bias_ih + self.lstm.bias_hh if self.lstm.bias else None

    def _plain_messages(self, row_offset: int) -> Arrive:
        (halves, bias), *layers = self._message_layers()
        (R, D), width = self.neighbours.shape, self.output.in_features
        graph = Graph(self.neighbours, self.returning, self.doubles)
        last = layers[2]

        def arrive(h: Tensor, key: Tensor | None) -> Tensor:
            p, q = F.linear(h, halves, bias).chunk(2, -1)
            counts = None
            if key is not None:
                shape = (len(h), R, D, width)
                counts = kept_counts(key, threshold_of(self.dropout), row_offset, shape, self.doubles)
            # The faster version serves training on CPUs, with one dtype.
            fits = h.device.type == "cpu" and p.dtype == halves.dtype and p.requires_grad
            form = cached_messages if self.kernel == "auto" and fits else plain_messages
            sums = form(p, q, layers, graph, counts)
            if key is not None:
                return sums * scale_of(self.dropout)
            return F.linear(sums, last.weight, last.bias * (D + self.doubles))

        return arrive

    def _message_layers(self) -> list[Layer]:
        """The message MLP, with the sender's and the receiver's halves of its first layer stacked."""
        first, *others = _linears(self.message)
        halves = torch.cat(first.weight.split(self.output.in_features, 1))
        bias = torch.cat((torch.zeros_like(first.bias), first.bias))
        return [Layer(halves, bias), *(Layer(layer.weight, layer.bias) for layer in others)]

    def _embed(self, query: Tensor) -> Tensor:
        """Embeddings [B, R, inputs of the input MLP]."""
        n = self.problem.size
        parts = [
            self.digit(query),
            self.row.weight.repeat_interleave(n, 0).expand(len(query), -1, -1),
            self.column.weight.repeat(n, 1).expand(len(query), -1, -1),
        ]
        if self.latent is not None:
            parts.append(self.latent.expand(len(query), n * n, -1))
        return torch.cat(parts, -1)

    def _uses_triton(self) -> bool:
        return self.kernel != "plain" and self._supported and takes_triton(self.output.weight, torch.bfloat16)

    def _check(self, batch: Batch, seed: Tensor | None) -> None:
        ours, theirs = self.problem, batch.problem
        if theirs is not ours and (theirs.task, theirs.size, theirs.options) != (ours.task, ours.size, ours.options):
            raise ValueError(f"batch: this network is for {ours}, got {theirs}")
        query, weight = batch.query, self.output.weight
        if query.dtype != torch.int64:
            raise ValueError(f"query: expected int64, got {query.dtype}")
        if query.ndim != 2 or query.shape[1] != ours.variables:
            raise ValueError(f"query: expected shape [B, {ours.variables}], got {list(query.shape)}")
        if query.device != weight.device:
            raise ValueError(f"query: expected the network's device {weight.device}, got {query.device}")
        if seed is not None and (seed.dtype != torch.int64 or seed.shape != (1,) or seed.device != weight.device):
            raise ValueError(
                f"seed: expected int64 [1] on {weight.device}, got {seed.dtype} {list(seed.shape)} on {seed.device}"
            )


def _add_linear(to: Tensor, x: Tensor, weight: Tensor) -> Tensor:
    """to + x W^T in one operation, [B, R, out]."""
    return torch.addmm(to.flatten(0, 1), x.flatten(0, 1), weight.t()).view_as(to)


def _at_least_1(steps: int) -> int:
    if steps < 1:
        raise ValueError(f"steps: expected at least 1, got {steps}")
    return steps
