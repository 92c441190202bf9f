"""How a long-running function reports its progress."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called with the name of the current stage, how much of it is done, and how much there is in all."""
