"""How the site is built: ``sphinx-build -W -b html docs docs/_build``; ``-D report_pictures=0`` draws no figures."""

import io
import json
import os
import shlex
import sys
from contextlib import redirect_stdout
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from myst_parser.parsers.sphinx_ import MystParser

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

import notebook

import oneofmany
from oneofmany.cli import run
from reproduction.publish import read_grid, write_page

project = "oneofmany"
author = "The oneofmany authors"
version = release = oneofmany.__version__
extensions = ["myst_parser"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "oneofmany"
html_show_copyright = False


class CommandHelp(Directive):
    """``{command-help} data nqueens``: what ``oneofmany data nqueens --help`` prints, always that of the code."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """The text as a literal block."""
        text = help_of(shlex.split(self.arguments[0]))
        return [nodes.literal_block(text, text, language="text")]


def help_of(command: list[str]) -> str:
    """The help of a command, in plain text of 100 columns."""
    os.environ |= {"COLUMNS": "100", "NO_COLOR": "1"}
    printed = io.StringIO()
    with redirect_stdout(printed):
        try:
            code = run([*command, "--help"])
        except SystemExit as stopped:
            code = stopped.code
    if code:
        raise ValueError(f"oneofmany {' '.join(command)} has no help")
    return printed.getvalue().rstrip()


class NotebookParser(MystParser):
    """Reads a notebook as the Markdown of its cells and outputs."""

    supported = ("notebook",)

    def parse(self, inputstring: str, document: nodes.document) -> None:
        """Parse the notebook in ``inputstring``."""
        super().parse(notebook.markdown(json.loads(inputstring)), document)


def write_report(app, error: Exception | None) -> None:
    """Put the report of the published records beside the pages, which link to it."""
    if error is None and app.builder.format == "html":
        write_page(read_grid(), Path(app.outdir) / "report.html", pictures=app.config.report_pictures)


def setup(app) -> None:
    """Tell Sphinx about the above."""
    app.add_config_value("report_pictures", True, "html", bool)
    app.connect("build-finished", write_report)
    app.add_directive("command-help", CommandHelp)
    app.add_source_suffix(".ipynb", "notebook")
    app.add_source_parser(NotebookParser)
