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
from docutils.utils.math.latex2mathml import tex2mathml
from myst_parser.parsers.sphinx_ import MystParser

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

import notebook
import reference

import oneofmany
from oneofmany.cli import run
from oneofmany.playground import write_playground
from reproduction.publish import read_grid, write_page

project = "oneofmany"
author = "The oneofmany authors"
version = release = oneofmany.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
myst_update_mathjax = False
default_role = "code"  # `[B,R,V]` in a docstring
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 90
toc_object_entries_show_parents = "hide"
copybutton_prompt_text = "$ "
html_math_renderer = "mathml"
html_theme = "furo"
html_title = "oneofmany"
html_show_copyright = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {"top_of_page_buttons": []}


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


def show_formula(translator, node: nodes.math | nodes.math_block) -> None:
    """Write a formula as MathML, which browsers draw themselves: no script, no request."""
    block = isinstance(node, nodes.math_block)
    formula = tex2mathml(node.astext(), as_block=block)
    translator.body.append(f'<div class="formula">{formula}</div>' if block else formula)
    raise nodes.SkipNode


def link_commands(app, page: str, source: list[str]) -> None:
    """Links to the file of commands, which work on GitHub, lead to the site's page of it."""
    source[0] = source[0].replace("](../reproduction/records/COMMANDS.md", "](commands.md")


def write_pages(app, error: Exception | None) -> None:
    """Put the report of the published records and the playground beside the pages, which link to them."""
    if error is None and app.builder.format == "html":
        write_playground(Path(app.outdir) / "play.html", force=True)
        write_page(read_grid(), Path(app.outdir) / "report.html", pictures=app.config.report_pictures)


def setup(app) -> None:
    """Tell Sphinx about the above."""
    app.add_html_math_renderer("mathml", (show_formula, None), (show_formula, None))
    reference.setup(app)
    app.add_config_value("report_pictures", True, "html", bool)
    app.connect("build-finished", write_pages)
    app.connect("source-read", link_commands)
    app.add_directive("command-help", CommandHelp)
    app.add_source_suffix(".ipynb", "notebook")
    app.add_source_parser(NotebookParser)
