"""Made-up records like real ones, for tests and for looking at the report."""

from dataclasses import replace

import numpy as np

from oneofmany.evaluation.record import DataInfo, Dev, Evaluation, Record, Scores
from oneofmany.evaluation.record_json import history_of
from oneofmany.evaluation.scores import Score
from oneofmany.report.grid import OBJECTIVES, TASKS

COMMAND = "oneofmany train {recipe} --seed {seed}"


def fake_evaluation(
    valid,
    total,
    givens=None,
    *,
    task="nqueens",
    size=11,
    name=None,
    checksum="c0ffee",
    chosen=None,
    checked=None,
    **more,
):
    """An evaluation of queries with these numbers of solutions, of which the valid ones were answered correctly."""
    valid, total = np.asarray(valid, bool), np.asarray(total, np.int32)
    givens = np.full(len(valid), 5) if givens is None else np.asarray(givens)
    multiple = total > 1
    name = name or f"{task}-test"

    def split(right):
        right = np.asarray(right, bool)
        return Scores(*(Score(int(part.sum()), len(part)) for part in (right[~multiple], right[multiple], right)))

    values = {
        "name": name,
        "data": DataInfo(name, checksum, len(valid), task, size),
        "scores": split(valid),
        "chosen": None if chosen is None else split(chosen),
        "checked": None if checked is None else split(checked),
        "listed": Score(int(valid.sum()), len(valid)),
        "cell_accuracy": 0.5 + float(valid.mean()) / 2,
        "network": None,
        "readout": "argmax",
        "steps": None,
        "starts": 1,
        "choose": "residual",
        "seed": 0,
        "patience": None,
        "batch": None,
        "precision": None,
        "weights": None,
        "command": f"oneofmany evaluate RUN {name}",
        "made_by": None,
        "environment": None,
        "seconds": 1.2,
        "time": None,
        "valid": valid,
        "total": total,
        "givens": givens.astype(np.int32),
    }
    return Evaluation(**values | more)


def fake_record(recipe, seed, evaluations, *, dev=0.5, network="nlm", train=None, history=None, **more):
    """A finished run of a recipe; ``dev`` is a share or None, ``train`` a DataInfo, ``history`` its columns."""
    task, objective = recipe.split("/")[:2]
    objective = objective.split("-")[0]
    environment = {"version": "0.1", "revision": "abc", "torch": "2.13", "python": "3.11", "machine": "Linux"}
    values = {
        "recipe": recipe,
        "task": task,
        "objective": objective,
        "network": network,
        "seed": seed,
        "settings": {"recipe": recipe, "seed": seed, "decay": 1e-4, "first": {"updates": 50000, "lr": 0.005}},
        "command": COMMAND.format(recipe=recipe, seed=seed),
        "made_by": None,
        "environment": environment | {"device": "CPU"},
        "data": {
            "train": train or DataInfo(f"{task}-train", "feed", 1000),
            "dev": DataInfo(f"{task}-dev", "dead", 100),
        },
        "seconds": 123.4,
        "updates": 50000,
        "finished": True,
        "dev": None if dev is None else Dev(dev, dev, dev, 1000, "train"),
        "history": history_of(history or {}),
        "evaluations": {name: replace(one, name=name) for name, one in evaluations.items()},
    }
    return Record(**values | more)


def changed(record, **settings):
    """The record with other settings."""
    return replace(record, settings=record.settings | settings)


