"""Exact enumeration and counting of solutions, ratings of Sudokus, and symmetry classes."""

from oneofmany.exact.each import solve_each
from oneofmany.exact.enumerator import LIMIT, Solutions, count, solve
from oneofmany.exact.rating import Ratings, rate

__all__ = ["LIMIT", "Ratings", "Solutions", "count", "rate", "solve", "solve_each"]
