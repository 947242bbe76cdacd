"""
The plain server of `research.benchmarks.service_load`: FastAPI around CrossEncoder.

    python -m research.benchmarks.service_baseline FOLDER PORT
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from sentence_transformers import CrossEncoder


class Request(BaseModel):
    """The request of Jina's clients."""

    query: str
    documents: list[str]


def make_app(folder: Path) -> FastAPI:
    """One route, which FastAPI runs in its thread pool."""
    app = FastAPI()
    model = CrossEncoder(str(folder), device="cpu", model_kwargs={"dtype": "float32"})

    @app.post("/v1/rerank")
    def rerank(body: Request) -> dict[str, Any]:
        found = model.rank(body.query, body.documents, show_progress_bar=False)
        return {
            "results": [
                {"index": int(each["corpus_id"]), "relevance_score": float(each["score"])}
                for each in found
            ]
        }

    return app


if __name__ == "__main__":
    uvicorn.run(
        make_app(Path(sys.argv[1])), host="127.0.0.1", port=int(sys.argv[2]), log_level="error"
    )
