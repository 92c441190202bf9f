"""The paper's RRN for Sudoku, and its selectors."""

from oneofmany.networks.rrn.network import RRN
from oneofmany.networks.rrn.selector import CNNSelector, MLPSelector

__all__ = ["RRN", "CNNSelector", "MLPSelector"]
