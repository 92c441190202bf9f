import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread():
    """The tensors here are tiny: more threads only get in each other's way."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
