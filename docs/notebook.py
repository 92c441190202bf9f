"""Notebooks without Jupyter: run the cells of a notebook and keep what they show, and read one as Markdown.

    python docs/notebook.py docs/story.ipynb      # runs it and writes the outputs into the file

A cell shows what it prints and the figures that it leaves open, as it does in Jupyter.
"""

import base64
import io
import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

Notebook = dict[str, Any]


def read(path: str | Path) -> Notebook:
    """The notebook in a file."""
    return json.loads(Path(path).read_text(encoding="utf-8"))


def write(path: str | Path, notebook: Notebook) -> None:
    """Write a notebook as Jupyter does."""
    Path(path).write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def run(notebook: Notebook) -> Notebook:
    """The notebook with the outputs of a new run of all its cells, in one namespace and in order."""
    import matplotlib

    matplotlib.use("Agg")
    namespace: dict[str, Any] = {"__name__": "__main__"}
    cells, count = [], 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            count += 1
            cell = cell | {"execution_count": count, "outputs": _outputs("".join(cell["source"]), count, namespace)}
        cells.append(cell)
    return notebook | {"cells": cells}


def markdown(notebook: Notebook) -> str:
    """The notebook as a page of Markdown: text, code and outputs one after another."""
    parts: list[str] = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            if output["output_type"] == "stream":
                parts.append(f"```text\n{''.join(output['text']).rstrip()}\n```")
            else:
                parts.append(f'<img alt="figure" src="data:image/png;base64,{output["data"]["image/png"].strip()}">')
    return "\n\n".join(parts) + "\n"


def _outputs(source: str, number: int, namespace: dict[str, Any]) -> list[dict[str, Any]]:
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(source, f"cell {number}", "exec"), namespace)
    outputs: list[dict[str, Any]] = []
    if text := printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)})
    for picture in _open_figures():
        data = {"image/png": base64.b64encode(picture).decode("ascii")}
        outputs.append({"data": data, "metadata": {}, "output_type": "display_data"})
    return outputs


def _open_figures() -> list[bytes]:
    """The open figures as PNG; they are closed."""
    import matplotlib.pyplot as plt

    pictures = []
    for number in plt.get_fignums():
        file = io.BytesIO()
        plt.figure(number).savefig(file, format="png", dpi=100, metadata={"Software": None})
        plt.close(number)
        pictures.append(file.getvalue())
    return pictures


if __name__ == "__main__":
    for name in sys.argv[1:]:
        write(name, run(read(name)))
