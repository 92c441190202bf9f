"""Datasets: the files, the builders, import of your own data, batches on a device and in a ``DataLoader``."""

from typing import TYPE_CHECKING, Any

from oneofmany.data.dataset import Dataset
from oneofmany.data.sequences import SequenceData, load_data
from oneofmany.problems import Batch

if TYPE_CHECKING:
    from oneofmany.data.batches import DeviceData, Sampling, SequencesOnDevice
    from oneofmany.data.collating import collate
    from oneofmany.data.importing import import_data, import_sequences
    from oneofmany.data.records import Fields

__all__ = [
    "Batch",
    "Dataset",
    "DeviceData",
    "Fields",
    "Sampling",
    "SequenceData",
    "SequencesOnDevice",
    "collate",
    "import_data",
    "import_sequences",
    "load_data",
]


def __getattr__(name: str) -> Any:
    # Files are read and described without PyTorch, which takes seconds to load.
    if name in ("DeviceData", "Sampling", "SequencesOnDevice"):
        from oneofmany.data import batches

        return getattr(batches, name)
    if name == "collate":
        from oneofmany.data.collating import collate

        return collate
    if name in ("import_data", "import_sequences", "Fields"):
        from oneofmany.data import importing

        return getattr(importing, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
