"""Where the tests of Triton kernels run: on a GPU, or interpreted (slowly) on a CPU where TRITON_INTERPRET=1 is set."""

import os

import pytest
import torch

from oneofmany.networks.kernels import has_triton

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = torch.device("cpu" if INTERPRETED else "cuda")
needs_kernels = pytest.mark.skipif(
    not has_triton() or not (INTERPRETED or torch.cuda.is_available()),
    reason="needs triton, and a GPU or TRITON_INTERPRET=1",
)
