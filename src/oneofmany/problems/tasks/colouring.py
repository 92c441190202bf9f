"""Graph colouring: neighbours get different colours. Nodes are variables, colours are values, edges are relations.

Every query brings its own graph. Its edges are relations a != b and not rules of its own: a graph of 256 nodes has up
to 8,640 of such rules, which files, enumerator and solver would have to carry; as relations, graphs of one size have
one problem and are searched and answered together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from oneofmany.problems.givens import Conflict, describe
from oneofmany.problems.problem import Problem
from oneofmany.problems.tasks.lines import Line, TextError
from oneofmany.problems.tasks.task import NO_RELATIONS, Found, Paint, Query, Task, only_query, plain, whole

KIND = "edge"
MOST_NODES = 10_000
COLOURS = 3
"""The number of colours of a text that names none."""
WORD = re.compile(r"([kn])=(\d{1,6})|(\d{1,6})=(\d{1,6})|(\d{1,6})-(\d{1,6})")
HEAD = re.compile(r"\s*(\d{1,6}) colours?\s*")
ROW = re.compile(r"\s*(\d{1,6})\s+(\d{1,6}|[·.])(?:\s+-((?:\s+\d{1,6})+))?\s*")
DIMACS = re.compile(r"\s*([cpen])(\s.*)?")


def colouring(size: int = 16, colours: int = COLOURS) -> Problem:
    """Return the problem of graphs with ``size`` nodes; the edges are the relations of a query."""
    size = whole(size, MOST_NODES, f"nodes: expected 1 to {MOST_NODES:,}")
    return _colouring(size, whole(colours, 255, "colours: expected 1 to 255"))


@lru_cache(maxsize=512)
def _colouring(size: int, colours: int) -> Problem:
    return Problem("colouring", size, size, colours, (), {"colours": colours}, relation_kind=KIND, relation="!=")


class _Graph:
    """A graph while it is read: nodes count from 1."""

    def __init__(self, colours: int | None = None, nodes: int | None = None) -> None:
        self.colours, self.nodes = colours, nodes
        self.edges: dict[tuple[int, int], None] = {}
        self.given: dict[int, int] = {}

    def of_colours(self, colours: int) -> None:
        if self.colours not in (None, colours):
            raise ValueError(f"the graph has two numbers of colours, {self.colours} and {colours}")
        self.colours = colours

    def of_nodes(self, nodes: int) -> None:
        if self.nodes not in (None, nodes):
            raise ValueError(f"the graph has two numbers of nodes, {self.nodes} and {nodes}")
        self.nodes = nodes

    def edge(self, a: int, b: int) -> None:
        if a == b:
            raise ValueError(f"node {a} is its own neighbour")
        self.edges[min(a, b) - 1, max(a, b) - 1] = None

    def colour(self, node: int, colour: int) -> None:
        if self.given.setdefault(node, colour) != colour:
            raise ValueError(f"node {node} has two colours, {self.given[node]} and {colour}")

    def query(self, size: int | None = None) -> Query:
        named = {node + 1 for edge in self.edges for node in edge} | set(self.given)
        nodes = self.nodes if self.nodes is not None else size or max(named, default=0)
        if size not in (None, nodes):
            raise ValueError(f"the graph has {nodes} nodes, expected {size}")
        if not nodes and self.nodes is None:
            raise ValueError("expected edges like 1-2, or a number of nodes like n=5")
        if bad := sorted(node for node in named if not 1 <= node <= nodes):
            raise ValueError(f"expected nodes from 1 to {nodes}, got {bad[0]}")
        problem = colouring(nodes, COLOURS if self.colours is None else self.colours)
        values = np.zeros(nodes, np.uint8)
        for node, colour in self.given.items():
            if not 1 <= colour <= problem.values:
                raise ValueError(f"node {node}: expected a colour from 1 to {problem.values}, got {colour}")
            values[node - 1] = colour
        return Query(problem, values, np.array(list(self.edges), np.int16).reshape(-1, 2))


def parse(text: str) -> Query:
    """Read one graph in any of the forms of ``boards``."""
    return only_query(boards, text)


def boards(lines: list[Line], size: int | None) -> Iterator[Found]:
    """Find the graphs in lines.

    A line ``k=3 n=5 1-2 2-3 1=2`` has the number of colours (3 if it is left out), the number of nodes (the largest
    that is named), edges, and given colours. DIMACS files (``p edge NODES EDGES``, ``e 1 2``) may say ``c colours 5``
    and give colours as ``n NODE COLOUR``. What ``draw`` draws is read, too.
    """
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        text = line.text.strip()
        if not text:
            continue
        form = _DIMACS if DIMACS.fullmatch(text) else _DRAWN if HEAD.fullmatch(text) else _LINE
        part = [line]
        while form is not _LINE and at < len(lines) and form.goes_on(part, lines[at].text):
            part.append(lines[at])
            at += 1
        at -= form.too_many(part, lines[at:])
        place = line
        try:
            graph = _Graph()
            for place in part:
                form.read(graph, place.text)
            place = line
            yield line.number, graph.query(size)
        except TextError as error:
            yield line.number, error
        except ValueError as error:
            yield line.number, place.error(str(error))


class _Line:
    """``k=3 n=5 1-2 2-3 1=2``."""

    def read(self, graph: _Graph, text: str) -> None:
        for word in re.findall(r"[^\s,;]+", text):
            if not (found := WORD.fullmatch(word)):
                raise ValueError(f"{word!r}: expected an edge like 1-2, a colour like 1=2, k=3 or n=5")
            name, number, node, colour, a, b = found.groups()
            if name == "k":
                graph.of_colours(int(number))
            elif name == "n":
                graph.of_nodes(int(number))
            elif node:
                graph.colour(int(node), int(colour))
            else:
                graph.edge(int(a), int(b))

    def goes_on(self, part: list[Line], text: str) -> bool:
        return False

    def too_many(self, part: list[Line], rest: list[Line]) -> int:
        """Take lines at the end of a part that belong to the rest away; returns their number."""
        return 0


class _Dimacs(_Line):
    """The lines of a DIMACS file, up to the ``p`` line of the next graph."""

    def read(self, graph: _Graph, text: str) -> None:
        kind, *words = text.split() or ["c"]
        if kind == "c":
            if len(words) == 2 and words[0] in ("colours", "colors") and words[1].isdecimal():
                graph.of_colours(int(words[1]))
            return
        numbers = [int(word) for word in words[kind == "p" :] if re.fullmatch(r"\d{1,9}", word)]
        if len(numbers) != 2 or len(words) != 2 + (kind == "p"):
            form = {"p": "p edge NODES EDGES", "e": "e NODE NODE", "n": "n NODE COLOUR"}[kind]
            raise ValueError(f"{text.strip()!r}: expected {form}")
        if kind == "p":
            graph.of_nodes(numbers[0])
        elif kind == "e":
            graph.edge(*numbers)
        else:
            graph.colour(*numbers)

    def goes_on(self, part: list[Line], text: str) -> bool:
        found = DIMACS.fullmatch(text)
        if not text.strip() or (found and found[1] != "p"):
            return True
        return found is not None and not any(line.text.lstrip().startswith("p") for line in part)

    def too_many(self, part: list[Line], rest: list[Line]) -> int:
        """Comments between the last edge of a graph and the ``p`` line of the next one belong to the next one."""
        kinds = [line.text.lstrip()[:1] for line in part]
        own = len("".join(kind or "c" for kind in kinds).rstrip("c"))
        if not (rest and rest[0].text.lstrip().startswith("p") and kinds[own - 1] in ("e", "n")):
            return 0
        del part[own:]
        return len(kinds) - own


class _Drawn(_Line):
    """What ``draw`` draws."""

    def read(self, graph: _Graph, text: str) -> None:
        if head := HEAD.fullmatch(text):
            graph.colours = int(head[1])
            return
        found = ROW.fullmatch(text)
        if not found:
            raise ValueError(f"{text.strip()!r}: expected a node, its colour, - and its neighbours")
        node = graph.nodes = int(found[1])
        if found[2].isdecimal():
            graph.colour(node, int(found[2]))
        for other in (found[3] or "").split():
            graph.edge(node, int(other))

    def goes_on(self, part: list[Line], text: str) -> bool:
        found = ROW.fullmatch(text)
        return found is not None and int(found[1]) == len(part)


_LINE, _DIMACS, _DRAWN = _Line(), _Dimacs(), _Drawn()


def format_line(problem: Problem, values: np.ndarray, relations: np.ndarray = NO_RELATIONS) -> str:
    """Write values uint8 [R] and edges int16 [M, 2] in the form that ``parse`` reads; padding is left out."""
    given = [f"{node + 1}={values[node]}" for node in np.flatnonzero(values).tolist()]
    edges = [f"{a + 1}-{b + 1}" for a, b in relations.tolist() if a >= 0]
    return " ".join([f"k={problem.values}", f"n={problem.variables}", *given, *edges])


def dimacs(problem: Problem, values: np.ndarray, relations: np.ndarray = NO_RELATIONS) -> str:
    """Write a graph as a DIMACS file."""
    edges = [(a + 1, b + 1) for a, b in relations.tolist() if a >= 0]
    head = [f"p edge {problem.variables} {len(edges)}", f"c colours {problem.values}"]
    given = [f"n {node + 1} {values[node]}" for node in np.flatnonzero(values).tolist()]
    return "\n".join([*head, *given, *(f"e {a} {b}" for a, b in edges), ""])


def draw(
    problem: Problem,
    values: np.ndarray,
    relations: np.ndarray = NO_RELATIONS,
    given: np.ndarray | None = None,
    paint: Paint = plain,
) -> str:
    """Draw a line for every node: its number, its colour (a dot if it has none) and its neighbours."""
    known = np.ones(problem.variables, bool) if given is None else given
    neighbours = neighbours_of(problem.variables, relations)
    wide, high = len(str(problem.variables)), len(str(problem.values))
    rows = [f"{problem.values} colour{'s' * (problem.values != 1)}"]
    for node, (value, is_given) in enumerate(zip(values.tolist(), known.tolist(), strict=True)):
        shown = paint(f"{value:>{high}}", is_given) if value else f"{'·':>{high}}"
        others = " ".join(f"{other + 1}" for other in neighbours[node])
        rows.append(f"{node + 1:>{wide}}  {shown}{f'  - {others}' * bool(others)}")
    return "\n".join(rows)


def neighbours_of(nodes: int, relations: np.ndarray) -> list[list[int]]:
    """Return the neighbours of every node, sorted, from edges int16 [M, 2], -1 for padding."""
    found: list[set[int]] = [set() for _ in range(nodes)]
    for a, b in relations.tolist():
        if a >= 0:
            found[a].add(b)
            found[b].add(a)
    return [sorted(own) for own in found]


def explain(problem: Problem, conflict: Conflict) -> str:
    """Say which neighbours have the same colour."""
    if conflict.relation is None:
        return describe(problem, conflict)
    a, b = sorted(conflict.relation)
    return f"the neighbours {a + 1} and {b + 1} have the same colour"


TASK = Task("colouring", colouring, parse, format_line, draw, boards, explain)
