"""The queue of a sweep: order, resuming, stopping, and pre-training that is shared."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file

from oneofmany.data.nqueens import build_nqueens
from oneofmany.networks.building import NetworkSettings
from oneofmany.recipes import recipe, recipes
from oneofmany.runs.folder import RunFolder
from oneofmany.runs.lock import Lock, _this_process
from oneofmany.runs.state import lock_of
from oneofmany.training import OBJECTIVES, PhaseSettings, train
from oneofmany.training.jobs import Job, check_data, check_settings, share, state_of
from oneofmany.training.queue import Metrics, Queue, _why
from oneofmany.training.settings import to_json

DATA = ("sha256:train", "sha256:dev")


def make_job(out, name, settings=None, **options):
    settings = settings or recipe("nqueens/minloss/tiny")
    return Job(name, settings, out / name, (settings.recipe, "--seed", str(settings.seed)), DATA, **options)


def begin(job, finished=False, **changes):
    """Write the run folder of a job that has started."""
    job.folder.mkdir(parents=True)
    config = config_of(replace(job, settings=replace(job.settings, **changes)))
    (job.folder / "config.json").write_text(json.dumps(config))
    if finished:
        (job.folder / "result.json").write_text("{}")


def config_of(job):
    data = {"train": {"checksum": job.data[0]}, "dev": {"checksum": job.data[1]}}
    return {"format": 1, "settings": to_json(job.settings), "data": data}


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """A program that trains nothing: fake(jobs, seconds, fails) prepares it, fake.events() lists what was run."""
    here = tmp_path / "fake"
    here.mkdir()
    monkeypatch.setenv("FAKE", str(here))
    program = (sys.executable, "-S", str(Path(__file__).with_name("fake_oneofmany.py")))
    monkeypatch.setattr("oneofmany.training.queue.PROGRAM", program)

    class Fake:
        def __call__(self, jobs, seconds=0.05, fails=()):
            about = {
                "configs": {str(job.folder): config_of(job) for job in jobs},
                "seconds": seconds,
                "fails": [str(job.folder) for job in fails],
            }
            (here / "fake.json").write_text(json.dumps(about))
            (here / "events").write_text("")
            return jobs

        def events(self):
            return [json.loads(line) for line in (here / "events").read_text().splitlines()]

        def began(self):
            """The folders of the runs, in the order of their start."""
            return [folder_in(event) for event in self.events() if event[:2] == ["begin", "train"]]

    return Fake()


def folder_in(event):
    return event[event.index("--out" if "--out" in event else "--resume") + 1]


def states(queue):
    return [entry.state for entry in queue.entries]


class Watching:
    """Records the order in which jobs start, and acts once a given number of runs has started."""

    def __init__(self, fake, when=None, what=None):
        self.fake, self.when, self.what = fake, when, what
        self.order, self.most = [], 0

    def changed(self, entry):
        if entry.state == "running":
            self.order.append(entry.job.name)

    def look(self, entries):
        self.most = max(self.most, sum(entry.state == "running" for entry in entries))
        if self.what is not None and len(self.fake.began()) == self.when:
            self.what()
            self.what = None


def test_order_and_how_many_at_once(fake, tmp_path):
    jobs = fake([make_job(tmp_path, f"run/{i}") for i in range(5)])
    watch = Watching(fake)
    queue = Queue(jobs, at_once=2, watch=watch)
    assert queue.run() is None
    assert states(queue) == ["finished"] * 5
    assert all(state_of(job.folder) == "finished" for job in jobs)
    assert watch.order == [job.name for job in jobs]
    assert watch.most == 2


def test_finished_is_skipped_begun_is_resumed_missing_is_started(fake, tmp_path):
    jobs = fake([make_job(tmp_path, f"run/{i}") for i in range(3)])
    begin(jobs[0], finished=True)
    begin(jobs[1])
    assert Queue(jobs).run() is None
    recipe_name = jobs[2].settings.recipe
    assert [event[1:] for event in fake.events() if event[0] == "begin"] == [
        ["train", "--resume", str(jobs[1].folder)],
        ["train", recipe_name, "--seed", "42", "--out", str(jobs[2].folder)],
    ]
    fake(jobs)
    queue = Queue(jobs)
    assert queue.run() is None
    assert states(queue) == ["finished"] * 3
    assert fake.events() == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_and_the_same_queue_goes_on(fake, tmp_path, number):
    jobs = fake([make_job(tmp_path, f"run/{i}") for i in range(3)], seconds=60)
    handler = signal.getsignal(number)
    queue = Queue(jobs, watch=Watching(fake, 1, lambda: os.kill(os.getpid(), number)))
    assert queue.run() == number
    assert signal.getsignal(number) is handler
    assert states(queue) == ["stopped", "waiting", "waiting"]
    assert [event[0] for event in fake.events()] == ["begin", "stop"]
    assert state_of(jobs[0].folder) == "begun"
    fake(jobs)
    assert Queue(jobs).run() is None
    assert all(state_of(job.folder) == "finished" for job in jobs)
    assert fake.events()[0][1:3] == ["train", "--resume"]


def test_the_end_of_the_time_stops_too(fake, tmp_path):
    jobs = fake([make_job(tmp_path, f"run/{i}") for i in range(3)], seconds=60)
    queue = Queue(jobs, at_once=2, watch=Watching(fake, 2, lambda: setattr(queue, "deadline", time.monotonic())))
    assert queue.run() is None
    assert states(queue) == ["stopped", "stopped", "waiting"]
    fake(jobs)
    queue = Queue(jobs, deadline=time.monotonic())
    assert queue.run() is None
    assert states(queue) == ["waiting"] * 3
    assert fake.events() == []


TRACE = "Traceback (most recent call last):\n  File x, line 1\n    f()\n"


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("update 1\noneofmany: the loss is nan\n\n", "the loss is nan"),
        (f"{TRACE}CudaError: illegal access\nFor debugging set this.\n", "CudaError: illegal access"),
        (f"{TRACE}KeyError: 1\n\nDuring handling:\n\n{TRACE}ValueError: 2\n", "ValueError: 2"),
        (TRACE, ""),
        ("", ""),
    ],
)
def test_why_a_run_failed(tmp_path, written, why):
    log = tmp_path / "log"
    log.write_text("ValueError: of an earlier time\n" + written)
    assert _why(log, len("ValueError: of an earlier time\n")) == why


def test_a_failed_run_is_named_and_the_others_go_on(fake, tmp_path):
    jobs = [make_job(tmp_path, f"run/{i}") for i in range(3)]
    waits = make_job(tmp_path, "run/waits", replace(jobs[0].settings, pretrained=(str(jobs[1].folder),)))
    jobs.insert(0, waits)
    fake(jobs, fails=[jobs[2]])
    queue = Queue(jobs)
    assert queue.run() is None
    assert states(queue) == ["failed", "finished", "failed", "finished"]
    assert queue.entries[2].why == "the loss is nan at update 1"
    assert queue.entries[0].why == "it starts from run/1, which failed"
    assert state_of(waits.folder) == "missing"
    assert len(fake.began()) == 3  # nothing twice


def test_a_run_waits_for_those_it_starts_from(fake, tmp_path):
    sources = [make_job(tmp_path, f"run/{i}") for i in range(2)]
    settings = replace(sources[0].settings, pretrained=tuple(str(job.folder) for job in sources))
    jobs = fake([make_job(tmp_path, "run/waits", settings), *sources], seconds=0.2)
    assert Queue(jobs, at_once=3).run() is None
    waited = fake.events()[-2:]
    assert [event[0] for event in waited] == ["begin", "end"]
    assert all(folder_in(event) == str(jobs[0].folder) for event in waited)


def test_what_comes_after_a_run(fake, tmp_path):
    one = make_job(tmp_path, "run/1", after=(("record", "1"), ("record", "2")))
    assert Queue(fake([one])).run() is None
    assert [event[1:3] for event in fake.events() if event[0] == "end"][1:] == [["record", "1"], ["record", "2"]]
    fake([one])
    assert Queue([one]).run() is None
    assert [event[1] for event in fake.events() if event[0] == "begin"] == ["record", "record"]


@pytest.mark.parametrize("whose", ["queue", "training"])
def test_a_run_that_another_process_works_on_is_waited_for(fake, tmp_path, monkeypatch, whose):
    monkeypatch.setattr("oneofmany.training.queue.AGAIN", 0.05)
    (job,) = fake([make_job(tmp_path, "run/1")])
    begin(job)
    lock = Lock(job.lock) if whose == "queue" else lock_of(job.folder)
    lock.acquire()

    def finish_elsewhere():
        assert fake.events() == []
        (job.folder / "result.json").write_text("{}")
        lock.release()

    timer = threading.Timer(0.5, finish_elsewhere)
    timer.start()
    queue = Queue([job])
    assert queue.run() is None
    timer.join()
    assert states(queue) == ["finished"]
    assert fake.events() == []
    assert [path.name for path in job.lock.parent.iterdir() if path.name.startswith(".")] == []


def test_a_run_that_another_process_takes_at_the_last_moment_is_waited_for(fake, tmp_path, monkeypatch):
    """The training that the queue starts finds the run locked and fails; the queue waits for the other process."""
    monkeypatch.setattr("oneofmany.training.queue.AGAIN", 0.05)
    (job,) = jobs = [make_job(tmp_path, "run/1")]
    fake(jobs, fails=jobs)
    begin(job)
    lock = lock_of(job.folder)

    class Other(Watching):
        def changed(self, entry):
            super().changed(entry)
            if entry.state == "running":
                lock.acquire()
            if entry.state == "waiting":
                (job.folder / "result.json").write_text("{}")
                lock.release()

    queue = Queue(jobs, watch=Other(fake))
    assert queue.run() is None
    assert states(queue) == ["finished"]
    assert len(fake.began()) == 1


def test_a_run_that_another_process_makes_at_the_last_moment_is_not_failed(fake, tmp_path, monkeypatch):
    """The training that the queue starts finds a run that a killed queue's training has made meanwhile."""
    monkeypatch.setattr("oneofmany.training.queue.AGAIN", 0.05)
    jobs = [make_job(tmp_path, "run/1")]
    fake(jobs)
    start = Queue._start

    def late(self, entries):
        start(self, entries)
        if entries:
            entries[0].process.wait()
            entries[0].process = SimpleNamespace(poll=lambda: 2)  # as `oneofmany train` ends if the folder exists

    monkeypatch.setattr(Queue, "_start", late)
    queue = Queue(jobs)
    assert queue.run() is None
    assert states(queue) == ["finished"]
    assert len(fake.began()) == 1


