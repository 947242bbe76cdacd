"""
The folders of askline in the home folder of the user: cache, configuration and state.

Every command imports this module, so it imports nothing that takes time.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Literal

__all__ = ["user_folder"]


def user_folder(kind: Literal["cache", "config", "state"]) -> Path:
    """A folder of askline for this user, by the convention of the operating system."""
    if sys.platform == "win32":
        variable, part = ("APPDATA", "Roaming") if kind == "config" else ("LOCALAPPDATA", "Local")
        base = os.environ.get(variable) or f"~/AppData/{part}"
    elif sys.platform == "darwin" and kind != "config":
        base = "~/Library/Caches" if kind == "cache" else "~/Library/Application Support"
    else:
        part = ".local/state" if kind == "state" else f".{kind}"
        base = os.environ.get(f"XDG_{kind.upper()}_HOME") or f"~/{part}"
    return Path(base).expanduser() / "askline"
