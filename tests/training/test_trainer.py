"""Whole runs: which weights are kept, what is logged, what stops a run."""

import json
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

import oneofmany.training.trainer as trainer_module
from oneofmany.data import Dataset
from oneofmany.evaluation import evaluate
from oneofmany.networks.saved import load_network
from oneofmany.runs.folder import RunFolder
from oneofmany.training import OBJECTIVES, TrainingError, resume, train
from oneofmany.training.learners import Learners, weights_of
from oneofmany.training.phases import phases_of
from oneofmany.training.settings import PhaseSettings, SelectorTraining
from oneofmany.training.trainer import Trainer
from small_runs import NETWORKS, assert_same_run, assert_same_tensors, files, small, untimed


def run(settings, data, out, **changes):
    return train(replace(settings, **changes) if changes else settings, *files(data, settings), out)


def lines(out, kind=None):
    return [line for line in RunFolder.open(out).read_metrics() if kind in (None, line["kind"])]


class Scripted:
    """Replaces the evaluation on dev: returns given scores and records what it evaluates."""

    def __init__(self, monkeypatch, scores):
        self.scores, self.shown = list(scores), []
        monkeypatch.setattr(trainer_module, "evaluate", self)

    def __call__(self, network, *_, **__):
        self.shown.append(weights_of(network))
        return self

    judged_by = "rules"

    def summary(self):
        score = {"accuracy": self.scores[len(self.shown) - 1]}
        return {"os": score, "ms": score, "overall": score}


# ---- same seed, same start -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", NETWORKS)
def test_same_seed_same_start_whatever_the_objective(data, kind):
    problem = Dataset.load(files(data, small(kind=kind))[0]).problem

    def first(objective, seed):
        torch.rand(torch.randint(1, 50, ()).item())  # the global generator must not matter
        return weights_of(Learners(small(objective, kind, seed=seed), problem, torch.device("cpu")).network)

    begin = first("minloss", 42)
    for objective in OBJECTIVES:
        assert_same_tensors(first(objective, 42), begin)
    for seed in (1729, 3120):
        other = first("selectr", seed)
        # Biases and norms may be constants.
        drawn = [n for n in begin if begin[n].is_floating_point() and len(begin[n].unique()) > 1]
        assert all(not torch.equal(other[n], begin[n]) for n in drawn if n in other)


def test_every_fresh_phase_begins_from_the_first_parameters(data, tmp_path, monkeypatch):
    settings = small("selectr", ema=0.5)
    begins = []
    real = Learners.begin

    def begin(self, weights, **how):
        real(self, weights, **how)
        begins.append((weights_of(self.network), weights_of(self.average)))

    monkeypatch.setattr(Learners, "begin", begin)
    run(settings, data, tmp_path / "run")
    minloss, unique, selector, joint = begins
    assert_same_tensors(minloss[0], unique[0])
    assert_same_tensors(selector[0], joint[0])
    for network, average in begins:
        assert_same_tensors(network, average)
    assert not torch.equal(minloss[0]["embed.weight"], joint[0]["embed.weight"])


# ---- Algorithm 1 ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("minloss", "unique", "chosen"), [(0.6, 0.5, 0), (0.5, 0.6, 1), (0.5, 0.5, 0)])
@pytest.mark.parametrize("objective", ["iexplr", "selectr"])
def test_the_better_pretraining_is_taken(data, tmp_path, monkeypatch, objective, minloss, unique, chosen):
    # Three evaluations a phase; in each pre-training the second is the best.
    dev = Scripted(monkeypatch, [0.1, minloss, 0.2, 0.1, unique, 0.2, 0.3, 0.4, 0.35])
    starts = []
    real = Learners.begin

    def begin(self, weights, **how):
        starts.append(weights)
        real(self, weights, **how)

    monkeypatch.setattr(Learners, "begin", begin)
    result = run(small(objective), data, tmp_path / "run")
    assert starts[:2] == [None, None]
    for start in starts[2:]:
        assert_same_tensors(start, dev.shown[1 + 3 * chosen])
    # The best of the second phase is kept, though the pre-trained network was better.
    assert (result["dev"]["score"], result["dev"]["update"]) == (0.4, 4)
    assert_same_tensors(load_file(tmp_path / "run" / "weights.safetensors"), dev.shown[7])


