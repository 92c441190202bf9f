"""Functions shared by the Triton kernels of several networks. Imports triton: import it only on a CUDA machine."""

# pyright: reportMissingImports=false
from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def tanh(x):
    """The hyperbolic tangent, which Triton's language lacks."""
    return 2 * tl.sigmoid(2 * x) - 1
