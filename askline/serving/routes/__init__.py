"""The routes of the service."""

from __future__ import annotations

from . import ask_and_documents, health, page, rerank

__all__ = ["ROUTERS"]

ROUTERS = (rerank.router, ask_and_documents.router, health.router, page.router)
