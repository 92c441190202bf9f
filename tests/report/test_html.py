"""The page as a file and in a browser."""

import importlib.util
import json
import pathlib
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
import torch

from oneofmany.problems import TASKS, use_task_file
from oneofmany.report import Chart, Grid, Section, Table, trace
from oneofmany.report.page import embedded, render, user_sections
from oneofmany.report.table import Cell, Column

from .records import fake_evaluation, fake_grid, fake_record
from .test_viewer import make_batch

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>&\"'"
STEPS = 4


class Settling(torch.nn.Module):
    """Prefers the second solution at first and ends on the first one, or one cell away from it."""

    value_offset = 0
    steps = STEPS

    def __init__(self, miss=False):
        super().__init__()
        self.miss = miss

    def forward(self, batch, steps=None):
        first, second = (
            torch.nn.functional.one_hot(batch.solutions[:, k], batch.problem.values).float() for k in (0, 1)
        )
        if self.miss:
            first = torch.cat([first[:, :-1], first[:, -1:].roll(1, -1)], 1)
        return torch.stack([8 * first * t / STEPS + 4 * second * (1 - t / STEPS) for t in range(STEPS + 1)])


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    grid = Grid.of(fake_grid(queries=300))
    viewers = []
    for task in ("nqueens", "sudoku", "futoshiki"):
        right, wrong = (trace(Settling(miss), make_batch(task)) for miss in (False, True))
        # Both are right on the first query of two.
        wrong["boards"] = [*right["boards"], *wrong["boards"]]
        right["boards"] *= 2
        viewers += [(f"{task} right", right | {"objective": "naive"})]
        viewers += [(f"{task} wrong", wrong | {"objective": "minloss"})]
    path = tmp_path_factory.mktemp("page") / "report.html"
    results, figures = user_sections(grid)
    charts = [chart for chart in figures.charts if "nqueens" not in chart.name and "futoshiki" not in chart.name]
    path.write_text(render(grid, [results, replace(figures, charts=charts)], viewers), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def small_page(tmp_path_factory):
    """Every kind of part once: for what looks at every element."""
    grid = Grid.of([r for r in fake_grid(queries=300, seeds=(42,)) if r.recipe in ("nqueens/naive", "nqueens/minloss")])
    results, figures = user_sections(grid)
    viewers = [(f"{miss}", trace(Settling(miss), make_batch("nqueens"))) for miss in (False, True)]
    path = tmp_path_factory.mktemp("small") / "report.html"
    path.write_text(render(grid, [results, replace(figures, charts=figures.charts[:1])], viewers), encoding="utf-8")
    return path


class Tags(HTMLParser):
    """The elements, ids and links of a page."""

    def __init__(self):
        super().__init__()
        self.tags, self.ids, self.links = [], [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        for name, value in attributes:
            if name == "id":
                self.ids.append(value)
            elif name in ("src", "href", "srcset", "action") or name.startswith("on"):
                self.links.append(value)


def read(text):
    tags = Tags()
    tags.feed(text)
    return tags


def test_complete_in_itself(page):
    tags = read(page.read_text(encoding="utf-8"))
    assert all(link == "data:," or link.startswith("#") for link in tags.links)
    assert not {"img", "iframe", "object", "embed", "base"} & set(tags.tags)
    assert len(tags.ids) == len(set(tags.ids))
    assert {link[1:] for link in tags.links if link.startswith("#")} <= set(tags.ids)
    assert "default-src 'none'" in page.read_text(encoding="utf-8")
    assert "@import" not in page.read_text(encoding="utf-8")


def test_same_bytes():
    grid = Grid.of(fake_grid(queries=50, seeds=(42,)))
    one, other = (
        render(grid, [results, replace(figures, charts=figures.charts[:1])])
        for results, figures in (user_sections(grid), user_sections(grid))
    )
    assert one == other


def test_nothing_from_a_record_becomes_markup():
    total = np.repeat([1, 2], 40)
    evaluation = fake_evaluation(total > 1, total, name=HOSTILE, command=HOSTILE)
    record = fake_record(f"nqueens/minloss/{HOSTILE}".replace("/s", "s"), 42, {HOSTILE: evaluation}, command=HOSTILE)
    record.settings["note"] = record.environment["device"] = HOSTILE
    viewers = [(HOSTILE, trace(Settling(), make_batch("nqueens")) | {"task": HOSTILE})]
    grid = Grid.of([record])
    text = render(grid, user_sections(grid), viewers)
    tags = read(text)
    assert tags.tags.count("script") == text.count("<script") == 3
    assert "img" not in tags.tags
    data = re.search(r'<script type="application/json" id="viewer-data">(.*?)</script>', text, re.DOTALL)
    assert json.loads(data[1])[0]["task"] == HOSTILE
    for name in (tag for tag in tags.ids if "<" in tag):
        pytest.fail(f"a name of a record is used as an id: {name}")


def test_embedded_json_comes_back():
    value = [HOSTILE, {"a": [1, 2.5, None]}, "\u2028<!--"]
    text = embedded(value)
    assert not set(text) & set("<>&\u2028")
    assert json.loads(text) == value


def test_the_page_begins_with_its_answer(page):
    text = page.read_text(encoding="utf-8")
    body = text[text.index("<main>") :]
    places = ["<h1>", '<p class="answer">', '<figure id="answer-figure">', 'id="viewer"', 'id="show-accuracy"',
              '<section id="figures">', '<section id="runs">']  # fmt: skip
    assert [body.index(place) for place in places] == sorted(body.index(place) for place in places)


def test_nothing_is_empty(page):
    text = page.read_text(encoding="utf-8")
    assert not re.findall(r"<(?:section|article|figure|ul|ol|table|tbody|p|h\d)\b[^>]*>\s*</", text)
    grid = Grid.of(fake_grid(queries=50, seeds=(42,))[:1])
    (record,) = grid.runs
    one = replace(record, seconds=None)
    table = render(Grid.of([one]), user_sections(Grid.of([one])))
    assert 'data-name="training seconds"' not in table
    assert 'data-name="training seconds"' in render(grid, user_sections(grid))


def test_partial_and_empty_grids_render():
    text = render(Grid.of([]), user_sections(Grid.of([])))
    assert "No run has been evaluated" in text
    assert re.findall(r'<section id="(\w+)"', text) == ["answer"]
    grid = Grid.of(fake_grid(queries=50))
    assert "need matplotlib" in render(grid, user_sections(grid), drawn=False)


def test_a_users_page_shows_what_the_runs_fill_and_nothing_else():
    """One run: no empty table, and nothing about the paper's claims or other results."""
    grid = Grid.of(fake_grid(queries=50, seeds=(42,))[:1])
    text = render(grid, user_sections(grid))
    shown = re.findall(r'id="show-([\w-]+)"', text)
    assert shown == ["accuracy", "runs"]
    assert all(table.filled for section in user_sections(grid) for table in section.filled)
    body = text[text.index("<main>") : text.index("<footer>")].lower()
    body = body.replace("var(--paper)", "")
    for word in ("claim", "paper", "our network", "not fill", "published", "example 2"):
        assert word not in body, word
    assert "1 run of 1 recipe." in text


def test_sections_are_shown_in_order_with_their_markup():
    cell = Cell("1.00", {"mean": 1.0}, ("oneofmany train x",))
    table = Table("mine", "Mine", (Column("a"),), ((cell,),))
    chart = Chart("drawn", "Drawn", "It is.", lambda figure, theme: figure.add_subplot())
    parts = [Section("first", "First <&>", [table]), Section("empty", "Empty"), Section("last", "Last", charts=[chart],
             html="<p id='own'>mine</p>")]  # fmt: skip
    text = render(Grid.of([]), parts)
    assert text.index('id="first"') < text.index('id="show-mine"') < text.index('id="last"') < text.index("id='own'")
    assert text.index("id='own'") < text.index('<figure id="drawn">')
    assert "First &lt;&amp;&gt;" in text
    assert 'id="empty"' not in text
    assert '<a href="#last">Last</a>' in text


# ---- in a browser ------------------------------------------------------------------------------------------------


@pytest.fixture
def opened(browser, page):
    browser.messages.clear()
    browser.requests.clear()
    browser.emulate(1280)
    browser.open(page)
    yield browser
    assert browser.messages == []
    assert set(browser.requests) == {page.resolve().as_uri()}


def status(browser, side=0):
    return browser.evaluate(f"document.querySelectorAll('.viewer .status')[{side}].innerText")


def step(browser):
    return browser.evaluate("document.querySelector('.viewer .step').innerText").split(": ")[1]


def pick(browser, run, side="left"):
    change = f"s.value = {run}; s.dispatchEvent(new Event('change'))"
    browser.evaluate(f"(() => {{ const s = document.querySelector('#viewer-{side}'); {change} }})()")


def click(browser, name):
    browser.evaluate(f"document.querySelector('#viewer-{name}').click()")


def test_viewer_opens_where_two_runs_differ(opened):
    """Side by side, at the last step, the run that is wrong on the left."""
    solutions = make_batch("nqueens").solutions.shape[1]
    assert status(opened) == f"✗ wrong: 1 of 8 differs from solution 1 of {solutions}"
    assert status(opened, 1) == f"✓ right: solution 1 of {solutions}"
    shown = opened.evaluate("[...document.querySelectorAll('.viewer select')].map((s) => s.selectedOptions[0].text)")
    assert shown == ["MinLoss: nqueens wrong", "Naive: nqueens right"]
    assert opened.evaluate("document.querySelectorAll('.viewer .board svg').length") == 2
    assert opened.evaluate("document.querySelector('.viewer .queries button[aria-pressed=true]').textContent") == "2✗✓"


def test_viewer_has_all_queries_that_are_kept(opened):
    chips = "[...document.querySelectorAll('.viewer .queries button')]"
    labels = opened.evaluate(f"{chips}.map((chip) => chip.getAttribute('aria-label'))")
    assert len(labels) == 2
    assert labels[0].endswith("MinLoss right, Naive right")
    assert labels[1].endswith("MinLoss wrong, Naive right")
    opened.evaluate(f"{chips}[0].click()")
    assert status(opened).startswith("✓ right")
    assert opened.evaluate(f"{chips}.map((chip) => chip.getAttribute('aria-pressed'))") == ["true", "false"]


def test_viewer_steps(opened):
    solutions = make_batch("nqueens").solutions.shape[1]
    click(opened, "first")
    assert step(opened) == "step 1 of 5"
    assert status(opened) == status(opened, 1) == f"✓ right: solution 2 of {solutions}"
    seen = []
    for _ in range(STEPS + 2):
        click(opened, "next")
        seen.append(step(opened).split()[1])
    assert seen == ["2", "3", "4", "5", "5", "5"]
    opened.evaluate("document.querySelector('#viewer').focus()")
    for key, place in (("Home", 1), ("ArrowRight", 2), ("ArrowRight", 3), ("ArrowLeft", 2), ("End", 5), ("Home", 1)):
        opened.press(key)
        assert step(opened) == f"step {place} of 5", key
    slide = "const s = document.querySelector('#viewer-step'); s.value = 3; s.dispatchEvent(new Event('input'))"
    opened.evaluate(f"(() => {{ {slide} }})()")
    assert step(opened) == "step 4 of 5"


def test_viewer_plays(opened):
    opened.evaluate("document.querySelector('#viewer').focus()")
    opened.press(" ", " ")
    assert opened.evaluate("document.querySelector('#viewer-play').textContent") == "Pause"
    opened.evaluate("new Promise((done) => setTimeout(done, 2600))")
    assert step(opened) == "step 5 of 5"
    assert opened.evaluate("document.querySelector('#viewer-play').textContent") == "Play"


@pytest.mark.parametrize(("first", "task", "drawn"), [(0, "nqueens", 64), (2, "sudoku", 16), (4, "futoshiki", 16)])
def test_viewer_marks_wrong_cells_and_offers_runs_of_the_same_queries(opened, first, task, drawn):
    sides = "[...document.querySelectorAll('.viewer .side')].map((side) => [...side.querySelectorAll("
    frames = f"{sides}'.board rect[stroke-width]')])"
    wrong = f"{frames}.map((all) => all.filter((r) => r.getAttribute('stroke') === 'var(--wrong)').length)"
    pick(opened, first)
    assert opened.evaluate(f"{frames}.map((all) => all.length)") == [drawn, drawn]
    assert opened.evaluate(wrong) == [0, 1]
    assert "✗ wrong: 1 of" in status(opened, 1)
    others = opened.evaluate("[...document.querySelector('#viewer-right').options].map((o) => o.text)")
    assert others == [f"MinLoss: {task} wrong"]
    signs = "[...document.querySelectorAll('.viewer .board text')].filter((t) => '<>'.includes(t.textContent || '-'))"
    assert opened.evaluate(f"{signs}.length") == (4 if task == "futoshiki" else 0)


def test_viewer_draws_graphs_and_sums(browser, tmp_path):
    graph = trace(Settling(miss=True), make_batch("colouring", "k=3 1-2 2-3 3-4 4-1 1-3"))
    example = pathlib.Path(__file__).parents[2] / "examples" / "tasks" / "magic_square.py"
    task = use_task_file(example)
    try:
        square = trace(Settling(), make_batch(task.name, "8 . . . 5 . . . ."))
    finally:
        del TASKS[task.name]
    smaller = trace(Settling(), make_batch("colouring", "k=3 n=6 1-2 2-3 3-1 3-4 5=1 6=1"))
    viewers = [("graph", graph), ("square", square), ("smaller", smaller)]
    (tmp_path / "report.html").write_text(render(Grid.of([]), [], viewers), "utf-8")
    browser.messages.clear()
    browser.open(tmp_path / "report.html")
    drawn = "[...document.querySelector('.viewer .board').querySelectorAll('{}')]"
    assert browser.evaluate(f"{drawn.format('circle')}.length") == 8  # paper and colour of four nodes
    numbers = f"{drawn.format('text')}.map((t) => t.textContent)"
    assert browser.evaluate(numbers) == list(map(str, graph["boards"][0]["answers"][-1]))
    wrong = "filter((line) => line.getAttribute('stroke') === 'var(--wrong)').length"
    values = graph["boards"][0]["answers"][-1]
    broken = sum(values[a] == values[b] for a, b in graph["boards"][0]["relations"])
    assert browser.evaluate(f"{drawn.format('line')}.{wrong}") == broken > 0
    pick(browser, 1)
    assert browser.evaluate(numbers).count("15") == 6
    pick(browser, 2)
    same = browser.evaluate("[...document.querySelectorAll('.viewer .closest ~ span')].map((s) => s.textContent)")
    assert same[0] == "4 / 4"  # not the nodes that only other graphs of the data have
    assert "two runs" in browser.evaluate("document.querySelector('#boards').innerText")
    assert "two runs" not in render(Grid.of([]), [], viewers[:1])
    assert browser.messages == []


def test_an_objective_has_one_colour_in_figure_viewer_and_tables(opened):
    """Each takes it from the page's theme by the objective's name."""
    opened.evaluate("document.querySelector('#theme').click()")
    colours = opened.evaluate("""["#answer-figure path[style*='--minloss']", ".viewer .side .chip", "th .chip"]
        .map((place) => [...document.querySelectorAll(place)].map((one) => {
          const own = getComputedStyle(one);
          return one.tagName === 'path' ? own.fill : own.backgroundColor;
        }))""")
    minloss = colours[1][0]
    assert minloss == "rgb(90, 178, 238)"
    assert all(minloss in found for found in colours)
    opened.evaluate("localStorage.clear()")


AXE = pathlib.Path(importlib.util.find_spec("axe_playwright_python").origin).with_name("axe.min.js")


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_axe_finds_no_violation(browser, small_page, width, dark):
    browser.emulate(width, dark=dark)
    browser.open(small_page)
    browser.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    browser.evaluate(AXE.read_text() + "; 0")
    found = browser.evaluate(
        "axe.run().then((r) => r.violations.map((v) => [v.id, v.nodes.length, v.nodes[0].html.slice(0, 200), "
        "v.nodes[0].failureSummary]))"
    )
    assert found == []


def colour(browser):
    return browser.evaluate("getComputedStyle(document.body).backgroundColor")


def test_dark_mode(opened, page):
    light = colour(opened)
    opened.evaluate("document.querySelector('#theme').click()")
    dark = colour(opened)
    assert light == "rgb(255, 255, 255)" != dark
    # The choice stays for the next visit, whatever the system prefers.
    opened.open(page)
    assert colour(opened) == dark
    opened.evaluate("document.querySelector('#theme').click()")
    assert colour(opened) == light
    opened.evaluate("localStorage.clear()")
    opened.emulate(1280, dark=True)
    opened.open(page)
    assert colour(opened) == dark
    ink = "getComputedStyle(document.querySelector('.chart svg text')).fill"
    assert opened.evaluate(ink) != "rgb(28, 33, 40)"
    opened.evaluate("document.querySelector('#theme').click()")
    assert colour(opened) == light
    opened.evaluate("localStorage.clear()")


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_fits_the_window(opened, page, width):
    opened.emulate(width)
    opened.open(page)
    opened.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert opened.evaluate("document.documentElement.scrollWidth") <= width
    charts = "[...document.querySelectorAll('.chart svg, .board svg')].map((one) => one.getBoundingClientRect().right)"
    assert max(opened.evaluate(charts)) <= width


def test_small_tables_are_cards_on_a_phone(browser, small_page):
    browser.emulate(390)
    browser.open(small_page)
    short = "[...document.querySelectorAll('.cards table')]"
    assert browser.evaluate(f"{short}.length") > 1
    assert browser.evaluate(f"{short}.filter((t) => t.scrollWidth > t.parentElement.clientWidth + 1).length") == 0
    assert browser.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_long_cell_is_broken_into_lines(browser, tmp_path):
    cells = (
        Cell("recipes"),
        Cell("1.00", {"mean": 1.0}, ("oneofmany train x",)),
        Cell("nqueens/minloss/tiny (42), " * 40),
    )
    table = Table("wide", "Wide", (Column("group"), Column("mean"), Column("runs")), (cells,))
    path = tmp_path / "wide.html"
    path.write_text(render(Grid.of([]), [Section("first", "First", [table])]), encoding="utf-8")
    for width in (390, 1280):
        browser.emulate(width)
        browser.open(path)
        frame = "document.querySelector('.scroll')"
        assert browser.evaluate(f"{frame}.scrollWidth <= {frame}.clientWidth")


def test_links_unfold_what_they_point_to(opened):
    opened.evaluate("location.hash = document.querySelector('a.command').getAttribute('href')")
    opened.evaluate("new Promise((done) => setTimeout(done, 200))")
    assert opened.evaluate("document.querySelector('.run:target').offsetHeight") > 0
