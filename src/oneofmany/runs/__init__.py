"""Runs on disk: the run folder, devices and the software environment of a run."""

from oneofmany.runs.folder import RunFolder

__all__ = ["RunFolder"]