@pytest.mark.parametrize(("second", "kept"), [(0.4, 4), (0.7, 7)])
def test_the_pretrained_network_can_stay_a_candidate(data, tmp_path, monkeypatch, second, kept):
    dev = Scripted(monkeypatch, [0.1, 0.5, 0.2, 0.1, 0.6, 0.2, 0.3, second, 0.35])
    result = run(small("selectr", keep_pretrained=True), data, tmp_path / "run")
    assert_same_tensors(load_file(tmp_path / "run" / "weights.safetensors"), dev.shown[kept])
    assert result["dev"]["phase"] == ("pretrain-unique" if kept == 4 else "joint")
    assert load_network(tmp_path / "run" / "weights.safetensors").card["dev"] == result["dev"]


@pytest.mark.parametrize(("scores", "kept"), [([0.2, 0.4, 0.3], 1), ([0.2, 0.4, 0.4], 2), ([0.5, 0.4, 0.4], 0)])
def test_one_phase_keeps_the_last_of_the_best(data, tmp_path, monkeypatch, scores, kept):
    dev = Scripted(monkeypatch, scores)
    result = run(small("naive"), data, tmp_path / "run")
    assert (result["dev"]["update"], result["updates"]) == (2 * (kept + 1), 6)
    assert_same_tensors(load_file(tmp_path / "run" / "weights.safetensors"), dev.shown[kept])


def test_a_second_phase_for_one_phase_objectives(data, tmp_path, monkeypatch):
    dev = Scripted(monkeypatch, [0.2, 0.8, 0.4, 0.3, 0.1])
    starts = []
    real = Learners.begin
    monkeypatch.setattr(
        Learners, "begin", lambda self, weights, **how: (starts.append(weights), real(self, weights, **how))
    )
    second = PhaseSettings(updates=4, batch=4, lr=1e-3)
    result = run(small("minloss", second=second, epsilon=0.5), data, tmp_path / "run")
    assert_same_tensors(starts[1], dev.shown[1])
    assert (result["dev"]["score"], result["dev"]["phase"], result["updates"]) == (0.3, "second", 10)
    assert_same_tensors(load_file(tmp_path / "run" / "weights.safetensors"), dev.shown[3])


def test_the_selector_phase_leaves_the_network_untouched(data, tmp_path, monkeypatch):
    at_the_end = []
    real = Trainer._run_phase

    def run_phase(self, phase, resumed):
        tensors = real(self, phase, resumed)
        selector = weights_of(self.learners.selector)
        at_the_end.append((phase.name, weights_of(self.learners.network), selector, self.candidate.weights))
        return tensors

    monkeypatch.setattr(Trainer, "_run_phase", run_phase)
    run(small("selectr"), data, tmp_path / "run")
    before, selector, joint = at_the_end[1:]
    assert [selector[0], joint[0]] == ["selector", "joint"]
    assert_same_tensors(selector[1], before[3])
    assert all(not torch.equal(tensor, before[2][name]) for name, tensor in selector[2].items() if "bias" not in name)
    assert not any(line["kind"] == "dev" for line in lines(tmp_path / "run") if line["phase"] == "selector")


@pytest.mark.parametrize("objective", ["iexplr", "selectr"])
def test_a_start_from_other_runs_equals_pretraining_oneself(data, tmp_path, objective):
    changes = {"selector_training": SelectorTraining(updates=4, lr=1e-2, copy_interval=2), "ema": 0.5}
    run(small(objective, **changes), data, tmp_path / "whole")
    for way in ("minloss", "unique"):
        run(small(way, **changes), data, tmp_path / way)
    given = tuple(str(tmp_path / way) for way in ("minloss", "unique"))
    run(small(objective, pretrained=given, **changes), data, tmp_path / "given")
    assert_same_tensors(*(load_file(tmp_path / name / "weights.safetensors") for name in ("whole", "given")))

    # Killed after its first line, it chooses again.
    def die(_):
        raise KeyboardInterrupt

    settings = small(objective, pretrained=given, **changes)
    with pytest.raises(KeyboardInterrupt):
        train(settings, *files(data, settings), tmp_path / "killed", watch=die)
    resume(tmp_path / "killed")
    assert_same_run(tmp_path / "killed", tmp_path / "given")
    whole, given = (
        [line for line in untimed(tmp_path / name) if line.get("phase") in ("selector", "joint", "exploration")]
        for name in ("whole", "given")
    )
    assert whole == given


