"""Fake records of our network with every kind of evaluation, as they are in reproduction/records."""

from dataclasses import replace

import numpy as np

from oneofmany.evaluation.record import DataInfo
from oneofmany.report.grid import OBJECTIVES
from report.records import changed, fake_evaluation, fake_record
from reproduction.paper import SEEDS

CHECKER = "sudoku/minloss/equivariant-checker"
SIZES = {"nqueens": (11, 12, 14, 16, 20), "futoshiki": (6, 9), "sudoku": (9, 16)}
"""Of the test set, then of others."""


def settings(record, **changes):
    """The record with settings like those of a real one, and with these changes."""
    own = {"listed": None, "burn_in": [0, 16, 32], "network": {"kind": "equivariant", "width": 64}}
    return changed(record, **own | changes)


def our_evaluations(rng, task, queries=90, better=0.0):
    """The evaluations of a run of our network: the test sets, other sizes, steps and starts on dev."""

    def one(name, size, accuracy, data=None, **more):
        valid = rng.random(queries) < accuracy + better
        if "starts" in more:
            more |= {"chosen": valid | (rng.random(queries) < 0.5), "checked": valid | (rng.random(queries) < 0.8)}
        more = {"steps": 128, "command": f"oneofmany evaluate RUN data/{data or name}.safetensors"} | more
        # The same queries for every run: what they are must not depend on who answered them.
        again = np.random.default_rng(len(data or name) + size)
        total = np.where(np.arange(queries) % 2, 1, again.integers(2, 51, queries))
        givens = again.integers(17, 35, queries) if task == "sudoku" else np.full(queries, size // 2)
        return fake_evaluation(
            valid, total, givens, task=task, size=size, name=data or name, checksum=data or name, **more
        )

    first, *others = SIZES[task]
    found = {name: one(name, first, 0.92) for name in (f"{task}-test", f"{task}-dev")}
    found[f"{task}-fresh-test"] = one(f"{task}-fresh-test", first, 0.9)
    if task == "futoshiki":
        found["futoshiki-20-blanks-test"] = one("futoshiki-20-blanks-test", first, 0.9)
    for size in others:
        found[f"{task}-size-{size}-test"] = one(f"{task}-size-{size}-test", size, 0.7)
    for steps in (8, 16, 32, 64, 256):
        name = f"{task}-dev-steps{steps}"
        found[name] = one(name, first, 0.5 + steps / 600, f"{task}-dev", steps=steps)
    for starts in (2, 8):
        name = f"{task}-dev-starts{starts}"
        found[name] = one(name, first, 0.9, f"{task}-dev", starts=starts)
    found[f"{task}-odd"] = one(f"{task}-odd", first, 0.4)
    return found


def our_runs(queries=90):
    """records/ours: MinLoss with three seeds, also with the checker; the flags and every other objective with one."""
    rng = np.random.default_rng(0)
    records = []
    for task in SIZES:
        for objective in OBJECTIVES:
            for seed in SEEDS if objective == "minloss" else SEEDS[:1]:
                found = our_evaluations(rng, task, queries, better=0.02 if objective == "minloss" else -0.1)
                if objective != "minloss":
                    found = {f"{task}-test": found[f"{task}-test"]}
                recipe = f"{task}/{objective}/equivariant"
                dev = 0.9 + 0.01 * rng.random()
                records.append(settings(fake_record(recipe, seed, found, dev=dev, network="equivariant")))
    flags = our_evaluations(rng, "futoshiki", queries, better=-0.15)
    flags = {name: flags[name] for name in ("futoshiki-test", "futoshiki-20-blanks-test")}
    records.append(settings(fake_record("futoshiki/minloss/equivariant-flags", 42, flags, network="equivariant")))
    for seed in SEEDS:
        found = our_evaluations(rng, "sudoku", queries, better=0.01)
        found = {"sudoku-test": found["sudoku-test"]}
        record = fake_record(CHECKER, seed, found, dev=0.9 + 0.01 * rng.random(), network="equivariant")
        records.append(settings(record, discover=True))
    return records


def experiment(name, recipe, dev, train=None, evaluations=None, **changes):
    """records/experiments/NAME: one run with other settings."""
    record = fake_record(recipe, 42, evaluations or {}, dev=dev, network="equivariant", train=train)
    return replace(settings(record, **changes), apart=f"experiments/{name}")


def our_experiments(queries=90):
    """records/experiments: listed solutions, what did not help, a split by puzzle, a repetition, many solutions."""
    everything = DataInfo("sudoku-all-train", "all", 20_000)
    return [
        experiment("listed-1", CHECKER, 0.8, listed=1, discover=True),
        experiment("listed-2", CHECKER, 0.85, listed=2, discover=True),
        experiment("listed-all", CHECKER, 0.95, train=everything, discover=True),
        experiment("no-burn-in", "nqueens/minloss/equivariant", 0.7, burn_in=[0]),
        split_by_puzzle(),
        repetition(queries),
        *many_solutions(),
    ]


def repetition(queries=90, **changes):
    """records/experiments/repeated: the command of N-Queens' MinLoss again; every test query answered."""
    evaluations = our_evaluations(np.random.default_rng(1), "nqueens", queries, better=1.0)
    evaluations = {"nqueens-test": evaluations["nqueens-test"]}
    return experiment("repeated", "nqueens/minloss/equivariant", 0.9, evaluations=evaluations, **changes)


def split_by_puzzle(**changes):
    """experiments/split-by-puzzle: OS 50 %, MS 100 %; evaluated on the usual test set too, which does not count."""
    train = DataInfo("sudoku-puzzle-train", "puzzle", 20_000)
    evaluations = {
        name: fake_evaluation(valid, np.arange(40) % 2 + 1, task="sudoku", size=9, name=name)
        for name, valid in (("sudoku-puzzle-test", np.arange(40) % 4 > 0), ("sudoku-test", np.zeros(40)))
    }
    return experiment("split-by-puzzle", CHECKER, 0.97, train, evaluations, **{"discover": True} | changes)


def many_solutions(queries=40):
    """experiments/completion-...: two seeds of every board and split, each query answered from 20 starts."""
    rng = np.random.default_rng(2)
    records = []
    for size in (8, 10):
        for split in ("", "-by-class"):
            total = rng.integers(1, 30, queries)
            for seed in SEEDS[:2]:
                folder, data = f"completion-{size}{split}", f"nqueens-completion-{size}{split}-test"
                valid = rng.random(queries) < 0.9
                evaluation = fake_evaluation(
                    valid,
                    total,
                    size=size,
                    name=data,
                    starts=20,
                    checked=valid,
                    chosen=valid,
                    distinct=np.where(valid, rng.integers(1, np.minimum(total, 20) + 1), 0).astype(np.int32),
                    command=f"oneofmany evaluate RUN data/{data}.safetensors --starts=20",
                )
                recipe = f"nqueens/minloss/equivariant/{folder}"
                evaluations = {f"{data}-starts20": replace(evaluation, name=f"{data}-starts20")}
                record = fake_record(recipe, seed, evaluations, dev=0.9, network="equivariant")
                records.append(replace(settings(record, follow_noise=3.0), apart=f"experiments/{folder}"))
    return records
