"""Documents in the index, for a worker: add, list, show, take out. Names are ids, never paths."""

from __future__ import annotations

from dataclasses import asdict

from ..corpus import Corpus
from ..errors import InputError
from .messages import Frame

__all__ = [
    "Missing",
    "add",
    "browse",
    "remove",
    "show",
]


class Missing(InputError):  # noqa: N818 – what the client sees is its status
    """No document of that id, or no index."""

    status = 404


def add(corpus: Corpus, job: Frame) -> Frame:
    """Store texts under their ids; what is reported outlives the process."""
    outcomes: list[Frame] = []
    report = corpus.add_texts(
        [(name, text) for name, text in job["documents"]],
        on_file=lambda each: outcomes.append(
            {"id": each.document, "outcome": each.outcome, "sentences": each.sentences}
        ),
    )
    return {
        "documents": outcomes,
        "added": report.added,
        "changed": report.changed,
        "unchanged": report.unchanged,
        "sentences": report.sentences,
    }


def remove(corpus: Corpus, job: Frame) -> Frame:
    """Take out the document of just that id."""
    if not corpus.remove_document(job["id"]):
        raise Missing(f"No document {job['id']!r} in the index.")
    return {"id": job["id"], "removed": True}


def browse(corpus: Corpus, job: Frame) -> Frame:
    """Documents by name, from the one behind `after` on."""
    status = corpus.status()
    found = corpus.documents(after=job["after"], limit=job["limit"] + 1)
    shown = found[: job["limit"]]
    return {
        "documents": [
            {
                "id": each.name,
                "title": each.title,
                "kind": each.kind,
                "sentences": each.sentences,
                "characters": each.characters,
                "problem": each.problem,
            }
            for each in shown
        ],
        "next": shown[-1].name if len(found) > len(shown) else None,
        "total": {"documents": status.documents, "sentences": status.sentences},
    }


def show(corpus: Corpus, job: Frame) -> Frame:
    """Some sentences of a document in order, with their places in the source."""
    last = job["first"] + job["limit"] - 1
    found = corpus.sentences(job["id"], job["first"], last)
    if found is None:
        raise Missing(f"No document {job['id']!r} in the index.")
    return {"id": job["id"], "sentences": [asdict(sentence) for sentence in found]}
