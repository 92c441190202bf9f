"""Answers to queries: against brute force over all assignments and the literal formulas."""

from dataclasses import replace
from functools import wraps
from itertools import permutations, product
from time import sleep

import numpy as np
import pytest
import torch
from torch import nn

import oneofmany
from oneofmany.networks import draw_noise
from oneofmany.networks.building import NetworkSettings, build_network
from oneofmany.networks.protocol import TaskNetwork
from oneofmany.networks.saved import SavedNetwork
from oneofmany.problems import TASKS, Batch, Rule, futoshiki, nqueens, sudoku
from oneofmany.solving import Answer, Solver, count_solutions, fall_back, solve_exactly, solve_queries
from trained import five_queens

ONE_GIVEN = [" ".join(str(c) if r == row else "." for r in range(5)) for row in range(5) for c in range(1, 6)]


def queries_of(task, *texts):
    return [TASKS[task].parse(text) for text in texts]


def queens(query):
    """All solutions of an N-Queens query, by trying every permutation."""
    n = len(query.values)
    found = []
    for columns in permutations(range(1, n + 1)):
        apart = all(abs(columns[a] - columns[b]) != b - a for b in range(n) for a in range(b))
        if apart and all(given in (0, column) for given, column in zip(query.values, columns, strict=True)):
            found.append(columns)
    return set(found)


def untrained(problem, **settings):
    settings = NetworkSettings(**{"width": 4, "depth": 2, "steps": 3} | settings)
    with torch.random.fork_rng():
        torch.manual_seed(3)
        network = build_network(settings, problem)
    return SavedNetwork(network.eval(), settings, problem.task, problem.size, {})


class Fixed(TaskNetwork):
    """Answers with the given logits."""

    def __init__(self, logits, readout, value_offset):
        super().__init__()
        self.logits, self.readout, self.value_offset = nn.Parameter(torch.tensor(logits)), readout, value_offset

    def accepts(self, problem, relations=None):
        return None

    def forward(self, batch):
        return self.logits.detach().expand(len(batch), -1, -1)


def fixed(logits, kind, value_offset=0):
    readout = "threshold" if kind == "nlm" else "argmax"
    return SavedNetwork(Fixed(logits, readout, value_offset), NetworkSettings(kind=kind), "nqueens", 4, {})


def test_answers_are_checked_and_in_the_order_of_the_queries():
    queries = queries_of("nqueens", *ONE_GIVEN, "1 1 . . .", "1 2 . . .")
    answers = Solver(five_queens(), batch_size=7).answer(queries)
    for query, answer in zip(queries, answers, strict=True):
        assert answer.valid == (tuple(answer.values) in queens(query))
        assert answer.source == "network"
        assert 0 < answer.confidence <= 1
        assert answer.seconds > 0
    assert sum(answer.valid for answer in answers) > 12  # the network has learned something
    assert not answers[-1].valid
    assert not answers[-2].valid


def test_sizes_are_mixed_without_changing_each_other():
    small, large = queries_of("nqueens", *ONE_GIVEN[:6]), queries_of("nqueens", *[". 2 . . . ."] * 6)
    mixed = [query for pair in zip(large, small, strict=True) for query in pair]
    solver = Solver(five_queens(), batch_size=4)
    told = []
    answers = solver.answer(mixed, lambda *what: told.append(what))
    assert told == [("queries answered", done, 12) for done in (4, 8, 10, 12)]
    for own, mine in ((small, answers[1::2]), (large, answers[::2])):
        for alone, together in zip(solver.answer(own), mine, strict=True):
            assert alone.values.tolist() == together.values.tolist()
            assert alone.log_probability == together.log_probability


