"""Join the sources of the page, the networks and the kernel into one HTML file."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any

import oneofmany
from oneofmany.files import check_writable, write_whole

HERE = Path(__file__).parent
SOURCES = HERE / "page"
NETWORKS = HERE / "networks"
"""Small networks for the comparison: TASK-OBJECTIVE.safetensors."""
ACCURACY = HERE / "accuracy.json"
"""How often the networks are right: measured, with the command that did it."""

SHARED = ("problem", "random")
WORKER = (*SHARED, "engine", "weights", "enumerator", "generator", "worker")
PAGE = (*SHARED, "text", "painter", "editor", "player", "story", "compare", "answers", "client", "app")
"""The modules of the worker and of the page, each after those that it imports."""

Json = dict[str, Any]


def write_playground(out: str | Path, *, force: bool = False) -> None:
    """Write the playground to an HTML file; an existing file is replaced only with ``force``."""
    text = playground_html()
    write_whole(out, lambda beside: beside.write_text(text, encoding="utf-8"), force)


def cached_playground() -> Path:
    """Write the playground to the cache folder of this user, or to the temporary files, and return its path."""
    # The name holds the content, so that a page that is open in a browser stays what it is.
    text = playground_html()
    name = f"playground-{hashlib.sha256(text.encode()).hexdigest()[:8]}.html"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "oneofmany"
    try:
        cache.mkdir(parents=True, exist_ok=True)
        path = check_writable(cache / name, force=True)
    except (OSError, ValueError):
        path = Path(tempfile.mkdtemp(prefix="oneofmany-")) / name
    write_whole(path, lambda beside: beside.write_text(text, encoding="utf-8"), force=True)
    return path


def playground_html() -> str:
    """The page: its scripts, styles, networks and kernel are inside, and it requests nothing."""
    parts = {
        "style": _source("style.css").strip(),
        "data": _embedded(page_data()),
        "worker": joined(WORKER),
        "script": joined(PAGE),
        "version": oneofmany.__version__,
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], _source("template.html"))


def joined(names: tuple[str, ...]) -> str:
    """JavaScript modules as one script: without their imports and exports."""
    return "\n".join(
        re.sub(r"^(?:import .*;\n|export )", "", _source(f"{name}.mjs"), flags=re.MULTILINE).strip() for name in names
    )


def page_data() -> Json:
    """The data of the page: ``files`` (the kernel and the networks, as base64) and ``accuracy``."""
    accuracy = json.loads(ACCURACY.read_text(encoding="utf-8"))
    # The page has one network per task.
    bundled = [path for path in oneofmany.bundled_networks() if path.stem in accuracy["bundled"]]
    networks = {path.stem: _base64(path) for path in [*bundled, *sorted(NETWORKS.glob("*.safetensors"))]}
    files = {"kernel": _base64(SOURCES / "kernel.wasm"), "networks": networks}
    return {"files": files, "accuracy": accuracy}


def _source(name: str) -> str:
    return (SOURCES / name).read_text(encoding="utf-8")


def _base64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def _embedded(value: Json) -> str:
    """JSON for a script element: nothing in it can end the element."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True).replace("<", "\\u003c")
