"""Bad input: a ValueError that names the argument, what was expected and what was passed."""

import pytest
import torch

from oneofmany.objectives import BinaryNLL, CategoricalNLL, CCLoss, IExplR, MinLoss, Naive, Random, SelectR, Unique

B, K, R, V = 3, 4, 5, 6


def good():
    return {
        "logits": torch.zeros(B, R, V),
        "solutions": torch.zeros(B, K, R, dtype=torch.int64),
        "mask": torch.ones(B, K, dtype=torch.bool),
        "variable_mask": torch.ones(B, R, dtype=torch.bool),
    }


def changed(**changes):
    return {**good(), **changes}


def long(*shape):
    return torch.zeros(*shape, dtype=torch.int64)


def true(*shape):
    return torch.ones(*shape, dtype=torch.bool)


BAD = [
    (changed(logits=torch.zeros(R, V)), r"logits: expected shape \[B,R,V\] or \[T,B,R,V\], got shape \[5, 6\]"),
    (changed(logits=torch.zeros(1, 1, B, R, V)), "logits: expected shape"),
    (changed(logits=torch.zeros(0, B, R, V)), r"logits: expected every axis.*got shape \[0, 3, 5, 6\]"),
    (changed(logits=long(B, R, V)), r"logits: expected a floating-point dtype, got torch\.int64"),
    (changed(logits=torch.zeros(B, R, V, dtype=torch.complex64)), "logits: expected a floating-point dtype"),
    (changed(logits=[[0.0]]), r"logits: expected a torch\.Tensor, got list"),
    (changed(logits=torch.zeros(B + 1, R, V)), r"solutions: expected shape \[B,K,R\] = \[4, 4, 5\], got"),
    (changed(logits=torch.zeros(B, R + 1, V)), r"solutions: expected shape \[B,K,R\] = \[3, 4, 6\], got"),
    (changed(solutions=long(B, R)), r"solutions: expected shape \[B,K,R\], got shape \[3, 5\]"),
    (changed(solutions=long(B, K, R).float()), r"solutions: expected dtype torch\.int64, got torch\.float32"),
    (changed(solutions=long(B, K, R).int()), r"solutions: expected dtype torch\.int64, got torch\.int32"),
    (changed(solutions=long(B, K + 1, R)), r"mask: expected shape \[B,K\] = \[3, 5\], got shape \[3, 4\]"),
    (changed(mask=true(B, K).float()), r"mask: expected a bool or integer dtype, got torch\.float32"),
    (changed(mask=true(B, K).long() + 1), "mask: expected values 0 and 1, got 2 to 2"),
    (changed(mask=true(B, K).int() - 2), "mask: expected values 0 and 1, got -1 to -1"),
    (changed(mask=true(B)), r"mask: expected shape \[B,K\], got shape \[3\]"),
    (changed(mask=true(B, K + 1)), r"mask: expected shape \[B,K\] = \[3, 4\], got shape \[3, 5\]"),
    (
        changed(variable_mask=true(B, R + 1)),
        r"variable_mask: expected shape \[B,R\] = \[3, 5\] or .* = \[3, 4, 5\], got shape \[3, 6\]",
    ),
    (changed(variable_mask=true(B, R).long() * 3), "variable_mask: expected values 0 and 1, got 3 to 3"),
    (changed(variable_mask=true(B, R).float()), "variable_mask: expected a bool or integer dtype"),
    (changed(solutions=long(B, K, R).to("meta")), "solutions: expected device cpu, got device meta"),
    (changed(mask=true(B, K).to("meta")), "mask: expected device cpu, got device meta"),
    (changed(variable_mask=true(B, R).to("meta")), "variable_mask: expected device cpu, got device meta"),
    (changed(solutions=long(B, K, R) - 1), r"solutions: expected values 0\.\.5 where mask is True, got -1 at"),
    (changed(solutions=long(B, K, R) + 6), r"solutions: expected values 0\.\.5 .*got 6 at solutions\[0, 0, 0\]"),
    (
        {"logits": torch.zeros(0, R, V), "solutions": long(0, K, R), "mask": true(0, K)},
        r"mask: expected B >= 1 and K >= 1, got shape \[0, 4\]",
    ),
    (
        {"logits": torch.zeros(B, R, V), "solutions": long(B, 0, R), "mask": true(B, 0)},
        r"mask: expected B >= 1 and K >= 1, got shape \[3, 0\]",
    ),
]


@pytest.mark.parametrize("pair_loss", [CategoricalNLL, BinaryNLL])
@pytest.mark.parametrize(("arguments", "message"), BAD, ids=[message[:40] for _, message in BAD])
def test_bad_arguments(arguments, message, pair_loss):
    for objective in (form(pair_loss=pair_loss()) for form in (Naive, Random, Unique, CCLoss, MinLoss, IExplR)):
        with pytest.raises(ValueError, match=message):
            objective(**arguments)
    selectr = SelectR(pair_loss=pair_loss())
    for loss in (selectr, selectr.selector_loss):
        with pytest.raises(ValueError, match=message):
            loss(**arguments, scores=torch.zeros(B, K))


def test_the_good_arguments_are_good():
    for form in (Naive, Random, Unique, CCLoss, MinLoss, IExplR):
        form()(**good())
        form()(**changed(logits=torch.zeros(2, B, R, V)))
    SelectR()(**good(), scores=torch.zeros(B, K))


def test_the_first_wrong_value_is_named():
    arguments = good()
    arguments["solutions"][1, 2, 3] = 17
    with pytest.raises(ValueError, match=r"got 17 at solutions\[1, 2, 3\]"):
        MinLoss()(**arguments)
    # Masked entries may hold anything.
    arguments["mask"][1, 2] = False
    MinLoss()(**arguments)
    arguments["mask"][1, 2] = True
    arguments["variable_mask"][1, 3] = False
    MinLoss()(**arguments)


