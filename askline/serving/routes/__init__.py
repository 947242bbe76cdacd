"""The routes, one family a file."""

from __future__ import annotations

from . import ask, documents, health, page, rerank, score

__all__ = ["ROUTERS"]

ROUTERS = (rerank.router, score.router, ask.router, documents.router, health.router, page.router)
