"""Runs on a Ray cluster of two nodes, all of them on this machine."""

import os
import signal
import threading

import pytest

pytest.importorskip("ray")

from launching.sweeps import KillOnce, assert_undisturbed, began, fake_jobs, real_jobs, updates_of
from oneofmany.data.shards import Build, build_in_shards
from oneofmany.launching.ray_tasks import OnRay
from oneofmany.training.jobs import state_of
from oneofmany.training.queue import Queue
from small_runs import write_data


@pytest.fixture(scope="module")
def cluster():
    from ray.cluster_utils import Cluster

    two = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    two.add_node(num_cpus=1)
    yield two
    two.shutdown()


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_data(tmp_path_factory.mktemp("data"))


def test_a_killed_run_ends_with_the_weights_of_an_undisturbed_one(cluster, data, tmp_path):
    jobs = real_jobs(data, tmp_path / "runs", 2)
    watch = KillOnce(jobs[0], generations=2)
    launcher = OnRay(cluster.address)
    try:
        queue = Queue(jobs, at_once=None, watch=watch, cluster=launcher)
        assert queue.run() is None
    finally:
        launcher.close()
    assert watch.killed
    assert [entry.state for entry in queue.entries] == ["finished"] * 2, [entry.why for entry in queue.entries]
    assert_undisturbed(jobs, data, tmp_path / "alone")


def test_what_no_machine_has_is_refused_at_once(cluster):
    """Ray would wait for such a machine for ever."""
    for asked in ({"gpus": 1.0}, {"cpus": 2}):
        with pytest.raises(
            ValueError, match=r"^no machine of the Ray cluster has --cpus \d and --gpus \d: ask for less$"
        ):
            OnRay(cluster.address, **asked)


@pytest.mark.slow
def test_a_lost_node_is_survived(cluster, data, tmp_path):
    """The node on which a run works is lost: the other node resumes it."""
    jobs = real_jobs(data, tmp_path / "runs", 2, updates=100)
    third = cluster.add_node(num_cpus=1)

    class LoseNode(KillOnce):
        def look(self, entries):
            if not self.killed and min(map(updates_of, jobs)) >= 10:
                cluster.remove_node(third)
                self.killed = 1

    launcher, watch = OnRay(cluster.address), LoseNode(jobs[0], 0)
    try:
        queue = Queue(jobs, at_once=None, watch=watch, cluster=launcher)
        assert queue.run() is None
    finally:
        launcher.close()
    assert watch.killed
    assert [entry.state for entry in queue.entries] == ["finished"] * 2, [entry.why for entry in queue.entries]
    assert_undisturbed(jobs, data, tmp_path / "alone")


@pytest.mark.slow
def test_ctrl_c_leaves_a_sweep_that_another_launcher_continues(cluster, data, tmp_path):
    jobs = real_jobs(data, tmp_path / "runs", 2, updates=100)

    class Interrupt(KillOnce):
        def look(self, entries):
            if not self.killed and updates_of(jobs[0]) >= 10:
                os.kill(os.getpid(), signal.SIGINT)
                self.killed = 1

    launcher = OnRay(cluster.address)
    try:
        queue = Queue(jobs, at_once=None, watch=Interrupt(jobs[0], 0), cluster=launcher)
        assert queue.run() == signal.SIGINT
    finally:
        launcher.close()
    assert queue.entries[0].state == "stopped"
    assert state_of(jobs[0].folder) == "begun"
    assert "continue with: oneofmany train --resume" in jobs[0].log.read_text()
    assert Queue(jobs).run() is None
    assert_undisturbed(jobs, data, tmp_path / "alone")


@pytest.mark.slow
def test_two_launchers_do_every_run_once(cluster, tmp_path, monkeypatch):
    """Ray and the local queue at the same sweep; both see every run finished, and every run was begun once."""
    here, out = tmp_path / "fake", tmp_path / "runs"
    jobs, program = fake_jobs(here, out, 12, seconds=0.5, after=(("record", "x"),))
    monkeypatch.setattr("oneofmany.training.queue.PROGRAM", program)
    launcher = OnRay(cluster.address)
    queues = [Queue(jobs, at_once=None, cluster=launcher), Queue(jobs, at_once=2)]
    threads = [threading.Thread(target=queue.run) for queue in queues]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        launcher.close()
    for queue in queues:
        assert [entry.state for entry in queue.entries] == ["finished"] * 12, [entry.why for entry in queue.entries]
    assert sorted(line[-1] for line in began(here)) == sorted(str(job.folder) for job in jobs)


@pytest.mark.slow
def test_shards_have_the_bytes_of_one_machine(cluster, tmp_path):
    arguments = {"size": 5, "blanks": 14, "inequalities": 5, "queries": 300, "split": "train", "seed": 3}
    build = Build("futoshiki", arguments, 4)
    launcher = OnRay(cluster.address)
    try:
        build_in_shards(build, tmp_path / "ray", launcher).save(tmp_path / "ray.safetensors")
    finally:
        launcher.close()
    build_in_shards(build, tmp_path / "here").save(tmp_path / "here.safetensors")
    assert (tmp_path / "ray.safetensors").read_bytes() == (tmp_path / "here.safetensors").read_bytes()
