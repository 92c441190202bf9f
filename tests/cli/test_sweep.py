"""`oneofmany sweep` as a user runs it."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from oneofmany.cli.sweep import read_arguments
from oneofmany.cli.sweep_progress import LiveTable, table_of
from oneofmany.data.nqueens import build_nqueens
from oneofmany.recipes.fields import resolve
from oneofmany.recipes.planning import jobs_of, with_data
from oneofmany.runs import Lock
from oneofmany.training import train
from oneofmany.training.queue import Entry
from oneofmany.training.settings import to_json

FAKE = Path(__file__).parents[1] / "training" / "fake_oneofmany.py"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A small data file of N-Queens."""
    path = tmp_path_factory.mktemp("data") / "queens.safetensors"
    build_nqueens(7, 5, 60, seed=1).save(path)
    return path


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """Sweep without training: fake(arguments, seconds, fails) prepares it, fake.events() lists what was run."""
    here = tmp_path / "fake"
    here.mkdir()
    monkeypatch.setenv("FAKE", str(here))
    monkeypatch.setattr("oneofmany.training.queue.PROGRAM", (sys.executable, "-S", str(FAKE)))

    class Fake:
        def __call__(self, arguments, seconds=0.05, fails=()):
            asked = read_arguments(list(map(str, arguments))).sweep
            configs = {}
            for job in with_data(jobs_of(asked), asked.data):
                data = {"train": {"checksum": job.data[0]}, "dev": {"checksum": job.data[1]}}
                configs[str(job.folder)] = {"format": 1, "settings": to_json(job.settings), "data": data}
            about = {"configs": configs, "seconds": seconds, "fails": list(map(str, fails))}
            (here / "fake.json").write_text(json.dumps(about))
            (here / "events").write_text("")

        def events(self, kind="begin"):
            events = [json.loads(line) for line in (here / "events").read_text().splitlines()]
            return [event[1:] for event in events if event[0] == kind]

    return Fake()


def small(data, out):
    return ["--train", data, "--dev", data, "--out", out]


def test_usage(call):
    code, out, _ = call("sweep", "--help")
    assert code == 0
    assert "Example: oneofmany sweep 'nqueens/*/tiny'" in out
    assert call("sweep") == (2, out, "")
    assert call("sweep", "nqueens/minloss", "--help") == (0, out, "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nqueens/minloss/tiny", "--tune"], "there is no tuning grid for nqueens/minloss/tiny"),
        (["nqueens/minloss", "--tune", "--grid", "decay=0,1"], "--tune is already a grid"),
    ],
)
def test_bad_tuning(call, arguments, message):
    code, _, err = call("sweep", *arguments)
    assert code == 2
    assert message in err


def test_all_recipes_of_a_seed_come_before_the_next_seed(fake, call, data, tmp_path):
    out = tmp_path / "runs"
    names = ["nqueens/selectr/tiny", "nqueens/minloss/tiny"]
    grid = ["--grid", "decay=0.1,0.2", "--first.lr", "0.5"]
    arguments = [*names, "--seeds", 3, 1, *grid, "--ema=0.5", *small(data, out)]
    fake(arguments)
    code, stdout, err = call("sweep", *arguments)
    assert code == 0, err
    expected = [
        (name, f"decay={decay}", str(seed)) for seed in (3, 1) for name in names for decay in ("0.1", "0.2")
    ]  # fmt: skip
    commands = fake.events()
    assert [command[-1] for command in commands] == [str(out / "/".join(parts)) for parts in expected]
    assert commands[0] == [
        *["train", names[0], "--seed", "3", "--first.lr", "0.5", "--ema=0.5", "--decay", "0.1"],
        *["--train", str(data), "--dev", str(data), "--out", str(out / names[0] / "decay=0.1" / "3")],
    ]
    # The command of a run gives the settings that the sweep has checked.
    job = jobs_of(read_arguments(list(map(str, arguments))).sweep)[0]
    assert resolve(names[0], commands[0][2:-6]) == job.settings
    assert (job.settings.decay, job.settings.first.lr, job.settings.ema) == (0.1, 0.5, 0.5)
    rows = [line.split() for line in stdout.splitlines()[2:]]
    assert rows == [[f"{n}/decay={d}", "2", "of", "2", "100.00", "50.00", "75.00"] for n in names for d in (0.1, 0.2)]
    fake(arguments)
    code, again, err = call("sweep", *arguments)
    assert (code, again, err) == (0, stdout, "")
    assert fake.events() == []
    code, _, err = call("sweep", *arguments, "--clip", 2)
    assert code == 2
    assert "3 was started with other settings: clip: 1.0 there, 2.0 here" in err


