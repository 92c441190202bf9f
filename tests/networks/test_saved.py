"""Saved networks: the same answers after loading, and one-sentence errors."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

import oneofmany
from oneofmany.data import DeviceData
from oneofmany.data.futoshiki import build_futoshiki
from oneofmany.data.nqueens import build_nqueens
from oneofmany.data.sudoku import build_sudoku
from oneofmany.files import FileError
from oneofmany.networks.building import NetworkSettings, build_network
from oneofmany.networks.saved import load_network, save_network
from oneofmany.problems import Problem, nqueens, sudoku
from oneofmany.tensor_files import sealed

DATA = {
    "nqueens": build_nqueens(6, 3, seed=1),
    "futoshiki": build_futoshiki(4, 8, 2, 12, seed=1),
    "sudoku": build_sudoku(12, "train", seed=1, size=4, givens=(5, 8)),
}
KINDS = [
    ("nqueens", NetworkSettings("nlm", width=4, depth=3, latent=2)),
    ("futoshiki", NetworkSettings("nlm", width=4, depth=2)),
    ("sudoku", NetworkSettings("rrn", width=8, steps=2, dropout=0.3, test_steps=3)),
    ("sudoku", NetworkSettings("rrn", width=8, steps=2, latent=3)),
    ("nqueens", NetworkSettings("equivariant", width=8, steps=2, hidden=5)),
    ("futoshiki", NetworkSettings("equivariant", width=8, steps=2, inequalities="flags")),
]


def made(task, settings):
    with torch.random.fork_rng():
        torch.manual_seed(3)
        return build_network(settings, DATA[task].problem).eval()


@pytest.mark.parametrize(("task", "settings"), KINDS, ids=str)
def test_there_and_back(tmp_path, task, settings):
    network, problem = made(task, settings), DATA[task].problem
    card = {"recipe": "mine", "dev": {"overall": 0.5}}
    save_network(tmp_path / "w.safetensors", network, settings, problem, card)
    for saved in (load_network(tmp_path / "w.safetensors"), oneofmany.load(tmp_path / "w.safetensors")):
        assert (saved.settings, saved.task, saved.size, saved.card) == (settings, task, problem.size, card)
        assert not saved.network.training
        batch = next(DeviceData(DATA[task]).in_order(5))
        with torch.no_grad():
            assert torch.equal(saved.network(batch), network(batch))
        assert saved.network.value_offset == (settings.kind == "rrn")
        assert saved.network.readout == ("threshold" if settings.kind == "nlm" else "argmax")


def test_in_the_precision_of_the_device(tmp_path):
    task, settings = KINDS[0]
    save_network(tmp_path / "a.safetensors", made(task, settings), settings, DATA[task].problem)
    kept = {p: load_network(tmp_path / "a.safetensors", precision=p).network for p in (None, "float16")}
    assert [network.machine.precision for network in kept.values()] == ["float32", "float16"]


def test_weights_alone_will_do_and_the_same_bytes_come_out(tmp_path):
    task, settings = KINDS[4]
    network, problem = made(task, settings), DATA[task].problem
    save_network(tmp_path / "a", network, settings, problem)
    save_network(tmp_path / "b", network.state_dict(), settings, problem)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_an_existing_file_only_with_force(tmp_path):
    task, settings = KINDS[4]
    network, problem, path = made(task, settings), DATA[task].problem, tmp_path / "w.safetensors"
    path.write_text("mine")
    with pytest.raises(FileError, match="exists"):
        save_network(path, network, settings, problem)
    assert path.read_text() == "mine"
    save_network(path, network, settings, problem, force=True)
    load_network(path)


def test_a_run_folder_and_names_that_are_nothing(tmp_path):
    task, settings = KINDS[4]
    save_network(tmp_path / "weights.safetensors", made(task, settings), settings, DATA[task].problem)
    assert oneofmany.load(tmp_path).settings == settings
    with pytest.raises(FileError, match="chess is neither a file, a run folder nor a bundled network"):
        oneofmany.load("chess")
    with pytest.raises(FileError, match="is not a file"):
        load_network(tmp_path / "missing.safetensors")


def test_a_task_of_your_own_needs_its_rules(tmp_path):
    task, settings = KINDS[4]
    given = DATA[task].problem
    own = Problem("queens-of-mine", given.size, given.variables, given.values, given.rules)
    save_network(tmp_path / "w", made(task, settings), settings, own)
    with pytest.raises(FileError, match=r"belongs to the task 'queens-of-mine', whose rules are needed: pass problem="):
        load_network(tmp_path / "w")
    assert load_network(tmp_path / "w", own).task == "queens-of-mine"


def rewritten(path, change, sealing=True):
    """The file with another header, and its checksum; without ``sealing`` without one."""
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        header = json.loads(file.metadata()["oneofmany"])
    del header["checksum"]
    change(header)
    tensors = load_file(path)
    save_file(tensors, path, {"oneofmany": json.dumps(sealed(header, tensors) if sealing else header)})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h: h.update(format=2), "has format version 2, newer than 1: upgrade oneofmany"),
        (lambda h: h.update(format="1"), "is damaged or not a network: its format version is '1'"),
        (lambda h: h.pop("network"), "is not a network of oneofmany"),
        (lambda h: h["network"].update(colour="red"), r"has settings that this version does not know \(colour\)"),
        (lambda h: h["network"].update(width=9), r"embed.weight: its settings need \[9, 2\], but it holds \[8, 2\]"),
        (lambda h: h["network"].update(width=12_000), "network.width: expected at most 562, got 12000"),
        (lambda h: h["network"].update(width=500), r"embed.weight: its settings need \[500, 2\]"),
        (lambda h: h["network"].update(width=10**30), "network.width: expected at most"),
        (lambda h: h["network"].update(width="8"), "network.width: expected at most 562, got '8'"),
        (lambda h: h["network"].update(hidden=10**9), "network.hidden: expected at most"),
        (lambda h: h["network"].update(kind="nlm", depth=10**9), "network.depth: expected at most 8, got 1000000000"),
        (lambda h: h["network"].update(kind="nlm", latent=10**9), "network.latent: expected at most"),
        (lambda h: h["network"].update(steps=10**9), "network.steps: expected at most 10000, got 1000000000"),
        (lambda h: h["network"].update(test_steps=10**9), "network.test_steps: expected at most 10000, got 1000000000"),
        (lambda h: h["network"].update(kind="rrn"), "is damaged or not a network"),
        (lambda h: h.update(size=10**9), "is damaged or not a network"),
        (lambda h: h["network"].update(width=0), "is damaged or not a network"),
        (lambda h: h.pop("size"), "is damaged or not a network"),
        (lambda h: h.pop("card"), "is damaged or not a network"),
        (lambda h: h.update(options={"colour": 1}), "is damaged or not a network"),
    ],
)
def test_a_file_that_says_something_else(tmp_path, change, message):
    task, settings = KINDS[4]
    path = tmp_path / "w.safetensors"
    save_network(path, made(task, settings), settings, DATA[task].problem)
    rewritten(path, change)
    with pytest.raises(FileError, match=message) as refused:
        load_network(path)
    assert "\n" not in str(refused.value)
    assert str(path) in str(refused.value)
    # A file without a checksum is checked as strictly.
    save_network(path, made(task, settings), settings, DATA[task].problem, force=True)
    rewritten(path, change, sealing=False)
    with pytest.raises(FileError, match=message):
        load_network(path)


def test_every_flipped_bit_is_found(tmp_path):
    task, settings = KINDS[4]
    path = tmp_path / "weights.safetensors"
    save_network(path, made(task, settings), settings, DATA[task].problem)
    good = path.read_bytes()
    start = 8 + int.from_bytes(good[:8], "little")
    for place in (*range(start, len(good), 101), len(good) - 1):
        path.write_bytes(good[:place] + bytes([good[place] ^ 0x40]) + good[place + 1 :])
        for read in (load_network, oneofmany.load):
            with pytest.raises(FileError, match="was altered or damaged: its content does not match its checksum"):
                read(path)
    path.write_bytes(good.replace(b"nqueens", b"nqueenz"))
    with pytest.raises(FileError, match="was altered or damaged"):
        load_network(path)


def test_weights_of_the_first_version_have_no_checksum(tmp_path):
    for task, settings in KINDS:
        path = tmp_path / "w.safetensors"
        save_network(path, made(task, settings), settings, DATA[task].problem, force=True)
        rewritten(path, lambda header: None, sealing=False)
        loaded = load_network(path).network.state_dict()
        assert all(torch.equal(loaded[name], tensor) for name, tensor in made(task, settings).state_dict().items())


def test_damaged_files(tmp_path):
    task, settings = KINDS[4]
    path = tmp_path / "w.safetensors"
    save_network(path, made(task, settings), settings, DATA[task].problem)
    good = path.read_bytes()
    for content in (b"", b"x" * 100, good[: len(good) // 2], good[:-1], good[:6] + b"\xff\xff" + good[8:]):
        path.write_bytes(content)
        with pytest.raises(FileError, match="is damaged or not a network"):
            load_network(path)
    save_file({"a": torch.zeros(1)}, path)  # a foreign safetensors file
    with pytest.raises(FileError, match="is damaged or not a network"):
        load_network(path)
    DATA[task].save(tmp_path / "data.safetensors")  # our format, but not a network
    with pytest.raises(FileError, match="not a network"):
        load_network(tmp_path / "data.safetensors")
    with pytest.raises(FileError, match="is not a file"):
        load_network(tmp_path)


def test_names_of_parameters_are_part_of_the_format():
    mlp = [f"{i}.{part}" for i in (0, 2, 4, 6) for part in ("weight", "bias")]
    linear = [f"{map_}.{part}" for map_ in ("nullary", "unary", "binary") for part in ("weight", "bias")]
    names = {
        ("nlm", nqueens(3)): {
            *("z", "machine.readout.weight", "machine.readout.bias"),
            *(f"machine.layers.{i}.{name}" for i in range(2) for name in linear),
        },
        ("rrn", sudoku(2, 2)): {
            *("latent", "digit.weight", "row.weight", "column.weight"),
            *(f"{part}.{name}" for part in ("input", "message") for name in mlp),
            *("lstm.weight_ih", "lstm.weight_hh", "output.weight", "output.bias"),
        },
        ("equivariant", nqueens(3)): {
            *("embed.weight", "embed.bias", "step.readout", "step.block.rule"),
            *(f"step.block.{part}.{name}" for part in ("choice", "update") for name in ("weight", "bias")),
        },
    }
    for (kind, problem), expected in names.items():
        latent = 0 if kind == "equivariant" else 2
        network = build_network(NetworkSettings(kind, width=4, depth=2, latent=latent), problem)
        assert set(network.state_dict()) == expected
