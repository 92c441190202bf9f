"""Rules with weights and bounds: their meaning, their common cases, and bad ones in one sentence."""

import numpy as np
import pytest

from oneofmany.problems import OwnRules, Problem, Rule, all_different, cage, domain, forbid, implies, table, total


def test_exactly_one_and_at_most_one_are_common_cases():
    assert Rule("r", (0, 1)) == Rule("r", (0, 1), low=1, high=1) == Rule("r", (0, 1), weights=(1, 1), low=1, high=1)
    assert Rule("r", (0, 1), exact=False) == Rule("r", (0, 1), high=1) == Rule("r", (0, 1), False, None, 0, 1)
    assert forbid("r", [0, 4]) == [Rule("r", (0, 4), exact=False)]
    assert domain("r", 1, [3, 1], 3) == [Rule("r", (3, 5))]
    assert [rule.exact for rule in all_different("r", [0, 1, 2], 3)] == [True] * 3
    assert not any(rule.exact or rule.linear for rule in all_different("r", [0, 1], 3))
    for rule in (Rule("r", (0, 1), low=1), Rule("r", (0, 1), low=2, high=2), *implies("r", 0, [1])):
        assert rule.linear
        assert not rule.exact


def test_bounds_that_are_not_given_are_those_of_the_sum():
    assert Rule("r", (0, 1, 2), low=1).bounds == (1, 3)
    assert Rule("r", (0, 1, 2), weights=(2, -3, 1), high=0).bounds == (-3, 0)
    [rule] = total("r", [0, 1], 2, high=0, factors=[1, -2])
    assert rule.bounds == (-6, 0)
    assert list(rule.weighed()) == [(0, 1), (1, 2), (2, -2), (3, -4)]


def test_arrays_are_taken_as_tuples():
    assert Rule("r", np.array([0, 3]), weights=np.array([1, 2]), low=1) == Rule("r", (0, 3), weights=(1, 2), low=1)
    assert Rule("r", [0, 3]) == Rule("r", range(0, 6, 3)) == Rule("r", (0, 3))
    assert table("t", np.array([0, 1]), np.array([[1, 2], [1, 2]]), 3) == table("t", [0, 1], [(1, 2)], 3)


def test_numbers_of_numpy_become_those_of_python():
    """Headers of files are JSON."""
    two = np.int64(2)
    assert all_different("r", [0, 1], two) == all_different("r", [0, 1], 2)
    problem = Problem("p", two, two, two, tuple(all_different("r", [0, 1], two)))  # pyright: ignore
    assert [type(number) for number in (problem.size, problem.variables, problem.values)] == [int] * 3


def test_every_iterable_gives_the_same_rules():
    """A generator can be read only once."""
    assert all_different("r", iter([0, 1]), 3) == all_different("r", [0, 1], 3)  # pyright: ignore
    assert forbid("r", iter([0, 4])) == forbid("r", [0, 4])  # pyright: ignore
    assert implies("r", 0, iter([1, 2])) == implies("r", 0, [1, 2])  # pyright: ignore
    assert total("r", iter([0, 1]), 3, low=2, factors=iter([1, 2])) == total("r", [0, 1], 3, low=2, factors=[1, 2])  # pyright: ignore
    rules = all_different("r", [0, 1], 3)
    listed, kinds = (Problem("p", 1, 2, 3, (), own_sums=names) for names in (["cage"], ("cage",)))  # pyright: ignore
    assert listed.same_as(kinds)
    assert Problem("p", 1, 2, 3, iter(rules)).rules == Problem("p", 1, 2, 3, tuple(rules)).rules  # pyright: ignore


def test_sums_and_bounds_can_be_as_large_as_the_weights():
    rule = Rule("r", (0, 2), weights=(10**9, 10**9), low=10**9)
    assert rule.bounds == (10**9, 2 * 10**9)
    answers = np.array([[0, 0], [0, 1], [1, 1]])
    assert Problem("p", 1, 2, 2, (rule,)).check(answers).tolist() == [True, True, False]