def test_a_signal_and_going_on(fake, call, data, tmp_path, monkeypatch):
    arguments = ["nqueens/naive/tiny", "nqueens/minloss/tiny", "--seeds", 1, *small(data, tmp_path / "runs")]
    fake(arguments, seconds=60)

    def interrupt(lines, entries):
        if fake.events():
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr("oneofmany.cli.sweep_progress.Lines.look", interrupt)
    code, _, err = call("sweep", *arguments)
    assert code == 143
    assert "nqueens/naive/tiny/1: stopped" in err
    assert (
        "2 of 2 runs are left (nqueens/naive/tiny/1, nqueens/minloss/tiny/1): run the same command to continue" in err
    )


def test_minutes(fake, call, data, tmp_path):
    arguments = ["nqueens/naive/tiny", "nqueens/minloss/tiny", "--seeds", 1, *small(data, tmp_path / "runs")]
    fake(arguments, seconds=60)
    code, _, err = call("sweep", *arguments, "--minutes", 0.04, "--jobs", 2)
    assert code == 0
    assert "2 of 2 runs are left" in err
    fake(arguments)
    code, stdout, err = call("sweep", *arguments, "--minutes", 10)
    assert code == 0
    assert stdout.count("1 of 1") == 2
    assert "nqueens/minloss/tiny/1: finished" in err
    assert [command[:2] for command in fake.events()] == [["train", "--resume"]] * 2


def test_a_failed_run(fake, call, data, tmp_path, monkeypatch):
    monkeypatch.setattr("oneofmany.cli.sweep_progress.EVERY", 0.0)
    out = tmp_path / "runs"
    arguments = ["nqueens/naive/tiny", "nqueens/minloss/tiny", "--seeds", 1, *small(data, out)]
    fake(arguments, fails=[out / "nqueens/naive/tiny/1"])
    code, stdout, err = call("sweep", *arguments)
    assert code == 1
    log = out / "nqueens/naive/tiny/1.log"
    assert f"nqueens/naive/tiny/1 failed: the loss is nan at update 1 (full log: {log})" in err
    assert [line.split()[1] for line in stdout.splitlines()[2:]] == ["0", "1"]
    assert "Traceback" in log.read_text()
    assert "0 of 2 finished, 1 running, 1 failed; nqueens/minloss/tiny/1 t" in err


def test_evaluating_and_recording(fake, call, data, tmp_path):
    out, test, records = tmp_path / "runs", tmp_path / "queens-test.safetensors", tmp_path / "records"
    build_nqueens(6, 4, seed=2).save(test)
    arguments = [
        "nqueens/naive/tiny",
        "--seeds",
        1,
        *small(data, out),
        "--evaluate",
        test,
        "--records",
        records,
        "--allow-dirty",
    ]
    grid = ["--grid", "decay=0.1", "--device", "cpu"]
    for extra, place in (([], ""), (grid, "decay=0.1")):
        fake([*arguments, *extra])
        assert call("sweep", *arguments, *extra)[0] == 0
        folder, device = str(out / "nqueens/naive/tiny" / place / "1"), ["--device", "cpu"] if extra else []
        assert fake.events()[1:] == [
            ["evaluate", folder, str(test), "--force", *device],
            ["record", folder, "--out", str(records / place), "--force", "--allow-dirty"],
        ]
        fake([*arguments, *extra])
        assert call("sweep", *arguments, *extra)[0] == 0
        assert [command[0] for command in fake.events()] == ["record"]  # the stand-in writes no record
        (records / place).mkdir(parents=True, exist_ok=True)
        (records / place / "nqueens-naive-tiny-1.json").write_text("")
        fake([*arguments, *extra])
        assert call("sweep", *arguments, *extra)[0] == 0
        assert fake.events() == []