@pytest.mark.parametrize("objective", ["iexplr", "ccloss"])
def test_a_pretraining_with_another_weight_decay_equals_the_run_with_it(data, tmp_path, objective):
    second = PhaseSettings(updates=4, batch=4, lr=1e-2)
    changes = {"pretraining": "minloss", "second": second}
    first = small("minloss").first
    run(small("minloss", decay=2.0), data, tmp_path / "minloss")
    run(small(objective, decay=0.1, first=replace(first, decay=2.0), **changes), data, tmp_path / "whole")
    given = (str(tmp_path / "minloss"),)
    run(small(objective, decay=0.1, pretrained=given, **changes), data, tmp_path / "given")
    run(small(objective, decay=0.1, **changes), data, tmp_path / "same")
    whole, given, same = (load_file(tmp_path / name / "weights.safetensors") for name in ("whole", "given", "same"))
    assert_same_tensors(whole, given)
    assert any(not torch.equal(whole[name], same[name]) for name in whole)


def test_other_runs_must_fit(data, tmp_path):
    run(small("minloss", seed=8), data, tmp_path / "other")
    with pytest.raises(ValueError, match=r"pretrained: .*other has another task, seed or network \(sudoku, seed 8\)"):
        run(small("selectr", pretrained=(str(tmp_path / "other"),)), data, tmp_path / "run")
    with pytest.raises(ValueError, match="is not a run folder"):
        run(small("selectr", pretrained=(str(tmp_path),)), data, tmp_path / "run")
    (tmp_path / "other" / "result.json").unlink()
    with pytest.raises(ValueError, match=r"pretrained: .*other has not finished: finish it first"):
        run(small("selectr", seed=8, pretrained=(str(tmp_path / "other"),)), data, tmp_path / "run")
    assert not (tmp_path / "run").exists()


# ---- evaluation and metrics ----------------------------------------------------------------------------------------


def test_the_kept_weights_score_what_the_result_says(data, tmp_path):
    first = PhaseSettings(updates=20, batch=8, lr=1e-2)
    settings = small("minloss", ema=0.5, dev_queries=25, first=first, evaluate_every=4)
    result = run(settings, data, tmp_path / "run")
    saved = load_network(tmp_path / "run" / "weights.safetensors")
    dev = Dataset.load(files(data, settings)[1])
    summary = evaluate(saved.network, dev.take(range(25))).summary()
    for name in ("os", "ms", "overall"):
        assert result["dev"][name] == summary[name]["accuracy"]
    best = max(line["dev_overall"] for line in lines(tmp_path / "run", "dev"))
    assert result["dev"]["overall"] == best > 0
    assert json.loads((tmp_path / "run" / "result.json").read_text()) == result


@pytest.mark.parametrize("which", ["os", "ms", "overall"])
def test_what_dev_selects_on(data, tmp_path, which):
    result = run(small("naive", select_on=which), data, tmp_path / "run")
    assert result["dev"]["score"] == max(line[f"dev_{which}"] for line in lines(tmp_path / "run", "dev"))


def test_lines_of_metrics(data, tmp_path):
    settings = small("selectr", log_every=4, evaluate_every=3)
    run(settings, data, tmp_path / "run")
    at = [(line["kind"], line["phase"], line["update"]) for line in lines(tmp_path / "run")]
    # A line every log_every updates, at every evaluation, and at the end of a phase.
    of_six = [("train", 3), ("dev", 3), ("train", 4), ("train", 6), ("dev", 6)]
    wanted = [(kind, phase.name, update) for phase in phases_of(settings) for kind, update in of_six]
    wanted = [line for line in wanted if line[1] != "selector"]
    wanted.insert(10, ("train", "selector", 4))
    assert at == wanted
    for line in lines(tmp_path / "run"):
        assert {"seconds", "lr", "loss", "gradient_norm", "skipped"} <= line.keys()
        joint = line["phase"] == "joint"
        for name in ("ms_loss", "all_loss", "ms_hamming", "all_hamming"):
            assert (f"exploratory_{name}" in line) == joint
    seconds = [line["seconds"] for line in lines(tmp_path / "run")]
    assert seconds == sorted(seconds)


def test_dev_lines_average_over_the_updates_since_the_last_one(data, tmp_path):
    run(small("minloss", log_every=1, evaluate_every=3), data, tmp_path / "run")
    losses = [line["loss"] for line in lines(tmp_path / "run", "train")]
    first, second = lines(tmp_path / "run", "dev")
    assert first["loss"] == pytest.approx(sum(losses[:3]) / 3)
    assert second["loss"] == pytest.approx(sum(losses[3:]) / 3)


