"""Exact enumeration and counting of solutions, and symmetry classes."""

from oneofmany.exact.enumerator import LIMIT, Solutions, count, solve

__all__ = ["LIMIT", "Solutions", "count", "solve"]
