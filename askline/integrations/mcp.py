"""
An MCP server with three tools: `ask` an index or files, `rank` texts, `show` a document.

The index is opened and the ranker is loaded at the first call that needs them, so that a client
gets the list of tools at once. Files are read only inside the folders that the server was started
with, its roots.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Annotated, TypeVar

from .. import __version__
from ..corpus.corpus import Corpus
from ..corpus.results import Answer, Answers, DocumentSentence
from ..errors import AsklineError, InputError, MissingExtraError
from ..rankers.base import Ranker
from .common import DEFAULT_SPEC, answer_relevance, loaded_corpus, loaded_ranker, rank_texts

try:
    from mcp.server import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp_types import ToolAnnotations
    from pydantic import BaseModel, Field
except ImportError as error:
    raise MissingExtraError("The MCP server", "mcp") from error

if TYPE_CHECKING:
    from starlette.applications import Starlette

__all__ = [
    "AskResult",
    "FoundAnswer",
    "RankResult",
    "RankedDocument",
    "Sentence",
    "ShowResult",
    "create_server",
    "serve_http",
]

_INSTRUCTIONS = (
    "Finds the sentences that answer a question, with their probability and exact place. Call "
    "`ask` for a question about the documents, `show` to read the text around an answer, and "
    "`rank` to order texts that you have."
)
_FILE_SETS = 4  # sets of files that stay in memory
_MAX_SENTENCES = 500
_Result = TypeVar("_Result")

_Question = Annotated[str, Field(description="The question, as a whole sentence.")]
_Paths = Annotated[
    list[str] | None,
    Field(description="Files and folders to ask in place of the index; inside the roots alone."),
]


class FoundAnswer(BaseModel):
    """A sentence that may answer the question."""

    text: str
    phrase: str | None = Field(description="The words of the text that answer; null if unknown.")
    relevance_score: float = Field(ge=0, le=1, description="The probability that it answers.")
    is_answer: bool = Field(description="Whether the probability reaches the threshold.")
    document: str = Field(description="The id of the document, or its path, for `show`.")
    place: str = Field(description="The document with the line, page or paragraph.")
    start: int = Field(description="The first character in the document.")
    end: int = Field(description="The character after the last.")
    title: str
    heading: str
    before: str = Field(description="The sentence before it.")
    after: str = Field(description="The sentence after it.")


class AskResult(BaseModel):
    """Answers, best first."""

    question: str
    answered: bool = Field(description="False if no sentence reaches the threshold.")
    answers: list[FoundAnswer]


class RankedDocument(BaseModel):
    """One of the texts that were ranked."""

    index: int = Field(description="Position in the list that was given, from 0.")
    relevance_score: float = Field(ge=0, le=1)
    text: str


class RankResult(BaseModel):
    """Texts, best first."""

    results: list[RankedDocument]


class Sentence(BaseModel):
    """A sentence or a heading of a document."""

    number: int = Field(description="Position in the document, from 0.")
    text: str
    start: int
    end: int
    is_heading: bool


class ShowResult(BaseModel):
    """A part of a document."""

    document: str
    path: str | None = Field(description="The path of its file; null for a text without a file.")
    sentences: list[Sentence]
    total: int = Field(description="The number of sentences of the whole document.")


class _Tools:
    """The functions behind the tools. Their docstrings are what a model reads."""

    def __init__(
        self,
        index: Path | None,
        roots: Sequence[Path],
        ranker: str | Ranker,
    ) -> None:
        self._index = index
        self._roots = [Path(os.path.realpath(root)) for root in roots]
        self._ranker = ranker
        self._files: OrderedDict[tuple[str, ...], Corpus] = OrderedDict()
        self._files_lock = Lock()

    async def ask(
        self,
        question: _Question,
        top_k: Annotated[int, Field(ge=1, le=100, description="The most answers.")] = 5,
        threshold: Annotated[
            float | None,
            Field(ge=0, le=1, description="Least probability of an answer; null for the default."),
        ] = None,
        paths: _Paths = None,
    ) -> AskResult:
        """
        Find the sentences of the documents that answer a question, with their exact place.

        `answered` is false if nothing in the documents answers the question; the nearest sentences
        are returned all the same.
        """
        return await _in_thread(self._ask, question, top_k, threshold, paths)

    async def rank(
        self,
        question: _Question,
        documents: Annotated[list[str], Field(max_length=10_000, description="Texts to order.")],
        top_k: Annotated[int | None, Field(ge=1, description="Return the best N; default all.")] = (
            None
        ),
    ) -> RankResult:
        """Order texts by how well they answer a question, best first."""
        return await _in_thread(self._rank, question, documents, top_k)

    async def show(
        self,
        document: Annotated[str, Field(description="The `document` of an answer, or a path.")],
        start: Annotated[
            int, Field(ge=0, description="The first character to show, as `start` of an answer.")
        ] = 0,
        before: Annotated[int, Field(ge=0, description="Sentences to show before `start`.")] = 0,
        count: Annotated[int, Field(ge=1, le=_MAX_SENTENCES, description="Most sentences.")] = 30,
    ) -> ShowResult:
        """Show the sentences of a document from a place on, such as that of an answer."""
        return await _in_thread(self._show, document, start, before, count)

    def _ask(
        self, question: str, top_k: int, threshold: float | None, paths: list[str] | None
    ) -> AskResult:
        corpus = self._opened_index() if paths is None else self._read_files(paths)
        answers = corpus.ask(question, top_k=top_k, threshold=threshold)
        found = []
        for answer in answers:
            # Outside the index a document has no id that `show` knows, but it has a path.
            name = corpus.source_path(answer.document) if paths is not None else None
            found.append(_found_answer(answer, answers, name or answer.document))
        return AskResult(question=question, answered=answers.answered, answers=found)

    def _rank(self, question: str, documents: list[str], top_k: int | None) -> RankResult:
        ranked = rank_texts(self._ranker, question, documents, top_k=top_k)
        return RankResult(
            results=[
                RankedDocument(
                    index=each.index,
                    relevance_score=each.relevance_score,
                    text=documents[each.index],
                )
                for each in ranked
            ]
        )

    def _show(self, document: str, start: int, before: int, count: int) -> ShowResult:
        if self._index is not None:
            corpus = self._opened_index()
            sentences = corpus.sentences(document)
            if sentences is not None:
                path = corpus.source_path(document)
                return _shown(document, path, sentences, start, before, count)
        if not self._roots:
            raise InputError(f"No document {document!r} in the index. `ask` returns the ids.")
        file = self._resolve(document)
        if not file.is_file():
            raise InputError(f"document must be a file, got the folder {document!r}.")
        with Corpus.in_memory(ranker=None) as corpus:
            _add_files(corpus, [str(file)])
            sentences = corpus.sentences(corpus.documents(limit=1)[0].name) or []
        return _shown(document, str(file), sentences, start, before, count)

    def _opened_index(self) -> Corpus:
        if self._index is None:
            raise InputError(
                "This server has no index. Give paths inside its roots, or start it with one: "
                "askline mcp --index DIR."
            )
        return loaded_corpus(self._index, self._ranker)

    def _read_files(self, paths: Sequence[str]) -> Corpus:
        """A corpus of these files, which is brought up to date with them."""
        inside = tuple(sorted({str(self._resolve(path)) for path in paths}))
        if not inside:
            raise InputError("paths must name at least one file or folder, got an empty list.")
        with self._files_lock:
            corpus = self._files.pop(inside, None)
            if corpus is None:
                corpus = Corpus.in_memory(ranker=loaded_ranker(self._ranker))
            _add_files(corpus, inside)
            self._files[inside] = corpus
            while len(self._files) > _FILE_SETS:
                self._files.popitem(last=False)
        return corpus

    def _resolve(self, given: str) -> Path:
        """The real path; InputError if it is not inside a root, whether or not it exists."""
        if not self._roots:
            raise InputError(
                "This server reads no files. Start it with the folders that it may read: "
                "askline mcp --root DIR."
            )
        for root in self._roots:
            path = Path(os.path.realpath(root / given)) if "\0" not in given else None
            if path is not None and path.is_relative_to(root) and path.exists():
                return path
        raise InputError(
            f"{given!r} must be a file or folder inside the roots of this server: "
            f"{', '.join(map(str, self._roots))}."
        )


def create_server(
    index: str | os.PathLike[str] | None = None,
    *,
    roots: Sequence[str | os.PathLike[str]] = (),
    ranker: str | Ranker = DEFAULT_SPEC,
) -> MCPServer[None]:
    """
    An MCP server over the index in a folder; `run()` serves standard input and output.

    `roots` are the folders whose files `ask` and `show` may read; without them they read no files.
    """
    for root in roots:
        if not os.path.isdir(root):
            raise InputError(f"A root must be a folder, got {os.fspath(root)!r}.")
    folder = None if index is None else Path(index).expanduser()
    if folder is not None:
        # Fails now if there is no index; the ranker is not loaded by this.
        Corpus.open(folder, must_exist=True).close()
    tools = _Tools(folder, [Path(root).expanduser() for root in roots], ranker)
    server = MCPServer[None](
        "askline",
        title="askline",
        instructions=_INSTRUCTIONS,
        version=__version__,
        log_level="WARNING",
    )
    read_only = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
    server.add_tool(tools.ask, title="Ask the documents", annotations=read_only)
    server.add_tool(tools.rank, title="Rank texts", annotations=read_only)
    server.add_tool(tools.show, title="Show a document", annotations=read_only)
    return server


def serve_http(
    server: MCPServer[None],
    *,
    host: str = "127.0.0.1",
    port: int = 8081,
    on_listening: Callable[[str], None] | None = None,
) -> None:
    """
    Serve streamable HTTP at `/mcp` until the process is stopped.

    On a loopback address, requests with a foreign Host or Origin header are refused (DNS
    rebinding). `on_listening` is called with the URL.
    """
    import uvicorn

    app: Starlette = server.streamable_http_app(host=host)
    listener = socket.create_server(
        (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET
    )
    with listener:
        if on_listening is not None:
            shown = f"[{host}]" if ":" in host else host
            on_listening(f"http://{shown}:{listener.getsockname()[1]}/mcp")
        uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])


async def _in_thread(function: Callable[..., _Result], *arguments: object) -> _Result:
    """Work in a thread; an expected error becomes a message that the model can read."""
    try:
        return await asyncio.to_thread(partial(function, *arguments))
    except AsklineError as error:
        raise ToolError(str(error)) from error


def _add_files(corpus: Corpus, paths: Sequence[str]) -> None:
    report = corpus.add(list(paths), only=True)
    if not report.added + report.changed + report.unchanged:
        reasons = "; ".join(str(problem) for problem in report.problems[:3])
        raise InputError(f"No text could be read from {', '.join(paths)}. {reasons}".rstrip())


def _found_answer(answer: Answer, answers: Answers, document: str) -> FoundAnswer:
    return FoundAnswer(
        text=answer.text,
        phrase=None if answer.phrase is None else answer.phrase.text,
        relevance_score=answer_relevance(answer),
        is_answer=answer in answers.above_threshold,
        document=document,
        place=answer.place,
        start=answer.start,
        end=answer.end,
        title=answer.title,
        heading=answer.heading,
        before=answer.before,
        after=answer.after,
    )


def _shown(
    document: str,
    path: str | None,
    sentences: Sequence[DocumentSentence],
    start: int,
    before: int,
    count: int,
) -> ShowResult:
    at = next((n for n, each in enumerate(sentences) if each.end > start), len(sentences))
    first = max(0, at - before)
    return ShowResult(
        document=document,
        path=path,
        sentences=[
            Sentence(
                number=each.ordinal,
                text=each.text,
                start=each.start,
                end=each.end,
                is_heading=each.is_heading,
            )
            for each in sentences[first : first + count]
        ],
        total=len(sentences),
    )
