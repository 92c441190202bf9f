"""Optional packages: the use of each, the extra that installs it, and the error if it is missing."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec


@dataclass(frozen=True)
class OptionalPackage:
    """An optional package: the extra of ``oneofmany`` that installs it, and what it is for."""

    extra: str
    use: str

    @property
    def install(self) -> str:
        """The command that installs it."""
        return f"pip install 'oneofmany[{self.extra}]'"


OPTIONAL = {
    "jinja2": OptionalPackage("report", "the HTML report"),
    "matplotlib": OptionalPackage("report", "figures and PNG files"),
    "pyarrow": OptionalPackage("parquet", "Parquet files"),
    "ray": OptionalPackage("ray", "--launcher ray"),
    "submitit": OptionalPackage("slurm", "--launcher slurm"),
    "optuna": OptionalPackage("tune", "oneofmany tune"),
    "tensorboard": OptionalPackage("tensorboard", "train --tensorboard"),
}
"""Optional packages by the name under which they are imported."""


def missing(package: str) -> str | None:
    """Return a sentence that explains how to install an optional package, or None if it is installed."""
    if find_spec(package) is not None:
        return None
    about = OPTIONAL[package]
    return f"{package} is needed for {about.use} and is not installed: {about.install}"


def require(package: str) -> None:
    """Raise a ``ValueError`` of one sentence if an optional package is not installed."""
    if sentence := missing(package):
        raise ValueError(sentence)