def test_validate_false_looks_at_no_value_but_still_at_shapes():
    arguments = changed(solutions=long(B, K, R) + 99)
    assert torch.isfinite(MinLoss(validate=False)(**arguments))
    with pytest.raises(ValueError, match="mask: expected shape"):
        MinLoss(validate=False)(**changed(mask=true(B, K + 1)))


BAD_LOSSES = [
    (torch.zeros(B), true(B, K), r"pair_losses: expected shape \[B,K\] or \[T,B,K\] with B, K = \[3, 4\], got"),
    (torch.zeros(B, K + 1), true(B, K), r"pair_losses: expected shape .* got shape \[3, 5\]"),
    (torch.zeros(0, B, K), true(B, K), r"pair_losses: expected shape .* got shape \[0, 3, 4\]"),
    (torch.zeros(1, 2, B, K), true(B, K), "pair_losses: expected shape"),
    (long(B, K), true(B, K), r"pair_losses: expected a floating-point dtype, got torch\.int64"),
    (torch.zeros(B, K, device="meta"), true(B, K), "pair_losses: expected device cpu, got device meta"),
    ([1.0], true(B, K), r"pair_losses: expected a torch\.Tensor, got list"),
    (torch.zeros(B, K), true(B, K).float(), "mask: expected a bool or integer dtype"),
    (torch.zeros(0, K), true(0, K), "mask: expected B >= 1"),
]


@pytest.mark.parametrize(("losses", "mask", "message"), BAD_LOSSES)
def test_bad_pair_losses(losses, mask, message):
    for form in (Naive, Random, Unique, CCLoss, MinLoss, IExplR):
        for method in (form().reduce, form().weights):
            with pytest.raises(ValueError, match=message):
                method(losses, mask)
    for method in (SelectR().reduce, SelectR().weights):
        with pytest.raises(ValueError, match=message):
            method(losses, mask, torch.zeros(B, K))
    with pytest.raises(ValueError, match=message.replace("pair_losses", "rewards")):
        SelectR().reduce_rewards(losses, mask, torch.zeros(B, K))


def test_a_pair_loss_that_returns_the_wrong_shape_is_named():
    with pytest.raises(ValueError, match=r"pair_losses: expected shape .* got shape \[3, 5\]"):
        MinLoss(pair_loss=lambda logits, solutions: torch.zeros(B, R))(**{**good(), "variable_mask": None})


@pytest.mark.parametrize(
    ("scores", "per_step", "message"),
    [
        (torch.zeros(B, K + 1), False, r"scores: expected shape \[B,K\] with B, K = \[3, 4\], got shape \[3, 5\]"),
        (torch.zeros(2, B, K), False, r"scores: expected shape \[B,K\] with"),
        (torch.zeros(3, B, K), True, r"scores: expected shape \[T,B,K\] = \[2, 3, 4\], got shape \[3, 3, 4\]"),
        (torch.zeros(B, K), True, r"scores: expected shape \[T,B,K\] = \[2, 3, 4\], got shape \[3, 4\]"),
        (long(B, K), False, "scores: expected a floating-point dtype"),
        (torch.zeros(B, K, device="meta"), False, "scores: expected device cpu"),
        (None, False, r"scores: expected a torch\.Tensor, got NoneType"),
    ],
)
def test_bad_scores(scores, per_step, message):
    selectr = SelectR(per_step=per_step)
    arguments = changed(logits=torch.zeros(2, B, R, V))
    for loss in (selectr, selectr.selector_loss):
        with pytest.raises(ValueError, match=message):
            loss(**arguments, scores=scores)


@pytest.mark.parametrize(
    ("noise", "message"),
    [
        (torch.rand(B, K + 1), r"noise: expected shape \[B,K\] = \[3, 4\], got shape \[3, 5\]"),
        (torch.ones(B, K), r"noise: expected values in \[0, 1\), got 1\.0 to 1\.0"),
        (-torch.ones(B, K), r"noise: expected values in \[0, 1\)"),
        (long(B, K), "noise: expected a floating-point dtype"),
        (torch.rand(B, K, device="meta"), "noise: expected device cpu"),
    ],
)
def test_bad_noise(noise, message):
    for objective in (IExplR(sample=True), MinLoss(epsilon=0.5)):
        with pytest.raises(ValueError, match=message):
            objective(**good(), noise=noise)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: IExplR(temperature=0.0), "temperature: expected a number above 0, got 0.0"),
        (lambda: IExplR(temperature=float("nan")), "temperature: expected"),
        (lambda: IExplR(temperature=float("inf")), "temperature: expected"),
        (lambda: MinLoss(epsilon=1.5), r"epsilon: expected a number in \[0, 1\], got 1\.5"),
        (lambda: SelectR(epsilon=-0.1), "epsilon: expected"),
        (lambda: SelectR(entropy_bonus=-1.0), "entropy_bonus: expected"),
        (lambda: CategoricalNLL(solutions_at_once=0), "solutions_at_once: expected 1 or more, got 0"),
        (
            lambda: MinLoss(pair_loss=CategoricalNLL),
            r"pair_loss: expected a function or an instance.*CategoricalNLL\(\)",
        ),
        (lambda: SelectR(pair_loss="nll"), "pair_loss: expected a function or an instance, .* got nll"),
    ],
)
def test_bad_options(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_options_are_keywords():
    with pytest.raises(TypeError):
        MinLoss(True)  # pyright: ignore[reportCallIssue]
