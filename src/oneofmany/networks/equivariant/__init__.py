"""Our equivariant network over choices and rules for every task and size, and its selector."""

from oneofmany.networks.equivariant.network import EquivariantNetwork
from oneofmany.networks.equivariant.selector import EquivariantSelector

__all__ = ["EquivariantNetwork", "EquivariantSelector"]
