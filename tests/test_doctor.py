"""``oneofmany doctor`` in an installation with missing parts."""

import errno
import tempfile
from contextlib import ExitStack
from importlib import metadata
from pathlib import Path

import numba
import pytest

from oneofmany.cli import run
from oneofmany.doctor import _numba_cache, examine, works


def test_what_is_missing_is_named(capsys, monkeypatch):
    installed = metadata.version

    def version(package):
        if package in ("jinja2", "scipy", "triton"):
            raise metadata.PackageNotFoundError(package)
        return installed(package)

    monkeypatch.setattr("oneofmany.doctor.metadata.version", version)
    assert run(["doctor"]) == 1  # scipy is needed, jinja2 is not
    rows = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    lines = {name: text.strip() for name, text in rows}
    assert lines["scipy"] == "not installed, but needed"
    assert lines["jinja2"] == "not installed; optional, for the HTML report: pip install 'oneofmany[report]'"
    assert lines["matplotlib"] == f"{installed('matplotlib')}; optional, for the figures of the report"
    assert lines["triton"].startswith("not installed; optional, for kernels on CUDA")
    monkeypatch.setattr("oneofmany.doctor.NEEDED", ("torch",))
    assert run(["doctor"]) == 0


def test_a_cache_that_numba_cannot_write(monkeypatch):
    """Numba looks for a folder by writing a file there; without one it refuses to compile."""
    write = tempfile.TemporaryFile

    def refuse(*, dir):
        if not (numba.config.CACHE_DIR and Path(dir).is_relative_to(numba.config.CACHE_DIR)):
            raise PermissionError(errno.EACCES, "Permission denied")
        return write(dir=dir)

    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    facts = examine()
    assert not works(facts)
    assert "numba cannot cache compiled code" in facts["numba_cache"]["error"]
    assert "NUMBA_CACHE_DIR" in facts["numba_cache"]["error"]
    assert all(one["bundled"] for one in facts["weights"].values())  # the weights are not reported as broken
    # Later imports compile into a temporary folder, which is removed in the end.
    with ExitStack() as afterwards:
        with pytest.raises(RuntimeError, match="cannot cache"):
            _numba_cache(afterwards)
        folder = Path(numba.config.CACHE_DIR)
        assert folder.is_dir()
        assert Path(numba.njit(cache=True)(works).stats.cache_path).is_relative_to(folder)
    assert not folder.exists()
    assert numba.config.CACHE_DIR == ""