def test_two_queues_at_once_do_every_run_once(fake, tmp_path, monkeypatch):
    monkeypatch.setattr("oneofmany.training.queue.AGAIN", 0.05)
    jobs = fake([make_job(tmp_path, f"run/{i}", after=(("record", str(i)),)) for i in range(4)], seconds=0.1)
    queues = [Queue(jobs, at_once=2) for _ in range(2)]
    threads = [threading.Thread(target=queue.run) for queue in queues]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [states(queue) for queue in queues] == [["finished"] * 4] * 2
    assert sorted(fake.began()) == sorted(str(job.folder) for job in jobs)


def test_a_killed_queue_leaves_its_jobs_to_the_next(fake, tmp_path):
    (job,) = fake([make_job(tmp_path, "run/1")])
    job.lock.parent.mkdir(parents=True)
    dead = subprocess.run([sys.executable, "-S", "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    owner = replace(_this_process("token"), pid=int(dead.stdout))
    job.lock.with_name(f"{job.lock.name}.1").write_text(json.dumps(vars(owner)))
    queue = Queue([job])
    assert queue.run() is None
    assert states(queue) == ["finished"]


def test_threads_are_shared_among_the_jobs(fake, tmp_path):
    settings = replace(recipe("nqueens/minloss/tiny"), device="cpu")
    jobs = fake([make_job(tmp_path, "a", settings), make_job(tmp_path, "b", replace(settings, threads=5))])
    cores = len(os.sched_getaffinity(0))
    assert Queue(jobs, at_once=cores + 1).run() is None
    commands = {folder_in(event): event for event in fake.events() if event[0] == "begin"}
    assert commands[str(tmp_path / "a")][-4:-2] == ["--threads", "1"]
    assert "--threads" not in commands[str(tmp_path / "b")]  # its own arguments say it


def test_metrics_are_read_as_they_grow(tmp_path):
    path = tmp_path / "metrics.jsonl"
    metrics = Metrics(path)
    rest = '"phase":"train","loss":1.0,"queries_per_second":2}\n'
    line = {"kind": "train", "phase": "train", "loss": 1.0, "queries_per_second": 2}
    assert metrics.newest() == {}
    path.write_text('{"kind":"dev","update":4,"dev_os":0.5}\n{"kind":"train","update":5}\n')
    assert metrics.newest() == {}  # a damaged line is not one of training
    with path.open("a") as file:
        file.write(f'{{"kind":"train","update":5,{rest}{{"kind":"tra')
    assert metrics.newest() == {**line, "update": 5, "dev_os": 0.5}
    with path.open("a") as file:
        file.write(f'in","update":6,{rest}{{"kind":"start","dev":{{}}}}\n')
    assert metrics.newest() == {**line, "update": 6, "dev_os": 0.5}
    path.write_text(f'{{"kind":"train","update":2,{rest}')
    assert metrics.newest() == {**line, "update": 2}


# ---- settings and data ----------------------------------------------------------------------------------------------


def test_other_settings_are_named_before_anything_starts(tmp_path):
    settings = recipe("nqueens/minloss/tiny")
    same, other = make_job(tmp_path, "same", settings), make_job(tmp_path, "other", settings)
    begin(same, threads=3)  # the queue's choice
    check_settings([same])
    begin(other, decay=0.5, first=replace(settings.first, lr=0.25))
    different = r"other was started with other settings: .*first\.lr: 0\.25 there.*decay: 0\.5 there, 0\.01 here"
    with pytest.raises(ValueError, match=different):
        check_settings([same, other])
    with pytest.raises(ValueError, match="threads: 3 there, 2 here"):
        check_settings([make_job(tmp_path, "same", replace(settings, threads=2))])


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    job = make_job(tmp_path, "mine")
    job.folder.mkdir()
    check_settings([job])
    # What a process leaves that was killed, or found the disk full, before it had written the configuration.
    (job.folder / "state").mkdir()
    (job.folder / ".config.json.abc.part").write_text('{"format"')
    (job.folder / ".lock.1").write_text("{}")
    check_settings([job])
    (job.folder / "notes").write_text("mine")
    with pytest.raises(ValueError, match="mine exists and is not a run"):
        check_settings([job])
    job = make_job(tmp_path, "broken")
    begin(job)
    (job.folder / "config.json").write_text('{"format": 1}')
    for check in (check_settings, check_data):
        with pytest.raises(ValueError, match=r"broken/config\.json is damaged"):
            check([job])


def test_other_data_is_refused(tmp_path):
    job = make_job(tmp_path, "run")
    begin(job)
    check_data([job])
    different = r"run was started with other data .*sha256:dev, here sha256:train and sha256:x"
    with pytest.raises(ValueError, match=different):
        check_data([replace(job, data=("sha256:train", "sha256:x"))])


# ---- sharing --------------------------------------------------------------------------------------------------------


def jobs_of(out, task, suffix=""):
    return [make_job(out, f"{task}/{name}{suffix}/42", recipe(f"{task}/{name}{suffix}")) for name in OBJECTIVES]


@pytest.mark.parametrize("task", ["nqueens", "futoshiki", "sudoku"])
def test_the_papers_recipes_share_their_pretraining(tmp_path, task):
    shared = {job.settings.objective: job for job in share(jobs_of(tmp_path, task), tmp_path)}
    paths = (str(tmp_path / task / "minloss/42"), str(tmp_path / task / "unique/42"))
    for objective, job in shared.items():
        expected = paths if objective in ("iexplr", "selectr") else ()
        assert job.settings.pretrained == expected
        assert job.arguments[3:] == (("--pretrained", *expected) if expected else ())


@pytest.mark.parametrize("suffix", ["/tiny", "/equivariant"])
def test_our_recipes_have_a_shorter_pretraining_of_their_own(tmp_path, suffix):
    jobs = jobs_of(tmp_path, "nqueens", suffix)
    assert share(jobs, tmp_path) == jobs


def test_no_recipe_shares_with_other_settings(tmp_path):
    """Over all recipes at once: a shared run has the same task, network, seed and first phase."""
    everything = [make_job(tmp_path, name, settings) for name, settings in recipes().items()]
    by_folder = {str(job.folder): job.settings for job in everything}
    number = 0
    for job in share(everything, tmp_path):
        if not job.settings.pretrained:
            continue
        own = by_folder[str(job.folder)]
        ways = ("minloss", "unique") if own.pretraining == "both" else (own.pretraining,)
        for path, objective in zip(job.settings.pretrained, ways, strict=True):
            source = by_folder[path]
            assert source.objective == objective
            assert source.decay == (own.decay if own.first.decay is None else own.first.decay)
            assert (source.task, source.network, source.seed) == (
                job.settings.task,
                job.settings.network,
                job.settings.seed,
            )
            assert replace(source.first, sampling="os") == replace(own.first, sampling="os", decay=None)
            assert objective == "unique" or source.first.sampling == own.first.sampling
            number += 1
    # I-ExplR and SelectR from two runs, three tasks, two batch sizes; Table 2, its tuning and controls from one run.
    # On Sudoku three of the objectives alike, and SelectR with the paper's schedule.
    assert number == 2 * 2 * 6 + 2 * 3 + 2 * (3 + 3 + 2) + (2 * 3 + 6 + 1 + 1) + (3 + 1)


FIRST = recipe("nqueens/minloss").first


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"task": "futoshiki"},
        {"listed": 5},
        {"decay": 0.5},
        {"betas": (0.5, 0.5)},
        {"clip": 1.0},
        {"ema": 0.5},
        {"evaluate_every": 10},
        {"dev_queries": 3},
        {"select_on": "ms"},
        {"precision": "float32"},
        {"network": NetworkSettings("nlm", width=8, depth=29)},
        {"first": replace(FIRST, lr=0.5)},
        {"first": replace(FIRST, updates=7)},
        {"first": replace(FIRST, sampling="pairs")},
        {"second": PhaseSettings(updates=5)},
        {"objective": "ccloss"},
    ],
    ids=str,
)
def test_a_run_that_is_not_the_pretraining_is_not_shared(tmp_path, change):
    start = make_job(tmp_path, "selectr", replace(recipe("nqueens/selectr"), pretraining="minloss"))
    settings = recipe("nqueens/minloss")
    source = make_job(tmp_path, "minloss", settings)
    assert share([start, source], tmp_path)[0].settings.pretrained == (str(source.folder),)
    other = make_job(tmp_path, "minloss", replace(settings, **change))
    assert share([start, other], tmp_path) == [start, other]
    assert share([start, replace(source, data=("other", "data"))], tmp_path)[0] == start


