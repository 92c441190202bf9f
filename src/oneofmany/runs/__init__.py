"""Runs on disk: the run folder and the record that a report reads."""

from oneofmany.runs.folder import RunFolder

__all__ = ["RunFolder"]
