"""Two runs of N-Queens, trained for a second, for tests of what happens to runs afterwards."""

import atexit
import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from oneofmany.data.nqueens import build_nqueens
from oneofmany.networks.building import NetworkSettings
from oneofmany.training import PhaseSettings, train
from small_runs import small

QUERIES = 120


@cache
def made() -> Path:
    """A folder with the runs ``minloss`` and ``selectr`` and the data ``train``, ``dev`` and ``test`` (OS and MS)."""
    folder = Path(mkdtemp(prefix="oneofmany-runs-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    build_nqueens(7, 4, 200, seed=1).save(folder / "train.safetensors")
    build_nqueens(7, 4, 20, seed=2).save(folder / "dev.safetensors")
    build_nqueens(7, 5, QUERIES, seed=3).save(folder / "test.safetensors")
    build_nqueens(7, 5, QUERIES, seed=4).save(folder / "other.safetensors")
    network = NetworkSettings("equivariant", width=8, steps=3, test_steps=4)
    for objective in ("minloss", "selectr"):
        settings = small(
            objective,
            task="nqueens",
            network=network,
            first=PhaseSettings(updates=40, batch=16, lr=2e-2),
            second=PhaseSettings(updates=6 * (objective == "selectr"), batch=8, lr=2e-3),
            evaluate_every=20,
            log_every=20,
            checkpoint_minutes=9.0,
        )
        command = f"oneofmany train {settings.recipe} --train {folder}/train.safetensors --dev={folder}/dev.safetensors"
        train(settings, folder / "train.safetensors", folder / "dev.safetensors", folder / objective, command=command)
    return folder
