"""Runs as SLURM jobs: submitit's local executor here, a cluster of one node on this machine in the slow tests."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("submitit")

from launching.sweeps import assert_undisturbed, began, children_of, fake_jobs, free_port, real_jobs, updates_of
from oneofmany.data.shards import Build, build_in_shards
from oneofmany.launching import Command
from oneofmany.launching.slurm import OnSlurm, Scheduler
from oneofmany.training.jobs import state_of
from oneofmany.training.queue import Queue
from small_runs import write_data

SCRIPT = Path(__file__).with_name("one_node_slurm.sh")


class Doing:
    """A watch of a queue that calls a function until it returns True."""

    def __init__(self, *functions):
        self.functions = list(functions)

    def changed(self, entry):
        pass

    def look(self, entries):
        self.functions = [function for function in self.functions if not function(entries)]


# The processes of submitit's local executor look once a second whether they are still needed.
@pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning")
def test_jobs_run_and_a_time_limit_queues_them_again(tmp_path, monkeypatch):
    here, out = tmp_path / "fake", tmp_path / "runs"
    jobs, program = fake_jobs(here, out, 2, seconds=60, after=(("record", "x"),))
    monkeypatch.setattr("oneofmany.training.queue.PROGRAM", program)

    def time_limit(entries):
        """What SLURM sends before the time limit, once both have begun."""
        if len(began(here)) == 2:
            for entry in entries:
                (task,) = children_of(int(entry.process._job.job_id))
                os.kill(task, signal.SIGUSR2)
        return len(began(here)) == 2

    launcher = OnSlurm(out, cluster="local")
    queue = Queue(jobs, at_once=None, watch=Doing(time_limit), cluster=launcher)
    assert queue.run() is None
    assert [entry.state for entry in queue.entries] == ["finished"] * 2, [entry.why for entry in queue.entries]
    # Each was begun, stopped, and resumed once.
    assert sorted(line[0] == "--resume" for line in began(here)) == [False, False, True, True]
    assert (out / "run/0.log").read_text() == "stopped\n"
    events = (here / "events").read_text().splitlines()
    assert sum('"begin", "record"' in event for event in events) == 2
    assert Queue(jobs[:1], cluster=launcher).run() is None  # nothing is trained twice
    assert len(began(here)) == 4


def test_without_a_cluster_the_reason_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ValueError, match=r"--launcher slurm: .*srun.*: run the command on a machine of the cluster"):
        OnSlurm(tmp_path)
    with pytest.raises(ValueError, match=r"--gpus: SLURM gives whole GPUs to a job, got 0\.5"):
        OnSlurm(tmp_path, gpus=0.5)


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Stand-ins for SLURM's programs: programs(squeue="exit 1") replaces one; their arguments are in the file calls."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)

    def replace(**scripts):
        for name, script in scripts.items():
            (folder / name).write_text(f'#!/bin/sh\necho {name} "$@" >> {tmp_path}/calls\n{script}\n')
            (folder / name).chmod(0o755)

    replace(srun="", sbatch="echo Submitted batch job 7", squeue="", scancel="")
    return replace


def calls(tmp_path, name):
    return [line for line in (tmp_path / "calls").read_text().splitlines() if line.startswith(name)]


def commands(tmp_path, number):
    return [Command(("x",), tmp_path / f"{i}.log") for i in range(number)]


def test_what_sbatch_refuses_is_one_sentence(programs, tmp_path):
    programs(sbatch="echo 'sbatch: error: invalid partition specified: big' >&2; exit 1")
    with pytest.raises(ValueError, match=r"^--launcher slurm: sbatch: error: invalid partition specified: big$"):
        OnSlurm(tmp_path).start(commands(tmp_path, 1))


def test_arrays_have_the_size_that_slurm_takes_and_no_other_limit(programs, tmp_path, monkeypatch):
    OnSlurm(tmp_path).start(commands(tmp_path, 300))
    (script,) = (tmp_path / ".slurm").glob(".submission_file_*.sh")
    assert "#SBATCH --array=0-299%300\n" in script.read_text()
    monkeypatch.setattr("oneofmany.launching.slurm.ARRAY", 2)
    assert len(OnSlurm(tmp_path).start(commands(tmp_path, 5))) == 5
    assert len(calls(tmp_path, "sbatch")) == 1 + 3
    programs(sbatch=f"test $(grep -c sbatch {tmp_path}/calls) -lt 6 && echo Submitted batch job 8")
    with pytest.raises(ValueError, match=r"^--launcher slurm: sbatch failed$"):
        OnSlurm(tmp_path).start(commands(tmp_path, 4))
    assert len(calls(tmp_path, "scancel")) == 2  # the first array of the two is taken back


def test_an_exit_code_that_network_storage_shows_late(programs, tmp_path, monkeypatch):
    monkeypatch.setattr("oneofmany.launching.slurm.ASK", 0.0)
    late, lost, cancelled = OnSlurm(tmp_path).start(commands(tmp_path, 3))
    assert late.poll() is None  # SLURM has forgotten it
    late._end.write_text("0")
    assert late.poll() == 0
    cancelled.terminate()
    assert cancelled.poll() == -signal.SIGTERM
    assert lost.poll() is None
    monkeypatch.setattr("oneofmany.launching.slurm.SEEN", 0.0)
    assert lost.poll() == -signal.SIGTERM


def test_a_scheduler_that_does_not_answer_is_not_asked_for_every_job(programs, tmp_path):
    programs(squeue="exit 1")
    scheduler = Scheduler()
    assert all(scheduler.has(f"7_{i}") for i in range(20))
    assert len(calls(tmp_path, "squeue")) == 1


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    """A SLURM cluster of one node."""
    if shutil.which("slurmctld") is None or shutil.which("munged") is None or os.getuid() != 0:
        pytest.skip("needs root and Debian's slurm-wlm and munge")
    folder = tmp_path_factory.mktemp("slurm")
    subprocess.run([SCRIPT, folder, str(free_port())], check=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", str(folder / "slurm.conf"))
        yield folder
    for name in ("slurmd.pid", "slurmctld.pid"):
        os.kill(int((folder / name).read_text()), signal.SIGTERM)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_data(tmp_path_factory.mktemp("data"))


@pytest.mark.slow
def test_preempted_jobs_end_with_the_weights_of_undisturbed_ones(slurm, data, tmp_path):
    jobs = real_jobs(data, tmp_path / "runs", 2, updates=200)
    told = {}

    def disturb(index, *command):
        def once(entries):
            if entries[index].process is None or updates_of(jobs[index]) < 10:
                return False
            told[index] = str(entries[index].process._job.job_id)
            subprocess.run([*command, told[index]], check=True)
            return True

        return once

    # One is preempted; the other gets the signal that SLURM sends before a time limit.
    watch = Doing(disturb(0, "scontrol", "requeue"), disturb(1, "scancel", "--signal=USR2"))
    queue = Queue(jobs, at_once=None, watch=watch, cluster=OnSlurm(tmp_path / "runs", limit=60))
    assert queue.run() is None
    assert [entry.state for entry in queue.entries] == ["finished"] * 2, [entry.why for entry in queue.entries]
    assert sorted(told) == [0, 1]
    assert all("_" in job for job in told.values())  # a job array
    for job in jobs:
        assert "continue with: oneofmany train --resume" in job.log.read_text()
    assert_undisturbed(jobs, data, tmp_path / "alone")


@pytest.mark.slow
def test_ctrl_c_leaves_a_sweep_that_another_launcher_continues(slurm, data, tmp_path):
    jobs = real_jobs(data, tmp_path / "runs", 2, updates=200)

    def interrupt(entries):
        if updates_of(jobs[0]) < 10:
            return False
        os.kill(os.getpid(), signal.SIGINT)
        return True

    queue = Queue(jobs, at_once=None, watch=Doing(interrupt), cluster=OnSlurm(tmp_path / "runs", limit=60))
    assert queue.run() == signal.SIGINT
    assert queue.entries[0].state == "stopped"
    assert state_of(jobs[0].folder) == "begun"
    assert subprocess.run(["squeue", "--noheader"], capture_output=True, text=True, check=True).stdout == ""
    assert Queue(jobs).run() is None
    assert_undisturbed(jobs, data, tmp_path / "alone")


@pytest.mark.slow
def test_shards_have_the_bytes_of_one_machine(slurm, tmp_path):
    arguments = {"size": 5, "blanks": 14, "inequalities": 5, "queries": 300, "split": "train", "seed": 3}
    build = Build("futoshiki", arguments, 3)
    build_in_shards(build, tmp_path / "slurm", OnSlurm(tmp_path / "slurm", limit=60)).save(tmp_path / "a.safetensors")
    build_in_shards(build, tmp_path / "here").save(tmp_path / "b.safetensors")
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()
