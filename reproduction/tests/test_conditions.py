"""What the pages say about the checker and the other conditions is true of the recipes."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

import oneofmany
from oneofmany.recipes import data_of, matching, recipe, recipes
from oneofmany.recipes.ingredients import SHORT_CHECKER, SHORT_RECIPE, factorial
from oneofmany.recipes.ours import own_task
from oneofmany.report import Grid
from oneofmany.report.grid import TASKS, name_of
from oneofmany.training.settings import CHOOSING, from_json
from reproduction.bundle import WEIGHTS
from reproduction.conditions import conditions
from reproduction.experiments import GALLERY
from reproduction.figures import page_charts
from reproduction.ingredients import LISTED
from reproduction.ours import main_table, training_with_checker
from reproduction.page import all_charts, all_tables
from reproduction.runs import CHECKER_VARIANT, ours, read_published

ROOT = Path(__file__).parents[2]
GRID = Grid.of(read_published())
RECIPES = {name_of(task): recipe(f"{task}/minloss/equivariant") for task in TASKS}
RECIPES["Sudoku, with the checker"] = recipe(f"sudoku/minloss/{CHECKER_VARIANT}")
CHECKED = {name for name, settings in recipes().items() if settings.discover}
"""The recipes that use the rules checker in training."""


def test_every_condition_is_that_of_the_recipe():
    table = conditions(GRID)
    rows = {row[0].text: [cell.text for cell in row[1:]] for row in table.rows}
    assert [column.name for column in table.columns[1:]] == list(RECIPES)
    for place, settings in enumerate(RECIPES.values()):
        assert rows["rules checker in training"][place].startswith("yes" if settings.discover else "no")
        assert rows["settled queries are left out"][place].startswith("yes" if settings.spare_settled else "no")
        assert rows["queries with revealed cells"][place] == f"{100 * settings.reveal:.0f} %"
        assert rows["burn-in steps"][place] == ", ".join(map(str, settings.burn_in))
        assert rows["steps at test time"][place] == str(settings.network.test_steps)
        assert rows["training"][place].startswith(f"{settings.first.updates:,} updates x {settings.first.batch}")
    assert rows["test set"] == ["fresh", "fresh", "fresh", "first"]


def test_the_sentence_about_the_checker_names_the_runs_that_used_it():
    sentence = training_with_checker(ours(GRID).runs)
    assert sentence in main_table(GRID).note
    assert "only Sudoku “MinLoss, with the checker” used" in sentence
    assert {record.recipe for record in ours(GRID).runs if record.setting("discover")} == {
        record.recipe for record in ours(GRID).runs if record.recipe in CHECKED
    }
    assert training_with_checker([]) == "No checker in training."


def only(pattern):
    """Exactly the recipes of this pattern use the checker; experiments that change one of them do too."""
    return set(matching(pattern)) | set(matching(f"{pattern}/*")) == CHECKED != set()


def none(*patterns):
    """There are such recipes, and none of them uses the checker."""
    return all(matching(one) and not CHECKED & set(matching(one)) for one in patterns)


def choosing():
    """The checker goes with the objectives that choose among listed solutions, and with no other."""
    return {recipes()[name].objective for name in CHECKED} == set(CHOOSING)


def bundled_without():
    return all(oneofmany.load(path).card["recipe"] not in CHECKED for path in WEIGHTS.glob("*.safetensors"))


def all_with(*names):
    """The records of these folders were all trained with the checker."""
    found = [r for r in GRID.apart if r.apart.split("/")[-1] in names]
    return bool(found) and all(r.setting("discover") for r in found)


def headline_without():
    return none("*/minloss/equivariant") and not any(
        record.setting("discover") for task in TASKS for record in GRID.at(task, "minloss", "equivariant")
    )


def on_the_first_test():
    found = [record for record in GRID.runs if record.recipe in CHECKED or record.recipe.endswith("-flags")]
    return len(found) >= 4 and not any("fresh" in name for record in found for name in record.evaluations)


def shown_with():
    """Of the runs that count, exactly those of one recipe were trained with the checker."""
    used = {record.recipe for record in ours(GRID).runs if record.setting("discover")}
    return used == {f"sudoku/minloss/{CHECKER_VARIANT}"} and only("*/*/equivariant-checker")


ONE_CORE, WIDE = (matching(f"colouring/minloss/equivariant-checker/{change}*") for change in ("one-core", "wide"))


def trained_on(size, *names):
    return bool(names) and all(data_of(name)[0].endswith(f"{size}-train") for name in names)


def mends(name):
    """The rules check and mend answers in training."""
    return recipe(name).discover and recipe(name).repair > 0


def both(task):
    """The task's recipes named after the checker use it, and those without the name do not."""
    return (
        only("*/*/equivariant-checker")
        and bool(matching(f"{task}/*/equivariant-checker"))
        and none(f"{task}/*/equivariant", f"{task}/*/equivariant/*")
    )


