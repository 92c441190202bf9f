"""Runs on disk: the run folder, devices, and the environment that a run was made in."""

from oneofmany.runs.folder import RunFolder

__all__ = ["RunFolder"]
