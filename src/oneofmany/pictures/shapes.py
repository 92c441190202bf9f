"""Shapes in the colours of a theme, written as SVG for light and dark mode or painted as PNG in one of them."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import TypeAlias

from oneofmany.extras import require
from oneofmany.pictures.themes import DARK, LIGHT, Theme, css

FONT = "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif"
BASELINE = 0.36
"""The middle of a digit is this many font sizes above its baseline."""
MARGIN = 14


@dataclass(frozen=True)
class Outline:
    """A polygon, or a line through its points.

    Args:
        points: (x, y) of each, y downwards.
        fill: name of a colour of the theme; empty for none.
        stroke: the same for the line around it.
        width: of that line.
        opacity: 0 to 1.
        closed: whether the last point is joined to the first.
    """

    points: tuple[tuple[float, float], ...]
    fill: str = ""
    stroke: str = ""
    width: float = 1.0
    opacity: float = 1.0
    closed: bool = True

    def moved(self, x: float, y: float) -> Outline:
        """The same shape elsewhere."""
        return replace(self, points=tuple((a + x, b + y) for a, b in self.points))

    def svg(self, name: str = "") -> str:
        """As an element, with a further class."""
        path = "M" + "L".join(f"{x:.4g} {y:.4g}" for x, y in self.points) + ("Z" if self.closed else "")
        look = _classes(self.fill, name) + ("" if self.fill else ' fill="none"')
        if self.stroke:
            look = f'{look} stroke="var(--{self.stroke})" stroke-width="{self.width:g}"'
        return f'<path d="{path}"{look}{_opacity(self.opacity)}/>'


@dataclass(frozen=True)
class Words:
    """A text around its middle; ``left`` begins it there instead."""

    x: float
    y: float
    size: float
    text: str
    fill: str = "ink"
    bold: bool = False
    opacity: float = 1.0
    left: bool = False

    def moved(self, x: float, y: float) -> Words:
        """The same text elsewhere."""
        return replace(self, x=self.x + x, y=self.y + y)

    def svg(self, name: str = "") -> str:
        """As an element, with a further class."""
        look = _classes(self.fill, name) + (' font-weight="700"' if self.bold else "") + _opacity(self.opacity)
        look += ' text-anchor="start"' if self.left else ""
        place = f'x="{self.x:.4g}" y="{self.y + BASELINE * self.size:.4g}" font-size="{self.size:g}"'
        return f"<text {place}{look}>{escape(self.text)}</text>"


Shape: TypeAlias = Outline | Words


def rectangle(x: float, y: float, wide: float, high: float) -> tuple[tuple[float, float], ...]:
    """The corners of a rectangle."""
    return (x, y), (x + wide, y), (x + wide, y + high), (x, y + high)


def _classes(fill: str, name: str) -> str:
    classes = " ".join(filter(None, (f"f-{fill}" if fill else "", name)))
    return f' class="{classes}"' if classes else ""


def _opacity(opacity: float) -> str:
    return "" if opacity == 1 else f' opacity="{opacity:.3g}"'


def svg_of(
    shapes: Iterable[Shape | str], wide: float, high: float, label: str, colours: Sequence[str], style: str = ""
) -> str:
    """An SVG file with a margin that follows the reader's light or dark mode.

    Args:
        shapes: in the order in which they are painted; a text is an element of its own.
        wide: width without the margin.
        high: height without the margin.
        label: the picture in words, for those who do not see it.
        colours: names of the theme's colours that are used.
        style: further CSS.
    """
    light, dark = ({name: theme[name] for name in ("paper", *colours)} for theme in (LIGHT, DARK))
    fills = "".join(f".f-{name}{{fill:var(--{name})}}" for name in colours)
    own = (
        f"svg{{{css(light)}background:var(--paper)}}@media(prefers-color-scheme:dark){{svg{{{css(dark)}}}}}{fills}"
        f"text{{font-family:{FONT}}}{style}"
    )
    wide, high = wide + 2 * MARGIN, high + 2 * MARGIN
    size = f'viewBox="{-MARGIN} {-MARGIN} {wide:g} {high:g}" width="{wide:g}" height="{high:g}"'
    about = f'text-anchor="middle" role="img" aria-label="{escape(label)}"'
    parts = [shape if isinstance(shape, str) else shape.svg() for shape in shapes]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} {about}>',
            f"<style>{own}</style>",
            *parts,
            "</svg>\n",
        ]
    )


def png_of(shapes: Iterable[Shape], wide: float, high: float, theme: Theme, scale: float = 2.0) -> bytes:
    """A PNG with a margin, in the colours of one theme; ``scale`` pixels for a unit."""
    require("matplotlib")
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.patches import Polygon

    wide, high = wide + 2 * MARGIN, high + 2 * MARGIN
    with rc_context({"text.parse_math": False}):
        figure = Figure(figsize=(wide / 72, high / 72), dpi=72 * scale, facecolor=theme["paper"])
        axes = figure.add_axes((0, 0, 1, 1), xlim=(-MARGIN, wide - MARGIN), ylim=(high - MARGIN, -MARGIN))
        axes.axis("off")
        for order, shape in enumerate(shapes):
            if isinstance(shape, Words):
                axes.text(
                    shape.x,
                    shape.y + BASELINE * shape.size,
                    shape.text,
                    fontsize=shape.size,
                    color=theme[shape.fill],
                    fontweight="bold" if shape.bold else "normal",
                    ha="left" if shape.left else "center",
                    va="baseline",
                    alpha=shape.opacity,
                    zorder=order,
                )
                continue
            look = {"facecolor": theme[shape.fill] if shape.fill else "none", "linewidth": shape.width}
            look["edgecolor"] = theme[shape.stroke] if shape.stroke else "none"
            axes.add_patch(
                Polygon(shape.points, closed=shape.closed, alpha=shape.opacity, zorder=order, joinstyle="round", **look)
            )
        file = io.BytesIO()
        figure.savefig(file, format="png", facecolor=theme["paper"], metadata={"Software": None})
    return file.getvalue()
