"""The equivariant network over choices and rules, for all tasks and sizes, and its selector."""

from oneofmany.networks.equivariant.network import EquivariantNetwork
from oneofmany.networks.equivariant.selector import EquivariantSelector

__all__ = ["EquivariantNetwork", "EquivariantSelector"]
