"""Every reader of the package, with valid examples of what it reads, a mutation for them, and a share of all inputs."""

import hashlib
import shutil
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import numpy as np
import torch

from oneofmany.cli.evaluate import evaluate
from oneofmany.cli.reading import read_queries
from oneofmany.data import Dataset
from oneofmany.data.colouring import build_colouring
from oneofmany.data.futoshiki import build_futoshiki
from oneofmany.data.nqueens import build_nqueens
from oneofmany.data.pairs import export_parquet, import_pairs
from oneofmany.data.statistics import statistics
from oneofmany.data.sudoku import build_sudoku
from oneofmany.evaluation import compare_runs, evaluate_run, load_predictions, read_record, save_record
from oneofmany.networks.saved import load_network
from oneofmany.problems import TASKS
from oneofmany.report import Grid, read_records
from oneofmany.report.page import render, user_sections
from oneofmany.runs.folder import SEAL, RunFolder
from oneofmany.solving import load_network as load_without_torch
from oneofmany.training import resume, train
from oneofmany.training.checkpoints import Checkpoint
from oneofmany.training.jobs import Job, check_settings, data_in
from oneofmany.training.queue import Metrics
from small_runs import files, small

from .mutations import Draw, mutate_bytes, mutate_json, mutate_tensors

Mutation = Callable[[bytes, list[bytes], Draw], bytes]


@dataclass(frozen=True)
class Reader:
    """A reader of one kind of file.

    Args:
        name: of the reader.
        share: its share of all inputs, in thousandths.
        examples: valid contents.
        mutate: makes an input of an example.
        file: where the input is written.
        read: called after that; raises ValueError or OSError for a bad input, as the commands expect.
    """

    name: str
    share: float
    examples: list[bytes]
    mutate: Mutation
    file: Path
    read: Callable[[], object]


def all_readers(folder: Path) -> list[Reader]:
    """Write the examples into an empty folder and return the readers, which read files below it."""
    data = _data(folder)
    run = folder / "run"
    settings = small("minloss")
    train(settings, *files(folder, settings), run)
    for starts in (1, 2):
        evaluate_run(run, folder / "sudoku-dev.safetensors", starts=starts, device="cpu")
    save_record(read_record(run), folder / "record.json")
    return [
        *_of_puzzles(folder, data),
        *_of_pairs(folder, data),
        *_of_files(folder, run),
        *_of_runs(folder, run),
    ]


def _data(folder: Path) -> list[Dataset]:
    made = {
        "sudoku": build_sudoku(12, "train", seed=1, size=4, givens=(6, 10), listed=9),
        "sudoku-dev": build_sudoku(12, "dev", seed=2, size=4, givens=(8, 12), ms_queries=4, listed=9),
        "nqueens": build_nqueens(6, 3, 9, seed=1),
        "futoshiki": build_futoshiki(4, 8, 3, 9, seed=1),
        "colouring": build_colouring(9, (4, 6), seed=1),
    }
    for name, one in made.items():
        one.save(folder / f"{name}.safetensors")
    return list(made.values())


# ---- texts -----------------------------------------------------------------------------------------------------------


def _of_puzzles(folder: Path, data: list[Dataset]) -> Iterator[Reader]:
    for name, task in TASKS.items():
        path = folder / f"{name}.txt"
        texts = _texts(next(one for one in data if one.problem.task == name)) + OTHER_TEXTS[name]

        def read(task=task, path=path) -> None:
            found = read_queries(task, str(path))
            for _, query in found.queries[:20]:
                task.contradiction(query)
                task.format(query.problem, query.values, query.relations)
            with suppress(ValueError):  # the same text on the command line
                read_queries(task, path.read_text(encoding="utf-8")[:2000] or "-x")

        yield Reader(name, 150, [text.encode() for text in texts], mutate_bytes, path, read)


