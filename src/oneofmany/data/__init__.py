"""Datasets: the file, the builders, import of a user's own pairs, batches on the device."""

from oneofmany.data.batches import DeviceData, Sampling
from oneofmany.data.dataset import Dataset
from oneofmany.problems import Batch

__all__ = ["Batch", "Dataset", "DeviceData", "Sampling"]
