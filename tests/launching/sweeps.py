"""Jobs for the tests of launchers: real ones of seconds, and ones of the fake program."""

import json
import os
import signal
import socket
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from oneofmany.recipes import recipe
from oneofmany.runs.lock import owner_of
from oneofmany.runs.state import lock_of, state_of
from oneofmany.training import train
from oneofmany.training.jobs import Job
from oneofmany.training.settings import PhaseSettings, to_json
from small_runs import assert_same_run, fields, files, small

FAKE = Path(__file__).parents[1] / "training" / "fake_oneofmany.py"


def real_jobs(data, out, number, updates=120):
    """Runs of a few seconds with a state after every update, and a different seed each."""
    base = small("minloss", first=PhaseSettings(updates, batch=4, lr=1e-2), log_every=1, evaluate_every=10)
    jobs = []
    for seed in range(1, number + 1):
        settings = replace(base, seed=seed, recipe="sudoku/minloss/tiny")
        train, dev = files(data, settings)
        arguments = ("sudoku/minloss/tiny", "--train", train, "--dev", dev, *fields(settings))
        jobs.append(Job(str(seed), settings, out / str(seed), tuple(map(str, arguments))))
    return jobs


def fake_jobs(here, out, number, seconds=0.05, **options):
    """Jobs of the fake program, and the program: it needs no environment of its own on another machine."""
    settings = recipe("nqueens/minloss/tiny")
    jobs = [
        Job(f"run/{i}", settings, out / f"run/{i}", (settings.recipe,), ("t", "d"), **options) for i in range(number)
    ]
    data = {"train": {"checksum": "t"}, "dev": {"checksum": "d"}}
    config = {"format": 1, "settings": to_json(settings), "data": data}
    about = {"configs": {str(job.folder): config for job in jobs}, "seconds": seconds, "fails": []}
    here.mkdir(exist_ok=True)
    (here / "fake.json").write_text(json.dumps(about))
    (here / "events").write_text("")
    return jobs, ("env", f"FAKE={here}", sys.executable, "-S", str(FAKE))


def began(here):
    """The arguments of every training that the fake program began."""
    events = [json.loads(line) for line in (here / "events").read_text().splitlines()]
    return [event[2:] for event in events if event[:2] == ["begin", "train"]]


def updates_of(job):
    path = job.folder / "metrics.jsonl"
    return len(path.read_text().splitlines()) if path.exists() else 0


def parent_of(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def children_of(pid):
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            found += [int(folder.name)] if parent_of(folder.name) == pid else []
    return found


class KillOnce:
    """A watch of a queue: kills the processes of a run in the middle, from the launcher's process down."""

    def __init__(self, job, generations, updates=10):
        self.job, self.generations, self.updates = job, generations, updates
        self.killed = 0

    def changed(self, entry):
        pass

    def look(self, entries):
        if self.killed or updates_of(self.job) < self.updates:
            return
        owner = owner_of(lock_of(self.job.folder).path)
        assert owner is not None, "the run was over before it could be killed"
        family = [owner.pid]
        for _ in range(self.generations):
            family.append(parent_of(family[-1]))
        for pid in reversed(family):
            with suppress(ProcessLookupError):  # a worker ends by itself when the process that started it is killed
                os.kill(pid, signal.SIGKILL)
        self.killed = owner.pid


def wait_for(condition, seconds=600):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.05)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def assert_undisturbed(jobs, data, folder):
    """The runs of jobs are finished, and equal to runs that nobody disturbed."""
    for job in jobs:
        assert state_of(job.folder) == "finished"
        train(job.settings, *files(data, job.settings), folder / job.name)
        assert_same_run(folder / job.name, job.folder)
