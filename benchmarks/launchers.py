"""Jobs a second through the local queue and through Ray, with a program that does nothing but write a run folder.

Both sides start the jobs of the tests' fake program. With Ray, every job is done by a worker process of its own, which
holds the lock and would resume the run.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

from oneofmany.launching.ray_tasks import OnRay
from oneofmany.recipes import recipe
from oneofmany.training import queue as queues
from oneofmany.training.jobs import Job
from oneofmany.training.settings import to_json

FAKE = Path(__file__).parents[1] / "tests" / "training" / "fake_oneofmany.py"


def jobs_in(here: Path, number: int) -> list[Job]:
    settings = recipe("nqueens/minloss/tiny")
    jobs = [Job(str(i), settings, here / "runs" / str(i), (settings.recipe,), ("t", "d")) for i in range(number)]
    data = {"train": {"checksum": "t"}, "dev": {"checksum": "d"}}
    config = {"format": 1, "settings": to_json(settings), "data": data}
    about = {"configs": {str(job.folder): config for job in jobs}, "seconds": 0, "fails": []}
    (here / "fake.json").write_text(json.dumps(about))
    return jobs


def jobs_a_second(number: int, cores: int, launcher: OnRay | None) -> float:
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        queues.PROGRAM = ("env", f"FAKE={here}", sys.executable, "-S", str(FAKE))
        jobs = jobs_in(here, number)
        began = time.perf_counter()
        queue = queues.Queue(jobs, at_once=cores if launcher is None else None, cluster=launcher)
        queue.run()
        seconds = time.perf_counter() - began
        assert all(entry.state == "finished" for entry in queue.entries)
    return number / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=200)
    number, cores = parser.parse_args().jobs, os.cpu_count() or 1
    print(f"$ python benchmarks/launchers.py --jobs {number}")
    print(f"# {cores} cores, Python {platform.python_version()}, Ray {version('ray')}")
    local = jobs_a_second(number, cores, None)
    launcher = OnRay()
    ray = jobs_a_second(number, cores, launcher)
    launcher.close()
    print(f"local queue, {cores} at a time   {local:6.1f} jobs a second")
    print(f"Ray, {cores} cores               {ray:6.1f} jobs a second   {ray / local:.2f} of the local queue")


if __name__ == "__main__":
    main()
