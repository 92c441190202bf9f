"""The list of recipes: every recipe is under a heading or counted, and every line matches recipes."""

import re

import pytest

from oneofmany.recipes import matching, recipes
from oneofmany.recipes.listing import FOLDED, listing
from oneofmany.training.settings import OBJECTIVES


def test_every_recipe_is_listed_or_counted():
    shown, folded = listing().split("Variations of these; ")
    lines = [line.strip() for line in shown.splitlines() if line.startswith("  ")]
    names = [line.replace("OBJECTIVE", objective) for line in lines for objective in OBJECTIVES]
    counted = [name for pattern in FOLDED for name in matching(pattern)]
    assert sorted({*names, *counted}) == sorted(recipes())
    numbers = [int(number) for number in re.findall(r"(\d+) recipes", folded)]
    assert numbers == [len(matching(pattern)) for pattern in FOLDED]


def test_a_pattern_lists_names():
    assert listing("sudoku/selectr/*/*").splitlines() == matching("sudoku/selectr/*/*")
    assert "sudoku/unique/table-2/180k" in listing("180k").splitlines()
    assert all("180k" in name for name in listing("180k").splitlines())
    for wrong in ("chess", "*/chess"):
        with pytest.raises(ValueError, match="no recipe matches"):
            listing(wrong)


def test_a_star_stops_at_a_slash():
    assert matching("nqueens/*/table-2") == [f"nqueens/{objective}/table-2" for objective in OBJECTIVES]
    assert matching("nqueens/minloss") == ["nqueens/minloss"]
    assert not matching("nqueens")