def test_confidence_is_the_product_of_the_last_steps_softmax():
    saved, queries = five_queens(), queries_of("nqueens", *ONE_GIVEN[:4])
    query = torch.tensor(np.stack([one.values for one in queries])).long()
    batch = Batch(query, torch.zeros(4, 0, 5).long(), torch.zeros(4, 0).bool(), torch.zeros(4).long(), nqueens(5))
    noise = draw_noise(saved.network, batch, torch.Generator().manual_seed(5))
    belief = saved.network(batch, steps=9, noise=noise)[-1].softmax(-1).detach()
    for answer, of_query in zip(Solver(saved, steps=9, seed=5).answer(queries), belief, strict=True):
        assert answer.values.tolist() == (of_query.argmax(-1) + 1).tolist()
        assert answer.confidence == pytest.approx(float(of_query.amax(-1).prod()), rel=1e-4)


def test_of_several_starts_the_most_confident_answers():
    queries = queries_of("nqueens", *ONE_GIVEN)
    default, confidence, residual = (
        [answer.values.tolist() for answer in Solver(untrained(nqueens(5)), starts=4, **choose).answer(queries)]
        for choose in ({}, {"choose": "confidence"}, {"choose": "residual"})
    )
    assert default == confidence != residual


def test_seed_and_starts():
    queries = queries_of("nqueens", ". . . . .", *ONE_GIVEN)

    def values(**settings):
        return [answer.values.tolist() for answer in Solver(five_queens(), **settings).answer(queries)]

    assert values(seed=1, starts=4) == values(seed=1, starts=4)
    assert values(seed=1) != values(seed=2)


def test_distinct_answers_differ_and_valid_ones_come_first():
    queries = queries_of("nqueens", *ONE_GIVEN[:10], "1 2 . . .", ". . . . . .")
    found = Solver(five_queens(), seed=1).distinct(queries, 3)
    complete = 0
    for query, answers in zip(queries, found, strict=True):
        texts = [tuple(answer.values) for answer in answers]
        assert 1 <= len(texts) <= 3
        assert len(set(texts)) == len(texts)
        assert [answer.valid for answer in answers] == sorted((t in queens(query) for t in texts), reverse=True)
        complete += len(queens(query) & set(texts)) == 2
    assert complete >= 3  # both solutions, which one noisy start alone never gives
    assert len(Solver(five_queens()).distinct(queries[:1], 3, tries=1)[0]) == 1


def test_fallback_keeps_the_networks_valid_answers_and_fills_the_rest():
    queries = queries_of("nqueens", *ONE_GIVEN, "1 2 . . .", "1 . . . . .", ". . . . . .")
    own = [[answer] for answer in Solver(five_queens()).answer(queries)]
    for query, [before], [after] in zip(queries, own, fall_back(queries, own), strict=True):
        assert after.valid == bool(queens(query))
        assert after.source == ("network" if before.valid else "exact")
        assert tuple(after.values) in (queens(query) or {tuple(query.values)})


def test_fallback_to_several():
    queries = queries_of("nqueens", *ONE_GIVEN[:5], ". . . . .", "1 1 . . .")
    found = fall_back(queries, Solver(five_queens()).distinct(queries, 4, tries=2), 4)
    for query, answers in zip(queries, found, strict=True):
        texts = [tuple(answer.values) for answer in answers]
        assert len(set(texts)) == len(texts) == max(1, min(4, len(queens(query))))
        assert set(texts) <= (queens(query) or {tuple(query.values)})


def test_exact_answers():
    queries = queries_of("nqueens", ". . . . . .", "2 . . . .", "1 . . .", ". . . . .")
    for limit in (1, 3, 100):
        for query, answers in zip(queries, solve_exactly(queries, limit), strict=True):
            assert len(answers) == max(1, min(limit, len(queens(query))))
            assert all(answer.source == "exact" and answer.confidence is None for answer in answers)
            assert {tuple(answer.values) for answer in answers} <= (queens(query) or {tuple(query.values)})
    assert solve_exactly([]) == []


