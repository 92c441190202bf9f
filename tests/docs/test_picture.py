"""The picture of the README is drawn from the networks' predictions."""

import re
import runpy
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

DOCS = Path(__file__).parents[2] / "docs"
PICTURE = runpy.run_path(str(DOCS / "picture.py"), run_name="picture")
QUERY, SOLUTIONS = np.array([5, 8, 4, 1, 0, 0, 0, 0]), np.array([[5, 8, 4, 1, 7, 2, 6, 3], [5, 8, 4, 1, 3, 6, 2, 7]])
QUEEN = re.compile(r'<use href="#queen" class="(\w+)" opacity="([\d.]+)"')


def drawn(weights, accuracies=(0.25, 1.0), valid=(False, True)):
    """The picture of networks that give the two solutions these probabilities."""
    beliefs = [
        PICTURE["Belief"](name, sum(w * np.eye(8)[own - 1] for w, own in zip(both, SOLUTIONS, strict=True)), ok, share)
        for name, both, ok, share in zip(("Naive", "MinLoss"), weights, valid, accuracies, strict=True)
    ]
    return PICTURE["picture"](QUERY, SOLUTIONS, beliefs)


def test_queens_are_as_opaque_as_the_network_is_sure():
    svg = drawn([(0.5, 0.5), (1.0, 0.0)])
    boards = [QUEEN.findall(part) for part in svg.split("<g ")[1:]]
    given = [("ink", "1.00")] * 4
    assert boards[0] == given
    assert boards[1] == given + [("first", "1.00")] * 4
    assert boards[2] == given + [("second", "1.00")] * 4
    assert sorted(boards[3]) == sorted(given + [("first", "0.50"), ("second", "0.50")] * 4)
    assert boards[4] == boards[1]
    assert "Naive: both" in svg
    assert "MinLoss: one" in svg
    assert "25 %" in svg
    assert "100 %" in svg


def test_words_and_marks_follow_the_networks():
    svg = drawn([(0.0, 1.0), (0.6, 0.4)], valid=(True, False))
    assert "Naive: one" in svg
    assert "MinLoss: both" in svg
    assert svg.index("right-line") < svg.index("wrong-line", svg.index("<rect"))


def test_the_kept_picture_is_small_and_whole():
    text = (DOCS / "picture.svg").read_text()
    assert len(text) < 200_000
    assert ElementTree.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
    assert "prefers-color-scheme:dark" in text
    assert not re.findall(r"(?:href|src)=\"(?!#)|url\(", text)
    # The current script drew it: the words, marks and styles around the numbers are the same.
    frame = re.compile(r"<style>.*?</style>|<defs>.*?</defs>", re.DOTALL)
    assert frame.findall(text) == frame.findall(drawn([(0.5, 0.5), (1.0, 0.0)]))
