"""Damaged inputs, killed processes, full disks and commands that run at the same time."""

import sys
from pathlib import Path

if (tests := str(Path(__file__).parents[1])) not in sys.path:  # for python -m tests.faults.fuzz
    sys.path.insert(0, tests)
