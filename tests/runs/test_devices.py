import pytest
import torch

from oneofmany.runs.devices import device_named, usable_device


@pytest.fixture
def gpus(monkeypatch):
    def make(there, usable):
        monkeypatch.setattr(torch.cuda, "device_count", lambda: there)
        monkeypatch.setattr(torch.cuda, "is_available", lambda: usable)

    return make


def test_auto_takes_the_gpu_where_there_is_one(gpus):
    gpus(1, True)
    assert device_named("auto").type == "cuda"
    assert device_named("cuda:0") == torch.device("cuda", 0)
    assert device_named("cpu").type == "cpu"
    gpus(0, False)
    assert device_named("auto").type == "cpu"


def test_a_gpu_that_does_not_work_is_not_passed_over(gpus):
    gpus(1, False)
    with pytest.raises(ValueError, match=r"device: this machine has a GPU, but PyTorch cannot use it.*--device cpu"):
        device_named("auto")
    assert device_named("cpu").type == "cpu"


@pytest.mark.parametrize("name", ["abacus", "meta", "", "cpu:x"])
def test_other_names(name):
    with pytest.raises(ValueError, match=f"device: expected auto, cpu, cuda or cuda:N, got '{name}'"):
        device_named(name)


def test_no_gpu_where_there_is_none(gpus):
    gpus(0, False)
    with pytest.raises(ValueError, match="device: 'cuda' was asked for, but PyTorch finds no GPU here"):
        device_named("cuda")


def test_a_device_that_is_tried():
    assert usable_device("cpu") == torch.device("cpu")
    for name in ("abacus", "meta", "", "auto"):
        with pytest.raises(ValueError, match=f"device: expected cpu, cuda or mps, got '{name}'"):
            usable_device(name)
    with pytest.raises(ValueError, match=r"device: cuda:99 cannot be used here \(.+\)$"):
        usable_device("cuda:99")
