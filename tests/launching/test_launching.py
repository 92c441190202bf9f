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
from oneofmany.training.queue import Queue


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


SLOW_TO_STOP = """
import os, signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)
import oneofmany.cli as cli
from pathlib import Path
from oneofmany.launching import Command, finish

class Slow:  # as a scheduler that takes its time for every request
    code = None
    def poll(self):
        return self.code
    def terminate(self):
        time.sleep(0.3)
        self.code = -15
        print("stopped", flush=True)

class Launcher:
    def start(self, commands):
        return [Slow() for _ in commands]

def command(_):
    finish([Command(("x",), Path("x.log"))] * 4, Launcher(), tell=lambda done, of: os.kill(os.getpid(), NUMBER))

cli._dispatch = command
cli.main([])
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_all_commands_however_long_it_takes(number):
    code = SLOW_TO_STOP.replace("NUMBER", str(int(number)))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr, done.stdout) == (130, "oneofmany: stopped\n", "stopped\n" * 4)


class Elsewhere:
    """A launcher whose commands end at once; their files are seen here at a later look."""

    cpus = 1

    def __init__(self, job, looks):
        self.job, self.looks = job, looks

    def start(self, commands):
        return [self] * len(commands)

    def poll(self):
        self.looks -= 1
        if self.looks == 0:
            self.job.folder.mkdir(parents=True)
            (self.job.folder / "result.json").write_text("{}")
        return 0

    def terminate(self):
        pass


@pytest.mark.parametrize(("looks", "state"), [(5, "finished"), (100, "failed")])
def test_a_result_that_network_storage_shows_late(looks, state, tmp_path, monkeypatch):
    monkeypatch.setattr("oneofmany.training.queue.SEEN", 3.0)
    monkeypatch.setattr("oneofmany.training.queue.LOOK", 0.1)
    (job,), _ = fake_jobs(tmp_path / "fake", tmp_path / "runs", 1)
    job.log.parent.mkdir(parents=True)
    job.log.write_text("")
    queue = Queue([job], cluster=Elsewhere(job, looks))
    queue.run()
    assert [entry.state for entry in queue.entries] == [state]


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


def test_what_ray_says_about_a_lost_task_is_in_its_log(tmp_path, monkeypatch):
    ray = pytest.importorskip("ray")
    from ray.exceptions import RayTaskError, WorkerCrashedError

    from oneofmany.launching.ray_tasks import Task

    missing = FileNotFoundError(2, "No such file or directory", "/not/shared")
    errors = {"crashed": WorkerCrashedError(), "missing": RayTaskError("run", "Traceback ...", missing)}
    monkeypatch.setattr(ray, "wait", lambda references, timeout: (references, []))

    def get(reference):
        raise errors[reference]

    monkeypatch.setattr(ray, "get", get)
    for name, said in (
        ("crashed", "The worker died unexpectedly"),
        ("missing", "FileNotFoundError: [Errno 2] No such"),
    ):
        log = tmp_path / f"{name}.log"
        assert Task(name, log).poll() == -signal.SIGKILL
        assert log.read_text().startswith(f"oneofmany: Ray: {said}")
        assert log.read_text().count("\n") == 1


def test_a_ray_cluster_that_is_not_there_is_named_at_once(tmp_path):
    pytest.importorskip("ray")
    with pytest.raises(ValueError, match=r"--address: there is no Ray cluster at 127\.0\.0\.1:1 "):
        launcher_for(Place("ray", address="127.0.0.1:1"), tmp_path)
