"""Run every two of the writing commands at the same time on the same output: ``python -m tests.faults.two_at_once``.

Afterwards the output must be that of one of them alone, and a command that is refused must say so in one sentence. Two
different commands on one run, a training and an evaluation for example, are then given again one after the other, and
the result must be that of commands that nothing disturbed.
"""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations, combinations_with_replacement
from pathlib import Path

from small_runs import fields, files, small

from .forks import call, command, ended, together
from .full_disk import scenes_of
from .scenes import blocked, content, is_left

Command = Callable[[Path], Sequence[object]]
RUN = Path("runs", "sudoku", "minloss", "tiny", "1")
"""The run of different commands, where a sweep would put it."""


def groups_of(folder: Path) -> list[dict[str, Command]]:
    """Groups of commands that write the same file or folder."""
    scenes = {scene.name: scene for scene in scenes_of(folder)}
    data = folder / "data"
    train, dev = files(data, small())

    def built(seed: int, *more: object) -> Command:
        build = ["data", "nqueens", "--size", 6, "--blanks", 3, "--queries", 30, "--seed", seed]
        return lambda place: [*build, "--out", place / "out.parquet", *more]

    def trained(seed: int) -> Command:
        own = ["train", "sudoku/minloss/tiny", "--train", train, "--dev", dev, *fields(replace(small(), seed=seed))]
        return lambda place: [*own, "--out", place / "run"]

    def writes(*arguments: object) -> Command:
        return lambda place: [*arguments, "--out", place / "out.parquet"]

    pairs = ("data", "import", data / "pairs.jsonl", "--task", "nqueens")
    single = {"data, seed 1": built(1), "data, seed 2": built(2), "import": writes(*pairs)}
    single["export"] = writes("data", "export", dev)
    forced = {f"{name}, --force": lambda place, own=own: [*own(place), "--force"] for name, own in single.items()}
    return [
        single | forced,
        {"train, seed 1": trained(1), "train, seed 2": trained(2)},
        {"record": scenes["record"].arguments},
        {"report": scenes["report --force"].arguments},
        {"evaluate": lambda place: ["evaluate", place / "run", train, "--device", "cpu"]},
        {"resume": lambda place: ["train", "--resume", place / "run"]},
    ]


def set_up(folder: Path, place: Path, name: str) -> None:
    """What a command needs: a finished run to evaluate, or one to resume that was stopped before its end."""
    place.mkdir()
    if name in ("evaluate", "resume"):
        shutil.copytree(folder / "run", place / "run")
    if name == "resume":
        _stopped(place / "run")


def _stopped(run: Path) -> None:
    (run / "result.json").unlink()
    *_, newest = sorted((run / "state").iterdir())
    newest.unlink()


def different_of(folder: Path) -> dict[str, Command]:
    """Different commands on one run, in the order in which they are given again."""
    train, dev = files(folder / "data", small())
    tiny = "--first.updates 30 --first.batch 4 --network.width 8 --network.steps 3 --evaluate-every 2 --log-every 2"
    tiny = [*tiny.split(), "--device", "cpu", "--threads", 1, "--checkpoint-minutes", 0]
    own = ["--train", train, "--dev", dev, *tiny]
    return {
        "resume": lambda place: ["train", "--resume", place / RUN],
        "sweep": lambda place: ["sweep", "sudoku/minloss/tiny", "--seeds", 1, *own, "--out", place / "runs"],
        "evaluate": lambda place: ["evaluate", place / RUN, train, "--device", "cpu", "--force"],
        "record": lambda place: ["record", place / RUN, "--out", place / "records", "--force", "--allow-dirty"],
        "report": lambda place: ["report", place / RUN, "--out", place / "report.html", "--force"],
    }


def check(folder: Path, one: str, two: str, group: dict[str, Command], alone: dict[str, dict]) -> int:
    """Run two commands together; how many of them succeeded. AssertionError if something is wrong."""
    place = folder / "try"
    set_up(folder, place, one)
    logs = [folder / "one.log", folder / "two.log"]
    codes = together([group[one](place), group[two](place)], logs)
    said = said_by(codes, logs)
    assert set(codes) <= {0, 2}, f"exit codes {codes}: {said}"
    assert 0 in codes, f"both were refused: {said}"
    winners = [name for name, code in zip((one, two), codes, strict=True) if code == 0]
    assert content(place) in [alone[name] for name in winners], f"a mixture, exit codes {codes}"
    assert not blocked(place), "a lock is left"
    assert not [path for path in place.rglob("*") if is_left(path)], "files are left"
    return len(winners)


