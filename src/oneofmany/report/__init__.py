"""The report: tables, figures and boards of runs, and one HTML file that shows them."""

from oneofmany.report.grid import Grid
from oneofmany.report.page import Section, write_report
from oneofmany.report.reading import find_runs, read_records
from oneofmany.report.table import Table
from oneofmany.report.themes import Chart
from oneofmany.report.viewer import trace, trace_runs

__all__ = ["Chart", "Grid", "Section", "Table", "find_runs", "read_records", "trace", "trace_runs", "write_report"]
