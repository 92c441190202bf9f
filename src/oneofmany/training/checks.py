"""Checks before a run folder is made: the data, and the runs that the new run starts from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from oneofmany import weights_file
from oneofmany.data import Dataset, SequenceData
from oneofmany.data.rating import has_ratings
from oneofmany.data.shares import Share
from oneofmany.files import FileError
from oneofmany.networks.building import build_network
from oneofmany.networks.headers import read_weights
from oneofmany.networks.saved import misfit
from oneofmany.problems import Problem, SequenceProblem
from oneofmany.runs.folder import RunFolder
from oneofmany.training.augmenting import SYMMETRIES
from oneofmany.training.phases import phases_of
from oneofmany.training.settings import Settings, settings_of

AT_ONCE = 512
"""Listed solutions that are checked together; more do not fit into the cache of a core."""


def check_data(settings: Settings, train: Dataset | SequenceData | Share, dev: Dataset | SequenceData) -> None:
    """Raise FileError for data that cannot be trained on."""
    first = 0
    if isinstance(train, Share):
        _check_shards(settings, train)
        train, first = train.data, train.first
    for name, data in (("train", train), ("dev", dev)):
        if data.problem.task != settings.task:
            raise FileError(f"{name}: the data is of task {data.problem.task}, the recipe is for {settings.task}")
    if not dev.problem.has_rules and not dev.listed.all():
        raise FileError("dev: a query has neither rules nor listed solutions, so its answer cannot be judged")
    if isinstance(train, SequenceData) and isinstance(dev, SequenceData):
        try:
            dev.in_words_of(train.problem)
        except ValueError as error:
            raise FileError(f"dev: {error}") from None
    elif isinstance(train, Dataset) and isinstance(dev, Dataset):
        _check_queries(settings, train, dev, first)
    _check_sampling(settings, train, dev)


def too_long(settings: Settings, train: Dataset | SequenceData | Share) -> str:
    """A sentence about listed answers that CTC cannot give; empty if there are none."""
    if settings.network.kind != "ctc" or not isinstance(train, SequenceData):
        return ""
    frames = settings.network.frames * np.repeat(np.diff(train.input_offsets), train.listed)
    number = int((np.diff(train.output_offsets) > frames).sum())
    share = f"{number:,} of {len(frames):,} listed answers have more tokens than frames"
    return f"{share} and are not trained on: --network.frames {settings.network.frames + 1} has more" if number else ""


def _check_shards(settings: Settings, train: Share) -> None:
    """Raise FileError if a shard has too few of the queries that a phase draws, which would be drawn too often."""
    for phase in phases_of(settings):
        sampling = phase.settings.sampling
        share = sampling if isinstance(sampling, (int, float)) else {"ms": 1.0, "os": 0.0}.get(sampling, 0.5)
        for kind, drawn in enumerate((share < 1, share > 0) if sampling != "uniform" else ()):
            fewest, every = int(train.counts[:, kind].min()), int(train.counts[:, kind].sum())
            if drawn and 2 * settings.shards * fewest < max(every, 1):
                raise FileError(
                    f"train: phase {phase.name} samples {('OS', 'MS')[kind]} queries, of which one shard has {fewest} "
                    f"and all {settings.shards} have {every}: put the queries in random order, or use fewer shards"
                )


def _check_queries(settings: Settings, train: Dataset, dev: Dataset, first: int) -> None:
    with torch.random.fork_rng(devices=[]):
        network = build_network(settings.network, train.problem)
    for name, data in (("train", train), ("dev", dev)):
        if why := network.accepts(data.problem, data.relations):
            raise FileError(f"{name}: {why}")
    if settings.augment and train.problem.task not in SYMMETRIES:
        raise FileError(f"train: augment knows the symmetries of {', '.join(SYMMETRIES)}, got {train.problem.task}")
    if settings.curriculum and not has_ratings(train.problem):
        raise FileError(f"train: curriculum sorts by rating, and only 9x9 Sudokus have one, got {train.problem}")
    if settings.discover and not train.problem.has_rules:
        raise FileError(f"train: discover checks answers by the rules, but {train.problem.task} has none")
    if settings.repair and not _is_graphs(train):
        raise FileError(f"train: repair knows relations a != b only, but {train.problem.task} has other rules")
    if settings.objective == "rules":
        if not train.problem.has_rules:
            raise FileError(f"train: the objective rules learns from rules, but {train.problem.task} has none")
        return
    if not len(train.solutions):
        raise FileError("train: the data lists no solutions to train on")
    _check_solutions(train, first)


def _is_graphs(data: Dataset) -> bool:
    """Whether relations a != b are all the rules."""
    problem = data.problem
    related = problem.relation_kind is not None and problem.relation == "!="
    return related and data.own is None and all(rule.kind == "variable" for rule in problem.rules)


def _check_sampling(settings: Settings, train: Dataset | SequenceData, dev: Dataset | SequenceData) -> None:
    looked_at = dev.multiple[: settings.dev_queries] == (settings.select_on == "ms")
    if settings.select_on != "overall" and not looked_at.any():
        raise FileError(
            f"dev: select_on is {settings.select_on}, but the data has no {settings.select_on.upper()} query"
        )
    for phase in phases_of(settings):
        sampling = phase.settings.sampling
        share = sampling if isinstance(sampling, (int, float)) else {"ms": 1.0, "os": 0.0}.get(sampling)
        if share is not None and share > 0 and not train.multiple.any():
            raise FileError(f"train: phase {phase.name} samples MS queries, but the data has none")
        if share is not None and share < 1 and train.multiple.all():
            hint = ": pretraining minloss does not need any" if phase.name == "pretrain-unique" else ""
            raise FileError(f"train: phase {phase.name} samples OS queries, but the data has none{hint}")


def _check_solutions(train: Dataset, first: int) -> None:
    """Raise FileError if a listed solution breaks a rule or is listed twice; query 0 is query ``first`` of the file."""
    query = np.repeat(np.arange(len(train)), train.listed)
    own = None if train.own is None else train.own.to(torch.device("cpu"))
    for start in range(0, len(query), AT_ONCE):
        part = query[start : start + AT_ONCE]
        answers = torch.as_tensor(train.solutions[start : start + AT_ONCE]).long() - 1
        right = train.problem.check(answers, relations=torch.as_tensor(train.relations[part]))
        if own is not None:
            right &= own.kept(train.problem.taken(answers).flatten(1), torch.as_tensor(part))
        if not right.all():
            row = part[int((~right).nonzero()[0])]
            raise FileError(
                f"train: query {first + row}, counted from 0, lists a solution that breaks a rule of "
                f"{train.problem.task}: leave it out, or train on the rules that it keeps"
            )
    rows = np.concatenate([query.astype(np.int64)[:, None].view(np.uint8), train.solutions], 1)
    _, once = np.unique(np.ascontiguousarray(rows).view(f"V{rows.shape[1]}"), return_index=True)
    if len(once) < len(query):
        row = first + query[np.setdiff1d(np.arange(len(query)), once)[0]]
        raise FileError(f"train: query {row}, counted from 0, lists a solution twice: list every solution once")


def check_initial(settings: Settings, problem: Problem | SequenceProblem) -> None:
    """Raise FileError or ValueError for weights that this run cannot begin with."""
    if settings.initial is None:
        return
    # The words of a sequence are those of its file; a task of the user's is not in the file.
    known = problem if isinstance(problem, Problem) else None
    theirs = read_weights(weights_file(settings.initial), known, "pt")
    if theirs.task != settings.task:
        raise ValueError(f"initial: {settings.initial} is a network for {theirs.task}, this run is for {settings.task}")
    words = [(of.inputs, of.outputs) for of in (theirs.problem, problem) if isinstance(of, SequenceProblem)]
    if len(set(words)) > 1:
        raise ValueError(f"initial: {settings.initial} has another vocabulary than the training data")
    if wrong := misfit(settings.network, problem, theirs.tensors):
        raise ValueError(
            f"initial: the weights of {settings.initial} do not fit this network ({wrong.name}: {wrong.found} there, "
            f"{wrong.needed} here): set network.kind, network.width and network.depth to those of that network"
        )


def check_pretrained(settings: Settings) -> None:
    """Raise ValueError for runs that this one cannot start from."""
    for path in settings.pretrained:
        theirs = settings_of(RunFolder.open(path))
        if (theirs.seed, theirs.task, theirs.network) != (settings.seed, settings.task, settings.network):
            raise ValueError(
                f"pretrained: {path} has another task, seed or network ({theirs.task}, seed {theirs.seed}) than this "
                f"run ({settings.task}, seed {settings.seed})"
            )
        if not (Path(path) / "result.json").exists():
            raise FileError(
                f"pretrained: {path} has not finished: finish it first with oneofmany train --resume {path}"
            )
