"""The routes of the service."""

from __future__ import annotations

from . import corpus, health, page, rerank

__all__ = ["ROUTERS"]

ROUTERS = (rerank.router, corpus.router, health.router, page.router)
