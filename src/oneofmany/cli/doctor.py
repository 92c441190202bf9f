"""``oneofmany doctor``: check the installation, the devices and their speed."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

from oneofmany.cli.options import Json
from oneofmany.doctor import Facts, examine, works
from oneofmany.extras import OPTIONAL


def doctor(as_json: Json = False) -> int:
    """Check the installation: versions, devices, speeds, missing packages and the bundled weights.

    Example: oneofmany doctor

    The exit code is 1 if something required does not work. A missing optional package is not a failure; its line says
    what it is for and how to install it.

    Args:
        as_json: print JSON.
    """
    from oneofmany.cli.terminal import compiling, say

    say("measuring")
    with compiling():
        facts = examine()
    if as_json:
        print(json.dumps(facts, indent=2))
    else:
        _print(facts)
    return 0 if works(facts) else 1


def _print(facts: Facts) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))

    def row(what: str, found: Facts, text: Callable[[Facts], str]) -> None:
        broken = found.get("error")
        table.add_row(what, f"[red]does not work[/]: {escape(broken)}" if broken else text(found))

    for name, version in facts["versions"].items():
        table.add_row(name, _version_text(name, version))
    row("CPU", facts["devices"], lambda d: "{machine}, {cores} cores, {threads} threads".format(**d["cpu"]))
    row("CUDA", facts["devices"], _cuda_text)
    row("numba's cache", facts["numba_cache"], lambda cache: escape(_cache_text(cache)))
    row("enumerator", facts["enumerator"], lambda e: f"{e['microseconds_per_sudoku']} µs a hard Sudoku on one core")
    for place, found in facts["training_step"].items():
        row(f"training step, {place}", found, lambda f: f"{f['milliseconds']} ms (8-queens, batch 32, 16 steps)")
    if "error" in facts["weights"]:
        row("weights", facts["weights"], str)
    else:
        for name, found in facts["weights"].items():
            row(f"weights of {name}", found, _weights_text)
    Console(highlight=False, width=None if sys.stdout.isatty() else 120).print(table)


def _version_text(package: str, version: str | None) -> str:
    from rich.markup import escape

    if package in OPTIONAL:
        about = OPTIONAL[package]
        return escape(
            f"{version or 'not installed'}; optional, for {about.use}" + ("" if version else f": {about.install}")
        )
    if package == "triton" and version is None:
        return "not installed; optional, for kernels on CUDA: comes with torch for CUDA on Linux"
    return version or "[red]not installed, but needed[/]"


def _cache_text(cache: Facts) -> str:
    return "; ".join(part for part in (cache["folder"] or "none", cache["note"]) if part)


def _cuda_text(devices: Facts) -> str:
    return ", ".join(f"{one['name']} with {one['memory_gib']} GiB" for one in devices["cuda"]) or "none"


def _weights_text(found: Facts) -> str:
    if not found["bundled"]:
        return "not bundled"
    text = f"load: {found['recipe'] or found['network']}, size {found['size']}, {found['parameters']:,} parameters"
    on_test = found["test"]
    return text + (f", {on_test['correct']:,} of {on_test['total']:,} test queries" if on_test else "")
