"""How ``oneofmany solve`` prints replies: boards, lines and JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from oneofmany.cli.terminal import draw_boards, results
from oneofmany.problems import Task

if TYPE_CHECKING:
    from oneofmany.solving import Answer, Reply


def print_lines(task: Task, numbers: Sequence[int], replies: Sequence[Reply], as_json: bool) -> None:
    """Print one line per answer, with the line number of its query: tab-separated fields or a JSON object."""
    for number, reply in zip(numbers, replies, strict=True):
        query = reply.query
        for place, answer in enumerate(reply.answers, 1):
            solution = task.format(query.problem, answer.values, query.relations)
            if not as_json:
                sure = answer.confidence if answer.share is None else answer.share
                shown = "-" if sure is None else f"{sure:.4g}"
                print(solution, answer.state, shown, answer.source, f"line {number}", reply.number, sep="\t")
                continue
            record = {
                "line": number,
                "answer": place,
                "task": task.name,
                "query": task.format(query.problem, query.values, query.relations),
                "state": answer.state,
                "valid": answer.valid,
                "solution": solution if answer.state in ("valid", "invalid") else None,
                "source": answer.source,
                "solutions": reply.solutions,
                "complete": reply.complete,
                "unique": reply.unique,
                "contradiction": reply.contradiction,
                "confidence": answer.confidence,
                "log_probability": answer.log_probability,
                "share": answer.share,
                "seconds": round(answer.seconds, 7),
            }
            print(json.dumps(record))


def print_boards(task: Task, numbers: Sequence[int], replies: Sequence[Reply]) -> None:
    """Draw every query and its answers side by side."""
    console = results()
    width = console.width if console.is_terminal else 100
    for number, reply in zip(numbers, replies, strict=True):
        query = reply.query
        where = f"line {number}, " if len(replies) > 1 else ""
        if len(reply.answers) > 1:
            console.print(f"{where}{reply.number}", style="bold")
        for place, answer in enumerate(reply.answers, 1):
            which = f"{_title(answer, place)}: " if len(reply.answers) > 1 else ""
            console.print(where + which + _words(answer, reply), style="bold")
        drawn = [answer for answer in reply.answers if answer.state in ("valid", "invalid")]
        boards = np.array([answer.values for answer in drawn], np.uint8).reshape(len(drawn), query.problem.variables)
        titles = [_title(answer, place) for place, answer in enumerate(drawn, 1)]
        console.print(draw_boards(task, query.problem, query.values, query.relations, boards, width, titles))


def _title(answer: Answer, place: int) -> str:
    return f"{'solution' if answer.valid else 'answer'} {place}"


def _words(answer: Answer, reply: Reply) -> str:
    """An answer in words."""
    if answer.state == "no solution":
        return f"there is {reply.number}" + " (from the enumerator)" * (reply.contradiction is None)
    if answer.state == "no answer":
        return "no answer: the time was up"
    if answer.share is not None:
        return f"share {_percent(answer.share)} (log-probability {answer.log_probability:.3f})"
    source = "the network" if answer.source == "network" else "the enumerator"
    sure = "" if answer.confidence is None else f", confidence {_percent(answer.confidence)}"
    number = "" if reply.solutions is None or len(reply.answers) > 1 else f", {reply.number}"
    state = "valid" if answer.valid else "not valid"
    return f"{state}{number} (from {source}{sure}, {duration(answer.seconds)})"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def duration(seconds: float) -> str:
    """A time in seconds, milliseconds or microseconds."""
    for unit, size in (("s", 1), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"


def summary(replies: Sequence[Reply], seconds: float) -> str:
    """One sentence about all replies."""
    answers = [answer for reply in replies for answer in reply.answers]
    states = Counter(answer.state for answer in answers)
    words = {
        "valid": "valid",
        "invalid": "not valid",
        "no solution": "without a solution",
        "no answer": "without an answer in time",
    }
    counted = ", ".join(f"{states[state]:,} {text}" for state, text in words.items() if states[state])
    sources = Counter(answer.source for reply in replies for answer in reply.answers if not reply.contradiction)
    names = {"network": "the network", "exact": "the enumerator"}
    origin = [f"{sources[source]:,} from {text}" for source, text in names.items() if sources[source]]
    if contradictory := sum(reply.contradiction is not None for reply in replies):
        origin.append(f"{contradictory:,} with contradictory givens")
    if any(answer.share is not None for answer in answers):
        given = sum(answer.confidence or 0 for answer in answers) / len(replies)
        average = " on average" * (len(replies) > 1)
        origin.append(f"to which the network gives {_percent(given)} of its probability{average}")
    number = [reply.unique for reply in replies if reply.valid]
    if any(unique is not None for unique in number):
        texts = {True: "a unique solution", False: "several solutions", None: "not known to be unique"}
        origin[-1] += "; " + ", ".join(f"{number.count(key):,} {text}" for key, text in texts.items() if key in number)
    queries = f"{len(replies):,} {'query' if len(replies) == 1 else 'queries'}"
    several = f" with {len(answers):,} answers" if len(answers) != len(replies) else ""
    return f"{queries}{several}: {counted}; {', '.join(origin)}; {duration(seconds / len(replies))} a query"