def listed_both_ways():
    pairs = [(SHORT_RECIPE, SHORT_CHECKER)]
    pairs += zip(
        matching("sudoku/minloss/equivariant/short-listed-*"),
        matching(f"sudoku/minloss/{CHECKER_VARIANT}/short-listed-*"),
        strict=True,
    )
    return len(pairs) == 4 and all(a not in CHECKED and b in CHECKED for a, b in pairs)


def gallery_as_it_is():
    """The networks of the gallery have the settings of any task's recipe, which does not use the checker."""
    found = [record for record in GRID.apart if record.apart.startswith(GALLERY)]
    return bool(found) and all(
        replace(from_json(record.settings), device="auto", threads=None) == own_task(record.task, "minloss").settings
        and not record.setting("discover")
        for record in found
    )


OTHER_ROWS = (("futoshiki/minloss/equivariant", "flags"), ("sudoku/minloss/equivariant", "checker"))
CLAIMS = {
    # README.md, results.md, captions
    "In training, only Sudoku “MinLoss, with the checker” used": shown_with,
    "No checker in training": headline_without,
    "which is the only one trained with the rules checker": shown_with,
    "its earlier runs compared objectives trained with the rules checker to objectives trained without it": choosing,
    "These runs are of the variant that is trained with the rules checker": lambda: all_with(
        "listed-1", "listed-2", "listed-all"
    ),
    "MinLoss, trained with the checker (`equivariant-checker`)": lambda: all_with(
        "listed-1", "listed-2", "listed-all", "split-by-puzzle"
    ),
    "Here the recipe with the checker is trained and tested": lambda: all_with("split-by-puzzle"),
    "with flags or the checker: on the first tests": on_the_first_test,
    "It was tested on the first test set only, and stands here to show what the checker gives": on_the_first_test,
    "Each row of the first table is one recipe": lambda: (
        {record.recipe for record in ours(GRID).runs if record.objective == "minloss"}
        == {*(f"{task}/minloss/equivariant" for task in TASKS), *(f"{task}-{more}" for task, more in OTHER_ROWS)}
    ),
    "| rules checker in training | no | no | no | yes (`discover`) |": lambda: (
        [one.discover for one in RECIPES.values()] == [False, False, False, True]
    ),
    # faq.md, weights.md
    "The bundled networks and our headline results were trained without the rules checker": lambda: (
        bundled_without() and headline_without()
    ),
    "Only the recipes `TASK/OBJECTIVE/equivariant-checker` use it": lambda: only("*/*/equivariant-checker"),
    "Do I need rules, or a checker, to train": lambda: none("*/*", "*/*/table-2", "*/*/tiny", "*/*/equivariant"),
    "They are trained with MinLoss and without the rules checker": bundled_without,
    # deviations-and-errata.md
    "It uses the rule checker, which the paper says is not available": lambda: bool(CHECKED),
    "The paper's recipes do not use it, and neither do our `TASK/OBJECTIVE/equivariant` recipes": lambda: none(
        "*/*", "*/*/large-batch", "*/*/table-2", "*/*/table-2/*", "*/*/tuning/*", "*/*/equivariant", "*/*/equivariant/*"
    ),
    "The recipes `TASK/OBJECTIVE/equivariant-checker` do (`discover`, for the objectives that choose": choosing,
    # training.md
    "| beyond the paper |": lambda: bool(CHECKED),
    "`discover` adds a valid answer of the network": lambda: bool(CHECKED),
    "Without `discover`, a network that has found an unlisted solution is pulled away from it": lambda: bool(CHECKED),
    "`spare_settled` does without the checker": lambda: not any(recipes()[name].spare_settled for name in CHECKED),
    "It works with the same objectives and network as `discover`, and excludes it": lambda: (
        not any(recipes()[name].spare_settled for name in CHECKED)
    ),
    "The recipes `sudoku/OBJECTIVE/equivariant` use it for these objectives, without a checker": lambda: all(
        recipe(f"sudoku/{objective}/equivariant").spare_settled for objective in CHOOSING
    ),
    # gallery.md
    "MinLoss, the recipe `TASK/minloss/equivariant` of any task as it is": gallery_as_it_is,
    "no checker in training, and the rules only judge at test time": gallery_as_it_is,
    # colouring.md, hard-sudokus.md
    "in training also as a checker and for a local search": lambda: all(mends(name) for name in WIDE),
    "these networks also had the rules as a checker and for a local search": lambda: all(mends(name) for name in WIDE),
    "a local search mends the network's answers in training": lambda: all(mends(name) for name in WIDE),
    "every objective with the same network, number of updates and data, without the checker": lambda: (
        none("colouring/*/equivariant") and not any(recipe(name).repair for name in matching("colouring/*/equivariant"))
    ),
    "are trained on graphs of 16 and 32 nodes, `wide-medium` on graphs of up to 64 nodes": lambda: (
        trained_on("small", *(name for name in WIDE if "wide-small" in name))
        and trained_on("medium", *(name for name in WIDE if "wide-small" not in name))
    ),
    "are small networks that train on one CPU core, on graphs of 16 and 32 nodes": lambda: trained_on(
        "small", *ONE_CORE
    ),
    "which train on graphs of up to 64 nodes with `repair`": lambda: all(
        mends(name) for name in matching("colouring/minloss/equivariant-checker/long*")
    ),
    "`repair` is the number of moves of a tabu search": lambda: all(
        recipes()[name].discover for name in recipes() if recipes()[name].repair
    ),
    "Queries that it cannot mend are left out of the update": lambda: all(
        mends(name) for name in matching("colouring/minloss/equivariant-checker/long*")
    ),
    "At test time there is no search and no checker": lambda: all(mends(name) for name in WIDE),
    "`equivariant-checker` also learns from valid answers that are not listed": lambda: both("colouring"),
    "`sudoku-hard/OBJECTIVE/equivariant-checker` trains with it": lambda: both("sudoku-hard"),
    "without the checker in training or test, `sudoku-hard/minloss/equivariant` answers": lambda: none(
        "sudoku-hard/minloss/equivariant"
    ),
    "| rules checker in training | no |": lambda: headline_without() and none("sudoku-hard/minloss/equivariant"),
    # ingredients.md and its captions
    "## Checker, revealed cells and burn-in": lambda: bool(CHECKED),
    "the rules checker, which adds the answer to the list; revealed cells": lambda: (
        {one.settings.discover for one in factorial()} == {False, True}
    ),
    "solutions of every query listed, or all, with the checker and without it": listed_both_ways,
    "Without the checker, settled queries are left out": lambda: (
        listed_both_ways() and all(recipe(name).spare_settled for name, _ in LISTED.values())
    ),
    "the last only with burn-in and without the checker": lambda: all(
        one.settings.burn_in != (0,) and not one.settings.discover for one in factorial() if one.settings.spare_settled
    ),
    "All seven objectives on Sudoku without the checker, with the same number of updates": lambda: none(
        "sudoku/*/equivariant/alike*"
    ),
}
"""Part of a sentence about the checker in training -> whether it is true of the recipes."""
ABOUT = re.compile(r"checker|discover", re.IGNORECASE)
ELSEWHERE = (
    "is as good as the checker's",
    "rules checker at test time",
    "no checker at test time",
    "No checker is used at test time",
    "chosen with the checker",
    "With the checker: any start is a solution",
    "Chosen with the checker",
    "The checker is strict",
    "The authors' checker accepts",
    "the vectorised checker",
    "The checker, the enumerator",
    "Checker, givens, enumerator",
    "--answer both",
    "oneofmany.testing",
    "a checker, which a user may not have",
)
"""Parts of sentences about the checker at test time, or about its code."""


