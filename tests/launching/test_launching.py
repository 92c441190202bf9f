"""What all launchers share: choosing one, waiting for commands, and the worker that does a job."""

import json
import os
import signal
import subprocess
import sys

import pytest

from launching.sweeps import began, fake_jobs, wait_for
from oneofmany.extras import OPTIONAL, missing
from oneofmany.launching import LOCKED, Command, Place, finish, launcher_for
from oneofmany.launching.local import Local
from oneofmany.runs.lock import Lock
from oneofmany.runs.state import state_of


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ({"launcher": "condor"}, "--launcher: expected local, slurm, ray, got 'condor'"),
        ({"launcher": "ray", "cpus": 0}, "expected --cpus and --limit of at least 1"),
        ({"launcher": "ray", "limit": 5}, "--limit belongs to --launcher slurm"),
        ({"launcher": "slurm", "address": "auto"}, "--address belongs to --launcher ray"),
        ({"gpus": 1.0}, "--cpus and --gpus belong to --launcher slurm or ray"),
    ],
)
def test_options_that_do_not_fit_are_named(place, message):
    with pytest.raises(ValueError, match=message):
        Place(**place)


@pytest.mark.parametrize(("launcher", "package", "extra"), [("ray", "ray", "ray"), ("slurm", "submitit", "slurm")])
def test_a_missing_package_is_named_with_its_installation(launcher, package, extra, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr("oneofmany.extras.find_spec", lambda name: None)
    sentence = f"{package} is needed for --launcher {launcher} and is not installed: pip install 'oneofmany[{extra}]'"
    assert missing(package) == sentence
    with pytest.raises(ValueError) as error:
        launcher_for(Place(launcher), tmp_path)
    assert str(error.value) == sentence


def test_nothing_of_a_cluster_is_imported_without_being_asked():
    program = "import sys, oneofmany.launching, oneofmany.data.shards, oneofmany.cli.sweep"
    program += "; print({'ray', 'submitit', 'optuna'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
    assert {"ray", "submitit", "optuna"} <= set(OPTIONAL)


def command(tmp_path, name, text):
    return Command((sys.executable, "-S", "-c", text), tmp_path / f"{name}.log")


def test_commands_are_finished_and_a_failure_stops_the_others(tmp_path):
    told = []
    commands = [command(tmp_path, str(i), f"open({str(tmp_path / str(i))!r}, 'w')") for i in range(5)]
    finish(commands, Local(), at_once=2, tell=lambda done, of: told.append((done, of)))
    assert all((tmp_path / str(i)).exists() for i in range(5))
    assert told[-1] == (5, 5)
    waits = command(tmp_path, "waits", "import time; time.sleep(60)")
    fails = command(tmp_path, "fails", "print('oneofmany: no such thing'); raise SystemExit(2)")
    with pytest.raises(ValueError, match="fails failed: no such thing"):
        finish([waits, fails], Local())


def job_file(tmp_path, seconds=0.05, **options):
    (job,), program = fake_jobs(tmp_path / "fake", tmp_path / "runs", 1, seconds, **options)
    job.log.parent.mkdir(parents=True)
    about = {
        "folder": str(job.folder),
        "lock": str(job.lock),
        "start": [*program, "train", "x", "--out", str(job.folder)],
        "resume": [*program, "train", "--resume", str(job.folder)],
        "after": [[*program, *step] for step in job.after],
    }
    job.file.write_text(json.dumps(about))
    return job


def work(job):
    return subprocess.Popen(
        [sys.executable, "-m", "oneofmany.launching.work", str(job.file)], stdout=subprocess.PIPE, text=True
    )


def test_a_worker_does_a_job_once_and_leaves_a_locked_one(tmp_path):
    job = job_file(tmp_path, after=(("record", "x"),))
    with Lock(job.lock, job.folder):
        process = work(job)
        assert "is in use by" in process.communicate()[0]
        assert process.returncode == LOCKED
    assert began(tmp_path / "fake") == []
    for _ in range(2):
        process = work(job)
        process.communicate()
        assert process.returncode == 0
    assert len(began(tmp_path / "fake")) == 1
    assert (tmp_path / "fake" / "events").read_text().count('"end", "record"') == 2


def test_a_worker_passes_a_signal_on_and_the_next_resumes(tmp_path):
    job = job_file(tmp_path, seconds=60)
    process = work(job)
    wait_for(lambda: began(tmp_path / "fake"))
    os.kill(process.pid, signal.SIGTERM)
    assert process.communicate()[0] == "stopped\n"
    assert process.returncode == 128 + signal.SIGTERM
    assert state_of(job.folder) == "begun"
    assert [path.name for path in job.lock.parent.iterdir() if ".lock." in path.name] == []
    process = work(job)
    process.communicate()
    assert process.returncode == 0
    assert began(tmp_path / "fake")[-1] == ["--resume", str(job.folder)]


def test_a_ray_cluster_that_is_not_there_is_named_at_once(tmp_path):
    pytest.importorskip("ray")
    with pytest.raises(ValueError, match=r"--address: there is no Ray cluster at 127\.0\.0\.1:1 "):
        launcher_for(Place("ray", address="127.0.0.1:1"), tmp_path)
