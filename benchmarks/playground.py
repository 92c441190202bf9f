"""The playground in a headless Chromium: first paint, and seconds until boards settle, beside PyTorch in one run.

    taskset -c 0 python benchmarks/playground.py

Both answer the same boards from the same noise with the settings of the page: a board has settled when its answer has
not changed for 8 steps. One core: the page's worker is one thread, and PyTorch gets one. Loading is not timed, for
either; first paint is the browser's own mark, from opening the file. Each number is the median of some repeats.
"""

import argparse
import base64
import json
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import torch

import oneofmany
from oneofmany.networks import predict
from oneofmany.playground import write_playground
from oneofmany.solving.solver import PATIENCE

sys.path.insert(0, str(Path(__file__).parents[1]))

from reproduction.playground import batch_of
from tests.report.browser import Browser, find_chromium

CASES = {
    "Sudoku, 30 givens": {"task": "sudoku", "size": 9, "bar": 1.5},
    "10 queens, 5 given": {"task": "nqueens", "size": 10, "bar": 0.3},
}
PAINT_BAR, RATIO_BAR, SIZE_BAR = 1.0, 3.0, 3_000_000
HANDLER = """
self.onmessage = ({ data: { files, cases, patience } }) => {
  const kernel = new WebAssembly.Module(bytesOf(files.kernel));
  const timed = cases.map(({ task, size, values, relations, noise }) => {
    const problem = problemOf(task, size);
    const network = new Network(networkOf(bytesOf(files.networks[task]), problem.kinds));
    const numbers = new Float32Array(bytesOf(noise).buffer);
    const answer = () => {
      const start = performance.now();
      const run = new Run(kernel, network, problem, values, relations, numbers);
      do run.advance(); while (!run.settled(patience) && run.step < 256);
      const seconds = (performance.now() - start) / 1000;
      run.end();
      return { seconds, steps: run.step };
    };
    return [answer(), answer(), answer()].sort((a, b) => a.seconds - b.seconds)[1];
  });
  self.postMessage(timed);
};
"""


def boards_of(task: str, size: int, number: int, browser: Browser) -> list[dict[str, Any]]:
    """Random boards of the page; Sudokus with exactly 30 givens."""
    script = "self.onmessage = ({ data: d }) => postMessage(d.seeds.map((seed) => randomQuery(d.task, d.size, seed)));"
    made = in_worker(browser, script, {"task": task, "size": size, "seeds": list(range(4 * number))})
    return [one for one in made if task != "sudoku" or sum(map(bool, one["values"])) == 30][:number]


def in_worker(browser: Browser, handler: str, message: dict[str, Any]) -> Any:
    """What a worker with the page's modules posts as the answer to a message; ``files`` are added to it."""
    return browser.evaluate(f"""new Promise((resolve, reject) => {{
        const text = document.getElementById("worker").textContent + {json.dumps(handler)};
        const worker = new Worker(URL.createObjectURL(new Blob([text])));
        worker.onmessage = ({{ data }}) => resolve(data);
        worker.onerror = (event) => reject(new Error(event.message));
        const files = JSON.parse(document.getElementById("data").textContent).files;
        worker.postMessage({{ files, ...{json.dumps(message)} }});
    }})""")


def by_torch(board: dict[str, Any], seed: int) -> tuple[float, int]:
    """Median seconds and steps of a board with PyTorch."""
    network, batch = NETWORKS[board["task"]], batch_of([board])
    taken = []
    for _ in range(3):
        start = time.perf_counter()
        found = predict(network, batch, steps=256, patience=PATIENCE, generator=torch.Generator().manual_seed(seed))
        taken.append((time.perf_counter() - start, int(found.steps[0])))
    return median(taken)


def first_paint(browser: Browser, page: Path) -> float:
    """Seconds from opening the page to its first contentful paint."""
    browser.open(page)
    script = """new Promise((resolve) => new PerformanceObserver((list) => resolve(list.getEntries()[0].startTime))
        .observe({ type: "paint", buffered: true }))"""
    browser.call("Page.captureScreenshot")  # a headless browser paints when it has to
    return browser.evaluate(script) / 1000


NETWORKS: dict[str, Any] = {}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--boards", type=int, default=10, help="boards of each kind (default: 10)")
    asked = parser.parse_args()
    program = find_chromium()
    if program is None:
        sys.exit("no Chromium is installed (Debian: apt-get install chromium)")
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "playground.html"
        write_playground(page)
        size = page.stat().st_size
        browser = Browser(program, Path(folder) / "profile")
        paints = [first_paint(browser, page) for _ in range(5)]
        print(f"{'file':28}{size / 1e6:8.2f} MB    bar {SIZE_BAR / 1e6:g} MB")
        print(f"{'first paint':28}{median(paints):8.2f} s     bar {PAINT_BAR:g} s")
        print(f"{'':28}{'page':>10}{'PyTorch':>10}{'ratio':>7}{'steps':>7}    bars: seconds, ratio")
        for name, case in CASES.items():
            task, bar = case["task"], case["bar"]
            NETWORKS[task] = oneofmany.load(task).network
            boards = boards_of(task, case["size"], asked.boards, browser)
            torchs = [by_torch(board, seed) for seed, board in enumerate(boards)]
            choices = batch_of(boards[:1]).problem.choices
            noise = [torch.randn(1, choices, generator=torch.Generator().manual_seed(i)) for i in range(len(boards))]
            sent = [
                board | {"noise": base64.b64encode(own.numpy().tobytes()).decode()}
                for board, own in zip(boards, noise, strict=True)
            ]
            pages = in_worker(browser, HANDLER, {"cases": sent, "patience": PATIENCE})
            assert [one["steps"] for one in pages] == [steps for _, steps in torchs], "not the same steps"
            ours, theirs = median(one["seconds"] for one in pages), median(seconds for seconds, _ in torchs)
            steps = median(one["steps"] for one in pages)
            print(f"{name:28}{ours:8.3f} s{theirs:8.3f} s{ours / theirs:7.2f}{steps:7g}    {bar:g} s, {RATIO_BAR:g}")
        browser.close()


if __name__ == "__main__":
    main()