def test_a_dry_run_writes_nothing(fake, call, data, tmp_path):
    out = tmp_path / "runs"
    names = ["nqueens/naive/tiny", "nqueens/minloss/tiny", "nqueens/selectr/tiny"]
    arguments = [*names, "--seeds", 1, *small(data, out)]
    fake(arguments)
    jobs = jobs_of(read_arguments(list(map(str, arguments))).sweep)
    assert call("sweep", names[0], *arguments[3:])[0] == 0
    config = json.loads((tmp_path / "fake" / "fake.json").read_text())["configs"][str(jobs[1].folder)]
    jobs[1].folder.mkdir(parents=True)
    (jobs[1].folder / "config.json").write_text(json.dumps(config))
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    code, stdout, err = call("sweep", *arguments, "--dry-run")
    assert code == 0
    assert stdout == f"done    {names[0]}/1\nresume  {names[1]}/1\nstart   {names[2]}/1\n"
    assert err == "3 runs: 1 done, 1 resume, 1 start; nothing was written\n"
    code, stdout, _ = call("sweep", names[0], *arguments[3:], "--dry-run", "--evaluate", data)
    assert stdout == f"resume  {names[0]}/1, evaluate\n"
    code, _, err = call("sweep", *arguments, "--dry-run", "--clip", 2)
    assert code == 2
    assert "1 was started with other settings: clip: 1.0 there, 2.0 here" in err
    code, stdout, err = call("sweep", names[0], "--seeds", 2, "--out", out, "--data", tmp_path / "none", "--dry-run")
    assert (code, stdout) == (0, f"start   {names[0]}/2\n")
    assert f"{tmp_path / 'none' / 'nqueens-tiny-train.safetensors'} is missing: it would be built first\n" in err
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_the_live_table_fits_on_the_screen(fake, data, tmp_path):
    asked = read_arguments(["nqueens/*/tiny", *map(str, small(data, tmp_path / "runs"))])
    jobs = jobs_of(asked.sweep)
    entries = [Entry(job) for job in jobs]
    entries[0].state, entries[20].state = "failed", "running"
    jobs[20].folder.mkdir(parents=True)
    line = {"kind": "dev", "phase": "joint", "update": 40, "loss": 1.5, "queries_per_second": 1234.0, "dev_os": 0.5}
    (jobs[20].folder / "metrics.jsonl").write_text(json.dumps(line) + "\n")
    table = table_of(entries, 4)
    assert table.row_count == 4
    columns = {str(column.header): list(column.cells) for column in table.columns}
    assert columns["run"] == [entries[i].job.name for i in (0, 1, 2, 20)]
    assert columns["state"] == ["failed", "waiting", "waiting", "training"]
    assert columns["update"][-1] == f"40 of {jobs[20].settings.second.updates}"
    assert columns["OS"][-1] == "50.00"
    assert columns["queries/s"][-1] == "1,234"
    assert table.caption == "0 of 21 finished, 1 running, 1 failed, 19 waiting"