def sentences(text):
    """The sentences of a page or caption that name the checker, and those about recipes in the same paragraph.

    A row of a table is a sentence.
    """
    text = re.sub(r"```.*?```|<!--.*?-->", "", text, flags=re.DOTALL)
    rows = [[line] for line in text.splitlines() if line.startswith("|")]
    prose = re.sub(r"^\|.*$", "\n", text, flags=re.MULTILINE)
    blocks = [" ".join(block.split()) for block in re.split(r"\n\s*\n|\n(?=\* |#)", prose)]
    parts = [re.split(r"(?<=[.:?])\**\s+(?=[A-Z“`*])", block) for block in blocks if ABOUT.search(block)]
    found = [
        one for block in [*parts, *rows] for one in block if ABOUT.search(one) or (block in parts and "recipe" in one)
    ]
    return [one for one in found if not any(part in one for part in ELSEWHERE)]


def pages():
    paths = [
        ROOT / "README.md",
        *sorted((ROOT / "docs").glob("*.md")),
        *sorted((ROOT / "docs/objectives").glob("*.md")),
    ]
    yield from ((path.name, path.read_text(encoding="utf-8")) for path in paths)
    # Rows of tables hold no claims but the conditions; recipes are named in them.
    for table in all_tables(GRID):
        yield f"caption of {table.name}", table.note
    for chart in (*page_charts(GRID), *all_charts(GRID)):
        yield f"caption of {chart.name}", chart.caption


