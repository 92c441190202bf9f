"""Pictures: the colours of themes, charts, boards as SVG and PNG, and a board settling as an animated SVG."""

from typing import TYPE_CHECKING, Any

from oneofmany.pictures.boards import Board, boards_png, boards_svg, save_boards
from oneofmany.pictures.themes import DARK, LIGHT, Chart

if TYPE_CHECKING:
    from oneofmany.pictures.settling import beliefs, save_settling, settling_svg

__all__ = [
    "DARK",
    "LIGHT",
    "Board",
    "Chart",
    "beliefs",
    "boards_png",
    "boards_svg",
    "save_boards",
    "save_settling",
    "settling_svg",
]


def __getattr__(name: str) -> Any:
    # Only an animation needs a network.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from oneofmany.pictures import settling

    return getattr(settling, name)
