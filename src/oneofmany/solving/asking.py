"""Solve puzzles in the text form of a task with one call."""

from __future__ import annotations

from pathlib import Path
from typing import overload

from oneofmany.problems import Task, task_named
from oneofmany.problems.tasks.task import only_found
from oneofmany.solving.answers import Reply
from oneofmany.solving.replying import SOLUTIONS, AnswerBy, solve_queries
from oneofmany.solving.running import bundled, load_network
from oneofmany.solving.solver import PATIENCE, Solver


@overload
def solve(
    task: str | Task,
    puzzles: str,
    *,
    answer: AnswerBy = ...,
    weights: str | Path | None = ...,
    number: int = ...,
    limit: int = ...,
    seconds: float | None = ...,
    steps: int | None = ...,
    patience: int = ...,
    seed: int = ...,
    device: str = ...,
    size: int | None = ...,
) -> Reply: ...
@overload
def solve(
    task: str | Task,
    puzzles: list[str] | tuple[str, ...],
    *,
    answer: AnswerBy = ...,
    weights: str | Path | None = ...,
    number: int = ...,
    limit: int = ...,
    seconds: float | None = ...,
    steps: int | None = ...,
    patience: int = ...,
    seed: int = ...,
    device: str = ...,
    size: int | None = ...,
) -> list[Reply]: ...
def solve(
    task: str | Task,
    puzzles: str | list[str] | tuple[str, ...],
    *,
    answer: AnswerBy = "both",
    weights: str | Path | None = None,
    number: int = 1,
    limit: int = SOLUTIONS,
    seconds: float | None = None,
    steps: int | None = None,
    patience: int = PATIENCE,
    seed: int = 0,
    device: str = "cpu",
    size: int | None = None,
) -> Reply | list[Reply]:
    """Solve a puzzle, or a list of puzzles, in the text form of a task; a reply prints as a board.

    Args:
        task: ``nqueens``, ``futoshiki``, ``sudoku``, or a task of your own.
        puzzles: a puzzle, or a list of them.
        answer: ``network``, ``exact`` (the enumerator), or ``both``: the enumerator answers if the network's answer is
            not valid or the network cannot answer the query.
        weights: the name of a bundled network, a weights file, or a run folder; the task's bundled network by default.
        number: find up to this many different answers per puzzle.
        limit: count solutions up to this number; 0 does not count. The network alone does not count.
        seconds: search at most this long, for all puzzles together. The network alone spends the time on more starts
            where its answer is not valid.
        steps: at most this many steps of the network.
        patience: stop the network after this many steps without a change of its answer; 0 never stops early.
        seed: of the network's noise.
        device: where the network runs.
        size: number of rows and columns, if a text can be read in two sizes.
    """
    kind = task_named(task) if isinstance(task, str) else task
    texts = [puzzles] if isinstance(puzzles, str) else puzzles
    for text in texts if isinstance(texts, list | tuple) else [texts]:
        if not isinstance(text, str):
            raise ValueError(f"puzzles: expected a text or a list of texts, got {type(text).__name__}")
    queries = []
    for place, text in enumerate(texts, 1):
        try:
            queries.append(kind.parse(text) if size is None else only_found(kind.read(text, size)))
        except ValueError as error:
            raise ValueError(f"puzzle {place}: {error}" if len(texts) > 1 else str(error)) from None
    solver = None
    if answer != "exact" and (weights is not None or answer == "network" or bundled(kind.name).is_file()):
        saved = load_network(weights or kind.name, device)
        solver = Solver(saved, steps=steps, patience=patience, seed=seed)
    replies = solve_queries(kind, queries, solver, answer=answer, number=number, limit=limit, seconds=seconds)
    return replies[0] if isinstance(puzzles, str) else replies
