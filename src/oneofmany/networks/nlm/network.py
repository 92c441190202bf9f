"""NLM: the paper's prediction network for N-Queens and Futoshiki (appendix; Dong et al. 2019).

A query is encoded as predicates (``predicates``). A Neural Logic Machine of breadth 2 (``LogicMachine``) processes
them, and a linear readout of its unary predicates gives the logits. ``layers`` explains the computation.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from oneofmany.networks.kernels import Precision
from oneofmany.networks.nlm.operators import logic_layers
from oneofmany.networks.nlm.packing import Spec
from oneofmany.networks.nlm.predicates import Predicates, Relations, task_of
from oneofmany.networks.protocol import Readout, TaskNetwork
from oneofmany.problems import Batch, Problem


class NLM(TaskNetwork):
    """Predict each choice separately: one logit per (variable, value), whose sigmoid is its probability.

    The same weights work for every size of the task. Parameters with the paper's depth and width: 312,242 (N-Queens),
    313,684 (Futoshiki); with ``learned_nullary=16``, as in the authors' older code, 319,938 and 321,380.

    Args:
        predicates: the encoding of a query.
        depth: number of layers.
        width: new predicates per layer and arity.
        residual: whether a layer sees the inputs and the outputs of all earlier layers, or only the previous layer.
        learned_nullary: number of learned inputs z, which enter as nullary predicates sigmoid(z) for all queries.
        precision: of the buffers between layers (see ``LogicMachine``).
    """

    readout: Readout = "threshold"

    def __init__(
        self,
        predicates: Predicates,
        *,
        depth: int = 30,
        width: int = 8,
        residual: bool = True,
        learned_nullary: int = 0,
        precision: Precision = "float32",
    ) -> None:
        super().__init__()
        self.predicates = predicates
        self.machine = LogicMachine(
            learned_nullary,
            1 + predicates.flags,
            predicates.binary,
            depth=depth,
            width=width,
            residual=residual,
            precision=precision,
        )
        self.z = nn.Parameter(torch.randn(learned_nullary)) if learned_nullary else None

    @property
    def precision(self) -> Precision:
        """Precision of the buffers between layers."""
        return self.machine.precision

    def accepts(self, problem: Problem, relations: np.ndarray | None = None) -> str | None:
        """Return None for problems of the network's task whose relations the two flags can encode, else the reason."""
        task = self.predicates.task
        if problem.task != task:
            asked = f"{problem.task} {problem.size}"
            return f"the network was trained on {task} and cannot answer {asked}: use a network for {problem.task}"
        return self.predicates.accepts(problem, relations)

    def forward(self, batch: Batch) -> Tensor:
        """Return logits [B, R, V]."""
        weight = self.machine.readout.weight
        self.predicates.check(batch, weight.device)
        unary = self.predicates.prior(batch, weight.dtype)
        if self.predicates.flags:
            unary = torch.cat([unary, self.predicates.flag_inputs(batch, weight.dtype)], -1)
        binary = self.predicates.static(batch.problem, weight.device, weight.dtype).binary
        nullary = None if self.z is None else self.z.sigmoid().expand(len(unary), -1)
        logits = self.machine(unary, binary, nullary)
        return logits.view(-1, batch.problem.variables, batch.problem.values)


def nlm_for(
    task: str | Problem,
    *,
    depth: int = 30,
    width: int = 8,
    residual: bool = True,
    learned_nullary: int = 0,
    precision: Precision = "float32",
    relations: Relations = "horizontal",
) -> NLM:
    """Build the NLM of a task, given by name or by one of its problems (the size does not matter).

    ``relations`` sets which relations of a Futoshiki the two flags may encode (``predicates.Relations``); the other
    arguments are those of ``NLM``.
    """
    return NLM(
        Predicates(task_of(task), relations),
        depth=depth,
        width=width,
        residual=residual,
        learned_nullary=learned_nullary,
        precision=precision,
    )


class LogicLayer(nn.Module):
    """The linear maps of one layer, with inputs concatenated as in the paper.

    ``nullary`` sees [nullary, max and min of unary]; ``unary`` sees [nullary, unary, max and min of binary]; ``binary``
    sees [unary of i, binary of ij, unary of j, binary of ji]. Max and min of a predicate are adjacent.
    """

    def __init__(self, spec: Spec, layer: int) -> None:
        super().__init__()
        self.nullary, self.unary, self.binary = (nn.Linear(fan, spec.width) for fan in spec.fan_in(layer))


