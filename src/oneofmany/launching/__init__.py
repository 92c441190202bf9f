"""Launchers: command lines on this machine, on a SLURM cluster or on a Ray cluster.

A launcher runs command lines and knows nothing of their meaning. What has been done is read from the files that they
write on storage that all machines share, so any launcher continues what another began.
"""

from oneofmany.launching.base import LOCKED, Command, Launcher, Process, finish
from oneofmany.launching.choosing import LAUNCHERS, Place, launcher_for

__all__ = ["LAUNCHERS", "LOCKED", "Command", "Launcher", "Place", "Process", "finish", "launcher_for"]
