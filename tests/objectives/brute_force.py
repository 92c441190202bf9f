"""The objectives as loops over Python numbers, directly from the formulas: the oracle of the tests."""

import math


def sigmoid(x):
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def log_sigmoid(x):
    return -math.log1p(math.exp(-x)) if x >= 0 else x - math.log1p(math.exp(x))


def categorical(values, target):
    """-log softmax(values)[target]."""
    top = max(values)
    return top + math.log(sum(math.exp(v - top) for v in values)) - values[target]


def binary(values, target):
    """Binary cross-entropies of one variable's choices, of which `target` is on and the others are off."""
    return sum(-log_sigmoid(x) if v == target else -log_sigmoid(-x) for v, x in enumerate(values))


def pair_losses(of_variable, logits, solutions, mask, variable_mask=None):
    """[T][B][K] from logits [T][B][R][V]; 0 at padding."""
    return [
        [
            [
                sum(
                    of_variable(query[r], value)
                    for r, value in enumerate(solution)
                    if variable_mask is None or variable_mask[b][r]
                )
                if mask[b][k]
                else 0.0
                for k, solution in enumerate(solutions[b])
            ]
            for b, query in enumerate(step)
        ]
        for step in logits
    ]


def mean_over_steps(losses):
    return [
        [
            [sum(losses[t][b][k] for t in range(len(losses))) / len(losses) for k in range(len(losses[0][b]))]
            for b in range(len(losses[0]))
        ]
    ]


def listed(mask_row):
    return [k for k, real in enumerate(mask_row) if real]


def softmax_over(numbers, places, size):
    weights = [0.0] * size
    if places:
        top = max(numbers[k] for k in places)
        total = sum(math.exp(numbers[k] - top) for k in places)
        for k in places:
            weights[k] = math.exp(numbers[k] - top) / total
    return weights


def naive_weights(row, places):
    return [1.0 if k in places else 0.0 for k in range(len(row))]


def naive_mean_weights(row, places):
    return [1 / len(places) if k in places else 0.0 for k in range(len(row))]


def random_weights(row, places):
    return [1.0 if places and k == places[0] else 0.0 for k in range(len(row))]


def unique_weights(row, places):
    return [1.0 if places == [k] else 0.0 for k in range(len(row))]


def minloss_weights(row, places):
    least = min(((row[k], k) for k in places), default=(0.0, None))[1]
    return [1.0 if k == least else 0.0 for k in range(len(row))]


def iexplr_weights(temperature):
    def weights(row, places):
        return softmax_over([-loss / temperature for loss in row], places, len(row))

    return weights


def weights(rule, losses, mask):
    """[T][B][K]."""
    return [[rule(row, listed(mask[b])) for b, row in enumerate(step)] for step in losses]


def weighted_mean(losses, all_weights):
    """Mean, over steps and the queries with a weight, of the weighted sum of losses."""
    sums = [
        sum(w * loss for w, loss in zip(row_weights, row, strict=True))
        for step, step_weights in zip(losses, all_weights, strict=True)
        for row, row_weights in zip(step, step_weights, strict=True)
        if any(row_weights)
    ]
    return sum(sums) / len(sums) if sums else 0.0


def ccloss(losses, mask):
    values = []
    for step in losses:
        for b, row in enumerate(step):
            places = listed(mask[b])
            if places:
                least = min(row[k] for k in places)
                values.append(least - math.log(sum(math.exp(least - row[k]) for k in places)))
    return sum(values) / len(values) if values else 0.0


def argmax(values):
    return max(range(len(values)), key=lambda v: (values[v], -v))


def reward(logits, solutions, *, threshold, exact, variable_mask=None):
    """[T][B][K]: agreeing variables under argmax or agreeing choices under threshold 0.5, or 1 if all agree."""
    result = []
    for step in logits:
        rows = []
        for b, query in enumerate(step):
            row = []
            for solution in solutions[b]:
                agree = []
                for r, value in enumerate(solution):
                    if variable_mask is not None and not variable_mask[b][r]:
                        continue
                    if threshold:
                        agree += [(sigmoid(x) > 0.5) == (v == value) for v, x in enumerate(query[r])]
                    else:
                        agree.append(argmax(query[r]) == value)
                row.append(float(all(agree)) if exact else float(sum(agree)))
            rows.append(row)
        result.append(rows)
    return result


def expected_reward(rewards, scores, mask):
    """Mean over the MS queries of sum_k softmax(scores)_k reward_k, for rewards [B][K]."""
    values = []
    for b, row in enumerate(rewards):
        places = listed(mask[b])
        if len(places) > 1:
            policy = softmax_over(scores[b], places, len(row))
            values.append(sum(p * r for p, r in zip(policy, row, strict=True)))
    return sum(values) / len(values) if values else 0.0