def is_result(sentence):
    """Whether it is made from records: a row of numbers, or an answer with differences and their intervals.

    It claims nothing about the checker beyond the recipe's name.
    """
    if not sentence.startswith("|"):
        of_graphs = r"^\* \*\*\d colours\*\*, `colouring/|^\*\*[\d.]+ %\*\* \(one trajectory|^Network: colouring/"
        return bool(re.search(rf"[+−]\d+\.\d\d \[[+−]|{of_graphs}", sentence))
    return bool(re.search(r"\d\.\d\d|\d s,|equivariant-checker \(|with the checker |^\| checker in training", sentence))


def test_every_sentence_about_the_checker_is_true_of_the_recipes():
    """A new sentence needs an entry in CLAIMS with what it claims; an entry without a sentence is removed."""
    met = set()
    for name, text in pages():
        for sentence in sentences(text):
            if is_result(sentence):
                continue
            found = {part for part in CLAIMS if part in sentence}
            assert found, f"{name}: what does this claim about the recipes? {sentence}"
            met |= found
    assert met == set(CLAIMS)
    for part, holds in CLAIMS.items():
        assert holds(), part


@pytest.mark.parametrize(
    "sentence",
    [
        "Our Sudoku networks were trained with the rules checker.",
        "All recipes use `discover`.",
        "* A list: the network sees the checker's verdict.",
    ],
)
def test_a_sentence_that_nobody_checked_is_found(sentence):
    assert sentences(f"Text.\n\n{sentence} More text.") != []
    assert not any(part in sentence for part in CLAIMS)
