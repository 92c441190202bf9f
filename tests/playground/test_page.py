"""The page as a file, and in a browser."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from axe_playwright_python.base import AXE_SCRIPT

from oneofmany.playground.page import PAGE, SOURCES, WORKER, page_data
from oneofmany.problems import TASKS, rules_kept

from .engines import PLAYED
from .test_boards import SUDOKU

TWO_ANSWERS = "#nqueens/8/25......"


# ---- the file ------------------------------------------------------------------------------------------------------


def test_complete_in_itself_and_small(page):
    text = page.read_text(encoding="utf-8")
    links = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attributes: links.extend(
        value for name, value in attributes if name in ("src", "href", "srcset", "action")
    )
    parser.feed(text)
    assert sorted(links) == ["data:,", "https://arxiv.org/abs/2008.11990"]
    assert "default-src 'none'" in text
    assert "{{" not in text.partition("<script")[0]
    assert len(page.read_bytes()) < 3_000_000


def test_the_page_has_every_module_after_those_that_it_imports():
    assert {f"{name}.mjs" for name in (*WORKER, *PAGE)} == {path.name for path in SOURCES.glob("*.mjs")}
    for names in (WORKER, PAGE):
        for i, name in enumerate(names):
            text = (SOURCES / f"{name}.mjs").read_text(encoding="utf-8")
            assert set(re.findall(r'from "\./(\w+)\.mjs"', text)) <= set(names[:i]), name
            assert len(text.splitlines()) <= 350, name


def test_every_size_has_a_measured_accuracy():
    accuracy = page_data()["accuracy"]
    sizes = {"nqueens": range(4, 21), "sudoku": (4, 6, 9, 16), "futoshiki": range(4, 10)}
    for task, own in sizes.items():
        assert set(accuracy["bundled"][task]) == {str(size) for size in own}
        for score in accuracy["bundled"][task].values():
            assert 0 < score["correct"] <= score["total"]
            assert score["checksum"].startswith("sha256:")
        naive, minloss = (accuracy["small"][task][name]["ms"] for name in ("naive", "minloss"))
        assert naive["correct"] < minloss["correct"]
    assert accuracy["command"].startswith("python -m reproduction.playground")


def test_a_second_network_of_a_task_is_not_in_the_page(tmp_path, monkeypatch):
    (tmp_path / "weights").mkdir()
    for name in ("sudoku", "sudoku-hard"):
        (tmp_path / "weights" / f"{name}.safetensors").write_bytes(b"a network")
    monkeypatch.setattr("oneofmany.__file__", str(tmp_path / "__init__.py"))
    networks = page_data()["files"]["networks"]
    assert "sudoku" in networks
    assert "sudoku-hard" not in networks


# ---- in a browser --------------------------------------------------------------------------------------------------


class Opened:
    """The page in a browser, with words for what people do."""

    def __init__(self, browser, page):
        self.browser, self.page = browser, page

    def open(self, link=""):
        # From another page: a change of the part after # alone loads nothing.
        for url in ("about:blank", self.page.resolve().as_uri() + link):
            self.browser._loaded = False
            self.browser.call("Page.navigate", url=url)
            while not self.browser._loaded:
                self.browser._read()

    def js(self, script):
        return self.browser.evaluate(script)

    def text(self, name):
        return self.js(f"document.getElementById('{name}').textContent")

    def click(self, selector):
        assert self.js(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e?.click(); return !!e }})()"
        )

    def choose(self, name, value):
        script = f"const s = document.getElementById('{name}'); s.value = {json.dumps(str(value))};"
        self.js(f"(() => {{ {script} s.dispatchEvent(new Event('change')) }})()")

    def type(self, *keys):
        for key in keys:
            self.browser.press(key, key if len(key) == 1 else "")

    def wait(self, condition, seconds=40):
        script = f"""new Promise((resolve) => {{
            const end = performance.now() + {1000 * seconds};
            const look = () => {{
                if ({condition}) resolve(true);
                else performance.now() > end ? resolve(false) : setTimeout(look, 20);
            }};
            look();
        }})"""
        assert self.js(script), f"{condition}: {self.text('status')} | {self.text('count')} | {self.text('tries')}"

    def settle(self):
        """Wait until the network has answered and its last step is shown."""
        self.choose("speed", 1000)
        self.wait("/right answer/.test(document.getElementById('status').textContent)")
        return self.text("status")

    def board(self):
        """Task, size, values and relations of the board, from the address of the page."""
        task, size, cells, *pairs = self.js("decodeURIComponent(location.hash)")[1:].split("/")
        values = [".123456789ABCDEFGHIJK".index(cell) for cell in cells]
        relations = [[int(end) for end in pair.split("-")] for pair in pairs[0].split(",")] if pairs else []
        return task, int(size), values, relations

    def shown(self):
        """The values that the cells say they have: givens and answer."""
        task, size, *_ = self.board()
        labels = self.js("[...document.querySelectorAll('[role=gridcell]')].map((c) => c.getAttribute('aria-label'))")
        said = [label.split(": ")[1].split(",")[0] for label in labels]
        if task == "nqueens":
            rows = [said[r * size : (r + 1) * size] for r in range(size)]
            return [row.index("queen") + 1 if "queen" in row else 0 for row in rows]
        return ["0123456789ABCDEFG".index(one) if one != "empty" else 0 for one in said]

    def assert_valid(self):
        task, size, given, relations = self.board()
        values = np.array([self.shown()], np.uint8)
        assert values.all()
        assert all(not own or own == value for own, value in zip(given, values[0], strict=True))
        assert rules_kept(TASKS[task].problem(size), values, np.array([relations], np.int16).reshape(1, -1, 2))[0]


@pytest.fixture
def opened(browser, page):
    browser.messages.clear()
    browser.requests.clear()
    browser.emulate(1280)
    yield Opened(browser, page)
    assert browser.messages == []
    assert {url for url in browser.requests if not url.startswith(("blob:", "about:"))} == {page.resolve().as_uri()}


def test_story(opened):
    opened.open()
    verdicts = "[...document.querySelectorAll('#compare b')].map((b) => b.className).join(' ')"
    assert opened.settle().startswith("✓")
    opened.wait(f"{verdicts} === 'good good good'")
    assert opened.text("count") == "This board has exactly 1 right answer."
    for _ in range(2):
        opened.click("#onward")
        opened.wait("/exactly 2/.test(document.getElementById('count').textContent)")
        assert opened.settle().startswith("✓")
        opened.wait(f"{verdicts} === 'bad good good'")
    assert opened.js("document.querySelector('#steps [aria-current]').textContent") == "3Their average is none"
    opened.click("#onward")
    opened.wait("!document.querySelector('#steps [aria-current]')")


def test_paste_a_sudoku(opened):
    opened.open()
    opened.settle()
    paste = f"""(() => {{ const data = new DataTransfer(); data.setData("text", {json.dumps(SUDOKU)});
        document.body.dispatchEvent(new ClipboardEvent("paste", {{ clipboardData: data, bubbles: true }})) }})()"""
    opened.js(paste)
    opened.wait("location.hash.startsWith('#sudoku/9/53')")
    assert opened.settle().startswith("✓ A right answer")
    opened.assert_valid()
    opened.js("document.getElementById('text').value = '123'")
    opened.click("#read")
    assert opened.text("text-error") == "The text has 3 cells: expected 16, 36, 81 or 256."
    assert opened.board()[0] == "sudoku"


def test_draw_a_futoshiki(opened):
    opened.open()
    opened.click("[data-task=futoshiki]")
    opened.choose("size", 4)
    opened.wait("location.hash.startsWith('#futoshiki/4/')")
    opened.click("#clear")
    assert opened.board() == ("futoshiki", 4, [0] * 16, [])
    opened.click("[data-sign='0-1']")
    assert opened.board()[3] == [[0, 1]]
    opened.click("[data-sign='0-1']")
    assert opened.board()[3] == [[1, 0]]
    opened.click("[data-sign='5-9']")
    opened.click("[data-cell='15']")
    opened.type("3", "ArrowUp", "1")
    opened.type("v")  # row 3, column 4 is larger than the cell below it
    assert opened.board() == ("futoshiki", 4, [*[0] * 11, 1, 0, 0, 0, 3], [[1, 0], [5, 9], [15, 11]])
    opened.wait("document.getElementById('status').textContent.includes('contradict')")
    opened.click("#undo")
    assert opened.settle().startswith("✓")
    opened.assert_valid()
    opened.click("#undo")
    assert opened.board()[2][11] == 0


def test_find_all_answers(opened):
    opened.open(TWO_ANSWERS)
    opened.settle()
    opened.click("#all")
    opened.wait("/^2 of 2 found/.test(document.getElementById('tries').textContent)")
    found = []
    for i in (1, 2):
        opened.click(f"#found li:nth-child({i}) button")
        opened.assert_valid()
        found.append(tuple(opened.shown()))
    assert len({*found}) == 2
    assert opened.js("document.querySelectorAll('#listed li').length") == 2
    assert opened.js("[...document.querySelectorAll('#listed span')].every((s) => s.textContent.includes('found'))")


def test_an_answer_of_the_strip_keeps_the_focus(opened):
    opened.open(TWO_ANSWERS)
    opened.settle()
    opened.js("document.querySelector('#found button').focus()")
    opened.click("#found button")
    opened.click("#another")
    opened.wait("document.getElementById('tries').textContent.includes('in 2 starts')")
    assert opened.js("document.activeElement === document.querySelector('#found button')")


def test_a_long_visit_keeps_nothing_of_the_boards_before(opened):
    opened.browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": "reduce"}])
    opened.open("#nqueens/5/.....")
    opened.js("document.getElementById('exact').open = true")
    for size in (6, 7, 8, 9):
        opened.js(f"location.hash = '#nqueens/{size}/{'.' * size}'")
        opened.wait("/exactly/.test(document.getElementById('count').textContent)")
        opened.wait("document.getElementById('tries').textContent.includes('in 1 start')")
        for starts in (2, 3, 4):
            opened.click("#another")
            opened.wait(f"document.getElementById('tries').textContent.includes('in {starts} starts')")
    shape = opened.browser.call("Runtime.evaluate", expression="HTMLCanvasElement.prototype")["result"]["objectId"]
    alive = opened.browser.call("Runtime.queryObjects", prototypeObjectId=shape)["objects"]["description"]
    # Those of the board before may still be on their way out; kept ones would be ten times as many.
    assert int(alive[6:-1]) <= 2 * opened.js("document.querySelectorAll('canvas').length")


def test_another_answer_starts_from_new_noise(opened):
    opened.open(TWO_ANSWERS)
    opened.settle()
    for starts in (2, 3):
        opened.click("#another")
        opened.wait(f"document.getElementById('tries').textContent.includes('in {starts} starts')")
    assert opened.text("count") == "This board has exactly 2 right answers."


def test_a_link_holds_the_board(opened):
    opened.open("#sudoku/4/1..4..1.2......1")
    opened.settle()
    opened.click("[data-cell='5']")
    opened.type("4")
    link = opened.js("location.hash")
    board = opened.board()
    assert board == ("sudoku", 4, [1, 0, 0, 4, 0, 4, 1, 0, 2, *[0] * 6, 1], [])
    opened.open(link)
    assert opened.board() == board
    opened.settle()
    opened.assert_valid()
    opened.js("location.hash = '#nqueens/5/1....'")
    opened.wait("document.querySelectorAll('[role=gridcell]').length === 25")
    opened.open("#sudoku/9/this is no board")
    assert opened.board()[:2] == ("nqueens", 8)


def test_keys_and_pad(opened):
    opened.open("#nqueens/4/....")
    opened.settle()
    opened.click("[data-cell='1']")
    opened.type("ArrowDown", "ArrowRight", "ArrowRight", "Enter")
    assert opened.board()[2] == [2, 4, 0, 0]
    opened.settle()
    opened.assert_valid()
    opened.type("Backspace")
    assert opened.board()[2] == [2, 0, 0, 0]
    opened.open("#sudoku/16/" + "." * 256)
    opened.click("[data-cell='17']")
    opened.type("g")
    opened.click("[data-cell='0']")
    opened.click("#pad button:nth-child(10)")
    values = opened.board()[2]
    assert (values[17], values[0]) == (16, 10)
    opened.click("#pad button:last-child")
    assert opened.board()[2][0] == 0
    # A value goes where the board shows it, also while the pad has the focus.
    assert opened.js("document.querySelector('[aria-selected]').dataset.cell") == "0"
    opened.open(TWO_ANSWERS)
    assert not opened.js("document.querySelectorAll('[aria-selected]').length")


def test_contradictory_givens_and_boards_without_a_solution_are_told(opened):
    opened.open("#sudoku/4/11..............")
    opened.wait("/contradict/.test(document.getElementById('status').textContent)")
    assert opened.js("document.getElementById('another').disabled && document.getElementById('play').disabled")
    assert opened.text("compare-note").startswith("Three small networks")
    opened.open("#futoshiki/4/................/0-1,1-5,5-4,4-0")
    opened.wait("document.getElementById('count').textContent === 'This board has no right answer.'")
    assert opened.settle().startswith("This board has no right answer")
    assert opened.js("document.getElementById('another').disabled")


def test_a_count_that_takes_too_long_is_a_lower_bound(opened):
    opened.open()
    opened.settle()
    opened.js("""(() => {
        const post = Worker.prototype.postMessage;
        Worker.prototype.postMessage = function (message) {
            post.call(this, { ...message, milliseconds: -1 });
        };
    })()""")
    opened.js("location.hash = '#sudoku/16/' + '.'.repeat(256)")
    opened.wait(
        "/^(This board has at least|No right answer was found)/.test(document.getElementById('count').textContent)"
    )
    assert "exactly" not in opened.text("count")


def test_player(opened):
    opened.open(TWO_ANSWERS)
    opened.settle()
    last = int(opened.js("document.getElementById('slider').value"))
    opened.click("#back")
    assert opened.text("status").startswith(f"Step {last - 1}")
    opened.click("#first")
    assert opened.text("status").startswith("Step 1")
    opened.click("#forward")
    assert opened.text("status").startswith("Step 2")
    opened.choose("speed", 2)
    opened.click("#play")
    assert opened.js("document.getElementById('play').getAttribute('aria-label')") == "Pause"
    opened.click("#play")
    paused = opened.text("status")
    opened.js("new Promise((done) => setTimeout(done, 700))")
    assert opened.text("status") == paused


def test_reduced_motion_shows_the_answer_at_once(opened):
    media = [{"name": "prefers-reduced-motion", "value": "reduce"}]
    opened.browser.call("Emulation.setEmulatedMedia", features=media)
    opened.open(TWO_ANSWERS)
    opened.js("""(() => {
        const status = document.getElementById("status");
        window.seen = "";
        new MutationObserver(() => (window.seen += status.textContent)).observe(status, { childList: true });
    })()""")
    opened.wait("/right answer/.test(document.getElementById('status').textContent)")
    assert "Step" not in opened.js("window.seen")


@pytest.mark.parametrize("task", PLAYED)
def test_random_boards_and_examples_are_answered(opened, task):
    opened.open()
    opened.settle()
    if task != "nqueens":
        opened.click(f"[data-task={task}]")
    count = opened.js("document.getElementById('examples').options.length")
    for i in range(1, count):
        opened.choose("examples", opened.js(f"document.getElementById('examples').options[{i}].value"))
        opened.wait("/exactly/.test(document.getElementById('count').textContent)")
        named = opened.js(f"document.getElementById('examples').options[{i}].text")
        number = {"one": "1", "two": "2", "three": "3"}.get(named.split()[-2], named.split()[-2])
        if named.split()[-1].startswith("answer"):
            assert f"exactly {number} right" in opened.text("count"), named
    before = opened.js("location.hash")
    opened.click("#random")
    opened.wait(f"location.hash !== {json.dumps(before)}")
    opened.settle()


PLACES = ["", TWO_ANSWERS, "#sudoku/9/" + SUDOKU, "#futoshiki/4/1..4.41.2......1/0-1,9-5", "#sudoku/4/11.............."]


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("link", PLACES)
def test_accessible(opened, dark, link):
    opened.browser.emulate(390 if dark else 1400, dark=dark)
    opened.open(link)
    opened.wait("/right answer|contradict/.test(document.getElementById('status').textContent)")
    opened.js("document.querySelectorAll('details').forEach((one) => one.open = true)")
    opened.js(AXE_SCRIPT + ";0")
    found = opened.js(
        "axe.run().then((r) => r.violations.map((v) => [v.id, v.nodes.map((n) => n.html.slice(0, 120))]))"
    )
    assert found == []


@pytest.mark.parametrize("width", [390, 1400])
def test_nothing_is_wider_than_the_window(opened, width):
    opened.browser.emulate(width)
    for link in (TWO_ANSWERS, "#sudoku/16/" + "." * 256, "#futoshiki/9/" + "." * 81):
        opened.open(link)
        opened.js("document.querySelectorAll('details').forEach((one) => one.open = true)")
        assert opened.js("document.documentElement.scrollWidth") <= width
        assert opened.js("document.getElementById('board').clientWidth") > 0.75 * min(width, 500)


def test_themes(opened):
    opened.open()
    colour = "getComputedStyle(document.body).backgroundColor"
    light = opened.js(colour)
    opened.click("#theme")
    dark = opened.js(colour)
    assert light != dark
    opened.click("#theme")
    assert opened.js(colour) == light