def _texts(data: Dataset) -> list[str]:
    """Queries as lines, drawn, and in a CSV file."""
    task, problem = TASKS[data.problem.task], data.problem
    rows = list(zip(data.query, data.relations, strict=True))[:4]
    lines = [task.format(problem, query, relations[relations[:, 0] >= 0]) for query, relations in rows]
    drawn = [
        task.draw(problem, query, relations[relations[:, 0] >= 0], query > 0, lambda cell, given: cell)
        for query, relations in rows
    ]
    csv = "id,puzzle\n" + "\n".join(f'{at},"{line}"' for at, line in enumerate(lines))
    return [lines[0], "\n".join(lines), drawn[0], "\n\n".join(drawn), f"query\n{drawn[0]}\nsolution 1\n{drawn[1]}", csv]


NINE = "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79"
ROWS = [NINE[start : start + 9] for start in range(0, 81, 9)]
BARS = ["|".join(("", row[:3], row[3:6], row[6:], "")) for row in ROWS]
OTHER_TEXTS = {
    "sudoku": [
        NINE,
        "\n".join(ROWS),
        "\n".join(" ".join(row) for row in ROWS).replace(".", "_"),
        "\n".join(",".join(row) for row in ROWS).replace(".", ""),
        "#A author\n[Puzzle]\n" + "\n".join(ROWS) + "\n[State]\n" + "\n".join(ROWS),
        "\n".join(
            ["*-----------*", *BARS[:3], "|---+---+---|", *BARS[3:6], "|---+---+---|", *BARS[6:], "*-----------*"]
        ),
        f"quizzes,solutions\n{NINE},{NINE}\n",
        "." * 625,
        " ".join(map(str, range(1, 17))) + " ." * 240,
    ],
    "nqueens": ["..5...2...", ",,5,,,,2,,,", ". Q . .\n. . . .\n. . . .\n. . . .", " ".join("." * 64), "1 2 3 4 255"],
    "futoshiki": [".1.. r1c1<r1c2 r2c2>r1c2", "1 < .\n^\n.   .", "." * 81 + " r1c1<r9c9 r2c2>r3c3", "." * 625],
    "colouring": ["k=3 n=5 1-2 2-3 1=2", "c of a file\np edge 3 2\nc colours 4\ne 1 2\ne 2 3\nn 1 4\n", "1-2 2-3 3-1"],
}


# ---- imports ---------------------------------------------------------------------------------------------------------


def _of_pairs(folder: Path, data: list[Dataset]) -> Iterator[Reader]:
    lists = b'{"input": [1, 0, 2], "output": [1, 3, 2]}\n{"input": [1, 0, 2], "output": [1, 1, 2]}\n'
    texts = b'{"input": "1.2", "output": "132"}\n{"input": "1.2", "output": "112"}\n{"input": "A1.", "output": "A12"}\n'
    queens = b'{"input": "2 . . .", "output": "2 4 1 3"}\n{"input": ". . 1 .", "output": [2, 4, 1, 3]}\n'
    path = folder / "pairs.jsonl"
    for name, task, examples in (("jsonl", None, [lists, texts]), ("jsonl-task", "nqueens", [queens])):
        yield Reader(f"import-{name}", 90, examples, mutate_json, path, lambda task=task: import_pairs(path, task))
    packed = folder / "pairs.parquet"
    contents = []
    for queries, pairs in ((1, True), (9, True), (4, False)):
        export_parquet(data[2].take(np.arange(queries)), packed, pairs=pairs, force=True)
        contents.append(packed.read_bytes())
    yield Reader("import-parquet", 20, contents, mutate_bytes, packed, lambda: import_pairs(packed, "nqueens"))


# ---- files -----------------------------------------------------------------------------------------------------------