def test_exact_answers_keep_every_querys_own_relations():
    queries = queries_of("futoshiki", "0000 r1c1<r1c2", "0000", "0000 r1c1>r1c2 r2c1<r1c1", "0000 r1c1<r1c2 r1c2<r1c1")
    found = [[tuple(a.values) for a in answers if a.valid] for answers in solve_exactly(queries, 9)]
    assert found[0] == [(1, 2, 2, 1)]
    assert set(found[1]) == {(1, 2, 2, 1), (2, 1, 1, 2)}
    assert found[2:] == [[(2, 1, 1, 2)], []]


def test_counts_in_the_order_of_the_queries(monkeypatch):
    monkeypatch.setattr("oneofmany.solving.exactly.AT_ONCE", 2)
    queries = queries_of("nqueens", ". . . . . .", "2 . . . .", "1 . . .", ". . . . .", "1 1 . . .", "3 . . . .")
    wanted, told = [len(queens(query)) for query in queries], []
    assert count_solutions(queries, tell=lambda *what: told.append(what)).total.tolist() == wanted
    assert told == [("queries counted", done, 6) for done in (1, 3, 5, 6)]
    assert count_solutions(queries, 3).total.tolist() == [min(3, total) for total in wanted]
    assert count_solutions([]).total.tolist() == []
    own = queries_of("futoshiki", "0000 r1c1<r1c2", "0000", "0000 r1c1<r1c2 r1c2<r1c1")
    assert count_solutions(own).total.tolist() == [1, 2, 0]


def test_shares_and_probabilities():
    query = queries_of("nqueens", "3 . . . .", ". . . . .")
    listed = solve_exactly(query, 100)
    weighed = Solver(five_queens(), starts=8).weigh(query, listed)
    for before, after in zip(listed, weighed, strict=True):
        assert {tuple(one.values) for one in before} == {tuple(one.values) for one in after}
        assert sum(one.share for one in after) == pytest.approx(1)
        assert 0 < sum(one.confidence for one in after) <= 1
        assert [one.share for one in after] == sorted((one.share for one in after), reverse=True)
        for one in after:
            assert one.share == pytest.approx(one.confidence / sum(other.confidence for other in after))


@pytest.mark.parametrize("starts", [1, 3])
def test_probabilities_of_all_assignments_add_up_to_one(starts):
    everything = [Answer(np.array(v, np.uint8), True, "exact") for v in product(range(1, 5), repeat=4)]
    solver = Solver(untrained(nqueens(4)), starts=starts)
    [weighed] = solver.weigh(queries_of("nqueens", "2 . . ."), [everything])
    assert sum(one.confidence for one in weighed) == pytest.approx(1)
    if starts == 1:
        [answer] = solver.answer(queries_of("nqueens", "2 . . ."))
        best = next(one for one in weighed if one.values[0] == 2)  # an answer keeps the givens
        assert best.values.tolist() == answer.values.tolist()
        assert best.log_probability == pytest.approx(answer.log_probability)


def test_a_query_without_a_solution_has_nothing_to_weigh():
    query = queries_of("nqueens", "1 . . .")
    [[answer]] = Solver(untrained(nqueens(4))).weigh(query, solve_exactly(query, 9))
    assert (answer.valid, answer.share, answer.log_probability) == (False, None, None)


def test_threshold_readout():
    logits = np.full((4, 4), -2.0, np.float32)
    for row, column in enumerate((2, 4, 1, 3)):
        logits[row, column - 1] = 3.0
    query = queries_of("nqueens", "2 . . .")

    def say(changed):
        return Solver(fixed((logits * changed).tolist(), "nlm")).answer(query)[0]

    right = say(1)
    sigmoid = 1 / (1 + np.exp(-logits.astype(float)))
    assert right.valid
    assert right.values.tolist() == [2, 4, 1, 3]
    assert right.confidence == pytest.approx(np.maximum(sigmoid, 1 - sigmoid).prod(), rel=1e-4)
    [[weighed]] = Solver(fixed(logits.tolist(), "nlm")).weigh(query, solve_exactly(query, 9))
    assert weighed.confidence == pytest.approx(right.confidence, rel=1e-4)
    none, several = np.ones((4, 4)), np.ones((4, 4))
    none[1], several[2] = np.where(logits[1] > 0, -1, 1), np.where(logits[2] > 0, 1, -1)
    for wrong, blank in ((none, 1), (several, 2)):
        answer = say(wrong)
        assert not answer.valid
        assert answer.values.tolist() == [0 if row == blank else v for row, v in enumerate((2, 4, 1, 3))]