def test_a_table_adds_no_variables():
    rows = [(1, 1, 1), (1, 2, 3), (2, 2, 2)]
    rules = table("t", [0, 1, 2], rows, 3)
    assert Problem("t", 1, 3, 3, tuple(rules)).variables == 3
    assert len(rules) <= 9


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Rule("r", ()), "a rule of kind 'r': expected different choices, at least one, got ()"),
        (lambda: Rule("r", (1, 1)), "expected different choices"),
        (lambda: Rule("r", (0, 1), exact="at_least"), "use low and high for other bounds"),  # pyright: ignore
        (lambda: Rule("r", (0, 1), weights=(1, 2)), "weights need bounds: give low, high or both"),
        (lambda: Rule("r", (0, 1), weights=(1,), low=1), "expected 2 weights that are not 0, got (1,)"),
        (lambda: Rule("r", (0, 1), weights=(1, 0), low=1), "expected 2 weights that are not 0"),
        (lambda: Rule("r", (0, 1), weights=(1, 0.5), low=1), "weights: expected whole numbers"),  # pyright: ignore
        (lambda: Rule("r", (0, 1), low=1.5), "low and high: expected whole numbers"),  # pyright: ignore
        (lambda: Rule("r", (0, 1), weights=(2**31, 1), low=1), "expected numbers up to 2,147,483,647"),
        (lambda: Rule("r", (0, 1), low=3), "expected a sum at least 3, but it can only be 0 to 2"),
        (lambda: Rule("r", (0, 1), weights=(2, -1), high=-2), "a sum at most -2, but it can only be -1 to 2"),
        (lambda: Rule("r", (0, 1), low=4, high=5), "expected a sum from 4 to 5, but it can only be 0 to 2"),
        (
            lambda: total("t", [0, 1], 9, low=19),
            "a sum of kind 't': expected a sum at least 19, but it can only be 2 to",
        ),
        (lambda: total("t", [0, 1], 9, high=-9, factors=[1, -1]), "a sum at most -9, but it can only be -8 to 8"),
        (lambda: cage("c", [0, 1], 9, 99), "a cage of kind 'c': expected a sum of 99, but it can only be 3 to 17"),
        (lambda: cage("c", [0, 1], 9, 2), "a cage of kind 'c': expected a sum of 2, but it can only be 3 to 17"),
        (lambda: cage("c", [0, 1], 9, 3.5), "low and high: expected whole numbers"),  # pyright: ignore
        (lambda: all_different("d", [0, 1, 2], 2), "different values of kind 'd': expected at most 2 variables, got 3"),
        (lambda: Rule("r", (0, 1), low=0, high=2**31), "low and high: expected numbers up to 2,147,483,647, got 0 and"),
        (lambda: Rule("r", np.zeros((2, 2), int)), "choices: expected whole numbers, got array"),  # pyright: ignore
        (lambda: domain("d", 0, 1, 3), "allowed values: expected several, got 1"),  # pyright: ignore
        (lambda: domain("d", 0, [1, "2"], 3), "expected whole numbers, got variable 0 and value '2'"),  # pyright: ignore
        (lambda: table("t", [0, 1], [1, 2], 3), "a row: expected several, got 1"),  # pyright: ignore
        (lambda: implies("i", 0, 1), "others: expected several, got 1"),  # pyright: ignore
        (lambda: forbid("f", 0), "choices: expected several, got 0"),  # pyright: ignore
        (lambda: all_different("d", [0], 0), "values: expected their number, at least 1, got 0"),
        (lambda: total("t", [0], "3", low=1), "values: expected their number, at least 1, got '3'"),  # pyright: ignore
        (lambda: Problem("p", 1, 1.5, 2, ()), "a problem's variables: expected a whole number, got 1.5"),  # pyright: ignore
        (lambda: table("t", [0, 1], [], 3), "expected at least one row"),
        (lambda: table("t", [0, 1], [(1,)], 3), "expected rows of 2 values"),
        (lambda: table("t", [0, 1], [(1, 4)], 3), "expected values from 1 to 3, got 4"),
        (lambda: domain("d", 0, [0], 3), "expected values from 1 to 3, got 0"),
        (lambda: total("t", [0, 1], 3, low=3, factors=[1]), "factors: expected 2"),
        (lambda: Rule("r", (-1, 0)), "expected choices from 0 to 2,147,483,647, got (-1, 0)"),
        (lambda: Rule("r", (0, 0.5)), "choices: expected whole numbers, got (0, 0.5)"),  # pyright: ignore
        (lambda: Rule("r", "ab"), "choices: expected whole numbers, got 'ab'"),  # pyright: ignore
        (lambda: Rule("r", 5), "choices: expected whole numbers, got 5"),  # pyright: ignore
        (lambda: Rule("", (0, 1)), "a rule of kind '': expected a name for its kind"),
        (lambda: Rule("r", (0, 1), low=2, high=1), "expected low <= high, got 2 and 1"),
        (lambda: domain("d", 0, [], 3), "a domain of kind 'd': expected at least one allowed value, got none"),
        (lambda: domain("d", -1, [1], 3), "expected variables from 0, got -1"),
        (lambda: table("t", [0, 1], [(1.5, 2)], 3), "expected whole numbers"),  # pyright: ignore
        (lambda: table("t", [0, 0], [(1, 1)], 3), "expected different variables, at least one, got [0, 0]"),
        (lambda: forbid("f", []), "expected different choices, at least one"),
        (lambda: implies("i", 0, [0]), "expected different choices"),
        (lambda: Problem("p", 1, 2, 2, (all_different("r", [0, 1], 2),)), "got a list; helpers return lists of rules"),  # pyright: ignore
        (lambda: Problem("p", 1, 2, 2, ((0, 1),)), "rules: expected a Rule each, got a tuple"),  # pyright: ignore
        (lambda: Problem("p", 1, 2, 2, None), "rules: expected a tuple of rules, got None"),  # pyright: ignore
        (lambda: Problem("p", 1, 2, 2, (), own_kinds="edge"), "own_kinds: expected several names, as in ('edge',)"),  # pyright: ignore
        (lambda: Problem("p", 1, 2, 2, (), own_kinds=1), "own_kinds: expected several names, as in ('edge',), got 1"),  # pyright: ignore
        (lambda: OwnRules.of(forbid("f", [0, 1])), "rules of its own: expected a list of rules for every query"),  # pyright: ignore
        (lambda: OwnRules.of([[forbid("f", [0, 1])]]), "got a list; helpers return lists of rules"),  # pyright: ignore
        (lambda: Rule("r", (0, 2**31)), "expected choices from 0 to 2,147,483,647, got (0, 2147483648)"),
        (lambda: Rule("r", np.array(1)), "choices: expected whole numbers, got array(1)"),  # pyright: ignore
        (lambda: forbid("f", np.array(1)), "choices: expected several, got array(1)"),  # pyright: ignore
        (lambda: domain("d", 0, [1], np.array([3])), "values: expected their number"),  # pyright: ignore
        (lambda: table("t", [0, [1]], [(1, 1)], 3), "expected whole numbers, got variable [1] and value 1"),  # pyright: ignore
        (lambda: table("t", [0, 1], [(1, [1])], 3), "expected whole numbers, got variable 0 and value [1]"),  # pyright: ignore
        (lambda: Problem("p", 1, 1, 2, (Rule("r", (0, 2)),)), "names a choice outside 0..1"),
        (lambda: Problem("p", 1, 1, 2, (), relation=">"), "relation: expected '<' or '!=', got '>'"),  # pyright: ignore
    ],
)
def test_bad_rules_are_one_sentence(make, sentence):
    with pytest.raises(ValueError) as error:
        make()
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)
