"""The report: tables, figures and boards of runs, and one HTML file that shows them."""

from oneofmany.pictures.themes import Chart
from oneofmany.report.answer import Answer, answer_of
from oneofmany.report.grid import Grid
from oneofmany.report.page import Section, write_report
from oneofmany.report.plots import plot
from oneofmany.report.reading import find_runs, read_records
from oneofmany.report.table import Table
from oneofmany.report.viewer import trace, trace_runs

__all__ = [
    "Answer",
    "Chart",
    "Grid",
    "Section",
    "Table",
    "answer_of",
    "find_runs",
    "plot",
    "read_records",
    "trace",
    "trace_runs",
    "write_report",
]
