"""The colours of the report in light and dark mode, and charts: one SVG for both modes, one PNG for each."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

from oneofmany.files import check_writable, write_whole

LIGHT = {
    "paper": "#ffffff",
    "ink": "#1c2128",
    "muted": "#5d6673",
    "line": "#d5dae1",
    "band": "#dcefe8",
    "naive": "#6b7281",
    "random": "#8c564b",
    "unique": "#d55e00",
    "ccloss": "#bf3a8f",
    "minloss": "#0072b2",
    "iexplr": "#a88b00",
    "selectr": "#6a3fd0",
    "right": "#00865e",
    "wrong": "#c81e3a",
}
DARK = {
    "paper": "#14181f",
    "ink": "#e6e9ee",
    "muted": "#9ba5b4",
    "line": "#333b47",
    "band": "#1d3a33",
    "naive": "#a3acbb",
    "random": "#c99a8d",
    "unique": "#ff934a",
    "ccloss": "#f08bc8",
    "minloss": "#5ab2ee",
    "iexplr": "#e3c846",
    "selectr": "#b79cff",
    "right": "#3bd4a5",
    "wrong": "#ff6b81",
}
"""Meaning -> colour. A colour has one meaning in tables, figures and boards: an objective, right, or wrong; everything
else is ink or muted. The colours of LIGHT are distinct, so that a drawing in LIGHT can be recoloured."""

Theme = dict[str, str]

_STYLE: dict[Any, Any] = {
    "font.size": 10.5,
    "axes.titlesize": 11,
    "axes.labelsize": 10.5,
    "legend.fontsize": 10,
    "xtick.labelsize": 10,
    "ytick.labelsize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.linewidth": 0.8,
    "lines.linewidth": 1.8,
    "legend.frameon": False,
    "svg.fonttype": "none",
}


def css(theme: Theme) -> str:
    """The theme as CSS variables."""
    return "".join(f"--{name}:{colour};" for name, colour in theme.items())


def check_picture(path: str | Path, force: bool = False) -> None:
    """Raise ValueError or FileError if a picture cannot be written there."""
    if Path(path).suffix.lower() not in (".svg", ".png"):
        raise ValueError(f"{path}: expected a file name that ends in .svg or .png")
    check_writable(path, force)


def save_picture(path: str | Path, svg: Callable[[], str], png: Callable[[], bytes], force: bool = False) -> None:
    """Write the picture whose format the name of the file asks for."""
    check_picture(path, force)
    data = svg().encode() if Path(path).suffix.lower() == ".svg" else png()
    write_whole(path, lambda beside: beside.write_bytes(data), force)


@dataclass(frozen=True)
class Chart:
    """A figure that can be drawn in any theme.

    Args:
        name: of its exported files.
        title: for readers.
        caption: in sentences.
        draw: fills a new matplotlib figure in a theme.
        commands: those that made the numbers.
        size: width and height in inches.
    """

    name: str
    title: str
    caption: str
    draw: Callable[[Any, Theme], None]
    commands: tuple[str, ...] = ()
    size: tuple[float, float] = (4.8, 3.2)

    @cached_property
    def svg(self) -> str:
        """An SVG element that uses the page's CSS variables for its colours; its ids are unique in the page."""
        file = io.StringIO()
        self._save(file, LIGHT, format="svg", metadata={"Date": None, "Creator": None})
        text = file.getvalue()
        text = text[text.index("<svg") :]
        text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
        for name, colour in LIGHT.items():
            text = text.replace(colour, f"var(--{name})")
        text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{self.name}-", text)
        box = re.search(r'viewBox="([^"]*)"', text)
        names = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
        about = f'role="img" aria-label="{escape(self.title)}"'
        return f'<svg viewBox="{box[1] if box else ""}" {about} {names}>{text[text.index(">") + 1 :].strip()}'

    def standalone_svg(self) -> str:
        """An SVG file of the figure's size that follows the reader's light or dark mode."""
        width, height = (round(96 * inches) for inches in self.size)
        style = f"svg{{{css(LIGHT)}background:var(--paper)}}@media(prefers-color-scheme:dark){{svg{{{css(DARK)}}}}}"
        head, rest = self.svg.split(">", 1)
        return f'{head} width="{width}" height="{height}"><style>' + f"{style}</style>{rest}\n"

    def save(self, path: str | Path, *, dark: bool = False, force: bool = False) -> None:
        """Write the figure to a file: ``.svg`` for light and dark mode, or ``.png`` for one of them."""
        save_picture(path, self.standalone_svg, lambda: self.png(DARK if dark else LIGHT), force)

    def png(self, theme: Theme) -> bytes:
        """A PNG in one theme."""
        file = io.BytesIO()
        self._save(file, theme, format="png", dpi=170, metadata={"Software": None})
        return file.getvalue()

    def _save(self, file: Any, theme: Theme, **how: Any) -> None:
        from matplotlib import rc_context
        from matplotlib.figure import Figure

        colours: dict[Any, Any] = dict.fromkeys(("text.color", "axes.labelcolor", "axes.titlecolor"), theme["ink"])
        colours |= dict.fromkeys(("xtick.color", "ytick.color"), theme["muted"])
        colours |= {"axes.edgecolor": theme["line"], "grid.color": theme["line"]}
        # Without a fixed salt the clip paths would get new names at every call.
        colours["svg.hashsalt"] = self.name
        with rc_context(_STYLE | colours):
            figure = Figure(figsize=self.size, layout="constrained", facecolor="none")
            self.draw(figure, theme)
            if how["format"] == "png":
                figure.set_facecolor(theme["paper"])
            for axes in figure.axes:
                axes.set_facecolor("none")
            figure.savefig(file, **how)
