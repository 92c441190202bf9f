"""The run folder: nothing is overwritten, files are written whole, and damage is detected."""

import json

import pytest
import torch

from oneofmany.files import FileError
from oneofmany.runs.folder import RunFolder, _seal, read_json, write_json


def tensors(seed):
    draw = torch.Generator().manual_seed(seed)
    return {"a/b": torch.randn(3, 4, generator=draw), "count": torch.tensor(seed), "none": torch.zeros(0, 2)}


@pytest.fixture
def folder(tmp_path):
    return RunFolder.create(tmp_path / "runs" / "one", {"settings": {"seed": 3}})


def test_created_and_opened_again(folder):
    again = RunFolder.open(folder.path)
    assert again.config == folder.config == {"format": 1, "settings": {"seed": 3}}
    assert again.load_state() is None
    assert again.read_metrics() == []
    assert again.logged_bytes() == 0
    again.cut_metrics(0)


def test_what_exists_is_left_alone(folder, tmp_path):
    before = (folder.path / "config.json").read_bytes()
    with pytest.raises(FileError, match=rf"exists \(it is a run; --resume {folder.path} continues it\)"):
        RunFolder.create(folder.path, {})
    assert (folder.path / "config.json").read_bytes() == before
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("dear")
    (tmp_path / "file").write_text("dear")
    for name in ("other", "file"):
        with pytest.raises(FileError, match=r"exists \(it is not a run\): choose another folder with --out"):
            RunFolder.create(tmp_path / name, {})
    assert (tmp_path / "other" / "letter.txt").read_text() == (tmp_path / "file").read_text() == "dear"
    (tmp_path / "empty").mkdir()
    RunFolder.create(tmp_path / "empty", {})


def test_what_a_kill_leaves_before_the_configuration_is_no_run_yet(tmp_path):
    (tmp_path / "run" / "state").mkdir(parents=True)
    (tmp_path / "run" / ".config.json.abc.part").write_text('{"format"')
    RunFolder.create(tmp_path / "run", {"seed": 1})
    assert RunFolder.open(tmp_path / "run").config["seed"] == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is damaged: it is not JSON"),
        ("[]", "is damaged: expected a JSON object"),
        ("{}", "has a format that this version cannot read"),
        ('{"format": 99}', "has a format that this version cannot read: upgrade oneofmany"),
    ],
)
def test_a_bad_configuration(tmp_path, content, message):
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(FileError, match=message):
        RunFolder.open(tmp_path)


def test_no_run_folder(tmp_path):
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(FileError, match=r"is not a run folder: it has no config\.json"):
            RunFolder.open(path)
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe")
    with pytest.raises(FileError, match="is damaged: it is not JSON"):
        read_json(tmp_path / "bytes.json")
    with pytest.raises(FileError, match="cannot be read"):
        read_json(tmp_path / "none.json")


def test_json_is_replaced_in_one_step(tmp_path):
    write_json(tmp_path / "a.json", {"x": 1})
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "a.json", {"x": float("nan")})
    assert read_json(tmp_path / "a.json") == {"x": 1}
    write_json(tmp_path / "a.json", {"x": 2})
    assert read_json(tmp_path / "a.json") == {"x": 2}
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_metrics_are_cut_back_to_what_a_state_knows(folder):
    for number in range(3):
        folder.log({"update": number})
    size = folder.logged_bytes()
    folder.log({"update": 3})
    with folder.metrics.open("a") as file:
        file.write('{"update": 4, "lo')  # a kill in the middle of a line
    assert [line["update"] for line in folder.read_metrics()] == [0, 1, 2, 3]
    folder.cut_metrics(size)
    folder.log({"update": 9})
    assert [line["update"] for line in folder.read_metrics()] == [0, 1, 2, 9]


def test_the_newest_state_comes_back_bit_for_bit(folder):
    for number in (5, 7, 10**9, 10**11):
        folder.save_state(number, tensors(number % 97), {"number": number, "x": 0.1 + 0.2})
        found, about, complaints = RunFolder.open(folder.path).load_state()
        assert about == {"number": number, "x": 0.1 + 0.2}
        assert complaints == []
        wanted = tensors(number % 97)
        assert found.keys() == wanted.keys()
        assert all(torch.equal(found[name], wanted[name]) for name in wanted)
        assert all(found[name].dtype == wanted[name].dtype for name in wanted)
    assert len(list((folder.path / "state").iterdir())) == 2


def test_parts_of_states_that_a_kill_left_are_removed(folder):
    (folder.path / "state" / ".000000000001.safetensors.xyz.part").write_bytes(b"half")
    folder.save_state(1, tensors(1), {})
    assert [path.name for path in (folder.path / "state").iterdir()] == ["000000000001.safetensors"]


def test_states_that_a_kill_left_are_removed(folder):
    """A process that is killed right after its last state has not deleted older ones yet."""
    for number in (1, 2):
        folder.save_state(number, tensors(number), {})
    older = folder.path / "state" / "000000000000.safetensors"
    older.write_bytes((folder.path / "state" / "000000000001.safetensors").read_bytes())
    with folder.continuing():
        assert not older.exists()
    assert len(list((folder.path / "state").iterdir())) == 2


def test_any_damage_to_a_state_is_found(folder):
    folder.save_state(1, tensors(1), {"number": 1})
    folder.save_state(2, tensors(2), {"number": 2})
    newest = folder.path / "state" / "000000000002.safetensors"
    good = newest.read_bytes()
    damaged = [good[:cut] for cut in (0, 1, 8, 31, 32, 33, len(good) - 1)]
    for place in range(0, len(good), 7):
        damaged.append(good[:place] + bytes([good[place] ^ 0x10]) + good[place + 1 :])
    damaged.append(good + b"\0")
    for content in damaged:
        newest.write_bytes(content)
        _, about, (complaint,) = folder.load_state()
        assert about == {"number": 1}
        assert complaint.startswith(f"{newest} is damaged (")
        assert complaint.endswith("): going back to the state before it")
    (folder.path / "state" / "000000000001.safetensors").write_bytes(b"")
    with pytest.raises(FileError, match="every state is damaged, so it cannot be resumed"):
        folder.load_state()


@pytest.mark.parametrize("header", [b'{"__metadata__": 3}', b'{"__metadata__": {"oneofmany": 3}}', b"3", b"[]"])
def test_a_state_with_another_header_and_the_right_checksum_is_damaged(folder, header):
    folder.save_state(1, {"a": torch.zeros(1)}, {})
    body = len(header).to_bytes(8, "little") + header
    (folder.path / "state" / "2.safetensors").write_bytes(body + _seal(body))
    assert "2.safetensors is damaged" in folder.load_state()[2][0]


def test_the_folder_holds_text_and_safetensors_only(folder):
    folder.log({"update": 1})
    folder.save_state(1, tensors(1), {})
    assert {path.suffix for path in folder.path.rglob("*") if path.is_file()} == {".json", ".jsonl", ".safetensors"}
    assert json.loads((folder.path / "config.json").read_text())["format"] == 1
