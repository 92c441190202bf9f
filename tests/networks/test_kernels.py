"""Which kernels and which precision the networks run with."""

import pytest
import torch

from oneofmany.networks import nlm_for
from oneofmany.networks.kernels import (
    autocasts,
    check_precision,
    has_triton,
    precision_for,
    rrn_kernel,
    running,
    takes_triton,
    training_precision,
)

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


def test_precision_by_network_and_device():
    assert [precision_for(kind, "cuda") for kind in ("nlm", "rrn", "equivariant")] == ["float16", *["bfloat16"] * 2]
    assert {precision_for(kind, "cpu") for kind in ("nlm", "rrn", "equivariant")} == {"float32"}
    assert precision_for("rrn", "cpu", "bfloat16") == "bfloat16"
    assert precision_for("nlm", "cuda:1", "float32") == "float32"
    with pytest.raises(ValueError, match=r"precision: this network \(rrn\) runs in float32 or bfloat16, got float16"):
        precision_for("rrn", "cuda", "float16")


def test_training_takes_16_bits_on_a_gpu_only():
    assert training_precision("nlm", CPU, "float16") == training_precision("rrn", CPU, "float16") == "float32"
    assert training_precision("nlm", CUDA, "float16") == "float16"
    with pytest.raises(ValueError, match="got float16"):
        training_precision("equivariant", CUDA, "float16")


def test_the_rrn_in_float32_on_a_gpu_is_plain():
    assert rrn_kernel("cuda", "float32") == "plain"
    assert rrn_kernel("cuda", "bfloat16") == rrn_kernel("cpu", "float32") == "auto"


def test_a_cpu_takes_no_triton():
    assert not takes_triton(torch.zeros(1, dtype=torch.float16), torch.float16)


@pytest.mark.skipif(not (torch.cuda.is_available() and has_triton()), reason="needs a GPU and triton")
def test_a_gpu_takes_triton_in_16_bits():
    here = torch.zeros(1, device="cuda")
    assert takes_triton(here, torch.float16)
    assert takes_triton(here, torch.bfloat16)
    assert not takes_triton(here, torch.float32)


def test_bfloat16_is_autocast():
    here = torch.zeros(1)
    with running(CPU, "bfloat16"):
        assert autocasts(here)
        with torch.autocast("cpu", enabled=False):
            assert not autocasts(here)
    for precision in ("float32", "float16"):
        with running(CPU, precision):
            assert not torch.is_autocast_enabled("cpu")


def test_float16_must_be_built_in():
    check_precision(nlm_for("nqueens", depth=1, precision="float16"), "float16")
    for network in (nlm_for("nqueens", depth=1), object()):
        check_precision(network, "bfloat16")
        with pytest.raises(ValueError, match="precision: expected 'float32' or 'bfloat16', got 'float16'"):
            check_precision(network, "float16")
