"""The report: the paper's tables, claims and figures from records of runs, and one HTML file that shows them."""

from oneofmany.report.reading import find_runs, read_records
from oneofmany.report.records import Grid
from oneofmany.report.viewer import trace
from oneofmany.report.writing import write_report

__all__ = ["Grid", "find_runs", "read_records", "trace", "write_report"]
