"""Datasets: the file, the builders, import of your own pairs, batches on a device."""

from oneofmany.data.batches import DeviceData, Sampling
from oneofmany.data.dataset import Dataset
from oneofmany.problems import Batch

__all__ = ["Batch", "Dataset", "DeviceData", "Sampling"]
