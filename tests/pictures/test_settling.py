"""A board settling: the animation ends where the network does and holds still for who prefers that."""

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from oneofmany.cli import run
from oneofmany.networks.equivariant.cpu_inference import predict_on_cpu
from oneofmany.networks.noise import Noise
from oneofmany.pictures import beliefs, settling_svg
from oneofmany.pictures.settling import CLOSE, _keyframes
from oneofmany.problems import read_queries
from oneofmany.solving.running import load_network

DOCS = Path(__file__).parents[2] / "docs"
QUERIES = {
    "nqueens": ". . . . . . . .",
    "sudoku": "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79",
    "futoshiki": ".2.............. r1c2<r1c3 r3c1<r2c1",
}


def settled(task):
    (query,) = read_queries(task, QUERIES[task])
    network = load_network(task).network
    return query, network, beliefs(query)


@pytest.mark.parametrize("task", QUERIES)
def test_the_last_step_is_the_networks_answer(task):
    query, network, belief = settled(task)
    relations = query.relations[None] if len(query.relations) else None
    answer = predict_on_cpu(network, query.problem, query.values[None], relations, steps=len(belief), noise=Noise(0))
    assert np.array_equal(belief[-1].argmax(-1), answer.answers[0])
    assert np.allclose(belief.sum(-1), 1, atol=1e-4)
    assert len(belief) < 64, "it settles"
    text = settling_svg(query, belief)
    assert "the answer is right" in ElementTree.fromstring(text).attrib["aria-label"]
    assert len(text) < 100_000
    # Without motion exactly the answer is visible.
    still = re.sub(r"@media\(prefers-reduced-motion.*?</style>", "</style>", text)
    assert "animation:" not in still
    shown = re.findall(r'<(?:path|text)[^>]*class="f-right[^"]*"([^>]*)', still)
    assert len(shown) == (query.values == 0).sum()
    assert not any('opacity="0' in attributes for attributes in shown)


def test_the_answer_is_shown_also_if_the_network_is_not_sure_of_it():
    (query,) = read_queries("sudoku", "1" + "." * 15)
    belief = np.full((3, 16, 4), 0.25, np.float32)
    belief[..., 0] += 0.01
    text = settling_svg(query, belief)
    still = re.sub(r"@media\(prefers-reduced-motion.*?</style>", "</style>", text)
    shown = re.findall(r'<(?:path|text)[^>]*class="f-wrong[^"]*"([^>]*)', still)
    assert len([attributes for attributes in shown if "opacity" not in attributes]) == 15
    assert "in 3 steps; the answer is wrong" in text


def test_keyframes_stay_close_to_the_belief():
    rng = np.random.default_rng(0)
    times = np.linspace(0, 0.8, 30).tolist()
    opacity = np.clip(np.cumsum(rng.normal(0, 0.1, 30)), 0, 1)
    frames = _keyframes(times, opacity)
    points = np.array([[float(a) / 100, float(b)] for a, b in re.findall(r"([\d.]+)%\{opacity:([\d.]+)\}", frames)])
    assert frames.endswith(f"to{{opacity:{opacity[-1]:.2g}}}")
    assert np.abs(np.interp(times, *points.T) - opacity).max() < CLOSE + 0.02
    assert len(points) <= 30


def test_the_command_and_the_kept_picture(tmp_path, capsys):
    out = tmp_path / "settling.svg"
    assert run(["show", "nqueens", QUERIES["nqueens"], "--settling", str(out)]) == 0
    assert capsys.readouterr().out == f"{out}\n"
    kept = (DOCS / "settling.svg").read_text()
    assert len(kept) < 60_000
    # The current code drew it. Beliefs may differ in their last digits on another processor.
    words = ElementTree.fromstring(out.read_text()).attrib["aria-label"]
    assert ElementTree.fromstring(kept).attrib["aria-label"].split(" in ")[0] == words.split(" in ")[0]
    assert run(["show", "data.safetensors", "--settling", str(out)]) == 2
    assert "expected a task" in capsys.readouterr().err
    assert run(["show", "nqueens", QUERIES["nqueens"], "--settling", str(tmp_path / "a.gif")]) == 2
    assert "ends in .svg" in capsys.readouterr().err
