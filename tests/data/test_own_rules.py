"""A data set whose queries bring their own rules: the file, the batches, the checker and the enumerator."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from oneofmany.data import Dataset, DeviceData
from oneofmany.data.own_task import build_own_task
from oneofmany.exact import solve
from oneofmany.files import FileError
from oneofmany.problems import OwnRules, Problem, Rule, grid_task, sudoku
from structures import cages, graphs, ordered_cages, unequal_cages


@pytest.fixture(scope="module", params=[graphs, cages, ordered_cages, unequal_cages])
def data(request):
    return request.param(30, seed=1)


def test_the_file_keeps_the_rules(data, tmp_path):
    path = tmp_path / "own.safetensors"
    data.save(path)
    if data.problem.relation_kind is None:
        bare = Dataset.load(path)  # without the rules that all queries share
        assert (bare.problem.own_kinds, bare.problem.own_sums) == (data.problem.own_kinds, data.problem.own_sums)
    else:  # what they mean is not in the file
        with pytest.raises(FileError, match="has relations of the task 'cages', so it needs its file"):
            Dataset.load(path)
    again = Dataset.load(path, data.problem)
    assert again.own is not None
    for query in (0, 17):
        assert again.own.rules(query) == data.own.rules(query)
        assert again.problem_of(query).same_as(data.problem_of(query))
    assert again.header() == data.header()
    assert again.header()["format"] == 2


def test_solutions_are_those_of_each_query(data):
    assert data.own is not None
    for query in range(len(data)):
        problem = data.problem_of(query)
        row = slice(query, query + 1)
        found = solve(problem, data.query[row], data.relations[row])
        for solution in data.solutions_of(query):
            for a, b in data.relations[query][data.relations[query][:, 0] >= 0]:
                assert solution[a] < solution[b] or (solution[a] > solution[b] and problem.relation == "!=")
        assert found.total[0] == data.total[query]
        assert sorted(found.solutions.tolist()) == sorted(data.solutions_of(query).tolist())


def test_some_of_the_queries(data):
    rows = np.array([7, 3, 3, 20])
    some = data.take(rows)
    assert [some.own.rules(i) for i in range(4)] == [data.own.rules(int(row)) for row in rows]
    assert (some.query == data.query[rows]).all()
    for index in ([-1, 0], slice(3, 6), np.arange(len(data)) % 7 == 1):
        some = data.take(index)
        rows = np.arange(len(data))[index].tolist()
        assert [some.own.rules(i) for i in range(len(some))] == [data.own.rules(row) for row in rows]


def test_a_batch_checks_every_answer_by_the_rules_of_its_query(data):
    rng = np.random.default_rng(0)
    placed = DeviceData(data)
    rows = torch.from_numpy(rng.integers(len(data), size=200))
    batch = placed.batch(rows)
    answers = np.stack([
        data.solutions[rng.integers(len(data.solutions))] if rng.random() < 0.4 or not len(data.solutions_of(row))
        else data.solutions_of(row)[rng.integers(data.listed[row])]
        for row in rows.tolist()
    ]).astype(np.int64) - 1  # fmt: skip
    expected = [
        bool(data.problem_of(row).check(answer[None], data.query[row][None], data.relations[row][None])[0])
        for row, answer in zip(rows.tolist(), answers, strict=True)
    ]
    assert batch.check(torch.from_numpy(answers)).tolist() == expected
    assert 0 < sum(expected) < 200
    part = torch.from_numpy(rng.permutation(200)[:50])
    assert batch[part].check(torch.from_numpy(answers)[part]).tolist() == [expected[i] for i in part.tolist()]


@pytest.mark.parametrize("number", [[0, 3, 0, 1, 0], [2, 0, 5], [2], [0, 0]])
def test_the_checker_takes_queries_without_rules(number):
    rng = np.random.default_rng(3)
    rules = [[random_rule(rng) for _ in range(of_query)] for of_query in number]
    own = OwnRules.of(rules).to(torch.device("cpu"))
    rows = torch.from_numpy(rng.integers(len(number), size=100))
    taken = torch.from_numpy(rng.random((100, 8)) < 0.4)

    def keeps(rule, of_query):
        low, high = rule.bounds
        return low <= sum(weight for choice, weight in rule.weighed() if of_query[choice]) <= high

    expected = [all(keeps(rule, t) for rule in rules[row]) for row, t in zip(rows.tolist(), taken, strict=True)]
    assert own.kept(taken, rows).tolist() == expected
    assert all(expected) == (not any(number))


def random_rule(rng):
    """A rule over some of 8 choices that about half of all answers keep."""
    choices = rng.permutation(8)[: rng.integers(1, 6)].tolist()
    weights = [int(w) for w in rng.choice([-2, -1, 1, 3], len(choices))]
    return Rule("any", tuple(choices), weights=tuple(weights), low=0, high=1)


def test_queries_of_equal_rules_share_a_problem():
    data = graphs(6, seed=2)
    twice = data.take(np.array([0, 1, 0, 1]))
    problems = twice.own.problems(twice.problem)
    assert problems[0] is problems[2] is not problems[1] is problems[3]


def test_files_without_own_rules_stay_in_format_1():
    problem = sudoku(4)
    none = np.zeros((0, 16), np.uint8)
    empty = Dataset(problem, none, none, [0], [], np.zeros((0, 0, 2)), [])
    assert empty.header()["format"] == 1
    assert "own" not in empty.header()


BARE = Problem("free", 1, 2, 3, (), own_kinds=("edge",), own_sums=("sum",))


@pytest.mark.parametrize(
    ("rules", "sentence"),
    [
        ([Rule("other", (0, 3), exact=False)], r"free has no own_kinds or own_sums \['other'\]"),
        ([Rule("edge", (0, 9), exact=False)], "expected choices from 0 to 5"),
        ([Rule("edge", (0, 3), low=0, high=0)], "'edge' has weights or bounds, so it must be in own_sums"),
        ([Rule("edge", (0, 3), exact=False), Rule("edge", (1, 4))], "split them into two kinds"),
        ([Rule("sum", (0, 3))], "'sum' must be all exactly-one or all at-most-one, and in own_kinds"),
    ],
)
def test_bad_rules_are_one_sentence(rules, sentence):
    with pytest.raises(ValueError, match=sentence):
        OwnRules.of([rules]).checked(BARE)


@pytest.mark.parametrize("shared", [{"rules": (Rule("edge", (0, 3)),)}, {"relation_kind": "edge"}])
def test_a_kind_has_one_meaning_also_with_what_all_queries_share(shared):
    exact = "rules" not in shared
    with pytest.raises(ValueError, match="'edge' must be all exactly-one or all at-most-one"):
        OwnRules.of([[Rule("edge", (1, 4), exact=exact)]]).checked(replace(BARE, **shared))
    OwnRules.of([[Rule("edge", (1, 4), exact=not exact)]]).checked(replace(BARE, **shared))


def test_damaged_files_are_refused(tmp_path):
    data = graphs(4, seed=0)
    for name in ("offsets", "first", "choices"):
        broken = getattr(data.own, name).copy()
        broken[1] = 10**6
        with pytest.raises(ValueError, match="rules of its own"):
            replace(data, own=replace(data.own, **{name: broken}))
    with pytest.raises(ValueError, match="own: expected the rules of every query"):
        replace(data, own=data.own.take(np.arange(3)))
    path = tmp_path / "data.safetensors"
    data.save(path)
    content = path.read_bytes()
    path.write_bytes(content[:-3] + b"\x07\x07\x07")
    with pytest.raises(FileError):
        Dataset.load(path)


def test_rules_of_queries_need_a_builder_of_the_task():
    problem = Problem("mine", 2, 4, 2, (), own_kinds=("edge",))
    task = grid_task("mine", lambda size=2: problem)
    with pytest.raises(ValueError, match="mine has rules of each query's own, which only a builder"):
        build_own_task(task, 3)