def test_half_of_the_pretraining_is_not_enough(tmp_path):
    jobs = [make_job(tmp_path, name, recipe(f"nqueens/{name}")) for name in ("selectr", "minloss")]
    assert share(jobs, tmp_path) == jobs


def test_runs_that_stand_there_finished_are_shared(tmp_path):
    start, *sources = (make_job(tmp_path, name, recipe(f"nqueens/{name}")) for name in ("selectr", "minloss", "unique"))
    begin(sources[0], finished=True)
    begin(sources[1])
    assert share([start], tmp_path) == [start]  # no job continues from Unique
    (sources[1].folder / "result.json").write_text("{}")
    paths = tuple(str(job.folder) for job in sources)
    assert share([start], tmp_path)[0].settings.pretrained == paths
    # A finished run is preferred to one that is still to be trained.
    again = make_job(tmp_path, "again/minloss", sources[0].settings)
    assert share([start, again], tmp_path)[0].settings.pretrained == paths


def test_a_run_that_was_begun_stays_what_it_is(tmp_path):
    names = ("selectr", "minloss", "unique")
    start, *sources = (make_job(tmp_path, f"nqueens/{name}/42", recipe(f"nqueens/{name}")) for name in names)
    jobs = [start, *sources]
    begin(start)
    check_settings(jobs)
    assert share(jobs, tmp_path) == jobs
    # A folder that was moved is recognised by the end of its path.
    moved = tuple(f"elsewhere/{job.name}" for job in sources)
    (start.folder / "config.json").write_text(
        json.dumps(config_of(replace(start, settings=replace(start.settings, pretrained=moved))))
    )
    check_settings(jobs)
    assert share(jobs, tmp_path)[0].settings.pretrained == moved
    with pytest.raises(ValueError, match="pretrained: "):
        check_settings(jobs, sharing=False)
    with pytest.raises(ValueError, match=r"pretrained: elsewhere/nqueens/minloss/42, .* there"):
        share([start, sources[0]], tmp_path)