def test_a_class_for_blank():
    logits = np.zeros((4, 5), np.float32)
    for row, column in enumerate((2, 4, 1, 3)):
        logits[row, column] = 3.0
    query = queries_of("nqueens", "2 . . .")
    [answer] = Solver(fixed(logits.tolist(), "rrn", 1)).answer(query)
    assert answer.valid
    assert answer.confidence == pytest.approx((np.exp(3) / (np.exp(3) + 4)) ** 4)
    [[weighed]] = Solver(fixed(logits.tolist(), "rrn", 1)).weigh(query, solve_exactly(query, 9))
    assert weighed.confidence == pytest.approx(answer.confidence)
    logits[3, 0] = 9.0
    [answer] = Solver(fixed(logits.tolist(), "rrn", 1)).answer(query)
    assert not answer.valid
    assert answer.values.tolist() == [2, 4, 1, 0]


@pytest.mark.parametrize(
    ("saved", "good", "bad", "message"),
    [
        (
            lambda: untrained(nqueens(5)),
            ("nqueens", ". . . ."),
            ("sudoku", "." * 16),
            "no weights for rules of kind cell and box",
        ),
        (lambda: untrained(nqueens(5)), ("nqueens", "."), ("futoshiki", "0000 r1c1<r1c2"), "of kind cell and ineq"),
        (lambda: untrained(sudoku(2, 2)), ("futoshiki", "0000"), ("futoshiki", "0000 r1c1<r1c2"), "of kind ineq"),
        (
            lambda: untrained(sudoku(2, 2), kind="rrn"),
            ("sudoku", "." * 16),
            ("sudoku", "." * 36),
            "bound to sudoku 4, the size it was trained on, and cannot answer sudoku 6",
        ),
        (lambda: untrained(nqueens(5), kind="nlm"), ("nqueens", ". . . ."), ("sudoku", "." * 16), "cannot answer sudo"),
        (
            lambda: untrained(futoshiki(3), kind="nlm"),
            ("futoshiki", "0000 r1c1<r1c2"),
            ("futoshiki", "0000 r1c1<r2c1"),
            "horizontal",
        ),
    ],
)
def test_what_a_network_refuses(saved, good, bad, message):
    solver = Solver(saved())
    [good], [bad] = queries_of(*good), queries_of(*bad)
    assert solver.refusal(good) is None
    assert len(solver.answer([good])) == 1
    assert message in solver.refusal(bad)
    with pytest.raises(ValueError, match=message):
        solver.answer([good, bad])


def test_bad_settings():
    board = nqueens(4)
    for settings in ({"steps": 0}, {"starts": 0}, {"batch_size": 0}):
        with pytest.raises(ValueError, match="expected at least 1, got 0"):
            Solver(untrained(board), **settings)
    with pytest.raises(ValueError, match="has no steps"):
        Solver(untrained(board, kind="nlm"), steps=3)
    with pytest.raises(ValueError, match="has no noise"):
        Solver(untrained(sudoku(2, 2), kind="rrn"), starts=2)
    with pytest.raises(ValueError, match="has no noise"):
        Solver(untrained(board, kind="nlm")).distinct(queries_of("nqueens", ". . . ."), 2)
    with pytest.raises(ValueError, match="expected at least 1 answer"):
        Solver(untrained(board)).distinct(queries_of("nqueens", ". . . ."), 0)


def test_steps_at_test_time_are_the_networks_own():
    saved = untrained(nqueens(4))
    query = queries_of("nqueens", "2 . . .")
    own = replace(saved, settings=replace(saved.settings, test_steps=7))
    assert Solver(own).answer(query)[0].log_probability == Solver(saved, steps=7).answer(query)[0].log_probability
    assert Solver(own).answer(query)[0].log_probability != Solver(saved).answer(query)[0].log_probability


