"""Without rules an answer is right if it is listed: in training, on dev, in `evaluate`, `compare`, records, reports."""

import json

import numpy as np
import pytest
import torch

from oneofmany.data.dataset import Dataset
from oneofmany.data.nqueens import build_nqueens
from oneofmany.data.pairs import import_pairs
from oneofmany.evaluation import evaluate, evaluate_run, read_record, save_record
from oneofmany.files import FileError
from oneofmany.networks.building import NetworkSettings, SelectorSettings
from oneofmany.problems import Problem, Rule, futoshiki, nqueens, sudoku
from oneofmany.report.results import user_tables
from oneofmany.training import train
from oneofmany.training.checks import check_data
from oneofmany.training.settings import PhaseSettings, Settings

PAIRS = [([0, 2, 0], [1, 2, 1]), ([0, 2, 0], [3, 2, 1]), ([0, 0, 0], [2, 2, 2]), ([0, 1, 0], [1, 1, 1])]


class Ones(torch.nn.Module):
    """Writes 1 everywhere, and keeps the givens."""

    value_offset = 0

    def forward(self, batch):
        own = torch.where(batch.query > 0, batch.query - 1, 0)
        return torch.nn.functional.one_hot(own, batch.problem.values).float()


@pytest.fixture(scope="module")
def mine(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mine")
    lines = [json.dumps({"input": given, "output": answer}) for given, answer in PAIRS]
    (folder / "pairs.jsonl").write_text("\n".join(lines))
    dataset, _ = import_pairs(folder / "pairs.jsonl")
    dataset.save(folder / "mine.safetensors")
    return folder / "mine.safetensors"


def test_has_rules():
    assert all(problem.has_rules for problem in (nqueens(6), futoshiki(4), sudoku(4)))
    assert not Problem("pairs", 3, 3, 4, ()).has_rules
    assert not Problem("pairs", 3, 1, 2, (Rule("variable", (0, 1)),)).has_rules
    assert Problem("own", 3, 1, 2, (Rule("variable", (0, 1), exact=False),)).has_rules


def test_a_network_that_writes_1_everywhere_scores_what_it_deserves(mine):
    outcomes = evaluate(Ones(), Dataset.load(mine))
    # [1, 2, 1] and [1, 1, 1] are listed, [1, 1, 1] for the blank query is not.
    assert outcomes.valid.tolist() == [True, False, True]
    assert outcomes.listed.tolist() == outcomes.valid.tolist()
    summary = outcomes.summary()
    assert summary["judged_by"] == "listed"
    assert (summary["ms"]["correct"], summary["ms"]["total"], summary["overall"]["correct"]) == (1, 1, 2)


def test_with_rules_a_solution_need_not_be_listed():
    data = build_nqueens(6, 4)
    solved = np.array([data.solutions_of(q)[0] for q in range(len(data))])

    class Solver(torch.nn.Module):
        value_offset = 0

        def forward(self, batch):
            return torch.nn.functional.one_hot(torch.as_tensor(solved).long() - 1, 6).float()

    unlisted = Dataset(
        data.problem,
        data.query,
        data.solutions[:0],
        np.zeros_like(data.offsets),
        data.total,
        data.relations,
        data.group,
    )
    outcomes = evaluate(Solver(), unlisted)
    assert outcomes.valid.all()
    assert outcomes.judged_by == "rules"


def test_what_cannot_be_judged_is_refused(mine):
    data = Dataset.load(mine)
    none = Dataset(
        data.problem,
        data.query,
        data.solutions[:0],
        np.zeros_like(data.offsets),
        data.total,
        data.relations,
        data.group,
    )
    with pytest.raises(ValueError, match="neither rules nor listed solutions"):
        evaluate(Ones(), none)
    settings = Settings(task="pairs", first=PhaseSettings(updates=1, batch=2))
    with pytest.raises(FileError, match="dev: a query has neither rules nor listed solutions"):
        check_data(settings, data, none)
    with pytest.raises(FileError, match="discover checks answers by the rules, but pairs has none"):
        check_data(Settings(task="pairs", discover=True, first=settings.first), data, data)


@pytest.fixture(scope="module")
def run(mine, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "mine"
    settings = Settings(
        recipe="pairs/minloss/own",
        task="pairs",
        network=NetworkSettings("equivariant", width=4, steps=2),
        selector=SelectorSettings("equivariant", width=4, depth=1),
        first=PhaseSettings(updates=4, batch=4),
        evaluate_every=2,
        log_every=2,
        device="cpu",
    )
    lines = []
    train(settings, mine, mine, folder, watch=lines.append)
    return folder, lines


def test_training_judges_by_the_list(run, mine):
    folder, lines = run
    on_dev = [line for line in lines if line.get("kind") == "dev"]
    assert on_dev
    assert {line["judged_by"] for line in on_dev} == {"listed"}
    result = json.loads((folder / "result.json").read_text())
    assert result["dev"]["judged_by"] == "listed"
    right = evaluate_run(folder, mine, device="cpu")  # needs no problem=
    assert result["dev"]["overall"] == right.summary["overall"]["accuracy"]


def test_commands_say_what_correct_means(run, mine, capsys):
    from oneofmany.cli import run as command

    folder, _ = run
    for arguments in (["evaluate", folder, mine], ["compare", folder, folder, mine]):
        assert command([str(one) for one in arguments]) == 0
        assert "correct: among the listed answers" in capsys.readouterr().out


def test_records_and_reports_say_it(run, mine, tmp_path):
    folder, _ = run
    evaluate_run(folder, mine, device="cpu")
    save_record(read_record(folder), tmp_path / "one.json")
    again = read_record(tmp_path / "one.json")
    assert again.evaluations["mine"].judged_by == "listed"
    assert again.dev is not None
    assert again.dev.judged_by == "listed"
    from oneofmany.report.grid import Grid

    text = "".join(table.markdown() for table in user_tables(Grid.of([again])))
    assert "among the listed answers" in text