class LogicMachine(nn.Module):
    """Predicates of arity 0 to 2 in; one number per object, or a single number, out.

    In each layer and arity, one linear map and a sigmoid compute ``width`` new predicates from the predicates of the
    same arity, of the arity below (expanded) and of the arity above (max and min over the other objects).

    Some maps do not reach the output, so their gradient is zero: with a unary readout, the nullary and binary maps of
    the last layer; with a nullary readout, the unary and binary maps of the last layer and the binary map of the one
    before.

    Args:
        nullary: nullary inputs.
        unary: unary inputs.
        binary: binary inputs.
        depth: number of layers.
        width: new predicates per layer and arity.
        residual: whether a layer sees the inputs and the outputs of all earlier layers, or only the previous layer.
        readout: a linear map on the unary predicates (one number per object) or on the nullary ones (one number).
        precision: of the buffers between layers. float32 follows the parameters (float64 after ``.double()``). Outputs
            of layers are centred, so float16 is more precise than bfloat16; gradients in float16 are scaled to its
            range.
    """

    def __init__(
        self,
        nullary: int,
        unary: int,
        binary: int,
        *,
        depth: int = 30,
        width: int = 8,
        residual: bool = True,
        readout: Literal["unary", "nullary"] = "unary",
        precision: Precision = "float32",
    ) -> None:
        super().__init__()
        for name, value, least in (
            ("nullary", nullary, 0),
            ("unary", unary, 1),
            ("binary", binary, 0),
            ("depth", depth, 1),
            ("width", width, 1),
        ):
            if value < least:
                raise ValueError(f"{name}: expected at least {least}, got {value}")
        if readout not in ("unary", "nullary"):
            raise ValueError(f"readout: expected 'unary' or 'nullary', got {readout!r}")
        if precision not in ("float32", "bfloat16", "float16"):
            raise ValueError(f"precision: expected 'float32', 'bfloat16' or 'float16', got {precision!r}")
        self.spec = Spec(nullary, unary, binary, depth, width, residual, readout == "unary")
        self.precision: Precision = precision
        self.layers = nn.ModuleList(LogicLayer(self.spec, layer) for layer in range(depth))
        self.readout = nn.Linear(self.spec.readout, 1)

    def forward(self, unary: Tensor, binary: Tensor, nullary: Tensor | None = None) -> Tensor:
        """Return logits [B, n], or [B] from a nullary readout.

        Args:
            unary: [B, n, unary inputs].
            binary: [n, n, binary inputs], the same for every query.
            nullary: [B, nullary inputs]; None if there are none.
        """
        flat = torch.cat([parameter.flatten() for parameter in self.parameters()])
        if flat.dtype not in (torch.float32, torch.float64):
            raise ValueError(f"parameters: expected float32 or float64 (precision= sets the rest), got {flat.dtype}")
        self._check(unary, binary, nullary, flat)
        if nullary is None:
            nullary = unary.new_zeros(len(unary), 0)
        dtype = flat.dtype if self.precision == "float32" else getattr(torch, self.precision)
        return logic_layers(self.spec, flat, unary.movedim(2, 0), nullary.mT, binary.movedim(2, 0), dtype)

    def _check(self, unary: Tensor, binary: Tensor, nullary: Tensor | None, flat: Tensor) -> None:
        spec = self.spec
        if unary.ndim != 3 or unary.shape[2] != spec.unary or not unary.shape[0] or not unary.shape[1]:
            raise ValueError(f"unary: expected shape [B, n, {spec.unary}] with B and n > 0, got {list(unary.shape)}")
        B, n = unary.shape[:2]
        if list(binary.shape) != [n, n, spec.binary]:
            raise ValueError(f"binary: expected shape [{n}, {n}, {spec.binary}], got {list(binary.shape)}")
        if list(nullary.shape if nullary is not None else (B, 0)) != [B, spec.nullary]:
            shape = None if nullary is None else list(nullary.shape)
            raise ValueError(f"nullary: expected shape [{B}, {spec.nullary}], got {shape}")
        if n >= 2**15:
            raise ValueError(f"unary: expected fewer than {2**15} objects, got {n}")
        for name, tensor in (("unary", unary), ("binary", binary), ("nullary", nullary)):
            if tensor is not None and (tensor.dtype, tensor.device) != (flat.dtype, flat.device):
                raise ValueError(
                    f"{name}: expected {flat.dtype} on {flat.device}, as the parameters, "
                    f"got {tensor.dtype} on {tensor.device}"
                )
