"""``oneofmany solve``: answer queries with a network, with the exact enumerator, or with both."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import tyro

import oneofmany
from oneofmany.cli.options import Flag, Json, option
from oneofmany.cli.reading import Read, find_task, read_queries
from oneofmany.cli.terminal import draw_boards, progress, results, say
from oneofmany.networks.inference import StartCriterion
from oneofmany.problems import Query, Task
from oneofmany.runs.devices import usable_device
from oneofmany.solving import Answer, Solver, bundled, fall_back, prepare, solve_exactly

FEW = 20
"""Up to this many queries of a file are drawn as boards on a terminal."""
WEIGHING = 16
"""Noisy starts over which the probability of a solution is averaged."""


def solve(
    task: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="TASK")],
    query: Annotated[str | None, tyro.conf.Positional, option("[QUERY|FILE]", "-")] = None,
    *,
    weights: Annotated[str | None, option("WEIGHTS", "the bundled network of the task")] = None,
    exact: Flag = False,
    fallback: Annotated[Literal["exact"] | None, option("exact", "none")] = None,
    distinct: Annotated[int | None, option("N", "one answer")] = None,
    list_all: Annotated[bool, tyro.conf.arg(name="all", help_behavior_hint="")] = False,
    limit: int = 1000,
    steps: Annotated[
        int | None, option("N", "the network's test steps, or until the answer has not changed for 8 steps")
    ] = None,
    starts: Annotated[int | None, option("N", "1; with --all 16; with --distinct up to 8 per answer")] = None,
    choose: StartCriterion = "residual",
    seed: int = 0,
    batch: int = 256,
    device: str = "cpu",
    boards: Flag = False,
    as_json: Json = False,
) -> int:
    """Answer queries with a trained network, with the exact enumerator, or with both.

    Example: oneofmany solve nqueens "3 . 5 . . . 2 ."

    Example: oneofmany solve sudoku puzzles.txt --weights runs/mine --fallback exact > answers.txt

    Example: oneofmany solve sudoku puzzles.txt --exact --json

    A query on the command line is drawn as a board. On a terminal, up to 20 queries of a file are drawn too. Otherwise
    every answer is a line of tab-separated fields: the solution; valid, invalid or no solution; the network's
    probability; network or exact; and the line number of the query.

    Args:
        task: nqueens, futoshiki or sudoku.
        query: a query in the task's text form, a text file with one query per line, or - for standard input.
        weights: the name of a bundled network, a weights file, or a run folder.
        exact: use only the exact enumerator, not a network.
        fallback: exact: use the enumerator if the network's answer is not valid.
        distinct: find up to this many different answers per query, from noisy starts; valid ones come first.
        list_all: list all solutions, the most probable for the network first.
            The share of a solution is its probability, averaged over noisy starts, divided by the sum over all listed.
        limit: with --all: list at most this many solutions per query.
        steps: run exactly this many network steps.
        starts: number of noisy starts per query; one of them is chosen without the rules.
        choose: how to choose a start: the smallest change in the last step (residual), or the highest confidence.
        seed: random seed of the noise; the same seed gives the same answers.
        batch: number of queries per batch.
        device: where the network runs: cpu, cuda, cuda:1, ...
        boards: always draw boards.
        as_json: print one JSON object per answer, one per line.
    """
    _check_options(weights, exact, fallback, distinct, list_all, limit, steps, starts, boards, as_json)
    kind = find_task(task)
    read = _read(kind, query)
    solver = None
    if not exact and read.queries:
        saved = oneofmany.load(weights or _bundled(task), device=usable_device(device))
        tried = 1 if distinct else starts or (WEIGHING if list_all and saved.settings.kind == "equivariant" else 1)
        solver = Solver(saved, steps=steps, starts=tried, choose=choose, seed=seed, batch_size=batch)
        read = _accepted(solver, read)
        if saved.task != task:
            say(f"note: the network was trained on {saved.task} {saved.size}, not on {task}")
    queries = [one for _, one in read.queries]
    if queries and (exact or fallback or list_all):
        _prepare_enumerator()
    began = time.perf_counter()
    with progress() as bar:

        def tell(what: str, done: int, of: int) -> None:
            if of > batch:
                bar(what, done, of)

        if list_all:
            found = solve_exactly(queries, limit)
            found = solver.weigh(queries, found, tell) if solver else found
        elif solver is None:
            found = solve_exactly(queries, distinct or 1, seed=seed if distinct else None, tell=tell)
        elif distinct:
            found = solver.distinct(queries, distinct, tries=starts, tell=tell)
        else:
            found = [[answer] for answer in solver.answer(queries, tell)]
        if fallback:
            found = fall_back(queries, found, distinct or 1)
    seconds = time.perf_counter() - began

    on_command_line = query is not None and not _is_source(query)
    if not as_json and (boards or on_command_line or (sys.stdout.isatty() and len(queries) <= FEW)):
        _print_boards(kind, read.queries, found)
    else:
        _print_lines(kind, read.queries, found, as_json)
    if queries:
        say(_summary(found, seconds))
    for (number, _), answers in zip(read.queries, found, strict=True):
        if list_all and len(answers) >= limit:
            say(f"oneofmany: line {number} has {limit} solutions or more: listing stopped at the limit")
    for complaint in read.complaints:
        say(f"oneofmany: {complaint}")
    return 2 if read.complaints else 0


def _check_options(
    weights: str | None,
    exact: bool,
    fallback: str | None,
    distinct: int | None,
    list_all: bool,
    limit: int,
    steps: int | None,
    starts: int | None,
    boards: bool,
    as_json: bool,
) -> None:
    of_network = {"--weights": weights, "--fallback": fallback, "--steps": steps, "--starts": starts}
    if exact and (given := [name for name, value in of_network.items() if value is not None]):
        raise ValueError(f"--exact uses only the enumerator: leave out {' and '.join(given)}")
    if list_all and (distinct or fallback):
        raise ValueError("--all lists every solution: leave out --distinct and --fallback")
    if boards and as_json:
        raise ValueError("--boards and --json: choose one of them")
    for name, value in {"--distinct": distinct, "--limit": limit, "--starts": starts}.items():
        if value is not None and value < 1:
            raise ValueError(f"{name}: expected at least 1, got {value}")


def _is_source(query: str) -> bool:
    """Whether the text is a file or ``-``, not a query itself."""
    try:
        return query == "-" or (Path(query).exists() and not Path(query).is_dir())
    except (OSError, ValueError):  # too long for a file name, or with characters that file names cannot have
        return False


def _read(task: Task, query: str | None) -> Read:
    if query is None and sys.stdin.isatty():
        raise ValueError(f"name the query of {task.name} to solve: as text, as a file, or - for standard input")
    if query is None or _is_source(query):
        return read_queries(task, Path(query or "-"))
    try:
        return Read([(1, task.parse(query))], [])
    except ValueError as error:
        raise ValueError(f"{query!r} is neither a file nor a query: {error}") from None


def _bundled(task: str) -> Path:
    path = bundled(task)
    if not path.is_file():
        raise ValueError(
            f"there is no bundled network for {task}: name a weights file or a run with --weights, or use the "
            "enumerator with --exact"
        )
    return path


def _accepted(solver: Solver, read: Read) -> Read:
    """Keep the queries that the network can answer; the others become complaints."""
    refused = [(number, why) for number, query in read.queries if (why := solver.refusal(query))]
    if len(refused) == len(read.queries) and not read.complaints and len({why for _, why in refused}) == 1:
        raise ValueError(refused[0][1])
    numbers = {number for number, _ in refused}
    return Read(
        [(number, query) for number, query in read.queries if number not in numbers],
        [*read.complaints, *(f"line {number}: {why}" for number, why in refused)],
    )


def _prepare_enumerator() -> None:
    waiting = threading.Timer(2, say, ["compiling the enumerator, the first time only (about 15 seconds)"])
    waiting.start()
    try:
        prepare()
    finally:
        waiting.cancel()


def _state(answer: Answer) -> str:
    if answer.valid:
        return "valid"
    return "invalid" if answer.source == "network" else "no solution"


def _print_lines(
    task: Task, queries: Sequence[tuple[int, Query]], found: Sequence[Sequence[Answer]], as_json: bool
) -> None:
    for (number, query), answers in zip(queries, found, strict=True):
        for place, answer in enumerate(answers, 1):
            solution = task.format(query.problem, answer.values, query.relations)
            if not as_json:
                sure = answer.confidence if answer.share is None else answer.share
                shown = "-" if sure is None else f"{sure:.4g}"
                print(solution, _state(answer), shown, answer.source, f"line {number}", sep="\t")
                continue
            record = {
                "line": number,
                "answer": place,
                "query": task.format(query.problem, query.values, query.relations),
                "solution": None if _state(answer) == "no solution" else solution,
                "valid": answer.valid,
                "source": answer.source,
                "confidence": answer.confidence,
                "log_probability": answer.log_probability,
                "share": answer.share,
                "seconds": round(answer.seconds, 7),
            }
            print(json.dumps(record))


def _print_boards(task: Task, queries: Sequence[tuple[int, Query]], found: Sequence[Sequence[Answer]]) -> None:
    console = results()
    width = console.width if console.is_terminal else 100
    for (number, query), answers in zip(queries, found, strict=True):
        for place, answer in enumerate(answers, 1):
            where = f"line {number}, " if len(queries) > 1 else ""
            which = f"{_title(answer, place)}: " if len(answers) > 1 else ""
            console.print(where + which + _words(answer), style="bold")
        drawn = [answer for answer in answers if _state(answer) != "no solution"]
        boards = np.array([answer.values for answer in drawn], np.uint8).reshape(len(drawn), query.problem.variables)
        titles = [_title(answer, place) for place, answer in enumerate(drawn, 1)]
        console.print(draw_boards(task, query.problem, query.values, query.relations, boards, width, titles))


def _title(answer: Answer, place: int) -> str:
    return f"{'solution' if answer.valid else 'answer'} {place}"


def _words(answer: Answer) -> str:
    """An answer in words."""
    if _state(answer) == "no solution":
        return "there is no solution (from the enumerator)"
    if answer.share is not None:
        return f"share {_percent(answer.share)} (log-probability {answer.log_probability:.3f})"
    source = "the network" if answer.source == "network" else "the enumerator"
    sure = "" if answer.confidence is None else f", confidence {_percent(answer.confidence)}"
    return f"{'valid' if answer.valid else 'not valid'} (from {source}{sure}, {_duration(answer.seconds)})"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _duration(seconds: float) -> str:
    for unit, size in (("s", 1), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"


def _summary(found: Sequence[Sequence[Answer]], seconds: float) -> str:
    answers = [answer for of_query in found for answer in of_query]
    states = Counter(_state(answer) for answer in answers)
    words = {"valid": "valid", "invalid": "not valid", "no solution": "without a solution"}
    counted = ", ".join(f"{states[state]:,} {text}" for state, text in words.items() if states[state])
    sources = Counter(answer.source for answer in answers)
    names = {"network": "the network", "exact": "the enumerator"}
    origin = ", ".join(f"{sources[source]:,} from {text}" for source, text in names.items() if sources[source])
    if any(answer.share is not None for answer in answers):
        given = sum(answer.confidence or 0 for answer in answers) / len(found)
        origin += f", to which the network gives {_percent(given)} of its probability{' on average' * (len(found) > 1)}"
    queries = f"{len(found):,} {'query' if len(found) == 1 else 'queries'}"
    several = f" with {len(answers):,} answers" if len(answers) != len(found) else ""
    return f"{queries}{several}: {counted}; {origin}; {_duration(seconds / len(found))} a query"