def test_damaged_weights():
    saved = untrained(nqueens(4))
    with torch.no_grad():
        next(saved.network.parameters()).fill_(float("nan"))
    with pytest.raises(ValueError, match="its weights are damaged"):
        Solver(saved).answer(queries_of("nqueens", "2 . . ."))


# ---- one call ------------------------------------------------------------------------------------------------------

FAMOUS = {
    "Inkala 2010": "..53.....8......2..7..1.5..4....53...1..7...6..32...8..6.5....9..4....3......97..",
    "Inkala 2012": "8..........36......7..9.2...5...7.......457.....1...3...1....68..85...1..9....4..",
    "AI Escargot": "1....7.9..3..2...8..96..5....53..9...1..8...26....4...3......1..4......7..7...3..",
    "Golden Nugget": ".......39.....1..5..3.5.8....8.9...6.7...2...1..4.......9.8..5..2....6..4..7.....",
    "Easter Monster": "1.......2.9.4...5...6...7...5.9.3.......7.......85..4.7.....6...3...9.8...2.....1",
}


def is_sudoku(values, query):
    grid = values.reshape(9, 9)
    boxes = grid.reshape(3, 3, 3, 3).swapaxes(1, 2).reshape(9, 9)
    units = [*grid, *grid.T, *boxes]
    return all(set(unit) == set(range(1, 10)) for unit in units) and (values[query > 0] == query[query > 0]).all()


def test_the_best_known_hard_puzzles_come_out_right_by_default():
    for reply in oneofmany.solve("sudoku", list(FAMOUS.values()), steps=9):
        assert reply.valid
        assert reply.unique
        assert (reply.solutions, reply.complete, reply.number) == (1, True, "unique solution")
        assert is_sudoku(reply.values, reply.query.values)
        assert TASKS["sudoku"].draw(reply.query.problem, reply.values, reply.query.relations) == str(reply)


def test_an_empty_grid_and_a_contradictory_one():
    empty, contradictory = oneofmany.solve("sudoku", ["." * 81, "." * 18 + "5......5." + "." * 54], steps=9)
    assert empty.valid
    assert is_sudoku(empty.values, empty.query.values)
    assert (empty.unique, empty.number) == (False, "more than 1,000 solutions")
    assert (contradictory.state, contradictory.unique, contradictory.solutions) == ("no solution", False, 0)
    assert contradictory.contradiction == "row 3 has two 5s"
    assert str(contradictory) == "no solution: row 3 has two 5s"
    assert (contradictory.values == contradictory.query.values).all()


@pytest.mark.parametrize("limit", [1, 2, 4, 10])
def test_the_number_of_solutions(limit):
    queries = queries_of("nqueens", ". . . . . .", "2 . . . .", "1 . . .", ". . . . .", "1 1 . . .", "2 4 . .")
    for every in (False, True):
        replies = solve_queries(TASKS["nqueens"], queries, None, answer="exact", limit=limit, every=every)
        for query, reply in zip(queries, replies, strict=True):
            total = len(queens(query))
            assert reply.solutions == min(limit, total)
            assert reply.complete == (total <= limit)
            assert reply.unique == (total == 1)
            assert reply.valid == (total > 0) == (tuple(reply.values) in queens(query))
            assert len(reply.answers) == (max(1, min(limit, total)) if every else 1)
            assert (reply.contradiction is not None) == (query.values.tolist()[:2] == [1, 1])


def test_a_stopped_count_is_a_lower_bound(monkeypatch):
    monkeypatch.setattr("oneofmany.solving.replying.COUNTING", 10)
    reply = oneofmany.solve("nqueens", " ".join("." * 8), answer="exact")
    assert reply.valid
    assert reply.complete is None
    assert 1 <= reply.solutions < 92
    assert reply.number.startswith("at least ")
    assert oneofmany.solve("nqueens", ". . . .", answer="exact", limit=0).unique is None