def test_the_plateau_and_the_stop_follow_dev(data, tmp_path, monkeypatch):
    Scripted(monkeypatch, [0.5] * 40)
    phase = PhaseSettings(updates=60, batch=1, lr=0.1, schedule="plateau", stop_after=20)
    result = run(small("minloss", first=phase, evaluate_every=1), data, tmp_path / "run")
    rates = [line["lr"] for line in lines(tmp_path / "run", "dev")]
    # The first evaluation improves; then every eighth lowers the rate, and the 21st without improvement is the last.
    assert result["updates"] == len(rates) == 22
    assert rates == pytest.approx([0.1] * 9 + [0.02] * 8 + [0.004] * 5)


def test_minutes_end_a_phase(data, tmp_path):
    phase = PhaseSettings(updates=10**6, batch=1, minutes=0.5 / 60, schedule="cosine", final_lr=0.0)
    settings = small("minloss", first=phase, evaluate_every=10**6, log_every=10**6)
    result = run(settings, data, tmp_path / "run")
    assert 0.5 <= result["seconds"] < 30
    assert 1 <= result["updates"] < 10**5
    assert lines(tmp_path / "run", "dev")[-1]["lr"] < phase.lr / 2  # the cosine followed the clock


def test_a_run_is_traceable(data, tmp_path):
    settings = small("minloss")
    run(settings, data, tmp_path / "run")
    config = RunFolder.open(tmp_path / "run").config
    assert config["environment"].keys() >= {"version", "revision", "torch", "python", "machine", "device"}
    for name, path in zip(("train", "dev"), files(data, settings), strict=True):
        held = Dataset.load(path)
        about = {"name": path.stem, "path": str(path), "checksum": held.header()["checksum"], "queries": len(held)}
        assert about.items() <= config["data"][name].items()


# ---- stopping with an error ----------------------------------------------------------------------------------------


def test_a_bad_loss_stops_the_run_and_keeps_the_state_before(data, tmp_path, monkeypatch):
    settings = small("minloss", first=PhaseSettings(updates=8, batch=4, lr=1e-2))
    run(settings, data, tmp_path / "good")
    from oneofmany.objectives import MinLoss

    real, calls = MinLoss.reduce, []

    def reduce(self, *arguments, **how):
        calls.append(0)
        return real(self, *arguments, **how) * (float("nan") if len(calls) == 5 else 1.0)

    monkeypatch.setattr(MinLoss, "reduce", reduce)
    with pytest.raises(TrainingError, match=r"the loss is nan at update 6 of phase train: training stopped"):
        run(settings, data, tmp_path / "run")
    assert [line["update"] for line in lines(tmp_path / "run", "train")] == [2, 4]
    # Without the fault, the run resumes at update 4 and ends as if nothing had happened.
    resume(tmp_path / "run")
    assert_same_tensors(*(load_file(tmp_path / name / "weights.safetensors") for name in ("good", "run")))


def test_a_loss_that_explodes(data, tmp_path):
    with pytest.raises(TrainingError, match="at update 2 of phase train"):
        run(small("minloss", largest_loss=1e-3), data, tmp_path / "run")


@pytest.mark.parametrize(("log_every", "stopped"), [(10, 10), (3, 12)])
def test_a_run_that_only_skips_is_stopped(data, tmp_path, log_every, stopped):
    first = PhaseSettings(updates=40, batch=1, lr=1e-2)
    settings = small("minloss", first=first, log_every=log_every, evaluate_every=40)
    with pytest.raises(
        TrainingError, match=rf"all {stopped} updates before update {stopped} of phase train were skipped"
    ):
        run(settings, data, tmp_path / "run", largest_gradient=1e-9)


def test_no_cuda_where_there_is_none(data, tmp_path):
    if torch.cuda.is_available():
        pytest.skip("there is one")
    with pytest.raises(ValueError, match=r"device: 'cuda' was asked for, but PyTorch finds no GPU here"):
        run(small(device="cuda"), data, tmp_path / "run")
    with pytest.raises(ValueError, match="device: expected auto, cpu, cuda or cuda:N, got 'abacus'"):
        run(small(device="abacus"), data, tmp_path / "run")
    assert not (tmp_path / "run").exists()
