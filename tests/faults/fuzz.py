"""Give every reader damaged inputs: ``python -m tests.faults.fuzz --count 1000000 --seed 1``.

Input number i of a seed is always the same one. A reader may accept it or refuse it with the one sentence that the
command line would print. Everything else is a failure: another exception, more than ``SECONDS`` for one input, more
than ``MEMORY`` bytes in addition to what the process had at the start, or the end of the process.
"""

import argparse
import mmap
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

import numpy as np

from oneofmany.cli.text import sentence

from .readers import Reader, all_readers

SECONDS = 30
MEMORY = 2**30
MOST_FAILURES = 50


class Hang(BaseException):
    """The time for an input is up."""


def input_of(readers: list[Reader], seed: int, number: int) -> tuple[int, bytes]:
    """The reader of an input, and its content."""
    draw = random.Random(f"{seed}/{number}")
    at = draw.choices(range(len(readers)), [reader.share for reader in readers])[0]
    reader = readers[at]
    return at, reader.mutate(draw.choice(reader.examples), reader.examples, draw)


def judge(reader: Reader, content: bytes) -> tuple[str, str]:
    """("accepted" or "refused" or "failed", why) after reading one input."""
    reader.file.write_bytes(content)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        reader.read()
        return "accepted", ""
    except (ValueError, OSError) as error:
        said = sentence(str(error))
        return ("refused", said) if said and "\n" not in said else ("failed", f"no sentence: {error!r}")
    except (Exception, Hang):
        return "failed", traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


class Tally:
    """Counts by reader and outcome in memory that a killed process leaves to its parent."""

    OUTCOMES = ("accepted", "refused", "failed")

    def __init__(self, readers: int) -> None:
        shared = mmap.mmap(-1, 8 * (1 + 4 * readers))
        self.next = np.frombuffer(shared, np.int64, 1)
        self.counts = np.frombuffer(shared, np.int64, 3 * readers, 8).reshape(readers, 3)
        self.slowest = np.frombuffer(shared, np.float64, readers, 8 + 24 * readers)


def limit_memory() -> None:
    """Let this process have ``MEMORY`` bytes more than it has now."""
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))


def work(readers: list[Reader], seed: int, until: int, tally: Tally, deadline: float) -> None:
    """Read inputs from ``tally.next`` on; failures are printed."""

    def up(*_: object) -> None:
        raise Hang

    signal.signal(signal.SIGALRM, up)
    limit_memory()
    failures = Counter()
    while tally.next[0] < until and time.monotonic() < deadline:
        number = int(tally.next[0])
        at, content = input_of(readers, seed, number)
        began = time.process_time()
        outcome, why = judge(readers[at], content)
        tally.slowest[at] = max(tally.slowest[at], time.process_time() - began)
        tally.counts[at, Tally.OUTCOMES.index(outcome)] += 1
        tally.next[0] = number + 1
        if outcome == "failed":
            kind = why.strip().splitlines()[-1][:60]
            failures[kind] += 1
            if failures[kind] <= 3 and len(failures) <= MOST_FAILURES:
                print(f"seed {seed}, input {number}, {readers[at].name}: {why}", file=sys.stderr, flush=True)


def fuzz(
    count: int, seed: int, folder: Path, *, first: int = 0, minutes: float = 1e9, only: str = ""
) -> tuple[list[Reader], Tally]:
    """Read inputs ``first`` to ``first + count`` in a process of their own, and in a new one wherever one dies."""
    readers = [reader for reader in all_readers(folder) if only in ("", reader.name)]
    tally, deadline = Tally(len(readers)), time.monotonic() + 60 * minutes
    tally.next[0] = first
    while tally.next[0] < first + count and time.monotonic() < deadline:
        sys.stdout.flush()
        if not (pid := os.fork()):
            try:
                work(readers, seed, first + count, tally, deadline)
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        if status := os.waitpid(pid, 0)[1]:
            number = int(tally.next[0])
            at, _ = input_of(readers, seed, number)
            tally.counts[at, 2] += 1
            tally.next[0] = number + 1
            print(f"seed {seed}, input {number}, {readers[at].name}: the process ended with {status}", file=sys.stderr)
    return readers, tally


def main() -> int:
    """Print the counts of every reader; exit code 1 if there are failures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the number of the first input")
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after this time")
    parser.add_argument("--only", default="", help="the name of a reader")
    asked = parser.parse_args()
    shared = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=shared) as folder:
        readers, tally = fuzz(**vars(asked), folder=Path(folder))
    print(f"{'reader':<24}{'inputs':>10}{'accepted':>10}{'refused':>10}{'failed':>8}{'slowest, CPU s':>16}")
    rows = [*zip((reader.name for reader in readers), tally.counts.tolist(), tally.slowest.tolist(), strict=True)]
    for name, counts, slowest in [*rows, ("all", tally.counts.sum(0).tolist(), tally.slowest.max())]:
        print(f"{name:<24}{sum(counts):>10,}{counts[0]:>10,}{counts[1]:>10,}{counts[2]:>8,}{slowest:>16.3f}")
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    print(f"seed {asked.seed}, inputs {asked.first:,} to {int(tally.next[0]):,}; largest process {memory:.2f} GiB")
    return int(tally.counts[:, 2].sum() > 0)


if __name__ == "__main__":
    sys.exit(main())
