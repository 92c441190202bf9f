"""The site builds without a warning, loads nothing from other sites, and has every command, metric and public name."""

import ast
import json
import pkgutil
import re
import runpy
import shlex
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path

import pytest

import oneofmany
from oneofmany.cli import COMMANDS, run
from oneofmany.training import train
from small_runs import files, small, write_data

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
COMMAND_PAGE = (DOCS / "command-line.md").read_text()
NOT_RUN = ("doctor", "demo", "play")
"""Examples that take longer or open a browser: doctor and play have tests of their own, and .ci/run runs the demo."""


def names(tree, before=""):
    for name, place in tree.items():
        yield from names(place, f"{before}{name} ") if isinstance(place, dict) else [before + name]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site; it builds without a warning."""
    pytest.importorskip("furo")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
    command += ["-D", "report_pictures=0", str(DOCS), str(folder)]  # drawing them takes longest
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def pages(site):
    """The pages that Sphinx made: all but the report and the playground."""
    found = [page for page in sorted(site.rglob("*.html")) if page.name not in ("report.html", "play.html")]
    assert len(found) > 30
    return found


def test_the_report_is_a_page_of_its_own(site):
    assert 'id="show-table-2-accuracy"' in (site / "report.html").read_text()
    assert 'href="report.html"' in (site / "results.html").read_text()


def test_the_playground_is_a_page_of_its_own(site):
    assert '<script type="text/plain" id="worker">' in (site / "play.html").read_text()
    assert 'href="play.html"' in (site / "playground.html").read_text()


class References(HTMLParser):
    """The URLs that a page loads, directly or through its styles; links are not loaded."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        loads = {"link": ("href",), "a": ()}.get(tag, ("src", "srcset", "data", "poster", "href", "xlink:href"))
        own = dict(attrs)
        if own.get("rel") not in ("canonical", "author"):
            self.found += [own[name] for name in loads if own.get(name)]


def test_no_page_loads_anything_from_elsewhere(site):
    elsewhere = re.compile(r"^(https?:)?//")
    for page in pages(site):
        references = References()
        references.feed(page.read_text())
        assert references.found
        assert not [place for place in references.found if elsewhere.match(place)], page
    for style in site.rglob("*.css"):
        text = re.sub(r"/\*.*?\*/", "", style.read_text(), flags=re.DOTALL)
        loaded = re.findall(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)", text)
        assert not [place for pair in loaded for place in pair if elsewhere.match(place)], style


