"""Functions that the Triton kernels of several networks need. It imports triton: import it only where CUDA is."""

# pyright: reportMissingImports=false
from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def tanh(x):
    """The hyperbolic tangent, which Triton's language lacks."""
    return 2 * tl.sigmoid(2 * x) - 1
