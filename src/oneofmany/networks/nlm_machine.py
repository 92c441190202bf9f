"""A Neural Logic Machine (Dong et al. 2019) of breadth 2 on any predicates: parameters and call."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from oneofmany.networks.nlm_operators import logic_layers
from oneofmany.networks.nlm_packing import Spec

Readout = Literal["unary", "nullary"]
Precision = Literal["float32", "bfloat16", "float16"]
"""Of what is kept between the layers. float32 follows the parameters (float64 after ``.double()``); the 16-bit ones
keep parameters, sums and gradients of parameters in float32. Outputs of layers are kept centred, so float16, which has
more digits, is the better of the two; gradients in float16 are scaled to its range."""


class LogicLayer(nn.Module):
    """The linear maps of one layer, as the paper concatenates their inputs.

    ``nullary`` sees [nullary, max and min of unary]; ``unary`` sees [nullary, unary, max and min of binary]; ``binary``
    sees [unary of i, binary of ij, unary of j, binary of ji]. Max and min stand side by side for every predicate.
    """

    def __init__(self, spec: Spec, layer: int) -> None:
        super().__init__()
        self.nullary, self.unary, self.binary = (nn.Linear(fan, spec.width) for fan in spec.fan_in(layer))


class LogicMachine(nn.Module):
    """Predicates of arity 0 to 2 in, one number per object (or one in all) out.

    In every layer and arity: what the arity sees of itself, of the one below (expanded) and of the one above (max and
    min over the other objects), through one linear map and a sigmoid to ``width`` new predicates.

    With a readout on the unary predicates the last layer's nullary and binary maps reach no output, and with one on the
    nullary predicates neither do its unary and binary maps and the last but one's binary map: their gradient is zero.

    Args:
        nullary: nullary inputs.
        unary: unary inputs.
        binary: binary inputs.
        depth: layers.
        width: predicates that every layer makes for each arity.
        residual: every layer sees the inputs and what all earlier layers made (concatenated), or only the layer before.
        readout: a linear map on the unary predicates (one number per object) or on the nullary ones (one in all).
        precision: see ``Precision``.
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
        readout: Readout = "unary",
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
        self.precision = precision
        self.layers = nn.ModuleList(LogicLayer(self.spec, layer) for layer in range(depth))
        self.readout = nn.Linear(self.spec.readout, 1)

    def forward(self, unary: Tensor, binary: Tensor, nullary: Tensor | None = None) -> Tensor:
        """Logits [B, n], or [B] from a nullary readout.

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
                    f"{name}: expected {flat.dtype} on {flat.device}, as the parameters are, "
                    f"got {tensor.dtype} on {tensor.device}"
                )