def test_the_live_table_is_one_line_per_run_on_80_columns(fake, data, tmp_path):
    from rich.console import Console

    grid = ["--grid", "selector_training.copy_interval=250,2500", "second.sampling=0.5", "--second.updates", "70000"]
    asked = read_arguments(["nqueens/*/table-2", *grid, *map(str, small(data, tmp_path / "runs"))])
    entries = [Entry(job) for job in jobs_of(asked.sweep)]
    line = {
        "kind": "dev",
        "phase": "pretrain-minloss",
        "update": 40_000,
        "loss": 12.3456,
        "queries_per_second": 99999.0,
    }
    for entry in entries[:4]:
        entry.state = "running"
        entry.job.folder.mkdir(parents=True)
        (entry.job.folder / "metrics.jsonl").write_text(json.dumps(line | {"dev_overall": 1.0, "dev_os": 1.0}) + "\n")
    for width in (80, 100, 129, 200):
        console = Console(force_terminal=True, width=width, color_system=None)
        with console.capture() as drawn:
            console.print(table_of(entries, 6, width))
        lines = drawn.get().rstrip("\n").split("\n")
        assert len(lines) == 1 + 6 + 1
        assert max(len(one.rstrip()) for one in lines) <= width
        assert all(one.split()[0].endswith("/42") for one in lines[1:-1])
        assert "12.3456" in lines[1]
        assert "100.00" in lines[1]
        assert "training" in lines[1]


