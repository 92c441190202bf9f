import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread():
    """The tensors are tiny: more threads only slow each other down."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
