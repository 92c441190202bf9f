"""The software and hardware of a run, saved with it so that its numbers can be traced."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path
from typing import Any

import torch

import oneofmany


def environment(device: torch.device) -> dict[str, Any]:
    """Return versions, git revision and machine."""
    return {
        "version": oneofmany.__version__,
        "revision": _revision(),
        "torch": str(torch.__version__),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU",
        "threads": torch.get_num_threads(),
    }


def _revision() -> str | None:
    """The commit of the source tree, with a + if it has uncommitted changes; None outside of a git repository."""
    here = Path(__file__).resolve().parent
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--abbrev=12", "--dirty=+", "--exclude=*"],
            cwd=here,
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return described.stdout.strip() or None