def test_the_live_table_draws(fake, data, tmp_path):
    from rich.console import Console
    from rich.live import Live

    jobs = jobs_of(read_arguments(["nqueens/naive/tiny", *map(str, small(data, tmp_path / "runs"))]).sweep)
    console = Console(force_terminal=True, width=120, height=20)
    with console.capture() as drawn, Live(console=console, auto_refresh=False) as live:
        LiveTable(live).look([Entry(job) for job in jobs])
    assert "nqueens/naive/tiny/1729" in drawn.get()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--jobs", "2"], "name recipes first"),
        (["nqueens/minlos/tiny"], "did you mean 'nqueens/minloss/tiny'?"),
        (["chess/*"], "no recipe matches 'chess/*'"),
        (["nqueens/minloss", "--seed", "3"], "--seed: use --seeds"),
        (["nqueens/minloss", "--seeds", "x"], "--seeds: expected whole numbers, got 'x'"),
        (["nqueens/minloss", "--seeds", "1", "1"], "--seeds: expected different whole numbers, got 1 1"),
        (["nqueens/minloss", "--seeds"], "--seeds: expected different whole numbers, got none"),
        (["nqueens/minloss", "--jobs", "0"], "--jobs: expected at least 1, got 0"),
        (["nqueens/minloss", "--jobs", "1", "2"], "--jobs: expected one value, got 1 2"),
        (["nqueens/minloss", "--minutes", "-1"], "--minutes: expected more than 0"),
        (["nqueens/minloss", "--grid", "decay"], "--grid: expected FIELD=VALUE,VALUE,..., got 'decay'"),
        (["nqueens/minloss", "--grid", "decay=1,"], "--grid: expected FIELD=VALUE"),
        (["nqueens/minloss", "--grid", "decay=1,1"], "two of its points have the same name"),
        (["nqueens/minloss", "--grid", "seed=1,2"], "choose the seeds of a sweep with --seeds"),
        (["nqueens/minloss", "--no-sharing", "x"], "--no-sharing takes no value, got x"),
        (["nqueens/minloss", "--evaluate", "none.safetensors"], "none.safetensors is not a file"),
        (["nqueens/minloss", "--train", "none", "--dev", "none"], "none is not a file"),
    ],
)
def test_bad_input_is_one_sentence(call, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    code, out, err = call("sweep", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_field(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, err = call("sweep", "nqueens/minloss", "--grid", "dekay=1,2")
    assert code == 2
    assert "--decay" in err
    assert list(tmp_path.iterdir()) == []


def test_evaluation_on_another_task(call, data):
    code, _, err = call("sweep", "sudoku/minloss/tiny", "--evaluate", data)
    assert code == 2
    assert f"{data} is data of nqueens, but no run of this sweep has this task" in err


def test_real_runs_share_their_pretraining(call, data, tmp_path):
    """Two real runs, the second from the first: the same bits as the second on its own; then evaluation and record."""
    fields = [
        *["--pretraining", "minloss", "--network.width", "8", "--network.steps", "2", "--network.test_steps", "3"],
        *["--first.updates", "4", "--first.batch", "8", "--second.batch", "8", "--evaluate_every", "2"],
        *["--selector_training.updates", "2", "--device", "cpu", "--threads", "1"],
    ]
    out, names = tmp_path / "runs", ["nqueens/selectr/tiny", "nqueens/minloss/tiny"]
    # SelectR's own second phase, and none for MinLoss.
    arguments = [*names, "--seeds", 7, *small(data, out), *fields]
    code, stdout, err = call("sweep", *arguments)
    assert code == 0, err
    assert stdout.count("1 of 1") == 2
    assert err.index("minloss/tiny/7: finished") < err.index("selectr/tiny/7: training")
    folders = {name: out / name / "7" for name in names}
    config = json.loads((folders[names[0]] / "config.json").read_text())
    assert config["settings"]["pretrained"] == [str(folders[names[1]])]
    own = resolve(names[0], [*fields, "--seed", "7"])
    assert torch.get_num_threads() == 1
    train(own, data, data, tmp_path / "own")
    weights = [load_file(folder / "weights.safetensors") for folder in (tmp_path / "own", folders[names[0]])]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    records = tmp_path / "records"
    code, _, err = call("sweep", names[1], *arguments[2:], "--evaluate", data, "--records", records, "--allow-dirty")
    assert code == 0, err
    record = json.loads((records / "nqueens-minloss-tiny-7.json").read_text())
    assert record["finished"]
    assert list(record["evaluations"]) == ["queens"]
    assert record["evaluations"]["queens"]["overall"]["total"] == 60


def test_status_names_progress_and_owner(fake, call, data, tmp_path):
    out = tmp_path / "runs"
    names = ["nqueens/naive/tiny", "nqueens/minloss/tiny", "nqueens/ccloss/tiny", "nqueens/unique/tiny"]
    arguments = [*names, "--seeds", 1, *small(data, out)]
    fake(arguments)
    jobs = jobs_of(read_arguments(list(map(str, arguments))).sweep)
    assert call("sweep", names[0], *arguments[4:])[0] == 0
    for job in jobs[1:3]:
        job.folder.mkdir(parents=True)
        (job.folder / "config.json").write_text("{}")
    line = {
        "kind": "dev",
        "phase": "train",
        "update": 40,
        "loss": 1.5,
        "queries_per_second": 100,
        "dev_os": 0.5,
        "dev_ms": None,
        "dev_overall": 0.5,
    }
    (jobs[1].folder / "metrics.jsonl").write_text(json.dumps(line) + "\n")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    with Lock(jobs[2].lock):
        code, stdout, err = call("sweep", *arguments, "--status")
    assert code == 0
    lines = stdout.splitlines()
    assert lines[0] == f"finished  {names[0]}/1, dev OS 100.00, MS 50.00, OVERALL 75.00"
    assert lines[1] == f"stopped   {names[1]}/1, train update 40, dev OS 50.00, MS -, OVERALL 50.00"
    assert lines[2].startswith(f"running   {names[2]}/1, by ")
    assert f"(process {os.getpid()})" in lines[2]
    assert lines[3] == f"waiting   {names[3]}/1"
    assert err == "4 runs: 1 finished, 1 stopped, 1 running, 1 waiting\n"
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--launcher", "condor"], "--launcher: expected local, slurm, ray, got 'condor'"),
        (["--address", "auto"], "--address belongs to --launcher ray"),
        (["--launcher", "ray", "--cpus", "two"], "--cpus: expected whole numbers, got 'two'"),
        (["--status", "yes"], "--status takes no value"),
    ],
)
def test_bad_launchers(call, arguments, message):
    code, _, err = call("sweep", "nqueens/minloss/tiny", *arguments)
    assert code == 2
    assert message in err
