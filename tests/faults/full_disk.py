"""Let every single write of the commands fail: ``python -m tests.faults.full_disk``.

The n-th opening for writing, half-written file, fsync, link, rename or new folder of a command fails as on a full disk,
for every n. The command must end with one sentence and exit code 1 and leave no temporary file, and no file that is not
whole. Given again, with space on the disk, it must give the undisturbed result.
"""

import argparse
import errno
import os
import shutil
import sys
import tempfile
from pathlib import Path

from oneofmany.evaluation import evaluate_run
from oneofmany.training import train
from small_runs import files, small

from .forks import before_file_operations, call, command, ended, fork, import_like
from .scenes import Scene, all_scenes, content, is_left, other_scenes

WRITES = {"open", "os.rename", "os.link", "os.mkdir", "fsync", "half of a write"}
"""Operations that need space."""
PARTS = ("run/metrics.jsonl", "run/state", "run/weights.safetensors")
"""What a training writes piece by piece, or again and again; the second try shows whether they are whole."""


def scenes_of(folder: Path) -> list[Scene]:
    """Every command that writes; the data and a finished run are made in the folder first."""
    (folder / "data").mkdir()
    training = all_scenes(folder / "data")[0]
    import_like(training.arguments(folder / "data"), folder / "data")

    def make() -> int:
        settings = small("minloss")
        train(settings, *files(folder / "data", settings), folder / "run")
        evaluate_run(folder / "run", folder / "data" / "sudoku-dev.safetensors", device="cpu")
        return 0

    if ended(fork(make, folder / "log")):
        raise RuntimeError((folder / "log").read_text())
    return [training, *other_scenes(folder / "data", folder / "run")]


def full_from(folder: Path, number: int, counted: Path | None = None) -> None:
    """From now on, let one write of this process fail: that with this number; count them in a file."""
    seen = 0
    handle = None if counted is None else os.open(counted, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def act(event: str) -> None:
        nonlocal seen
        if event in WRITES:
            seen += 1
            if handle is not None:
                os.write(handle, b"x")
            if seen == number:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before_file_operations(folder, act)


def undisturbed(scene: Scene, folder: Path) -> tuple[dict, int]:
    """The result of a command, and how often it writes."""
    folder.mkdir()
    scene.set_up(folder)
    log, counted = folder.with_suffix(".log"), folder.with_suffix(".count")
    if ended(command(scene.arguments(folder), log, lambda: full_from(folder, -1, counted))):
        raise RuntimeError(f"{scene.name}: {log.read_text()}")
    return content(folder), len(counted.read_text())


def check(scene: Scene, folder: Path, number: int, whole: dict) -> bool:
    """Let write ``number`` of a command fail and give it again; whether it noticed. AssertionError if it is wrong."""
    folder.mkdir()
    scene.set_up(folder)
    before, log = content(folder), folder.with_suffix(".log")
    code = ended(command(scene.arguments(folder), log, lambda: full_from(folder, number)))
    said = log.read_text()
    assert code in (0, 1), f"exit code {code}: {said}"
    assert "Traceback" not in said, said
    if code:
        assert said.splitlines()[-1].startswith("oneofmany: "), said
        assert "No space left on device" in said.splitlines()[-1], said
    assert not [path for path in folder.rglob("*") if is_left(path)], "files are left"
    for name, found in content(folder).items():
        assert name.startswith(PARTS) or found in (whole.get(name), before.get(name)), f"{name} is not whole"
    expected = 2 if scene.done(folder) else 0
    again = call(scene.arguments(folder), log)
    assert again == expected, f"exit code {again} the second time: {log.read_text()}"
    assert content(folder) == whole, "another result the second time"
    return code == 1


def main() -> int:
    """Print the counts of every command; exit code 1 if there are failures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="the beginning of a command")
    asked = parser.parse_args()
    failures = 0
    print(f"{'command':<24}{'writes':>8}{'noticed':>9}{'failures':>10}")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for scene in scenes_of(folder):
            if scene.name.startswith(asked.only):
                whole, writes = undisturbed(scene, folder / "whole")
                noticed = wrong = 0
                for number in range(1, writes + 1):
                    try:
                        noticed += check(scene, folder / "try", number, whole)
                    except AssertionError as error:
                        wrong += 1
                        print(f"{scene.name}, write {number}: {error}", file=sys.stderr)
                    _clear(folder, "try")
                print(f"{scene.name:<24}{writes:>8,}{noticed:>9,}{wrong:>10,}", flush=True)
                failures += wrong
                _clear(folder, "whole")
    return int(failures > 0)


def _clear(folder: Path, name: str) -> None:
    shutil.rmtree(folder / name)
    for suffix in (".log", ".count"):
        (folder / name).with_suffix(suffix).unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main())