def test_networks_alone_say_nothing_about_other_solutions():
    queries = queries_of("nqueens", *ONE_GIVEN, "1 1 . . .", "1 . . . . .")
    solver = Solver(five_queens())
    for reply in solve_queries(TASKS["nqueens"], queries, solver, answer="network"):
        if reply.contradiction:
            assert (reply.state, reply.unique) == ("no solution", False)
        else:
            assert reply.source == "network"
            assert reply.state == ("valid" if tuple(reply.values) in queens(reply.query) else "invalid")
            assert (reply.solutions, reply.unique, reply.number) == (None, None, "solutions not counted")
            assert str(reply).startswith("not valid\n") != reply.valid


def test_a_given_is_never_overwritten():
    logits = np.zeros((4, 4), np.float32)
    logits[:, 0] = 9.0  # wants every queen in the first column
    query = queries_of("nqueens", ". 4 . 3")
    for kind in ("equivariant", "nlm"):
        [answer] = Solver(fixed(logits.tolist(), kind)).answer(query)
        assert answer.values[[1, 3]].tolist() == [4, 3]
        assert not answer.valid


def test_both_leaves_to_the_enumerator_what_a_network_refuses():
    queries = queries_of("sudoku", "." * 16, "." * 36)
    replies = solve_queries(TASKS["sudoku"], queries, Solver(untrained(sudoku(2, 2), kind="rrn")))
    assert [reply.valid for reply in replies] == [True, True]
    assert replies[1].source == "exact"


def test_time_is_up():
    hard, easy = queries_of("nqueens", " ".join("." * 64), "2 . . .")
    replies = solve_queries(TASKS["nqueens"], [hard, easy], None, answer="exact", seconds=0.5)
    assert [reply.state for reply in replies] == ["no answer", "valid"]
    assert str(replies[0]) == "no answer: the time was up"
    [late] = Solver(untrained(nqueens(4))).answer([easy], seconds=1e-9)
    assert (late.state, late.valid) == ("no answer", False)


def test_a_slow_network_leaves_half_of_the_time_to_the_enumerator():
    class Slow(Solver):
        def answer(self, queries, tell=None, *, seconds=None):
            sleep(seconds)
            return super().answer(queries, tell, seconds=1e-9)

    [query] = queries_of("nqueens", "2 . . .")
    [reply] = solve_queries(TASKS["nqueens"], [query], Slow(untrained(nqueens(4))), seconds=1)
    assert (reply.state, reply.source) == ("valid", "exact")


def test_many_queries_of_one_problem_do_not_walk_its_rules_again(monkeypatch):
    queries = queries_of("nqueens", *[" ".join("." * 9)] * 3)
    solver = Solver(untrained(nqueens(9)))
    solver.refusal(queries[0])
    monkeypatch.setattr(Rule, "linear", property(lambda rule: pytest.fail("a rule was looked at")))
    assert [solver.refusal(query) for query in queries] == [None] * 3


def test_the_size_of_a_text_that_has_two():
    text = "\n".join(["1" + "." * 15] * 16)
    with pytest.raises(ValueError, match="16 queries of size 4 or rows of size 16"):
        oneofmany.solve("sudoku", text, answer="exact")
    assert oneofmany.solve("sudoku", text, answer="exact", size=16).contradiction
    with pytest.raises(ValueError, match="expected one query, got a text with 16"):
        oneofmany.solve("sudoku", text, answer="exact", size=4)
    assert oneofmany.solve("futoshiki", ["....\n" * 4], answer="exact", size=4)[0].query.problem.size == 4


