"""Made-up records of the paper's networks with the layout of records/paper."""

from dataclasses import replace

import numpy as np

from oneofmany.evaluation.record import DataInfo
from oneofmany.evaluation.record_file import save_record
from oneofmany.evaluation.record_json import history_of
from oneofmany.report.grid import OBJECTIVES, TASKS
from report.records import changed, fake_evaluation, fake_history, fake_record
from reproduction.paper import SEEDS, TABLE_2

OS, MS = 120, 80
TOTAL = np.repeat([1, 3], (OS, MS))
SIZES = {"nqueens": 11, "futoshiki": 6, "sudoku": 9}
VARIANTS = {"nqueens": "large-batch", "futoshiki": "large-batch", "sudoku": ""}
"""One schedule for each task, not the same for all tasks."""


def answers(os, ms, shift=0):
    """Which queries are right: these numbers of OS and MS queries, beginning with number ``shift``."""
    return np.concatenate([np.roll(np.arange(OS) < os, shift), np.roll(np.arange(MS) < ms, shift)])


def paper_run(recipe, seed, right=None, dev=0.5, apart=None, train=None, **changes):
    """A run of the NLM or the RRN; ``right`` is (OS, MS, shift) of the test set, None without an evaluation."""
    task = recipe.split("/")[0]
    large = recipe.endswith("/large-batch")
    evaluation = {}
    if right is not None:
        about = {"task": task, "size": SIZES[task], "checksum": f"{task}-test", "seconds": 6.0}
        command = f"oneofmany evaluate runs/{recipe}/{seed} data/{task}-test.safetensors"
        evaluation[f"{task}-test"] = fake_evaluation(answers(*right), TOTAL, **about, command=command)
    batch, updates = (32, 6250) if large else (4, 50_000)
    both = any(word in recipe for word in ("iexplr", "selectr"))
    settings = {
        "first": {"updates": updates, "batch": batch, "sampling": "uniform"},
        "second": {"updates": updates if both else 0, "batch": batch},
        "pretraining": "both",
        "pretrained": [],
        "select_on": "os" if "os-dev" in recipe else "overall",
        "decay": 1e-5,
    }
    for name, value in changes.items():
        first, _, last = name.partition("__")
        settings[first] = settings[first] | {last: value} if last else value
    record = fake_record(recipe, seed, evaluation, dev=dev, network="rrn" if task == "sudoku" else "nlm", train=train)
    about = record.data | {"dev": DataInfo(f"{task}-dev", "dead", 200, ms_queries=80)}
    return replace(changed(record, **settings), seconds=60.0, updates=updates, data=about, apart=apart or "")


def table_2(seeds=SEEDS, variants=VARIANTS, tasks=TASKS):
    """The runs of Table 2, near the paper's means; better with every seed."""
    records = []
    for seed in seeds:
        for task in tasks:
            for objective in OBJECTIVES:
                os, ms = (TABLE_2[task, objective, subset].mean / 100 for subset in ("os", "ms"))
                more = SEEDS.index(seed) - 1
                right = (round(OS * os) + more, round(MS * ms) + more, more)
                recipe = "/".join(filter(None, (task, objective, variants[task])))
                record = paper_run(recipe, seed, right, dev=0.6 + 0.01 * more)
                joint = objective == "selectr"
                history = fake_history(np.random.default_rng(seed), objective, (os, ms), entries=5, joint=joint)
                records.append(replace(record, history=history_of(history)))
    return records


def set_apart():
    """One of each kind of run that is kept apart: literal runs, the tuning grid, the controls."""
    history = fake_history(np.random.default_rng(0), "minloss", (0.8, 0.8), entries=5)
    literal = [paper_run(f"{task}/minloss", 42, (90, 50), dev=0.58, apart="literal") for task in TASKS]
    records = [replace(record, history=history_of(history)) for record in literal]
    for objective in OBJECTIVES:
        for decay, dev in ((1e-4, 0.5), (1e-5, 0.55), (0.0, 0.52)):
            point = f"tuning/decay={decay:g}"
            records.append(paper_run(f"nqueens/{objective}/large-batch", 42, dev=dev, apart=point, decay=decay))
    start = {"pretrained": ["runs/nqueens/unique/large-batch/42"], "second__updates": 6250}
    for objective, right in (("ccloss", (90, 50)), ("minloss", (92, 60)), ("iexplr", (93, 62)), ("selectr", (94, 64))):
        recipe, where = f"nqueens/{objective}/large-batch", "controls/second-phase"
        records.append(paper_run(recipe, 42, right, apart=where, **start))
    records.append(paper_run("nqueens/naive-authors/large-batch", 42, (80, 40), apart="controls/naive-authors"))
    few = DataInfo("sudoku-train", "feed", 20_000)
    many = DataInfo("sudoku-os-train", "os", 180_000)
    for name, right, train in (("180k", (112, 40), many), ("180k-os-dev", (114, 20), many), ("os-dev", (108, 40), few)):
        where = "controls/unique-training"
        records.append(paper_run(f"sudoku/unique-{name}", 42, right, apart=where, train=train))
    for seed in SEEDS[:2]:
        records.append(paper_run("nqueens/minloss/large-batch", seed, dev=0.7, apart="controls/no-decay", decay=0.0))
    records.append(paper_run("nqueens/iexplr/large-batch", 42, (90, 60), apart="controls/repeated"))
    return records


def write(folder, records, usual="."):
    """Write record files below a folder: each in its own folder if it is kept apart, else in ``usual``."""
    for record in records:
        place = folder / (record.apart or usual)
        place.mkdir(parents=True, exist_ok=True)
        save_record(record, place / f"{record.name.replace('/', '-')}.json", force=True)