def test_formulas_are_drawn_by_the_browser_itself(site):
    total = 0
    for page in sorted((DOCS / "objectives").glob("*.md")):
        text = re.sub(r"^```.*?^```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
        formulas = len(re.findall(r"\$\$.+?\$\$|\$[^$\n]+\$", text, flags=re.DOTALL))
        html = (site / "objectives" / f"{page.stem}.html").read_text()
        assert html.count("<math ") == formulas, page
        assert "$$" not in re.sub(r"<pre>.*?</pre>", "", html, flags=re.DOTALL)
        total += formulas
    assert total > 10


def described(site):
    """The full names that the reference describes."""
    from sphinx.util.inventory import InventoryFile

    with (site / "objects.inv").open("rb") as file:
        kinds = InventoryFile.load(file, "", lambda base, place: place)
    return {name for kind, entries in kinds.items() if kind.startswith("py:") for name in entries}


def test_every_public_name_is_in_the_reference(site):
    reference, found = runpy.run_path(str(DOCS / "reference.py")), described(site)
    rooms = reference["rooms"]()
    assert {"oneofmany", "oneofmany.objectives", "oneofmany.solving", "oneofmany.testing"} <= set(rooms)
    for room in rooms:
        names = set(reference["public_names"](room))
        assert names, room
        assert names <= found, f"{room}: {', '.join(sorted(names - found))}"
    ends = {name.rsplit(".", 1)[-1] for name in found}
    for module in pkgutil.walk_packages(oneofmany.__path__, "oneofmany."):
        if module.ispkg and not module.name.startswith("oneofmany.cli"):
            missing = set(getattr(import_module(module.name), "__all__", ())) - ends
            assert not missing, f"{module.name}: {', '.join(sorted(missing))}"


def test_what_pages_and_examples_import_is_in_the_reference(site):
    found, code = described(site), [path.read_text() for path in (ROOT / "examples").glob("*.py")]
    for page in (ROOT / "README.md", *DOCS.rglob("*.md")):
        code += re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    for node in (node for text in code for node in ast.walk(ast.parse(text))):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("oneofmany"):
            missing = {f"{node.module}.{alias.name}" for alias in node.names} - found
            assert not missing, missing


WIDE = """
(() => {
  const found = [], scrolls = element => /auto|scroll/.test(getComputedStyle(element).overflowX);
  if (document.documentElement.scrollWidth > innerWidth) found.push("the page itself");
  for (const part of document.querySelectorAll("article :is(table, pre, math, img, svg, h1, h2, h3, p, li, dt)")) {
    let right = part.getBoundingClientRect().right, box = part;
    while (right > innerWidth + 0.5 && (box = box.parentElement) && box.tagName != "ARTICLE")
      if (scrolls(box)) right = box.getBoundingClientRect().right;
    const cut = !scrolls(part) && part.scrollWidth > part.clientWidth + 1
      && getComputedStyle(part).overflowX != "visible";
    if (right > innerWidth + 0.5 || cut) found.push(part.outerHTML.slice(0, 200));
  }
  return found;
})()
"""
"""Elements that are wider than the window and cannot be scrolled."""


def test_nothing_is_cut_off_on_phones_and_screens(site, browser):
    for page in pages(site):
        browser.open(page)
        for width in (390, 1400):
            browser.emulate(width)
            assert browser.evaluate(WIDE) == [], f"{page} at {width} px"
    assert all(url.startswith(("file:", "data:")) for url in browser.requests)


COPIED = """
(() => {
  const copied = [];
  document.execCommand = () => copied.push([...document.querySelectorAll("textarea")].at(-1).value);
  document.querySelectorAll(".copybtn").forEach(button => button.click());
  return copied;
})()
"""
"""The text that each copy button copies."""


def test_code_is_copied_without_prompts(site, browser):
    browser.open(site / "data.html")
    assert "python benchmarks/data.py --clues sudoku17.txt" in browser.evaluate(COPIED)
    browser.open(site / "index.html")
    assert any("loss.backward()" in text for text in browser.evaluate(COPIED))


@pytest.mark.parametrize("command", list(names(COMMANDS)))
def test_every_command_has_a_section_with_an_example_and_its_help(command):
    section = re.search(rf"^## {command}\n(.*?)(?=^## |\Z)", COMMAND_PAGE, re.DOTALL | re.MULTILINE)
    assert section, f"docs/command-line.md has no section about {command}"
    assert f"oneofmany {command}" in section[1].split("```console\n")[1]
    assert f"```{{command-help}} {command}\n" in section[1]


def test_the_examples_of_the_commands_run(tmp_path, monkeypatch):
    """All of them run in order in an empty folder, as the page says."""
    monkeypatch.chdir(tmp_path)
    for block in re.findall(r"^```console\n(.*?)^```", COMMAND_PAGE, re.DOTALL | re.MULTILINE):
        for line in block.splitlines():
            program, *words = shlex.split(line)
            if program == "echo":
                text, _, file = words
                Path(file).write_text(text + "\n")
            elif words[0] not in NOT_RUN:
                # A developer's tree may have uncommitted changes.
                assert run([*words, "--allow-dirty"] if words[0] == "record" else words) == 0, line


def test_every_key_of_the_metrics_is_in_the_glossary(tmp_path):
    data, glossary = write_data(tmp_path), (DOCS / "metric-glossary.md").read_text()
    settings = small("selectr")
    train(settings, *files(data, settings), tmp_path / "selectr")
    for objective in ("minloss", "unique"):
        train(small(objective), *files(data, settings), tmp_path / objective)
    shared = replace(settings, pretrained=(str(tmp_path / "minloss"), str(tmp_path / "unique")))
    train(shared, *files(data, settings), tmp_path / "shared")
    lines = [json.loads((tmp_path / "shared" / "result.json").read_text())]
    for run_name in ("selectr", "shared"):
        lines += [json.loads(line) for line in (tmp_path / run_name / "metrics.jsonl").read_text().splitlines()]
    assert {"train", "dev", "start"} <= {line.get("kind") for line in lines}
    keys = {key for line in lines for key in (*line, *line.get("dev", ()))}
    values = {line[key] for line in lines for key in ("kind", "phase") if key in line}
    missing = sorted(word for word in keys | values if f"`{word}`" not in glossary)
    assert not missing, f"docs/metric-glossary.md does not explain {', '.join(missing)}"
