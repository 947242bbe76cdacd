"""The routes, one family a file."""

from __future__ import annotations

from . import ask, documents, page, rerank, score, state

__all__ = ["ROUTERS"]

ROUTERS = (rerank.router, score.router, ask.router, documents.router, state.router, page.router)
