"""The notebook runs, and keeps the outputs of a run."""

import runpy
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
NOTEBOOK = runpy.run_path(str(DOCS / "notebook.py"))


def kinds(notebook):
    """The kinds of output of the code cells: text, pictures or none."""
    return [[output["output_type"] for output in cell.get("outputs", ())] for cell in notebook["cells"]]


def test_the_story_runs_and_its_outputs_are_kept():
    story = NOTEBOOK["read"](DOCS / "story.ipynb")
    again = NOTEBOOK["run"](story)  # a cell asserts that MinLoss is far better
    assert kinds(again) == kinds(story)
    assert {"stream", "display_data"} <= {kind for cell in kinds(story) for kind in cell}


def test_a_notebook_as_a_page():
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "text"]},
        {"cell_type": "code", "source": ["print(6 * 7)"], "outputs": []},
        {"cell_type": "code", "source": ["x = 1"], "outputs": []},
    ]
    page = NOTEBOOK["markdown"](NOTEBOOK["run"]({"cells": cells}))
    assert page == "# Title\ntext\n\n```python\nprint(6 * 7)\n```\n\n```text\n42\n```\n\n```python\nx = 1\n```\n"
