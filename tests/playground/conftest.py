"""The page and its modules under Node and in a browser."""

import pytest

from oneofmany.playground import write_playground

from .engines import InWorker, Node


@pytest.fixture(scope="session")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("playground") / "playground.html"
    write_playground(path)
    return path


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path)


@pytest.fixture(params=["node", "chromium"])
def engine(request, tmp_path):
    """The page's modules under Node, and in a worker of the page in Chromium."""
    if request.param == "node":
        return Node(tmp_path)
    return InWorker(request.getfixturevalue("browser"), request.getfixturevalue("page"))
