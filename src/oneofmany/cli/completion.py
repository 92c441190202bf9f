"""``oneofmany completion``: completion of the whole program for a shell."""

from __future__ import annotations

import dataclasses
import inspect
import re
import shlex
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import tyro

Shell = Literal["bash", "zsh", "fish"]
Values = tuple[str, ...] | None
"""The values of an option: known ones, or files and other text (empty), or none at all (None)."""


@dataclass(frozen=True)
class Completion:
    """What may follow a command.

    Args:
        about: the first sentence of its help.
        words: its subcommands, or other words that it takes; files may follow, unless these are subcommands.
        options: option -> its values.
    """

    about: str
    words: tuple[str, ...] = ()
    options: Mapping[str, Values] = field(default_factory=dict)


def completion(shell: Annotated[Shell, tyro.conf.Positional, tyro.conf.arg(metavar="bash|zsh|fish")]) -> None:
    """Print a script that completes commands, options, recipes and files in a shell.

    Example: oneofmany completion bash > ~/.local/share/bash-completion/completions/oneofmany

    Example: oneofmany completion zsh > ~/.oneofmany.zsh, and in ~/.zshrc, after compinit: source ~/.oneofmany.zsh

    Example: oneofmany completion fish > ~/.config/fish/completions/oneofmany.fish

    The script holds all words, so completion is fast. Print it again after an upgrade.

    Args:
        shell: the shell.
    """
    print(SCRIPTS[shell](commands()), end="")


def commands() -> dict[str, Completion]:
    """What may follow every command; the empty name is the program itself."""
    from oneofmany.cli import COMMANDS, load
    from oneofmany.problems import TASKS
    from oneofmany.recipes import recipes

    found = {"": Completion("", tuple(COMMANDS), {"--help": None, "--version": None})}
    own: dict[str, tuple[str, ...]] = dict.fromkeys(("count", "show", "solve", "data build"), tuple(TASKS))
    own |= {"rate": ("sudoku",), "tune": _typed(recipes())}
    for name, place in COMMANDS.items():
        if isinstance(place, str):
            found[name] = _described(name, load(place), own.get(name, ()))
        else:
            found[name] = Completion(f"Build, import, export and describe data: {', '.join(place)}.", tuple(place))
            for sub, one in place.items():
                full = f"{name} {sub}"
                found[full] = _described(full, load(one), own.get(full, ()))
    return found


def _described(name: str, function: Callable[..., Any], words: tuple[str, ...]) -> Completion:
    about = (function.__doc__ or "").strip().split("\n")[0]
    if name in ("train", "sweep"):
        return Completion(about, *_with_recipes(name))
    options: dict[str, Values] = {"--help": None}
    hints = get_type_hints(function, include_extras=True)
    for parameter in inspect.signature(function).parameters:
        kind, *extra = get_args(hints[parameter]) if get_origin(hints[parameter]) is Annotated else (hints[parameter],)
        if tyro.conf.Positional in extra:
            words = words or _choices(kind)
            continue
        if dataclasses.is_dataclass(kind):  # its fields are options
            fields = get_type_hints(kind)
            options |= {f"--{field.name}": _choices(fields[field.name]) for field in dataclasses.fields(kind)}
            continue
        named = next((one.name for one in extra if getattr(one, "name", None)), parameter)
        options[f"--{named.replace('_', '-')}"] = None if kind is bool else _choices(kind)
    return Completion(about, words, options)


def _choices(kind: Any) -> tuple[str, ...]:
    """The words that a type allows; empty if it allows others too."""
    if get_origin(kind) is Literal:
        return tuple(map(str, get_args(kind)))
    if get_origin(kind) in (Union, types.UnionType):
        inner = [one for one in get_args(kind) if one is not types.NoneType]
        return _choices(inner[0]) if len(inner) == 1 else ()
    return ("True", "False") if kind is bool else ()


