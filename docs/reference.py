"""The API reference, made from the docstrings: a page names a room, and the room's code names what is shown."""

import inspect
import pkgutil
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from importlib import import_module
from types import ModuleType

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from sphinx.ext.napoleon import Config, GoogleDocstring
from sphinx.pycode import ModuleAnalyzer

SINGLE_MODULES = ("oneofmany.testing",)
"""Rooms that are one module; the other modules beside the packages are helpers of theirs."""


class Room(Directive):
    """``.. room:: oneofmany.data oneofmany.data.pairs``: every public name of these modules, with its docstring.

    An argument may also be one name of a module, for example ``oneofmany.files.FileError``.
    """

    required_arguments = 1
    optional_arguments = 100
    has_content = False

    def run(self) -> list[nodes.Node]:
        """The descriptions, in the order of the arguments and then of the code."""
        lines = []
        for argument in self.arguments:
            if argument in _modules(argument):
                lines += [f".. automodule:: {argument}", "   :no-members:", "   :no-index:", ""]
                lines += [".. py:currentmodule:: None", ""]  # the names below are full names
            for name in public_names(argument):
                lines += [*_description(name), ""]
        section = nodes.section()
        section.document = self.state.document
        self.state.nested_parse(StringList(lines, source="reference.py"), self.content_offset, section)
        return section.children


def public_names(place: str) -> list[str]:
    """The full names that a module makes public, those of its sub-packages included; ``place`` itself if it is a name.

    Public is what ``__all__`` lists, or, in a module without it, every class and function that is defined there and
    has no leading underscore.
    """
    if place not in _modules(place):
        return [place]
    names: dict[str, str] = {}
    for module in _packages(import_module(place)):
        for name in _own(module):
            names.setdefault(name, f"{module.__name__}.{name}")
    return list(names.values())


def rooms() -> list[str]:
    """The rooms that the reference shows: the packages but the command line, and the modules that users call."""
    import oneofmany

    found = pkgutil.iter_modules(oneofmany.__path__, "oneofmany.")
    names = {module.name for module in found if module.ispkg or module.name in SINGLE_MODULES}
    return ["oneofmany", *sorted(names - {"oneofmany.cli"})]


def _modules(place: str) -> list[str]:
    """``place`` and the packages above it, as far as they are modules."""
    parts = place.split(".")
    found = []
    for end in range(1, len(parts) + 1):
        name = ".".join(parts[:end])
        try:
            import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
            break
        found.append(name)
    return found


def _packages(module: ModuleType) -> Iterator[ModuleType]:
    """A module and, where it is a room, its sub-packages."""
    yield module
    if module.__name__ != "oneofmany" and hasattr(module, "__path__"):
        for found in pkgutil.walk_packages(module.__path__, module.__name__ + "."):
            if found.ispkg and not found.name.rsplit(".", 1)[1].startswith("_"):
                yield import_module(found.name)


def _own(module: ModuleType) -> list[str]:
    if hasattr(module, "__all__"):
        return sorted(module.__all__, key=lambda name: (_rank(getattr(module, name)), name.lower()))
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (inspect.isclass(value) or inspect.isfunction(value) or hasattr(value, "cache_info"))
        and getattr(value, "__module__", None) == module.__name__
    ]


def _rank(value: object) -> int:
    """Classes first, then functions, then the rest."""
    return 0 if inspect.isclass(value) else 1 if inspect.isroutine(value) else 2


def _description(name: str) -> list[str]:
    """The directive that shows one name."""
    place, own = name.rsplit(".", 1)
    value = getattr(import_module(place), own)
    home = getattr(value, "__module__", "")
    if place.count(".") == 1 and home.startswith("oneofmany.") and not f"{home}.".startswith(f"{place}."):
        first = ".".join(home.split(".")[:2])
        kind = "class" if inspect.isclass(value) else "function"
        return [f".. py:{kind}:: {name}", "", f"   The same as :py:obj:`{first}.{own}`."]
    if inspect.isclass(value):
        return [f".. autoclass:: {name}", "   :members:", "   :member-order: bysource"]
    if inspect.isroutine(value) or hasattr(value, "cache_info"):
        return [f".. autofunction:: {name}"]
    return [f".. py:data:: {name}", "", *(f"   {line}" for line in _text_below(place, own))]


def _text_below(place: str, name: str) -> list[str]:
    """The docstring under a constant or a type, wherever in its room it is defined."""
    room = import_module(place)
    places = [place]
    if hasattr(room, "__path__"):
        places += [module.name for module in pkgutil.walk_packages(room.__path__, f"{place}.")]
    for module in places:
        if text := ModuleAnalyzer.for_module(module).find_attr_docs().get(("", name)):
            return text
    return []


def _read_google_style(app, what: str, name: str, value: object, options, lines: list[str]) -> None:
    """Turn ``Args:`` into fields. Not in the text below a field, where napoleon takes a colon for a type."""
    if what not in ("attribute", "data", "property"):
        lines[:] = GoogleDocstring(lines, Config(), app, what, name, value, options).lines()


def _shorten_signature(app, what: str, name: str, value: object, options, signature, returned):
    """Leave out a dataclass's signature where each of its fields is described below, and defaults that are made."""
    if not (what == "class" and isinstance(value, type) and is_dataclass(value)):
        return None
    described = ModuleAnalyzer.for_module(value.__module__).find_attr_docs()
    every = all((value.__qualname__, field.name) in described for field in fields(value))
    return ("" if every else signature.replace("<factory>", "..."), returned)


def setup(app) -> None:
    """Tell Sphinx about the above."""
    app.add_directive("room", Room)
    app.connect("autodoc-process-docstring", _read_google_style)
    app.connect("autodoc-process-signature", _shorten_signature)
