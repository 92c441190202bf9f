"""Training by torchrun on two nodes, both on this machine."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from launching.sweeps import children_of, free_port, real_jobs, updates_of, wait_for
from small_runs import assert_same_run, write_data

NODES = ("--nnodes", "2", "--nproc-per-node", "1", "--rdzv-backend", "c10d", "--rdzv-id", "run", "--max-restarts", "3")


def torchrun(job, out, *options):
    line = [sys.executable, "-m", "torch.distributed.run", *options, "-m", "oneofmany", "train", *job.arguments]
    return subprocess.Popen(
        [*line, "--out", str(out), "--or-resume"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"},
    )


@pytest.mark.slow
@pytest.mark.parametrize("lost", [0, 1])
def test_a_lost_worker_is_replaced_and_the_run_ends_with_the_same_weights(lost, tmp_path):
    data = write_data(tmp_path)
    (job,) = real_jobs(data, tmp_path / "runs", 1, updates=150)
    undisturbed = torchrun(job, tmp_path / "undisturbed", "--nproc-per-node", "2", "--standalone")
    output, _ = undisturbed.communicate()
    assert undisturbed.returncode == 0, output
    endpoint = f"127.0.0.1:{free_port()}"
    nodes = [torchrun(job, job.folder, *NODES, "--rdzv-endpoint", endpoint) for _ in range(2)]
    try:
        wait_for(lambda: updates_of(job) >= 10 or any(node.poll() is not None for node in nodes))
        (worker,) = [
            child
            for node in nodes
            for child in children_of(node.pid)
            if f"\0RANK={lost}\0" in Path(f"/proc/{child}/environ").read_text()
        ]
        os.kill(worker, signal.SIGKILL)
        outputs = [node.communicate(timeout=600)[0] for node in nodes]
    finally:
        for node in nodes:
            node.terminate()
    assert [node.returncode for node in nodes] == [0, 0], "\n".join(outputs)
    assert any("exitcode: -9" in output for output in outputs)
    assert_same_run(tmp_path / "undisturbed", job.folder)