@pytest.mark.parametrize(("objective", "last"), [("selectr", "joint"), ("iexplr", "exploration")])
def test_sharing_gives_the_same_bits_as_pretraining(tmp_path, objective, last):
    assert torch.get_num_threads() == 1
    data = tmp_path / "queens.safetensors"
    queens = build_nqueens(7, 5, 60, seed=1)
    assert 0 < queens.multiple.sum() < 60
    queens.save(data)
    phase = PhaseSettings(updates=6, batch=8, lr=4e-3, warmup=2, schedule="cosine")
    common = replace(
        recipe(f"nqueens/{objective}/tiny"),
        pretraining="both",
        seed=7,
        network=NetworkSettings("equivariant", width=8, steps=3, test_steps=4),
        first=phase,
        second=replace(phase, updates=4),
        evaluate_every=2,
        device="cpu",
    )
    # All settings without influence are different.
    minloss = replace(common, objective="minloss", second=PhaseSettings(), temperature=3.0, epsilon=0.5)
    unique = replace(common, objective="unique", second=PhaseSettings(), keep_pretrained=False, checkpoint_minutes=9)
    named = {"two": common, "minloss": minloss, "unique": unique}
    jobs = [Job(name, replace(settings, recipe=name), tmp_path / name, ()) for name, settings in named.items()]
    two, *sources = share(jobs, tmp_path)
    assert two.settings.pretrained == tuple(str(tmp_path / name) for name in ("minloss", "unique"))
    for job in (*sources, two):
        train(job.settings, data, data, job.folder)
    train(common, data, data, tmp_path / "own")
    own, shared = (load_file(tmp_path / name / "weights.safetensors") for name in ("own", "two"))
    assert own.keys() == shared.keys()
    assert all(torch.equal(own[name], shared[name]) for name in own)
    losses = [
        [line["loss"] for line in RunFolder.open(tmp_path / name).read_metrics() if line.get("phase") == last]
        for name in ("own", "two")
    ]
    assert losses[0] == losses[1]
    assert losses[0]
    first, second = (load_file(job.folder / "weights.safetensors") for job in sources)
    assert not all(torch.equal(first[name], second[name]) for name in first)  # there was something to choose
