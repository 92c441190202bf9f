"""Runs on disk: the run folder and the record that a report reads."""

from oneofmany.runs.folder import RunFolder
from oneofmany.runs.record import decode, read_record, record_of, save_record, valid_bits

__all__ = ["RunFolder", "decode", "read_record", "record_of", "save_record", "valid_bits"]
