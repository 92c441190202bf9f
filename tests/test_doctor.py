"""``oneofmany doctor`` in an installation with missing parts."""

import errno
import tempfile
from importlib import metadata
from pathlib import Path

import numba
import pytest

from oneofmany.cli import run
from oneofmany.doctor import examine, works


def test_what_is_missing_is_named(capsys, monkeypatch):
    installed = metadata.version

    def version(package):
        if package in ("jinja2", "scipy", "triton"):
            raise metadata.PackageNotFoundError(package)
        return installed(package)

    monkeypatch.setattr("oneofmany.doctor.metadata.version", version)
    assert run(["doctor"]) == 1  # scipy is needed, jinja2 is not
    rows = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines() if line[0] != " "]
    lines = {name: text.strip() for name, text in rows}
    assert lines["scipy"] == "not installed, but needed"
    assert lines["jinja2"] == "not installed; optional, for the HTML report: pip install 'oneofmany[report]'"
    assert lines["matplotlib"] == f"{installed('matplotlib')}; optional, for figures and PNG files"
    assert lines["triton"].startswith("not installed; optional, for kernels on CUDA")
    monkeypatch.setattr("oneofmany.doctor.NEEDED", ("torch",))
    assert run(["doctor"]) == 0


@pytest.mark.parametrize("temporary", [True, False])
def test_a_cache_that_numba_cannot_write(temporary, monkeypatch, tmp_path, capsys):
    """Numba looks for a folder by writing a file there; without one it would refuse to compile."""
    write = tempfile.TemporaryFile

    def refuse(*, dir):
        if not Path(dir).is_relative_to(tmp_path):
            raise PermissionError(errno.EACCES, "Permission denied")
        return write(dir=dir)

    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path if temporary else tmp_path / "missing"))
    facts = examine()
    assert works(facts)
    note = facts["numba_cache"]["note"]
    assert note.startswith("neither the package nor the home directory can be written")
    if temporary:
        assert Path(facts["numba_cache"]["folder"]).is_relative_to(tmp_path)
    else:
        assert facts["numba_cache"]["folder"] is None
        assert "NUMBA_CACHE_DIR" in note
    assert run(["doctor"]) == 0
    assert "neither the package nor the home directory" in capsys.readouterr().out
