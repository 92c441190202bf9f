"""What all tests share."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, settings

from oneofmany.problems import TASKS

torch.set_num_threads(1)
settings.register_profile(
    "oneofmany",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("oneofmany")

REFERENCE = Path(os.environ.get("ONEOFMANY_REFERENCE", Path(__file__).parents[2] / "shared" / "data"))


@pytest.fixture(autouse=True)
def only_known_tasks():
    """Forget the tasks that a test adds."""
    before = dict(TASKS)
    yield
    TASKS.clear()
    TASKS.update(before)


@pytest.fixture(scope="session")
def reference():
    """The folder with the 17-clue list, its grid classes and known counts, which are not part of the project."""

    def find(name):
        path = REFERENCE / name
        if not path.is_file():
            pytest.skip(f"{name} is not part of the project: name its folder in ONEOFMANY_REFERENCE to run this test")
        return path

    return find


@pytest.fixture(scope="session")
def sudoku17(reference):
    """The 17-clue list: uint8 [49151, 81]."""
    text = "".join(reference("sudoku17.txt").read_text().split())
    return np.frombuffer(text.encode(), np.uint8).reshape(-1, 81) - ord("0")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A headless Chromium."""
    from report.browser import Browser, find_chromium

    program = find_chromium()
    if program is None:
        pytest.skip("no Chromium is installed (Debian: apt-get install chromium): pages are not opened in one")
    window = Browser(program, tmp_path_factory.mktemp("profile"))
    yield window
    window.close()