def said_by(codes: Sequence[int], logs: Sequence[Path]) -> list[str]:
    """What two commands have said; AssertionError if they ended with a traceback, or not with one sentence."""
    said = [log.read_text() for log in logs]
    for log in logs:
        log.unlink()
    assert "Traceback" not in "".join(said), said
    for code, text in zip(codes, said, strict=True):
        assert code == 0 or text.splitlines()[-1].startswith("oneofmany: "), text
    return said


def check_different(folder: Path, one: str, two: str, commands: dict[str, Command], whole: dict) -> None:
    """Run two commands on one run together, and again one after the other; AssertionError if something is wrong."""
    place, logs = folder / "try", [folder / "one.log", folder / "two.log"]
    shutil.copytree(folder / "stopped", place)
    codes = together([commands[one](place), commands[two](place)], logs)
    said = said_by(codes, logs)
    assert set(codes) <= {0, 2}, f"exit codes {codes}: {said}"
    assert not blocked(place), "a lock is left"
    assert not [path for path in place.rglob("*") if is_left(path)], "files are left"
    assert one_after_the_other(folder, one, two, commands) == whole, f"another result, exit codes {codes}"


def one_after_the_other(folder: Path, one: str, two: str, commands: dict[str, Command]) -> dict:
    """Finish and evaluate the run, and give two commands; the result."""
    log = folder / "alone.log"
    for name in dict.fromkeys(("resume", "evaluate", one, two)):
        if code := call(commands[name](folder / "try"), log):
            raise AssertionError(f"{name} alone: exit code {code}, {log.read_text()}")
    log.unlink()
    found = content(folder / "try")
    assert found.pop("report.html", b"</html>").rstrip().endswith(b"</html>")  # it shows the time of the training
    return found


def _stop_early(commands: dict[str, Command], place: Path) -> None:
    """Start the run, stop it after its first evaluation, and evaluate it."""
    log = place.with_suffix(".log")
    pid = command(commands["sweep"](place), log)
    while not (place / RUN / "weights.safetensors").exists():
        time.sleep(0.01)
    os.kill(pid, signal.SIGTERM)
    ended(pid)
    if call(commands["evaluate"](place), log) or (place / RUN / "result.json").exists():
        raise RuntimeError(log.read_text())


def run_different(folder: Path, times: int) -> tuple[int, list[str]]:
    """How many pairs of different commands ran, and what was wrong."""
    commands, wrong = different_of(folder), []
    _stop_early(commands, folder / "stopped")
    pairs = [*combinations(commands, 2)]
    for one, two in pairs:
        shutil.copytree(folder / "stopped", folder / "try")
        whole = one_after_the_other(folder, one, two, commands)
        shutil.rmtree(folder / "try")
        for _ in range(times):
            try:
                check_different(folder, one, two, commands, whole)
            except AssertionError as error:
                wrong.append(f"{one} and {two}: {error}")
            shutil.rmtree(folder / "try")
    return len(pairs) * times, wrong


def run_all(folder: Path, times: int, most: int = 1 << 30) -> tuple[int, int, int, list[str]]:
    """How many pairs ran, how many had one winner and how many two, and what was wrong."""
    pairs, one_winner, wrong = 0, 0, []
    for group in groups_of(folder):
        alone = {}
        for name, arguments in group.items():
            set_up(folder, folder / "try", name)
            log = folder / "alone.log"
            if call(arguments(folder / "try"), log):
                raise RuntimeError(f"{name}: {log.read_text()}")
            alone[name] = content(folder / "try")
            shutil.rmtree(folder / "try")
        for one, two in [*combinations_with_replacement(group, 2)][:most] * times:
            pairs += 1
            try:
                one_winner += check(folder, one, two, group, alone) == 1
            except AssertionError as error:
                wrong.append(f"{one} and {two}: {error}")
            shutil.rmtree(folder / "try")
    return pairs, one_winner, pairs - one_winner - len(wrong), wrong


def main() -> int:
    """Print the counts; exit code 1 if something was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=1, help="how often every pair runs")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        pairs, one_winner, two_winners, wrong = run_all(Path(folder), asked.times)
        different, wrong_too = run_different(Path(folder), asked.times)
    print(f"{pairs} pairs: {one_winner} with one winner, {two_winners} with two, {len(wrong)} failures")
    print(f"{different} pairs of different commands on one run: {len(wrong_too)} failures")
    print("\n".join([*wrong, *wrong_too]), file=sys.stderr)
    return int(bool(wrong + wrong_too))


if __name__ == "__main__":
    sys.exit(main())
