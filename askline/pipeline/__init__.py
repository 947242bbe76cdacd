"""Rankers by name and by spec text."""

from __future__ import annotations

from .registry import DEFAULT_SPEC, ranker_names
from .spec import load

__all__ = ["DEFAULT_SPEC", "load", "ranker_names"]
