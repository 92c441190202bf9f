"""Exact enumeration and counting of solutions, random and local searches, ratings of Sudokus, and symmetry classes."""

from oneofmany.exact.each import solve_each
from oneofmany.exact.enumerator import LIMIT, Solutions, count, solve
from oneofmany.exact.rating import Ratings, rate
from oneofmany.exact.sampling import Samples, sample
from oneofmany.exact.tabu import colour

__all__ = ["LIMIT", "Ratings", "Samples", "Solutions", "colour", "count", "rate", "sample", "solve", "solve_each"]
