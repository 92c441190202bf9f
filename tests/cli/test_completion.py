"""The completion scripts: every command, option and recipe, in a real bash; other shells where they are installed."""

import shutil
import subprocess

import pytest

from oneofmany.cli import COMMANDS, run
from oneofmany.cli.completion import SCRIPTS, commands
from oneofmany.recipes import recipes
from oneofmany.recipes.fields import resolve


@pytest.fixture(scope="module")
def found():
    return commands()


@pytest.fixture(scope="module")
def complete(found, tmp_path_factory):
    """What bash offers after some words, in a folder with a few files."""
    here = tmp_path_factory.mktemp("files")
    (here / "script").write_text(SCRIPTS["bash"](found))
    (here / "train data.safetensors").write_text("")
    (here / "sudokus.txt").write_text("")
    (here / "runs").mkdir()

    def after(*words):
        program = (
            'source ./script; COMP_WORDS=(oneofmany "$@"); COMP_CWORD=$#; _oneofmany; '
            '[ ${#COMPREPLY[@]} -gt 0 ] && printf "%s\\n" "${COMPREPLY[@]}"; complete -p oneofmany >&2'
        )
        done = subprocess.run(["bash", "-c", program, "-", *words], capture_output=True, text=True, cwd=here)
        assert done.stderr == "complete -F _oneofmany oneofmany\n"
        return done.stdout.splitlines()

    return after


def test_commands(complete):
    assert complete("") == list(COMMANDS)
    assert complete("co") == ["count", "compare", "completion"]
    assert complete("--") == ["--help", "--version"]
    assert complete("data", "") == list(COMMANDS["data"])
    assert complete("data", "s") == ["sudoku", "show"]
    assert complete("completion", "") == ["bash", "zsh", "fish"]


def test_tasks_and_recipes(complete):
    assert complete("rate", "su")[:1] == ["sudoku"]
    assert complete("tune", "nqueens/minloss/ti") == ["nqueens/minloss/tiny"]


def test_options_and_their_values(complete):
    assert complete("data", "sudoku", "--sp") == ["--split", "--split-by"]
    assert complete("data", "sudoku", "--split", "") == ["train", "dev", "test"]
    assert complete("data", "sudoku", "--out", "tr") == ["train data.safetensors"]
    assert complete("data", "show", "--j") == ["--json"]
    assert complete("evaluate", "ru") == ["runs"]
    assert complete("train", "nqueens/minloss", "--first.l") == ["--first.lr"]
    assert complete("train", "nqueens/minloss", "--first.schedule", "c") == ["constant", "cosine"]
    assert complete("train", "nqueens/minloss", "--discover", "") == ["True", "False"]
    assert complete("train", "--res") == ["--resume"]
    assert complete("train", "--resume", "r") == ["runs"]
    assert complete("sweep", "nqueens/minloss", "--see") == ["--seeds"]
    # A flag takes no value, so a positional argument may follow it.
    assert complete("count", "sudoku", "--help", "sud") == ["sudoku", "sudokus.txt"]


def test_recipes_tasks_and_files(complete):
    names = [name for name in recipes() if "=" not in name]
    assert complete("train", "sudoku/minloss/t") == [name for name in names if name.startswith("sudoku/minloss/t")]
    assert complete("train", "--recipes", "t") == ["table-2", "tiny", "transformer"]
    assert [name for name in complete("sweep", "") if "/" in name] == names
    assert complete("solve", "") == ["nqueens", "futoshiki", "sudoku", "colouring", *complete("evaluate", "")]
    assert complete("count", "sud") == ["sudoku", "sudokus.txt"]


def test_every_option_is_that_of_its_command(found, capsys):
    """The help of every command, made by another library, has the same options."""
    for name, one in found.items():
        if name in ("", "data", "train", "sweep"):
            continue
        with pytest.raises(SystemExit):
            run([*name.split(), "--help"])
        text = capsys.readouterr().out
        shown = {word.rstrip(",") for word in text.replace("│", " ").split() if word.startswith("--")}
        assert set(one.options) <= shown, name
    # Fields of a recipe: an unknown one would end the program.
    fields = {option: values for option, values in found["train"].options.items() if "." in option and values}
    assert len(fields) > 5
    for option, values in fields.items():
        if option not in ("--network.kind", "--selector.kind"):
            resolve("nqueens/minloss", [option, values[0]])


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_can_be_read(found, capsys, tmp_path, shell):
    assert run(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert script == SCRIPTS[shell](found)
    assert "--first.lr" in script or "first.lr" in script
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "script").write_text(script)
    assert subprocess.run([shell, "-n", tmp_path / "script"], capture_output=True).returncode == 0
