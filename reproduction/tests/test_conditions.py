"""What the pages say about the checker and the other conditions is true of the recipes."""

from oneofmany.recipes import recipe
from oneofmany.report import Grid
from oneofmany.report.grid import TASKS, name_of
from reproduction.conditions import conditions
from reproduction.ours import main_table, training_with_checker
from reproduction.runs import ours, read_published

GRID = Grid.of(read_published())
RECIPES = {task: recipe(f"{task}/minloss/equivariant") for task in TASKS}


def test_every_condition_is_that_of_the_recipe():
    table = conditions(GRID)
    rows = {row[0].text: [cell.text for cell in row[1:]] for row in table.rows}
    assert [column.name for column in table.columns[1:]] == [name_of(task) for task in TASKS]
    for place, settings in enumerate(RECIPES.values()):
        assert rows["rules checker in training"][place].startswith("yes" if settings.discover else "no")
        assert rows["queries with revealed cells"][place] == f"{100 * settings.reveal:.0f} %"
        assert rows["steps at test time"][place] == str(settings.network.test_steps)
        assert rows["training"][place].startswith(f"{settings.first.updates:,} updates x {settings.first.batch}")


def test_the_sentence_about_the_checker_names_the_tasks_that_used_it():
    sentence = training_with_checker(ours(GRID).runs)
    assert sentence in main_table(GRID).note
    used = [name_of(task) for task, settings in RECIPES.items() if settings.discover]
    assert used == ["Sudoku"]
    assert all((name_of(task) in sentence) == (name_of(task) in used) for task in TASKS)
    assert "No checker in training" in training_with_checker([])
