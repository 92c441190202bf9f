"""Where the tests of Triton kernels run: on a GPU, or interpreted (slowly) on a CPU where TRITON_INTERPRET=1 is set."""

import os
from importlib.util import find_spec

import pytest
import torch

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = torch.device("cpu" if INTERPRETED else "cuda")
needs_kernels = pytest.mark.skipif(
    find_spec("triton") is None or not (INTERPRETED or torch.cuda.is_available()),
    reason="needs triton, and a GPU or TRITON_INTERPRET=1",
)
