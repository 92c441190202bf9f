"""Stands in for `oneofmany train` in tests of a search: its dev accuracy grows to a value that its fields decide."""

import json
import math
import signal
import sys
import time
from pathlib import Path


def stop(number, frame):
    sys.exit(128 + number)


def main(arguments):
    signal.signal(signal.SIGTERM, stop)
    value = {name: arguments[i + 1] for i, name in enumerate(arguments[:-1]) if name.startswith("--")}
    folder = Path(value["--out"])
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"arguments": arguments}))
    updates = int(value["--first.updates"])
    score = 0.9 - 0.2 * abs(math.log10(float(value["--first.lr"])) + 3)
    for step in range(1, 6):
        line = {"kind": "dev", "phase": "train", "update": updates * step // 5, "dev_overall": score * step / 5}
        with (folder / "metrics.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")
        time.sleep(0.25)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it is finished, or was stopped before
    (folder / "result.json").write_text(json.dumps({"dev": {"score": score, "overall": score, "os": None, "ms": None}}))


main(sys.argv[2:])
