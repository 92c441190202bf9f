"""``oneofmany solve``: answer queries with a network, with the exact enumerator, or with both."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from oneofmany.cli.options import Flag, Json, TaskFile, option, use_task
from oneofmany.cli.reading import SIZE, Read, is_source, read_queries
from oneofmany.cli.replies import print_boards, print_lines, summary
from oneofmany.cli.terminal import compiling, progress, say
from oneofmany.problems import check_source, find_task, task_named

if TYPE_CHECKING:
    from oneofmany.problems import Query
    from oneofmany.solving import Solver

FEW = 20
"""Up to this many queries of a file are drawn as boards on a terminal."""
WEIGHING = 16
"""Noisy starts over which the probability of a solution is averaged."""


def solve(
    task: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="TASK")],
    query: Annotated[str | None, tyro.conf.Positional, option("[QUERY|FILE]", "-")] = None,
    *,
    answer: Annotated[Literal["network", "exact", "both"] | None, option("{network,exact,both}", "both")] = None,
    exact: Flag = False,
    fallback: Annotated[Literal["exact"] | None, option("exact", "none")] = None,
    weights: Annotated[str | None, option("WEIGHTS", "the bundled network of the task")] = None,
    distinct: Annotated[int | None, option("N", "one answer")] = None,
    list_all: Annotated[bool, tyro.conf.arg(name="all", help_behavior_hint="")] = False,
    limit: int = 1000,
    seconds: Annotated[float | None, option("S", "no limit")] = None,
    steps: Annotated[int | None, option("N", "the network's number of test steps")] = None,
    patience: int = 8,
    starts: Annotated[int | None, option("N", "1; with --all 16; with --distinct up to 8 per answer")] = None,
    choose: Literal["residual", "confidence"] = "confidence",
    seed: int = 0,
    batch: int = 256,
    device: str = "cpu",
    threads: Annotated[int | None, option("N", "the idle cores; 1 if PyTorch runs the network")] = None,
    boards: Flag = False,
    as_json: Json = False,
    size: Annotated[int | None, SIZE] = None,
    task_file: TaskFile = None,
) -> int:
    """Answer queries with a trained network, with the exact enumerator, or with both.

    Example: oneofmany solve nqueens "3 . . . . . 2 ."

    Example: oneofmany solve sudoku puzzles.txt > answers.txt

    Example: oneofmany solve sudoku puzzles.txt --answer exact --seconds 60 --json

    Every answer is checked. Contradictory givens are named, and the number of solutions is counted. Exit code: 0 if
    every query has a valid answer; 1 if some have no solution or no valid answer was found; 2 for bad input.

    A query on the command line is drawn as a board. On a terminal, up to 20 queries of a file are drawn too. Otherwise
    every answer is a line of tab-separated fields: the solution; valid, invalid, no solution or no answer; the
    network's probability; network or exact; the line number of the query; and the number of solutions.

    Args:
        task: nqueens, futoshiki, sudoku, colouring, or a task of your own.
        query: a query as text, a file of queries (docs/reading.md lists the formats), or - for standard input.
        answer: who answers: only the network, only the exact enumerator, or both:
            the enumerator answers if the network's answer is not valid or the network cannot answer the query.
        exact: the same as --answer exact.
        fallback: the same as --answer both.
        weights: the name of a bundled network, a weights file, or a run folder.
        distinct: find up to this many different answers per query, from noisy starts; valid ones come first.
        list_all: list all solutions, the most probable for the network first.
            The share of a solution is its probability, averaged over noisy starts, divided by the sum over all listed.
        limit: count, and with --all list, at most this many solutions per query; 0 does not count.
        seconds: search at most this long, for all queries together. Queries without an answer by then have none.
            --answer network spends the time on more noisy starts of the queries whose answer is not valid, up to 128.
        steps: run at most this many network steps.
        patience: stop the network when its answer has not changed for this many steps; 0 always runs all steps.
        starts: number of noisy starts per query; one of them is chosen without the rules.
        choose: how to choose a start: the highest confidence, or the smallest change in the last step (residual).
        seed: random seed of the noise; the same seed gives the same answers.
        batch: number of queries per batch.
        device: where the network runs: cpu, cuda, cuda:1, ...
        threads: CPU threads of the network; each takes its own queries.
        boards: always draw boards.
        as_json: print one JSON object per answer, one per line (docs: Solving).
        size: number of rows and columns, if a text can be read in two sizes.
    """
    by = _check_options(answer, exact, fallback, weights, distinct, list_all, limit, seconds, steps, starts)
    if boards and as_json:
        raise ValueError("--boards and --json: choose one of them")
    use_task(task_file)
    from oneofmany.solving import Solver, load_network, solve_queries, threads_for

    if weights is not None and find_task(task) is None:
        load_network(weights)  # says which file it needs
    kind = task_named(task)

    read = read_queries(kind, query, size)
    solver = None
    if by != "exact" and read.queries and (by == "network" or weights or _has_network(task)):
        saved = load_network(weights or _bundled(task), _usable(device))
        tried = 1 if distinct else starts or (WEIGHING if list_all and saved.settings.kind == "equivariant" else 1)
        solver = Solver(
            saved,
            steps=steps,
            patience=patience,
            starts=tried,
            choose=choose,
            seed=seed,
            batch_size=batch,
            threads=threads_for(saved) if threads is None else threads,
        )
        read = _accepted(solver, read, by == "network")
        if changed := check_source(weights or task, saved.task, saved.card.get("task_file")):
            say(f"note: {changed}")
        if saved.task != task:
            say(f"note: the network was trained on {saved.task} {saved.size}, not on {task}")
    _prepare([one for _, one in read.queries], solver, by != "network")
    began = time.perf_counter()
    with progress() as bar:

        def tell(what: str, done: int, of: int) -> None:
            if of > batch:
                bar(what, done, of)

        replies = solve_queries(
            kind,
            [one for _, one in read.queries],
            solver,
            answer=by,
            number=distinct or 1,
            every=list_all,
            tries=starts,
            limit=limit,
            seconds=seconds,
            seed=seed if distinct and by == "exact" else None,
            tell=tell,
        )
    spent = time.perf_counter() - began

    numbers = [number for number, _ in read.queries]
    on_command_line = query is not None and not is_source(query)
    if not as_json and (boards or on_command_line or (sys.stdout.isatty() and len(replies) <= FEW)):
        print_boards(kind, numbers, replies)
    else:
        print_lines(kind, numbers, replies, as_json)
    if replies:
        say(summary(replies, spent))
    for number, reply in zip(numbers, replies, strict=True):
        if list_all and reply.complete is not True:
            say(f"oneofmany: line {number} has {reply.number}: listing stopped at {len(reply.answers):,}")
    for complaint in read.complaints:
        say(f"oneofmany: {complaint}")
    return 2 if read.complaints else int(not all(reply.valid for reply in replies))


def _check_options(
    answer: Literal["network", "exact", "both"] | None,
    exact: bool,
    fallback: str | None,
    weights: str | None,
    distinct: int | None,
    list_all: bool,
    limit: int,
    seconds: float | None,
    steps: int | None,
    starts: int | None,
) -> Literal["network", "exact", "both"]:
    """Return who answers; ValueError if options contradict each other."""
    asked: dict[str, Literal["network", "exact", "both"]] = {} if answer is None else {"--answer": answer}
    if exact:
        asked["--exact"] = "exact"
    if fallback:
        asked["--fallback"] = "both"
    if len(set(asked.values())) > 1:
        said = " and ".join(f"{name} ({by})" for name, by in asked.items())
        raise ValueError(f"{said} contradict each other: use --answer alone")
    by = next(iter(asked.values())) if asked else "both"
    of_network = {"--weights": weights, "--steps": steps, "--starts": starts}
    if by == "exact" and (given := [name for name, value in of_network.items() if value is not None]):
        raise ValueError(f"--answer exact uses only the enumerator: leave out {' and '.join(given)}")
    if list_all and (distinct or by == "network"):
        raise ValueError("--all lists every solution, from the enumerator: leave out --distinct and --answer network")
    for name, value, least in (
        ("--distinct", distinct, 1),
        ("--limit", limit, int(list_all)),
        ("--starts", starts, 1),
    ):
        if value is not None and value < least:
            raise ValueError(f"{name}: expected at least {least}, got {value}")
    if seconds is not None and not seconds > 0:
        raise ValueError(f"--seconds: expected more than 0, got {seconds}")
    return by


def _has_network(task: str) -> bool:
    from oneofmany.solving import bundled

    if bundled(task).is_file():
        return True
    say(f"note: there is no bundled network for {task}, so only the enumerator answers")
    return False


def _bundled(task: str) -> Path:
    from oneofmany.solving import bundled

    path = bundled(task)
    if not path.is_file():
        raise ValueError(
            f"there is no bundled network for {task}: name a weights file or a run with --weights, or use the "
            "enumerator with --answer exact"
        )
    return path


def _accepted(solver: Solver, read: Read, alone: bool) -> Read:
    """Keep the queries that a network alone can answer; the others become complaints."""
    refused = [(number, why) for number, query in read.queries if (why := solver.refusal(query))]
    if not alone:
        for number, why in refused:
            say(f"note: line {number} is left to the enumerator: {why}")
        return read
    if len(refused) == len(read.queries) and not read.complaints and len({why for _, why in refused}) == 1:
        raise ValueError(refused[0][1])
    numbers = {number for number, _ in refused}
    return Read(
        [(number, query) for number, query in read.queries if number not in numbers],
        [*read.complaints, *(f"line {number}: {why}" for number, why in refused)],
    )


def _usable(device: str) -> str:
    """The device's name if it can be used; asking for the CPU loads no torch."""
    if device == "cpu":
        return device
    from oneofmany.runs.devices import usable_device

    return str(usable_device(device))


def _prepare(queries: list[Query], solver: Solver | None, exactly: bool) -> None:
    """Load or compile what will answer, so that no query's time includes it."""
    from oneofmany.solving import prepare

    with compiling():
        if solver is not None:
            solver.prepare(queries)
        if queries and exactly:
            prepare(queries)
