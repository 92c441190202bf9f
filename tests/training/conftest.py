import pytest

from small_runs import write_data


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """A folder with small data of two tasks."""
    return write_data(tmp_path_factory.mktemp("data"))
