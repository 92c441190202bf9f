"""The list of recipes: a line for every recipe, or a count; what was measured is what the records say."""

import re

import pytest

from oneofmany.recipes import matching, recipes
from oneofmany.recipes.listing import FOLDED, listing, measured
from oneofmany.training.settings import OBJECTIVES


def names_in(text):
    return [line.split()[0] for line in text.splitlines() if line.split()[:1] and line.split()[0] in recipes()]


def test_every_recipe_is_listed_or_counted():
    text = listing()
    counted = [name for pattern in FOLDED for name in matching(pattern)]
    assert sorted([*names_in(text), *counted]) == sorted(recipes())
    numbers = [int(number) for number in re.findall(r"(\d+) recipes", text)]
    assert numbers == [len(matching(pattern)) for pattern in FOLDED]


def test_lines_fit_80_columns():
    for text in (listing(), *(listing(part) for part in ("table-2", "equivariant", "sudoku", "nqueens"))):
        assert all(len(line) <= 80 or line in recipes() for line in text.splitlines())


def test_words_select_lines():
    assert names_in(listing("sudoku/selectr/*/*")) == matching("sudoku/selectr/*/*")
    assert names_in(listing("180k")) == [name for name in recipes() if "180k" in name]
    assert names_in(listing("sudoku", "tiny")) == [f"sudoku/{objective}/tiny" for objective in OBJECTIVES]
    assert names_in(listing("rrn")) == [name for name, one in recipes().items() if one.network.kind == "rrn"]
    for wrong in (["chess"], ["*/chess"], ["sudoku", "chess"]):
        with pytest.raises(ValueError, match="no recipe matches"):
            listing(*wrong)


def test_what_was_measured():
    assert set(measured()) <= set(recipes())
    assert all(one.device for one in measured().values())
    assert len([one for one in measured().values() if one.accuracy is not None]) > 50
    # Only the variant with the checker is marked as needing the rules.
    for name, mark in (("sudoku/minloss/equivariant", []), ("sudoku/minloss/equivariant-checker", ["*"])):
        [line] = [line for line in listing(name).splitlines() if line.split()[0:1] == [name]]
        found = measured()[name]
        assert line.split()[1:] == ["equivariant", "GPU", *mark, f"{found.minutes:.1f}", f"{found.accuracy:.2f}"]
    [line] = [
        line
        for line in listing("nqueens/selectr/table-2").splitlines()
        if line.endswith(f"{measured()['nqueens/selectr/table-2'].accuracy:.2f}")
    ]
    assert line.split()[3].endswith("+")
    assert "+: the runs started from" in listing("nqueens/selectr/table-2")
    text = listing("tiny")
    assert "minutes: " not in text
    assert all(line.split()[-2:] == ["-", "-"] for line in text.splitlines()[1:8])


def test_a_star_stops_at_a_slash():
    assert matching("nqueens/*/table-2") == [f"nqueens/{objective}/table-2" for objective in OBJECTIVES]
    assert matching("nqueens/minloss") == ["nqueens/minloss"]
    assert not matching("nqueens")