def _of_files(folder: Path, run: Path) -> Iterator[Reader]:
    sets, kept, weights = (folder / f"{name}.safetensors" for name in ("changed", "predictions", "weights"))
    contents = [(folder / f"{name}.safetensors").read_bytes() for name in ("sudoku", "nqueens", "futoshiki")]
    yield Reader("dataset", 70, contents, mutate_tensors, sets, lambda: statistics(Dataset.load(sets)))
    contents = [path.read_bytes() for path in sorted((run / "predictions").iterdir())]

    yield Reader("predictions", 60, contents, mutate_tensors, kept, lambda: load_predictions(kept)[0].summary())

    def read_weights() -> None:
        load_without_torch(weights, "cpu")
        load_network(weights)

    contents = [(run / "weights.safetensors").read_bytes()]
    yield Reader("weights", 40, contents, mutate_tensors, weights, read_weights)
    whole, record = folder / "record.json", folder / "changed.json"
    contents = [whole.read_bytes()]

    def read_and_compare() -> None:
        read_records([record])
        compare_runs(record, whole, folder / "sudoku-dev.safetensors").as_dict()

    yield Reader("record", 60, contents, mutate_json, record, read_and_compare)
    yield Reader("report", 4, contents, mutate_json, record, lambda: _report([record, whole], False))
    yield Reader("report with figures", 0.1, contents, mutate_json, record, lambda: _report([record, whole], True))


def _report(paths: list[Path], drawn: bool) -> str:
    grid = Grid.of(read_records(paths))
    return render(grid, user_sections(grid), drawn=drawn)


# ---- run folders -----------------------------------------------------------------------------------------------------


def _of_runs(folder: Path, run: Path) -> Iterator[Reader]:
    for name, share in (("config.json", 40), ("result.json", 20), ("metrics.jsonl", 30)):
        own = folder / f"run-{name}"
        shutil.copytree(run, own)

        def read(own=own) -> None:
            for reader in (
                lambda: read_record(own),
                lambda: check_settings([Job("run", small("minloss"), own, ())]),
                lambda: data_in(own),
                lambda: RunFolder.open(own).finished and resume(own),
            ):
                with suppress(ValueError):
                    reader()
            newest = Metrics(own / "metrics.jsonl").newest()
            assert not newest or isinstance(newest["update"], int)
            save_record(read_record(own), folder / "saved.json", force=True)

        yield Reader(f"run {name}", share, [(own / name).read_bytes()], mutate_json, own / name, read)
    for name, share in (("predictions", 20), ("weights.safetensors", 10)):
        own = folder / f"run-{name}"
        shutil.copytree(run, own)
        file = own / name / "sudoku-dev.safetensors" if name == "predictions" else own / name

        def read_results(own=own) -> None:
            with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
                evaluate(str(own), folder / "sudoku-dev.safetensors", device="cpu")
                evaluate(str(own), folder / "sudoku-dev.safetensors", device="cpu", as_json=True)
            read_record(own)

        yield Reader(f"run {name}", share, [file.read_bytes()], mutate_tensors, file, read_results)
    own = folder / "run-state"
    shutil.copytree(run, own)
    (own / "result.json").unlink()
    file, *others = sorted((own / "state").iterdir(), reverse=True)
    for other in others:
        other.unlink()

    def load_state() -> None:
        Checkpoint.load(RunFolder.open(own), torch.device("cpu"))

    contents = [path.read_bytes() for path in sorted((run / "state").iterdir())]
    yield Reader("run state", 30, contents, mutate_state, file, load_state)
    begun = folder / "run-resumed"

    def resume_state() -> None:
        shutil.rmtree(begun, ignore_errors=True)
        shutil.copytree(own, begun)
        resume(begun)

    yield Reader("run resumed", 2, contents, mutate_state, file, resume_state)


def mutate_state(content: bytes, others: list[bytes], draw: Draw) -> bytes:
    """Change a state and give it the right checksum, or change its bytes."""
    if draw.random() < 0.1:
        return mutate_bytes(content, others, draw)
    body = mutate_tensors(content[:-SEAL], [other[:-SEAL] for other in others], draw)
    return body + hashlib.sha256(body).digest()