def test_a_search_starts_again_where_the_answer_is_not_valid(monkeypatch):
    queries = queries_of("nqueens", *ONE_GIVEN, "1 2 . . .")
    solver = Solver(five_queens(), batch_size=7, steps=6)
    asked = []
    answer = Solver.answer

    def counted(self, some, *rest, **more):
        asked.append((self.seed, len(some)))
        return answer(self, some, *rest, **more)

    monkeypatch.setattr(Solver, "answer", counted)
    first, found = solver.answer(queries), solver.search(queries, most=4)
    assert sum(not one.valid for one in first) > 1
    assert sum(one.valid for one in found) > sum(one.valid for one in first)
    for query, one, other in zip(queries, first, found, strict=True):
        if one.valid:
            assert other.values.tolist() == one.values.tolist()
        assert other.valid == (tuple(other.values) in queens(query))
        assert other.valid or other.residual <= one.residual
    # Only queries without a valid answer are asked again, each time with another seed.
    numbers = [number for _, number in asked[1:]]
    assert numbers[:2] == [26, sum(not one.valid for one in first)]
    assert numbers == sorted(numbers, reverse=True)
    assert len({seed for seed, _ in asked[1:]}) == len(numbers) == 4
    again = solver.search(queries, most=4, seconds=600)
    assert [one.values.tolist() for one in again] == [one.values.tolist() for one in found]
    with pytest.raises(ValueError, match="most: expected at least 1 start, got 0"):
        solver.search(queries, most=0)


def test_a_network_alone_spends_its_seconds_on_more_starts():
    task, saved = TASKS["nqueens"], five_queens()
    queries = queries_of("nqueens", *ONE_GIVEN, ". . . . .")  # all of them have solutions
    one, searched = (
        solve_queries(task, queries, Solver(saved, steps=6), answer="network", seconds=seconds)
        for seconds in (None, 600)
    )
    assert not all(reply.valid for reply in one)
    assert all(reply.valid and reply.source == "network" for reply in searched)
    [late] = Solver(saved).search(queries[:1], seconds=1e-9)
    assert not late.finished
    whole = Solver(fixed([[0.0, 1.0]] * 4, "nlm")).search(queries_of("nqueens", ". . . ."), seconds=600)
    assert not whole[0].valid  # a network without noise has one answer


def test_bad_arguments_of_one_call():
    for arguments, message in [
        ({"task": "chess"}, "task: expected one of nqueens"),
        ({"puzzles": ["2 . . .", "9 . . ."]}, "puzzle 2: line 1, column 1: row 1"),
        ({"puzzles": None}, "puzzles: expected a text or a list of texts, got NoneType"),
        ({"puzzles": np.zeros((9, 9))}, "got ndarray"),
        ({"puzzles": [[2, 0, 0, 0]]}, "got list"),
        ({"answer": "magic"}, "answer: expected network, exact or both"),
        ({"number": 0}, "number: expected at least 1"),
        ({"limit": -1}, "limit: expected at least 0"),
        ({"seconds": 0}, "seconds: expected more than 0"),
    ]:
        with pytest.raises(ValueError, match=message):
            oneofmany.solve(**{"task": "nqueens", "puzzles": "2 . . .", "answer": "exact"} | arguments)


# ---- steps and patience --------------------------------------------------------------------------------------------


def steps_run(saved, queries, **settings):
    """The steps of the network that a solver runs, counted by query."""
    counted = 0
    own = saved.network.forward

    @wraps(own)
    def forward(batch, *, steps=None, **others):
        nonlocal counted
        counted += len(batch) * steps
        return own(batch, steps=steps, **others)

    saved.network.forward = forward
    try:
        values = [answer.values.tolist() for answer in Solver(saved, **settings).answer(queries)]
    finally:
        del saved.network.forward
    return counted, values


def test_more_steps_cost_nothing_where_the_answer_has_settled():
    saved, queries = five_queens(), queries_of("nqueens", *ONE_GIVEN[:5])
    settled, values = steps_run(saved, queries, steps=1000)
    assert settled < 5 * 500
    assert steps_run(saved, queries, steps=4000) == (settled, values)
    assert steps_run(saved, queries, steps=20)[0] <= settled
    assert steps_run(saved, queries, steps=20, patience=0)[0] == 5 * 20
    assert steps_run(saved, queries, steps=1000, patience=4)[0] <= settled
