"""One-of-many learning: train a network to give any one of the many correct answers to an input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    import torch

    from oneofmany.networks.saved import SavedNetwork
    from oneofmany.solving import solve

__all__ = ["load", "solve"]

__version__ = "0.1.0"


def load(name: str | Path, *, device: torch.device | str = "cpu") -> SavedNetwork:
    """Load a trained network: a bundled one by its name, a weights file, or a run folder's best weights."""
    from oneofmany.networks.saved import load_network

    return load_network(weights_file(name), device=device)


def bundled_networks() -> list[Path]:
    """Return the weights files of all bundled networks, by name."""
    from pathlib import Path

    return sorted((Path(__file__).parent / "weights").glob("*.safetensors"))


def weights_file(name: str | Path) -> Path:
    """Return the weights file of that name: a bundled network's, the file itself, or a run folder's best weights."""
    from pathlib import Path

    from oneofmany.files import FileError

    path = Path(name)
    if not path.exists() and path.name == str(name):
        path = Path(__file__).parent / "weights" / f"{name}.safetensors"
        if not path.is_file():
            names = ", ".join(file.stem for file in bundled_networks()) or "none yet"
            raise FileError(f"{name} is neither a file, a run folder nor a bundled network (bundled: {names})")
    return path / "weights.safetensors" if path.is_dir() else path


def __getattr__(name: str) -> Any:
    """Load ``solve`` when it is first used."""
    if name == "solve":
        from oneofmany.solving import solve

        return solve
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
