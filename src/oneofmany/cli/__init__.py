"""The command line: one module per command, which reads arguments, calls the library and prints."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NoReturn

from oneofmany.cli.interrupting import SAID, STOPPED, interruptible
from oneofmany.cli.text import prepare_streams, sentence
from oneofmany.files import FULL_DISK

COMMANDS: dict[str, str | dict[str, str]] = {
    "data": {
        "nqueens": "oneofmany.cli.data:nqueens",
        "futoshiki": "oneofmany.cli.data:futoshiki",
        "sudoku": "oneofmany.cli.data:sudoku",
        "colouring": "oneofmany.cli.graph_data:colouring",
        "build": "oneofmany.cli.own_data:build",
        "benchmark": "oneofmany.cli.data:benchmark",
        "cmudict": "oneofmany.cli.data_files:cmudict",
        "import": "oneofmany.cli.data_files:import_pairs",
        "export": "oneofmany.cli.data_files:export",
        "show": "oneofmany.cli.data_files:show",
    },
    "new-task": "oneofmany.cli.new_task:new_task",
    "count": "oneofmany.cli.count:count",
    "rate": "oneofmany.cli.rate:rate",
    "train": "oneofmany.cli.train:train",
    "sweep": "oneofmany.cli.sweep:sweep",
    "tune": "oneofmany.cli.tune:tune",
    "evaluate": "oneofmany.cli.evaluate:evaluate",
    "search": "oneofmany.cli.search:search",
    "compare": "oneofmany.cli.compare:compare",
    "record": "oneofmany.cli.record:record",
    "show": "oneofmany.cli.show:show",
    "solve": "oneofmany.cli.solve:solve",
    "doctor": "oneofmany.cli.doctor:doctor",
    "report": "oneofmany.cli.report:report",
    "plot": "oneofmany.cli.plot:plot",
    "demo": "oneofmany.cli.demo:demo",
    "play": "oneofmany.cli.playground:play",
    "playground": "oneofmany.cli.playground:playground",
    "completion": "oneofmany.cli.completion:completion",
}
"""The function of every command; only the one that is called is imported."""
OWN_ARGUMENTS = ("train", "sweep")
"""Commands that read their arguments themselves, because their fields depend on the recipe."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command. Exits with 0, 1 (failed) or 2 (bad input, one sentence on stderr)."""
    try:
        with interruptible():
            prepare_streams()
            code = run(list(sys.argv[1:] if arguments is None else arguments))
    except KeyboardInterrupt:  # before the command
        code = _stopped()
    leave(code)


def leave(code: int) -> NoReturn:
    """End this process with an exit code."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1 or code == STOPPED:
        # Threads of Gloo outlive their process group and can abort a process of torchrun that exits the usual way.
        # After Ctrl-C, Python may end with the signal instead of the exit code.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run a command and return its exit code."""
    try:
        return _dispatch(arguments)
    except ValueError as error:
        return _fail(str(error), 2)
    except BrokenPipeError:  # nobody reads the output any more, for example in ``| head``
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return _stopped()
    except MemoryError:
        return _fail("not enough memory: use a smaller batch or less data", 1)
    except RuntimeError as error:
        if "to allocate" not in str(error):  # PyTorch's way to say so
            raise
        return _fail("not enough memory: use a smaller batch or less data", 1)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _fail(f"{where}{error.strerror or error}", 1 if error.errno in FULL_DISK else 2)


def _stopped() -> int:
    SAID.set()
    return _fail("stopped", STOPPED)


def _fail(why: str, code: int) -> int:
    print(f"oneofmany: {sentence(why)}", file=sys.stderr)
    return code


def _dispatch(arguments: list[str]) -> int:
    tree: dict[str, Any] = COMMANDS
    program = "oneofmany"
    while arguments and isinstance(tree.get(arguments[0]), dict):
        program, tree, arguments = f"{program} {arguments[0]}", tree[arguments[0]], arguments[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        _print_commands(program, tree)
        return 0 if arguments else 2
    name, *rest = arguments
    if name == "--version":
        import oneofmany

        print(oneofmany.__version__)
        return 0
    if name not in tree:
        from difflib import get_close_matches

        close = get_close_matches(name, tree, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"expected one of {', '.join(tree)}"
        return _fail(f"{program} has no command {name!r}: {hint}", 2)
    if name in OWN_ARGUMENTS:
        return load(tree[name])(rest)
    import tyro

    # A flag is --force, without its counterpart --no-force.
    config = (tyro.conf.FlagCreatePairsOff,)
    result = tyro.cli(load(tree[name]), prog=f"{program} {name}", args=rest, config=config)
    return result if isinstance(result, int) else 0


def load(place: str) -> Callable[..., Any]:
    """The function of a place in the table of commands."""
    module, function = place.split(":")
    return getattr(import_module(module), function)


def _print_commands(program: str, tree: dict[str, Any]) -> None:
    print(f"usage: {program} COMMAND ...\n\ncommands (COMMAND --help shows the options and an example):")
    for name, place in tree.items():
        if isinstance(place, dict):
            about = f"Build, import, export and describe data: {', '.join(place)}."
        else:
            about = (load(place).__doc__ or "").strip().split("\n")[0]
        print(f"  {name:<12} {about}")
