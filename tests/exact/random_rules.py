"""Random problems of every kind of rule, each stated twice: as our rules, and in the words of OR-Tools CP-SAT."""

from functools import partial

import numpy as np

from oneofmany.problems import Problem, Rule, all_different, cage, domain, forbid, implies, table, total


class Statement:
    """Rules and the function that adds the same to a CP-SAT model of variables x (values from 1) and choices taken."""

    def __init__(self, rules, add):
        self.rules, self.add = rules, add


def some(rng, number, least=1, most=6):
    return [int(i) for i in rng.permutation(number)[: rng.integers(least, max(least, min(number, most)) + 1)]]


def linear(rng, R, V):
    choices = some(rng, R * V, most=R * V)
    weights = [int(w) for w in rng.choice([-3, -2, -1, 1, 2, 3, 7], len(choices))]
    kind = rng.integers(4)
    if kind < 2:
        weights = [1] * len(choices)
    least, greatest = sum(min(w, 0) for w in weights), sum(max(w, 0) for w in weights)
    low, high = sorted(int(n) for n in rng.integers(least, greatest + 1, 2))
    if kind == 0:
        low = high
    low, high = [(low, high), (low, None), (None, high)][rng.integers(3)]
    rule = Rule("linear", tuple(choices), weights=None if kind < 2 else tuple(weights), low=low, high=high)

    def add(model, x, taken):
        left = sum(w * taken[c] for w, c in zip(weights, choices, strict=True))
        if low is not None:
            model.add(left >= low)
        if high is not None:
            model.add(left <= high)

    return Statement([rule], add)


def ones(rng, R, V, exact):
    choices = some(rng, R * V)
    return Statement(
        [Rule("one", tuple(choices), exact)],
        lambda model, x, taken: (model.add_exactly_one if exact else model.add_at_most_one)(taken[c] for c in choices),
    )


def different(rng, R, V):
    variables = some(rng, R, most=min(R, V))
    return Statement(
        all_different("different", variables, V),
        lambda model, x, taken: model.add_all_different([x[v] for v in variables]),
    )


def summed(rng, R, V):
    variables = some(rng, R)
    factors = [int(f) for f in rng.choice([-2, -1, 1, 2, 5], len(variables))] if rng.integers(2) else None
    by = factors or [1] * len(variables)
    target = sum(f * int(rng.integers(1, V + 1)) for f in by)
    low, high = target, target + int(rng.integers(3))

    def add(model, x, taken):
        model.add_linear_constraint(sum(f * x[v] for f, v in zip(by, variables, strict=True)), low, high)

    return Statement(total("sum", variables, V, low=low, high=high, factors=factors), add)


def caged(rng, R, V):
    variables = some(rng, R, most=min(R, V))
    target = int(rng.permutation(np.arange(1, V + 1))[: len(variables)].sum())

    def add(model, x, taken):
        model.add_all_different([x[v] for v in variables])
        model.add(sum(x[v] for v in variables) == target)

    return Statement(cage("cage", variables, V, target), add)


def implied(rng, R, V):
    if R * V < 2:
        return domained(rng, R, V)
    choice, *others = some(rng, R * V, least=2)
    return Statement(
        implies("implies", choice, others),
        lambda model, x, taken: model.add_bool_or([taken[c] for c in others]).only_enforce_if(taken[choice]),
    )


def forbidden(rng, R, V):
    choices = some(rng, R * V, most=4)
    return Statement(forbid("forbid", choices), lambda model, x, taken: model.add_bool_or([~taken[c] for c in choices]))


def tabled(rng, R, V):
    variables = some(rng, R, most=4)
    rows = rng.integers(1, V + 1, (rng.integers(1, 1 + min(30, V ** len(variables))), len(variables))).tolist()
    return Statement(
        table("table", variables, rows, V),
        lambda model, x, taken: model.add_allowed_assignments([x[v] for v in variables], rows),
    )


def domained(rng, R, V):
    variable, allowed = int(rng.integers(R)), [v + 1 for v in some(rng, V)]
    return Statement(
        domain("domain", variable, allowed, V),
        lambda model, x, taken: model.add_bool_or([taken[variable * V + v - 1] for v in allowed]),
    )


KINDS = {
    "linear": linear,
    "exactly one": partial(ones, exact=True),
    "at most one": partial(ones, exact=False),
    "all different": different,
    "total": summed,
    "cage": caged,
    "implies": implied,
    "forbid": forbidden,
    "table": tabled,
    "domain": domained,
}


def random_case(seed, most=1500):
    """A problem with at most ``most`` assignments, a query [R], relations [M, 2], and what to add to a CP-SAT model."""
    rng = np.random.default_rng(seed)
    R, V = int(rng.integers(1, 8)), int(rng.integers(1, 8))
    while most < V**R:
        R, V = max(1, R - int(rng.integers(2))), max(1, V - int(rng.integers(2)))
    names = rng.choice(list(KINDS), rng.integers(1, 5))
    statements = [KINDS[name](rng, R, V) for name in names]
    relation = "<" if rng.integers(2) else "!="
    rules = tuple(rule for statement in statements for rule in statement.rules)
    problem = Problem("random", 1, R, V, rules, relation_kind="relation", relation=relation)
    query = np.where(rng.random(R) < 0.15, rng.integers(1, V + 1, R), 0).astype(np.uint8)
    relations = rng.integers(0, R, (rng.integers(3) * rng.integers(2), 2)).astype(np.int16)
    return problem, query, relations, statements


def count_by_cp_sat(problem, query, relations, statements):
    """The number of solutions by OR-Tools."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    R, V = problem.variables, problem.values
    x = [model.new_int_var(1, V, "") for _ in range(R)]
    taken = [model.new_bool_var("") for _ in range(R * V)]
    for v in range(R):
        model.add_exactly_one(taken[v * V : (v + 1) * V])
        model.add(x[v] == sum((d + 1) * taken[v * V + d] for d in range(V)))
        if query[v]:
            model.add(x[v] == int(query[v]))
    for a, b in relations.tolist():
        if a == b:
            model.add_bool_or([])
        else:
            model.add(x[a] < x[b] if problem.relation == "<" else x[a] != x[b])
    for statement in statements:
        statement.add(model, x, taken)

    class Counter(cp_model.CpSolverSolutionCallback):
        number = 0

        def on_solution_callback(self):
            self.number += 1

    solver, counter = cp_model.CpSolver(), Counter()
    solver.parameters.enumerate_all_solutions = True
    solver.parameters.num_workers = 1
    solver.solve(model, counter)
    return counter.number
