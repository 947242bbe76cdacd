"""
The HTTP service: routes that other rerankers' clients speak, questions over an index, a page.

The web process only moves bytes. Ranking, reading and writing the index happen in worker processes
(`pool`, `worker`), so that the event loop answers `/health` whatever is being ranked. `wire` holds
what goes over the line, one family of clients a file; `routes` what is done with it.
"""

from __future__ import annotations

from .settings import Limits, Settings

__all__ = ["Limits", "Settings"]
