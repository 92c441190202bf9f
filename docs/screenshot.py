"""Take docs/figures/playground.png: the playground on the third board of its story, in Chromium.

    python docs/screenshot.py

To do after every change of how the page looks; needs Chromium (Debian: apt-get install chromium).
"""

import base64
import sys
import tempfile
import time
from pathlib import Path

from oneofmany.files import write_whole
from oneofmany.playground import write_playground

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.report.browser import Browser, find_chromium

ROOT = Path(__file__).parents[1]
BOARD = "#nqueens/8/25......"
WIDTH, SCALE = 1400, 0.75
DONE = """/right answer/.test(document.getElementById("status").textContent)
    && /exactly/.test(document.getElementById("count").textContent)
    && document.querySelectorAll("#compare b").length === 3"""


def screenshot(browser: Browser, page: Path) -> bytes:
    """The page's headline, board, comparison and answers, once the networks have settled, as a PNG."""
    browser.emulate(WIDTH)
    browser.call("Page.navigate", url=page.resolve().as_uri() + BOARD)
    for _ in range(600):
        time.sleep(0.1)
        if browser.evaluate(DONE):
            break
    else:
        raise TimeoutError("the networks of the page have not settled in a minute")
    top, bottom = (
        browser.evaluate(f"document.querySelector('{name}').getBoundingClientRect().{edge} + scrollY")
        for name, edge in (("h1", "top"), (".side .card:nth-child(2)", "bottom"))
    )
    clip = {"x": 20, "y": top - 10, "width": WIDTH - 40, "height": bottom - top + 20, "scale": SCALE}
    data = browser.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)["data"]
    return base64.b64decode(data)


def main() -> None:
    """Write the page to a temporary folder and take its picture."""
    program = find_chromium()
    if program is None:
        sys.exit("no Chromium is installed (Debian: apt-get install chromium)")
    out = ROOT / "docs" / "figures" / "playground.png"
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "playground.html"
        write_playground(page)
        browser = Browser(program, Path(folder) / "profile")
        try:
            picture = screenshot(browser, page)
        finally:
            browser.close()
    write_whole(out, lambda beside: beside.write_bytes(picture), force=True)
    print(out)


if __name__ == "__main__":
    main()
