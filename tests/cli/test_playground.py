"""``oneofmany playground`` and ``oneofmany play``."""

import webbrowser
from pathlib import Path

import pytest

from oneofmany.cli import run


def test_playground_writes_the_page_once(tmp_path, capsys):
    out = tmp_path / "playground.html"
    assert run(["playground", "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"{out}\n"
    text = out.read_bytes()
    assert text.startswith(b"<!DOCTYPE html>")
    assert run(["playground", "--out", str(out)]) == 2
    assert "exists" in capsys.readouterr().err
    assert run(["playground", "--out", str(out), "--force"]) == 0
    assert out.read_bytes() == text


@pytest.mark.parametrize("opens", [True, False])
def test_play_opens_the_page_and_prints_its_path(tmp_path, capsys, monkeypatch, opens):
    opened = []
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(webbrowser, "open", lambda url: opened.append(url) or opens)
    assert run(["play"]) == 0
    printed, said = capsys.readouterr()
    path = Path(printed.strip())
    assert path.parent == tmp_path / "oneofmany"
    assert path.read_bytes().startswith(b"<!DOCTYPE html>")
    assert opened == [path.as_uri()]
    assert ("no browser" in said) == (not opens)


def test_play_without_a_cache_folder_uses_temporary_files(tmp_path, capsys, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(webbrowser, "open", lambda url: True)
    assert run(["play"]) == 0
    assert Path(capsys.readouterr().out.strip()).is_file()