def _with_recipes(name: str) -> tuple[tuple[str, ...], dict[str, Values]]:
    """The recipes and the options of train or sweep: those of its usage, and the fields of a recipe."""
    from oneofmany.cli import sweep, train
    from oneofmany.recipes import recipes
    from oneofmany.training.ranges import fields_of
    from oneofmany.training.settings import Settings

    usage = {"train": train.USAGE, "sweep": sweep.USAGE}[name]
    own = re.findall(r"^  (--[a-z-]+)( [A-Z])?", usage, re.MULTILINE)
    options: dict[str, Values] = {"--help": None}
    options.update({option: () if value else None for option, value in own})
    names = _typed(recipes())
    if name == "train":
        options["--recipes"] = tuple(dict.fromkeys(part for one in names for part in one.split("/")))
    example = Settings(**vars(next(iter(recipes().values()))))
    for path, _, hint in fields_of(example):
        if (name, path) != ("sweep", "seed"):  # it has --seeds
            options.setdefault(f"--{path.replace('_', '-')}", _choices(hint))
    return names, options


def _typed(names: Iterable[str]) -> tuple[str, ...]:
    """The recipes to complete: shells split words at =, which only the names of tuning recipes have."""
    return tuple(name for name in names if "=" not in name)


def _bash(found: Mapping[str, Completion]) -> str:
    subcommands = [name.split()[0] for name in found if " " in name]
    return BASH.format(
        groups="|".join(dict.fromkeys(subcommands)),
        values="\n".join(_bash_values(found)),
        words="\n".join(
            f"        {_quoted(name)}) words={_quoted(' '.join(one.words))} options={_quoted(' '.join(one.options))} ;;"
            for name, one in found.items()
        ),
        no_files="|".join(_quoted(name) for name in ("", *dict.fromkeys(subcommands), "completion")),
    )


def _bash_values(found: Mapping[str, Completion]) -> Iterator[str]:
    for name, one in found.items():
        for option, values in one.options.items():
            if values is not None:
                yield f"        {_quoted(f'{name} {option}')}) words={_quoted(' '.join(values))} options= value=1 ;;"


def _zsh(found: Mapping[str, Completion]) -> str:
    return "autoload -U +X bashcompinit && bashcompinit\n" + _bash(found)


def _fish(found: Mapping[str, Completion]) -> str:
    lines = [FISH]
    for name, one in found.items():
        exactly = not name or any(other.startswith(f"{name} ") for other in found)
        at = f"complete -c oneofmany -n {_quoted(f'__oneofmany_at {int(exactly)} {name}'.strip())}"
        for word in one.words if exactly else ():
            about = found[f"{name} {word}".strip()].about
            lines.append(f"{at} -f -a {word} -d {_quoted(about)}")
        if one.words and not exactly:
            lines.append(f"{at} -a {_quoted(' '.join(one.words))}")
        for option, values in one.options.items():
            takes = "" if values is None else f" -x -a {_quoted(' '.join(values))}" if values else " -r"
            lines.append(f"{at} -l {option.removeprefix('--')}{takes}")
    return "\n".join(lines) + "\n"


_quoted = shlex.quote

BASH = """# Completion of oneofmany for bash; written by `oneofmany completion`.
_oneofmany() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}
    local command= words= options= value= IFS=$' \\t\\n'
    [ "$COMP_CWORD" -gt 1 ] && command=${{COMP_WORDS[1]}}
    case $command in
        {groups}) [ "$COMP_CWORD" -gt 2 ] && command="$command ${{COMP_WORDS[2]}}" ;;
    esac
    case $command in
{words}
    esac
    case "$command $previous" in
{values}
    esac
    case $current in
        -*) [ -z "$value" ] && words=$options ;;
    esac
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    case $command in
        {no_files}) return ;;
    esac
    case $current in
        -*) return ;;
    esac
    [ -n "$value" ] && [ -n "$words" ] && return
    IFS=$'\\n'
    COMPREPLY+=($(compgen -f -- "$current"))
    [ -z "$words" ] && type compopt > /dev/null 2>&1 && compopt -o filenames 2> /dev/null
    return 0
}}
complete -F _oneofmany oneofmany
"""
FISH = """# Completion of oneofmany for fish; written by `oneofmany completion`.
function __oneofmany_at -d 'The command line has these words; 1 first: and nothing else'
    set -l words (commandline -opc)
    set -e words[1]
    set -l exactly $argv[1]
    set -e argv[1]
    if test $exactly = 1
        test "$words" = "$argv"
    else
        test (count $words) -ge (count $argv); and test "$words[1..(count $argv)]" = "$argv"
    end
end
"""
SCRIPTS: dict[str, Callable[[Mapping[str, Completion]], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