def fake_history(rng, objective, final, entries=40, joint=False):
    """Dev accuracies that rise to (OS, MS), with exploratory shares of a joint phase at the end if ``joint``."""
    phases = ["train"] * entries + (["joint"] * entries if joint else [])
    update = list(range(250, 250 * (entries + 1), 250)) * (2 if joint else 1)
    rise = 1 - np.exp(-np.arange(1, len(phases) + 1) / (entries / 3))
    noise = rng.normal(0, 0.01, (2, len(phases)))
    os, ms = (np.clip(final[i] * rise + noise[i], 0, 1).round(4).tolist() for i in range(2))
    share = [0.08 * float(np.exp(-i / 12)) + 0.004 for i in range(entries)]
    nothing = [None] * entries

    def exploratory(factor):
        return nothing + [round(factor * s * float(rng.uniform(0.8, 1.2)), 5) for s in share] if joint else nothing

    return {
        "phase": phases,
        "update": update,
        "seconds": [float(i) for i in range(len(phases))],
        "loss": (1 / rise).round(4).tolist(),
        "dev_os": os,
        "dev_ms": ms,
        "dev_overall": [round(0.85 * a + 0.15 * b, 4) for a, b in zip(os, ms, strict=True)],
        "lr": [0.005] * len(phases),
        "exploratory_ms_loss": exploratory(5),
        "exploratory_all_loss": exploratory(1),
        "exploratory_ms_hamming": exploratory(4),
        "exploratory_all_hamming": exploratory(0.8),
    }


def made_up(task, objective):
    """(OS, MS) accuracy of a cell; later objectives are better."""
    place = OBJECTIVES.index(objective)
    return 0.7 + 0.02 * place, 0.3 + 0.07 * place


def fake_grid(seed=0, seeds=(42, 1729, 3120), queries=4000, shares=made_up):
    """Records of all objectives and tasks, of the 180k comparison and of the equivariant network."""
    rng = np.random.default_rng(seed)
    sizes = {"nqueens": 11, "futoshiki": 6, "sudoku": 9}
    tests = {}
    for task, size in sizes.items():
        if task == "sudoku":
            total = np.where(rng.random(queries) < 0.5, 1, np.clip(rng.geometric(0.07, queries) + 1, 2, 49))
            givens = np.clip(34 - 4 * np.log(total) + rng.normal(0, 3, queries), 17, 34).astype(int)
        else:
            share = 0.1667 if task == "nqueens" else 0.2495
            total = np.where(rng.random(queries) < share, 1 + rng.geometric(0.8, queries), 1)
            givens = np.full(queries, 5 if task == "nqueens" else 18)
        tests[task] = size, total, givens

    def evaluation(task, os, ms, **more):
        size, total, givens = tests[task]
        chance = np.where(total > 1, ms - 0.004 * (total - 10 if task == "sudoku" else 0), os)
        valid = rng.random(queries) < chance
        if "starts" in more:
            more |= {"chosen": valid | (rng.random(queries) < 0.5), "checked": valid | (rng.random(queries) < 0.8)}
        return fake_evaluation(valid, total, givens, task=task, size=size, checksum=f"{task}-0", **more)

    records = []
    for task in TASKS:
        for objective in OBJECTIVES:
            os, ms = shares(task, objective)
            for one in seeds:
                jitter = rng.normal(0, 0.01)
                history = fake_history(rng, objective, (os, ms), joint=objective == "selectr")
                evaluations = {f"{task}-test": evaluation(task, os + jitter, ms + jitter)}
                network = "rrn" if task == "sudoku" else "nlm"
                records.append(fake_record(f"{task}/{objective}", one, evaluations, dev=os + jitter, network=network,
                                           history=history))  # fmt: skip
        for objective in ("naive", "minloss", "selectr"):
            ms = 0.3 if objective == "naive" else 0.995
            more = {"starts": 16, "steps": 128}
            evaluations = {f"{task}-test": evaluation(task, 0.99, ms, **more)}
            evaluations[f"{task}20-test"] = evaluation(task, 0.9, ms - 0.1, name=f"{task}20-test", steps=128)
            recipe = f"{task}/{objective}/equivariant"
            records.append(fake_record(recipe, 42, evaluations, network="equivariant", dev=0.9))
    for variant, train, only, os, ms in (
        ("180k-os-dev", "sudoku-os-train", True, 0.94, 0.25),
        ("180k", "sudoku-os-train", False, 0.93, 0.55),
        ("os-dev", "sudoku-train", True, 0.9, 0.5),
    ):
        about = DataInfo(train, train, 180_000 if "180k" in variant else 20_000)
        record = fake_record(f"sudoku/unique-{variant}", 42, {"sudoku-test": evaluation("sudoku", os, ms)},
                             network="rrn", train=about)  # fmt: skip
        records.append(changed(record, select_on="os" if only else "overall"))
    return records
