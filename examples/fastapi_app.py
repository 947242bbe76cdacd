"""
A FastAPI app that embeds askline: the ranker is loaded once, and requests do not block each other.

    pip install '.[serve]'
    python examples/fastapi_app.py
    curl -s localhost:8000/answer -H 'Content-Type: application/json' \\
      -d '{"question": "Who wrote Emma?", "texts": ["It sold well.", "Jane Austen wrote Emma."]}'

The async methods of a ranker work in a thread, so that the event loop stays free. For a service
with worker processes, a queue and an index, use `askline serve`.
"""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI, Request
from pydantic import BaseModel, Field

import askline


class Question(BaseModel):
    question: str = Field(min_length=1, max_length=1_000)
    texts: list[str] = Field(min_length=1, max_length=200)


class Answer(BaseModel):
    text: str
    probability: float
    answered: bool


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    app.state.ranker = askline.load()
    await app.state.ranker.awarm_up()
    yield


app = FastAPI(lifespan=lifespan)


@app.post("/answer")
async def answer(request: Request, body: Question) -> Answer:
    ranker: askline.Ranker = request.app.state.ranker
    [best] = await ranker.arank(body.question, body.texts, top_k=1, deadline_ms=500)
    probability = best.probability or 0.0
    return Answer(text=best.text, probability=probability, answered=probability >= ranker.threshold)


if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[1]) if len(sys.argv) > 1 else 8000)
