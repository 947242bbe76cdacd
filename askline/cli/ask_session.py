"""
What `askline ask` searches, opened once for any number of questions.

It is an index, the files and folders of the command line, standard input, or a server.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

import click

from ..errors import CorpusError, InputError
from .options import ReadingOptions, reading_key
from .output import describe_not_read, relative_path
from .progress import progress_count

if TYPE_CHECKING:
    from ..corpus import Answers, Connector, Corpus, MissingShard, NotReadFiles
    from ..errors import Problem
    from ..rankers.base import Ranker

__all__ = ["AskOptions", "AskSession", "Source"]


@dataclass(frozen=True, slots=True)
class AskOptions:
    """How a question is answered."""

    top: int
    retrieved: int
    context: int
    threshold: float | None
    """None for the ranker's own; 0 never refuses."""
    phrases: bool = False
    nearest: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """Where answers are searched: one of paths, an index folder and the URL of a server."""

    paths: tuple[str, ...] = ()
    folder: str | None = None
    url: str | None = None
    encode: str | None = None
    """MODULE:FUNCTION, for the embeddings of a server."""
    allow_partial: bool = False
    """Whether an index is searched of which shards are missing."""

    def __str__(self) -> str:
        if self.paths:
            return ", ".join("standard input" if path == "-" else path for path in self.paths)
        # A URL may contain a password.
        location = self.folder or self.url or ""
        return location.rpartition("@")[2] if "://" in location else location


class AskSession:
    """An open source and a loaded ranker. `close` it, or use it as a context manager."""

    def __init__(
        self, source: Source, ranker: Ranker | None, reading: ReadingOptions, *, use_cache: bool
    ) -> None:
        self._source = source
        self._reading = reading
        self._use_cache = use_cache
        self._resources = ExitStack()
        self._encoded = False
        self.problems: Sequence[Problem] = ()
        """Files that could not be read."""
        self.not_read: Sequence[NotReadFiles] = ()
        """These and all that was left out, by reason and kind."""
        self.ranker = ranker
        self._server: Connector | None = None
        self._corpus: Corpus | None = None
        try:
            if source.url is not None:
                self._server = self._connect(source.url)
            else:
                self._corpus = self._open_corpus()
        except BaseException:
            self.close()
            raise

    def ask(self, question: str, options: AskOptions) -> Answers:
        """Answer a question. InputError if there is no text to search."""
        if self._server is not None:
            from ..corpus import answer

            return answer(
                question,
                self._server,
                self.ranker,
                top_k=options.top,
                retrieved=max(options.top, options.retrieved),
                context=options.context,
                threshold=options.threshold,
                join=True,
            )
        assert self._corpus is not None
        if options.phrases or options.nearest:
            self._encode_phrases()
        if options.nearest:
            return self._corpus.nearest(question, top_k=options.top, context=options.context)
        return self._corpus.ask(
            question,
            top_k=options.top,
            retrieved=max(options.top, options.retrieved),
            phrases=options.phrases,
            context=options.context,
            threshold=options.threshold,
            join=True,
        )

    @property
    def missing_shards(self) -> Sequence[MissingShard]:
        """Shards of the index that are not searched."""
        return () if self._corpus is None else self._corpus.missing_shards

    def refresh(self) -> None:
        """Read files that were added or changed since the start."""
        if self._corpus is not None and self._source.paths and "-" not in self._source.paths:
            self._fill(self._corpus)
            self._encoded = False

    def check_has_text(self, answers: Answers) -> None:
        """InputError if the paths had no text at all; an index may be empty."""
        if self._source.paths and not answers.stages[0].entered:
            found = f" Found: {describe_not_read(self.not_read)}." if self.not_read else ""
            raise InputError(
                f"No text was found in {self._source}.{found} Name files, or folders with txt, md, "
                "html, pdf, docx or other files that `askline ask --help` lists."
            )

    def source_paths(self, answers: Answers) -> Mapping[str, str]:
        """The path of each document that is a file, relative to the current folder if inside it."""
        if self._corpus is None:
            return {}
        names = {each.document for each in answers}
        names |= {place.document for each in answers for place in each.also_at}
        paths = {name: self._corpus.source_path(name) for name in names}
        return {name: relative_path(path) for name, path in paths.items() if path}

    def description(self) -> str:
        """`1,204 sentences in notes/`."""
        if self._server is not None:
            return f"{len(self._server):,} texts in {self._source}"
        assert self._corpus is not None
        return f"{self._corpus.status().sentences:,} sentences in {self._source}"

    def close(self) -> None:
        """Close the source."""
        self._resources.close()

    def __enter__(self) -> AskSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _connect(self, url: str) -> Connector:
        from ..corpus import connect

        encode = self._source.encode
        server = connect(url, encode=_import_function(encode) if encode else None)
        self._resources.callback(server.close)
        return server

    def _open_corpus(self) -> Corpus:
        """Open the index, or read the paths into a corpus."""
        from ..corpus import Corpus
        from ..corpus.cache import cached_index_folder

        paths, folder = self._source.paths, self._source.folder
        if folder is not None:
            opened = Corpus.open(
                folder,
                ranker=self.ranker,
                must_exist=True,
                allow_partial=self._source.allow_partial,
            )
            return self._resources.enter_context(opened)
        if self._use_cache and "-" not in paths:
            try:
                cached = cached_index_folder(paths, options=reading_key(self._reading))
                return self._filled(Corpus.open(cached, ranker=self.ranker))
            except CorpusError as error:
                click.echo(f"The cache cannot be used: {error}", err=True)
        return self._filled(Corpus.in_memory(ranker=self.ranker))

    def _filled(self, corpus: Corpus) -> Corpus:
        try:
            self._fill(corpus)
        except BaseException:
            corpus.close()
            raise
        return self._resources.enter_context(corpus)

    def _fill(self, corpus: Corpus) -> None:
        """Make the corpus hold the paths and nothing else."""
        with progress_count("Files") as step:
            report = corpus.add(
                self._source.paths,
                on_file=lambda file: step() if file.reason is None else None,
                only=True,
                **self._reading,
            )
        self.problems, self.not_read = report.problems, report.not_read

    def _encode_phrases(self) -> None:
        if self._encoded or self._corpus is None:
            return
        with progress_count("Documents encoded") as step:
            self._corpus.encode_phrases(on_document=step)
        self._encoded = True


def _import_function(name: str) -> Callable[[str], Sequence[float]]:
    """Import `package.module:function`; the current folder is searched too."""
    module, _, function = name.partition(":")
    sys.path.insert(0, "")
    try:
        found: Callable[[str], Sequence[float]] = getattr(import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise click.UsageError(
            f"--encode must be MODULE:FUNCTION, got {name!r}: {error}."
        ) from error
    finally:
        sys.path.pop(0)
    return found
