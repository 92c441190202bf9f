"""The equivariant network over choices and rules, for all tasks and sizes, and its selector.

The names are loaded when they are first used: ``cpu``, which answers without PyTorch, is in this package too.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oneofmany.networks.equivariant.network import EquivariantNetwork
    from oneofmany.networks.equivariant.selector import EquivariantSelector

__all__ = ["EquivariantNetwork", "EquivariantSelector"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from oneofmany.networks.equivariant import network, selector

        return getattr(network if hasattr(network, name) else selector, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
