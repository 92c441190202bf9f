"""Stands in for the program in tests of the queue: does to run folders what `oneofmany` does, without training.

The folder in the environment variable FAKE holds fake.json: ``configs`` (what a new run writes as config.json, by its
folder), ``seconds`` (how long a run takes) and ``fails`` (runs that fail); ``events`` there tells what was run.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

HERE = Path(os.environ["FAKE"])
RESULT = {"dev": {"os": 1.0, "ms": 0.5, "overall": 0.75, "update": 2, "phase": "train"}}


def tell(kind):
    with (HERE / "events").open("a") as file:
        file.write(json.dumps([kind, *sys.argv[1:]]) + "\n")


def stop(number, frame):
    tell("stop")
    print("stopped")
    sys.exit(128 + number)


def train(about, arguments):
    resumed = arguments[0] == "--resume"
    folder = Path(arguments[arguments.index("--resume" if resumed else "--out") + 1])
    signal.signal(signal.SIGTERM, stop)
    if resumed:
        assert (folder / "config.json").exists()
    else:
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(json.dumps(about["configs"][str(folder)]))
    tell("begin")
    line = {"kind": "train", "phase": "train", "update": 1, "loss": 2.5, "queries_per_second": 9.0}
    with (folder / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")
    if str(folder) in about["fails"]:
        print("Traceback: ...\noneofmany: the loss is nan at update 1\n")
        sys.exit(1)
    time.sleep(0.05 if resumed else about["seconds"])
    (folder / "result.json").write_text(json.dumps(RESULT))


def main():
    about = json.loads((HERE / "fake.json").read_text())
    command, *arguments = sys.argv[1:]
    if command == "train":
        train(about, arguments)
    else:
        tell("begin")
    if command == "evaluate":
        (Path(arguments[0]) / "predictions").mkdir(exist_ok=True)
        (Path(arguments[0]) / "predictions" / Path(arguments[1]).name).write_text("")
    tell("end")


main()
