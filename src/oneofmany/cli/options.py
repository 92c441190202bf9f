"""How the help of a command shows its options."""

from __future__ import annotations

from typing import Annotated, Any

import tyro

Flag = Annotated[bool, tyro.conf.arg(help_behavior_hint="")]
Json = Annotated[bool, tyro.conf.arg(name="json", help_behavior_hint="")]


def option(metavar: str, default: str) -> Any:
    """An option whose default is None; its help shows ``metavar`` and says what None means."""
    return tyro.conf.arg(metavar=metavar, help_behavior_hint=f"(default: {default})")
