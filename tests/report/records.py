"""Fake records with the form of real ones, for tests and for looking at the report."""

import base64
import zlib

import numpy as np

from oneofmany.evaluation.scores import Score

COMMAND = "oneofmany train {recipe} --seed {seed}"


def pack(numbers):
    return base64.b64encode(zlib.compress(np.asarray(numbers, "<i4").tobytes())).decode()


def fake_evaluation(valid, total, givens=None, *, task="nqueens", size=11, name=None, checksum="c0ffee", **more):
    """What evaluating gives for queries with so many solutions, of which these were answered correctly."""
    valid, total = np.asarray(valid, bool), np.asarray(total)
    givens = np.full(len(valid), 5) if givens is None else np.asarray(givens)
    multiple = total > 1
    name = name or f"{task}-test"

    def split(right):
        parts = {"os": right[~multiple], "ms": right[multiple], "overall": right}
        return {key: Score(int(part.sum()), len(part)).as_dict() for key, part in parts.items()}

    def per(key, numbers):
        return [{key: int(n), **Score(int(valid[numbers == n].sum()), int((numbers == n).sum())).as_dict()}
                for n in np.unique(numbers)]  # fmt: skip

    return {
        **split(valid),
        "cell_accuracy": 0.5 + float(valid.mean()) / 2,
        "listed": Score(int(valid.sum()), len(valid)).as_dict(),
        "per_solutions": per("solutions", total),
        "per_givens": per("givens", givens),
        "chosen": None,
        "checked": None,
        "readout": "argmax",
        "steps": None,
        "starts": 1,
        "choose": "residual",
        "seed": 0,
        "command": f"oneofmany evaluate RUN {name}",
        "seconds": 1.2,
        "data": {"name": name, "checksum": checksum, "task": task, "size": size, "queries": len(valid)},
        "valid": base64.b64encode(np.packbits(valid).tobytes()).decode(),
        "total": pack(total),
        "givens": pack(givens),
        **{key: split(np.asarray(right, bool)) if key in ("chosen", "checked") else right
           for key, right in more.items()},
    }  # fmt: skip


def fake_record(recipe, seed, evaluations, *, dev=0.5, network="nlm", train=None, history=None, **more):
    """A finished run of a recipe."""
    task, objective = recipe.split("/")[:2]
    objective = objective.split("-")[0]
    scores = {"os": dev, "ms": dev, "overall": dev, "update": 1000, "phase": "train"}
    return {
        "format": 1,
        "name": f"{recipe}/{seed}",
        "recipe": recipe,
        "task": task,
        "objective": objective,
        "network": network,
        "seed": seed,
        "settings": {"recipe": recipe, "seed": seed, "decay": 1e-4, "first": {"updates": 50000, "lr": 0.005}},
        "command": COMMAND.format(recipe=recipe, seed=seed),
        "environment": {"version": "0.1", "revision": "abc", "torch": "2.13", "python": "3.11", "machine": "Linux",
                        "device": "CPU"},
        "data": {"train": train or {"name": f"{task}-train", "checksum": "feed", "queries": 1000},
                 "dev": {"name": f"{task}-dev", "checksum": "dead", "queries": 100}},
        "seconds": 123.4,
        "updates": 50000,
        "finished": True,
        "dev": scores,
        "history": history or {},
        "evaluations": evaluations,
    } | more  # fmt: skip


def fake_history(rng, objective, final, entries=40, joint=False):
    """Dev accuracies that rise to (OS, MS), with a joint phase of exploratory shares at the end where wanted."""
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


def fake_grid(seed=0, seeds=(42, 1729, 3120), queries=4000):
    """Records of all of Table 2, of the 180k comparison and of the equivariant network, near the paper's values."""
    from oneofmany.report import paper

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
    for task in paper.TASKS:
        for objective in paper.OBJECTIVES:
            os, ms = (paper.TABLE_2[task, objective, subset].mean / 100 for subset in ("os", "ms"))
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
        about = {"name": train, "checksum": train, "queries": 180_000 if "180k" in variant else 20_000}
        record = fake_record(f"sudoku/unique-{variant}", 42, {"sudoku-test": evaluation("sudoku", os, ms)},
                             network="rrn", train=about)  # fmt: skip
        record["settings"]["select_on"] = "os" if only else "overall"
        records.append(record)
    return records
