"""Kill commands and give them again until they are done: ``python -m tests.faults.kills --count 1000 --seed 1``.

A process is killed with SIGKILL after a random time, or right before one of its file operations, or in the middle of a
write. Its result must then be equal to that of a process that nobody killed, with no other file beside it. Of a sweep,
the queue, a training process or both are killed.
"""

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from .forks import before_file_operations, call, children, command, ended, import_like
from .scenes import Scene, all_scenes, blocked, content, is_left

MOST_KILLS = 6
"""Kills before a result is finished and compared."""


class Undisturbed:
    """What a scene gives if nobody kills it."""

    def __init__(self, scene: Scene, folder: Path) -> None:
        folder.mkdir()
        log, counted = folder.with_suffix(".log"), folder.with_suffix(".count")

        def count() -> None:
            handle = os.open(counted, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            before_file_operations(folder, lambda event: os.write(handle, b"x"))

        began = time.monotonic()
        if ended(command(scene.arguments(folder), log, count)):
            raise RuntimeError(f"{scene.name}: {log.read_text()}")
        self.seconds = time.monotonic() - began
        self.operations = len(counted.read_text())
        self.content = content(folder)


def kill_once(scene: Scene, folder: Path, log: Path, undisturbed: Undisturbed, draw: random.Random) -> str:
    """Give the command and try to kill it; return how it was killed, "" if it was done before."""
    if draw.random() < 0.5:
        at, seen = draw.randint(1, undisturbed.operations), 0
        # Of a sweep, the queue and the training processes count their own operations.
        at = draw.randint(1, max(1, at // 4)) if scene.name.startswith("sweep") else at

        def die(event: str) -> None:
            nonlocal seen
            seen += 1
            if seen == at:
                os.kill(os.getpid(), signal.SIGKILL)

        code = ended(command(scene.arguments(folder), log, lambda: before_file_operations(folder, die)))
        inside = scene.name.startswith("sweep") and code == 1  # a training process was killed
        return "at a file operation" if code == -signal.SIGKILL or inside else _done(code, log)
    pid = command(scene.arguments(folder), log)
    time.sleep(draw.uniform(0, undisturbed.seconds))
    inner, how = children(pid), draw.choice(("queue", "run", "both"))
    victims = [pid, *inner] if how == "both" and inner else inner if how == "run" and inner else [pid]
    for victim in victims:
        try:
            os.kill(victim, signal.SIGKILL)
        except ProcessLookupError:
            continue
    code = ended(pid)
    if code == 1 and victims == inner:
        return "a run of a sweep"
    return (
        ("queue and run" if len(victims) > 1 else "at a random time") if code == -signal.SIGKILL else _done(code, log)
    )


def _done(code: int, log: Path) -> str:
    if code:
        raise AssertionError(f"exit code {code}: {log.read_text()[-3000:]}")
    return ""


def finish(scene: Scene, folder: Path, log: Path) -> None:
    """Give the command once more and let it end. A sweep waits for trainings that outlived their queue."""
    expected = 2 if scene.done(folder) else 0
    if (code := call(scene.arguments(folder), log)) != expected:
        raise AssertionError(f"exit code {code}: {log.read_text()[-3000:]}")


@dataclass
class Done:
    """What was done to a scene."""

    kills: Counter = field(default_factory=Counter)
    results: int = 0
    failures: int = 0
    left: int = 0

    def numbers(self) -> tuple[int, int, int, int]:
        """Kills, equal results, failures, and files that are left beside the results."""
        return self.kills.total(), self.results, self.failures, self.left


def trial(scene: Scene, folder: Path, undisturbed: Undisturbed, draw: random.Random, most: int, done: Done) -> None:
    """Kill a command up to ``most`` times, finish it and compare; AssertionError if something is wrong."""
    folder.mkdir()
    log = folder.with_suffix(".log")
    for _ in range(most):
        if scene.done(folder):
            break
        if how := kill_once(scene, folder, log, undisturbed, draw):
            done.kills[how] += 1
    finish(scene, folder, log)
    found = content(folder)
    different = {name for name in {*found, *undisturbed.content} if found.get(name) != undisturbed.content.get(name)}
    if different or (different := set(map(str, blocked(folder)))):
        raise AssertionError(f"{', '.join(sorted(different))} differ or are locked")
    done.left += sum(map(is_left, folder.rglob("*")))
    done.results += 1


def kill_all(count: int, seed: int, folder: Path, minutes: float = 1e9, only: str = "") -> dict[str, Done]:
    """Kill commands ``count`` times in all; return what was done by scene."""
    (folder / "data").mkdir()
    scenes = all_scenes(folder / "data")
    import_like(scenes[0].arguments(folder / "data"), folder / "data")
    scenes = [scene for scene in scenes if scene.name.startswith(only)]
    undisturbed = {scene.name: Undisturbed(scene, folder / f"whole{at}") for at, scene in enumerate(scenes)}
    done = {scene.name: Done() for scene in scenes}
    deadline, number = time.monotonic() + 60 * minutes, 0
    while (left := count - sum(one.kills.total() for one in done.values())) > 0 and time.monotonic() < deadline:
        draw, scene = random.Random(f"{seed}/{number}"), scenes[number % len(scenes)]
        place = folder / f"try{number}"
        try:
            most = min(left, draw.randint(1, MOST_KILLS))
            trial(scene, place, undisturbed[scene.name], draw, most, done[scene.name])
        except AssertionError as error:
            done[scene.name].failures += 1
            print(f"seed {seed}, try {number}, {scene.name}: {error}", file=sys.stderr, flush=True)
        shutil.rmtree(place, ignore_errors=True)
        number += 1
    return done


def main() -> int:
    """Print the counts of every scene; exit code 1 if there are failures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after this time")
    parser.add_argument("--only", default="", help="the beginning of a scene's name")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        done = kill_all(**vars(asked), folder=Path(folder))
    print(f"{'command':<24}{'kills':>8}{'equal results':>16}{'failures':>10}{'files left':>12}   ways")
    sums = tuple(map(sum, zip(*(one.numbers() for one in done.values()), strict=True)))
    for name, numbers in [*((name, one.numbers()) for name, one in done.items()), ("all", sums)]:
        ways = ", ".join(f"{number} {way}" for way, number in (done[name].kills.items() if name in done else ()))
        print(f"{name:<24}" + "{:>8,}{:>16,}{:>10,}{:>12,}   ".format(*numbers) + ways)
    return int(any(one.failures for one in done.values()))


if __name__ == "__main__":
    sys.exit(main())
