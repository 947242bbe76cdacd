from __future__ import annotations

from ..corpus.connectors.conftest import postgres

__all__ = ["postgres"]
