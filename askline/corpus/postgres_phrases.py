"""
The phrases of the shared store: their vectors in pgvector, beside the documents.

A phrase is a row that refers to its document, so the phrases of a document vanish in the
transaction that removes or replaces it. Encoding takes longer than a transaction should, so phrases
are added afterwards: `encoded_documents` names the documents whose phrases are complete. Machines
that encode at the same time divide the documents among them by advisory locks.

Vectors are `halfvec`, 16 bits per number. The embedded index has 8 bits, so that scores differ in
the third digit.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

import numpy as np

from ..errors import CorpusError, InputError
from ..phrases import EncodedPhrases, EncodedQuestion, PhraseHit, PhraseModel
from ..phrases.index_segments import dequantize_weights, quantize_weights
from ..phrases.phrase_index import EXACT_SEARCH_ROWS, SHORTLIST
from .connectors.postgres_connection import PostgresPool
from .corpus_phrases import (
    PhraseIndexStatus,
    choose_language,
    load_phrase_model,
    phrase_model_name,
)
from .document_store import DocumentStore
from .phrase_index_sync import FORMAT, PASSAGES_PER_BATCH, PassageId, phrase_passages
from .phrase_retrieval import PhraseRetriever

__all__ = ["PostgresPhrases"]

_SETTING = "phrases"
_WORD = np.dtype([("word", "<u4"), ("weight", "u1")])  # a word around a phrase
_CLAIMED_DOCUMENTS = 16
_CANDIDATES = 512  # documents among which a batch is chosen
_ROWS_PER_LIST = 1_000
_LISTS_PER_PROBE = 8  # one list in so many is searched
_MISSING = """
SELECT id FROM documents d WHERE problem IS NULL
AND NOT EXISTS (SELECT 1 FROM encoded_documents e WHERE e.document = d.id) ORDER BY id LIMIT %s
"""
# The key of an advisory lock; other corpora of the database have other keys.
_LOCK_KEY = "hashtextextended('askline phrases ' || current_schema() || '/' || id, 0)"


@dataclass(frozen=True, slots=True)
class _Encoding:
    """How the phrases of a database are encoded; kept as JSON in its settings."""

    format: int
    model: str
    """The identity of the model."""
    home: str | None
    """The name of the model; None, which was written earlier, for the shipped English one."""
    size: int
    """The length of a vector."""
    lists: int = 0
    """The number of inverted lists; 0 as long as search is exact."""

    def is_as(self, other: _Encoding) -> bool:
        """Whether the same model has encoded the same passages."""
        return (self.format, self.model) == (other.format, other.model)


class PostgresPhrases:
    """The phrases of a corpus in a database. Several threads may use it."""

    def __init__(
        self,
        name: str,
        store: DocumentStore,
        pool: PostgresPool,
        errors: Callable[[], AbstractContextManager[None]],
    ) -> None:
        """`store` reads documents by connections of `pool`, and `name` is for messages."""
        self._name, self._store, self._pool, self._errors = name, store, pool, errors
        self._model: PhraseModel | None = None
        self._model_name = ""

    def encode(
        self,
        model: str | os.PathLike[str] | None = None,
        on_document: Callable[[], None] | None = None,
    ) -> None:
        """
        Encode the documents that are not encoded; without `model`, with the model used last.

        A role that may only read uses the phrases that are there. Only a `model` that is given
        replaces the phrases of another one: machines with different versions of askline would
        otherwise replace them again and again.
        """
        with self._errors():
            if model is None and not self._is_encoding_due():
                return
            known = self._encoding()
            if model is not None:
                home = phrase_model_name(model)
            elif known is not None and self._has_phrases():
                home = known.home or "en"
            else:
                known, home = None, choose_language([self._store])
            loaded = self._loaded(home)
            wanted = _Encoding(FORMAT, loaded.config.identity, home, loaded.config.size + 1)
            if known is None or not known.is_as(wanted):
                if model is None and known is not None and known.format == FORMAT:
                    raise self._other_model(known, loaded)
                self._start(wanted)
            while self._encode_batch(loaded, on_document):
                pass
            self._build_lists()

    def retriever(self) -> PhraseRetriever:
        """A retriever over the phrases; what is missing is encoded first if the role may write."""
        if self._pool.cache is None:  # in a snapshot, nothing can be written
            self.encode()
        with self._errors():
            known = self._encoding()
        if known is None or known.format != FORMAT:
            raise CorpusError(
                f"{self._name}: No phrases are encoded, and this role may not write. With one that "
                "may: askline index PATH... --to URL --phrases"
            )
        model = self._loaded(known.home)
        if model.config.identity != known.model:
            raise self._other_model(known, model)
        return PhraseRetriever(self._store, self, model)

    def status(self) -> PhraseIndexStatus:
        """The current state; nothing is changed."""
        with self._errors(), self._pool.reading():
            if self._encoding() is None:
                return PhraseIndexStatus(None, 0, False)
            ((count, size),) = self._pool.execute(
                "SELECT count(*), pg_total_relation_size('phrases') FROM phrases"
            )
            is_current = not self._pool.execute(_MISSING, [1])
        return PhraseIndexStatus(int(count), int(size), is_current)

    def close(self) -> None:
        """Nothing is open; the connections are the store's."""

    # Searching

    def search(self, question: EncodedQuestion, k: int) -> list[PhraseHit]:
        """
        The `k` best phrases, best first; phrases with equal scores in the order of their places.

        As in the embedded index, a shortlist of the nearest phrases by vector is scored again with
        the words around them. The hits have no text.
        """
        if k < 1:
            raise InputError(f"k must be at least 1, got {k}.")
        with self._errors(), self._pool.reading():
            known = self._encoding()
            if known is None or known.model != question.model:
                raise CorpusError(
                    f"{self._name}: The phrases are being encoded with another model. Ask again."
                )
            schema = self._extension_schema()
            if known.lists:
                probes = -(-known.lists // _LISTS_PER_PROBE)
                self._pool.execute("SELECT set_config('ivfflat.probes', %s, true)", [str(probes)])
            rows = self._pool.execute(
                "SELECT document, first, last, start, stop, words, "
                f"vector OPERATOR({schema}.<#>) %s::{schema}.halfvec AS distance "
                "FROM phrases ORDER BY distance LIMIT %s",
                [_vector_text(question.dense), max(k, SHORTLIST)],
                binary=True,
            )
        if not rows:
            return []
        packed = np.frombuffer(b"".join(row[5] for row in rows), _WORD).reshape(len(rows), -1)
        scores = -np.array([row[6] for row in rows], np.float32)  # <#> is the negative product
        scores += question.lexical(
            packed["word"].astype(np.int32), dequantize_weights(packed["weight"])
        )
        places = np.array([row[:5] for row in rows], np.int64)
        best = np.lexsort((*places.T[::-1], -scores))[:k].tolist()
        return [
            PhraseHit(str(PassageId(*place)), "", start, stop, float(scores[at]))
            for at in best
            for *place, start, stop, _, _ in [rows[at]]
        ]

    # Writing

    def _start(self, wanted: _Encoding) -> None:
        """Prepare the tables for the vectors of a model; those of another model are deleted."""
        with self._pool.writing():
            self._create_extension()
            schema = self._extension_schema()
            self._lock_encoding()
            self._pool.execute("LOCK TABLE phrases, encoded_documents IN ACCESS EXCLUSIVE MODE")
            known = self._encoding()
            if known is not None and known.is_as(wanted):
                return  # another machine was faster
            self._pool.execute("TRUNCATE phrases, encoded_documents")
            self._pool.execute("ALTER TABLE phrases DROP COLUMN IF EXISTS vector")
            self._pool.execute(
                f"ALTER TABLE phrases ADD COLUMN vector {schema}.halfvec({wanted.size}) NOT NULL"
            )
            self._save(wanted)

    def _encode_batch(self, model: PhraseModel, on_document: Callable[[], None] | None) -> bool:
        """Encode some passages of documents that nobody else encodes; False if none is missing."""
        with self._pool.writing():  # it holds no lock of a row while phrases are encoded
            self._pool.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            missing = [row[0] for row in self._pool.execute(_MISSING, [_CANDIDATES])]
            if not missing:
                return False
            claimed = self._claim(missing)
            if not claimed:  # others encode all of them: wait for one, and look again
                self._pool.execute(
                    f"SELECT pg_advisory_xact_lock({_LOCK_KEY}) FROM (SELECT %s::bigint AS id) d",
                    [missing[0]],
                )
                return True
            batch, complete = self._next_passages(claimed)
            encoded = model.encode_many([text for _, text in batch])
            self._insert(model, batch, encoded, complete)
        if on_document is not None:
            for _ in complete:
                on_document()
        return True

    def _claim(self, missing: Sequence[int]) -> list[int]:
        """Some of these documents, which no other machine encodes until the transaction ends."""
        for first in range(0, len(missing), _CLAIMED_DOCUMENTS):
            rows = self._pool.execute(
                "SELECT id FROM unnest(%s::bigint[]) AS id "
                f"WHERE pg_try_advisory_xact_lock({_LOCK_KEY})",
                [list(missing[first : first + _CLAIMED_DOCUMENTS])],
            )
            # Another machine may have encoded them just before, so they are looked up again.
            rows = self._pool.execute(
                "SELECT id FROM unnest(%s::bigint[]) AS id WHERE NOT EXISTS "
                "(SELECT 1 FROM encoded_documents e WHERE e.document = id) ORDER BY id",
                [[row[0] for row in rows]],
            )
            if rows:
                return [row[0] for row in rows]
        return []

    def _next_passages(
        self, document_ids: Sequence[int]
    ) -> tuple[list[tuple[PassageId, str]], list[int]]:
        """The next passages that are not encoded, and the documents that they complete."""
        batch: list[tuple[PassageId, str]] = []
        complete: list[int] = []
        for document_id in document_ids:
            # A long document is encoded in several transactions.
            ((done,),) = self._pool.execute(
                "SELECT coalesce(max(last), -1) FROM phrases WHERE document = %s", [document_id]
            )
            room = PASSAGES_PER_BATCH - len(batch)
            left = phrase_passages(self._store, document_id, after=done)
            found = list(islice(left, room + 1))
            batch += found[:room]
            if len(found) > room:
                break
            complete.append(document_id)
        return batch, complete

    def _insert(
        self,
        model: PhraseModel,
        batch: Sequence[tuple[PassageId, str]],
        encoded: Sequence[EncodedPhrases],
        complete: Sequence[int],
    ) -> None:
        # Held until the end of the transaction, so that no other model is chosen in between.
        rows = self._pool.execute(
            "SELECT value FROM settings WHERE name = %s FOR SHARE", [_SETTING]
        )
        if not rows or json.loads(rows[0][0])["model"] != model.config.identity:
            raise CorpusError(
                f"{self._name}: Another machine encodes the phrases with another model. "
                "Try again when it has ended."
            )
        ids = sorted({place.document_id for place, _ in batch} | set(complete))
        rows = self._pool.execute(
            "SELECT id FROM documents WHERE id = ANY(%s) ORDER BY id FOR KEY SHARE", [ids]
        )
        stored = {row[0] for row in rows}  # others were removed in the meantime
        columns = "document, first, last, start, stop, words, vector"
        with (
            self._pool.connection.cursor() as cursor,
            cursor.copy(f"COPY phrases ({columns}) FROM STDIN (FORMAT BINARY)") as copy,
        ):
            copy.set_types(["int8", "int4", "int4", "int4", "int4", "bytea", "bytea"])
            for (place, _), phrases in zip(batch, encoded, strict=True):
                if place.document_id in stored:
                    words, vectors = _packed_words(phrases), _binary_vectors(phrases)
                    for span, *packed in zip(phrases.phrases, words, vectors, strict=True):
                        copy.write_row((*place, span.start, span.end, *packed))
        self._pool.execute(
            "INSERT INTO encoded_documents SELECT unnest(%s::bigint[])",
            [[each for each in complete if each in stored]],
        )

    def _build_lists(self) -> None:
        """Build inverted lists once exact search would be slow; writers of phrases wait for it."""
        known = self._encoding()
        if known is None or known.lists or not self._has_many_rows():
            return
        with self._pool.writing():
            self._lock_encoding()
            self._pool.execute("LOCK TABLE phrases IN SHARE MODE")
            known = self._encoding()
            if known is None or known.lists:
                return
            ((count,),) = self._pool.execute("SELECT count(*) FROM phrases")
            lists = max(10, round(count / _ROWS_PER_LIST if count < 10**6 else count**0.5))
            self._pool.execute("SELECT set_config('maintenance_work_mem', '1GB', true)")
            self._pool.execute(
                "CREATE INDEX phrases_by_vector ON phrases USING ivfflat "
                f"(vector {self._extension_schema()}.halfvec_ip_ops) WITH (lists = {lists})"
            )
            self._save(_Encoding(**{**asdict(known), "lists": lists}))

    def _has_phrases(self) -> bool:
        return bool(self._pool.execute("SELECT 1 FROM phrases LIMIT 1"))

    def _has_many_rows(self) -> bool:
        found = self._pool.execute("SELECT 1 FROM phrases OFFSET %s LIMIT 1", [EXACT_SEARCH_ROWS])
        return bool(found)

    # The model and the extension

    def _other_model(self, known: _Encoding, model: PhraseModel) -> CorpusError:
        return CorpusError(
            f"{self._name}: The phrases are of the model {known.model}, and the model here is "
            f"{model.config.identity}. Use the same version on all machines, or encode all phrases "
            f"again: askline index PATH... --to URL --phrase-model {known.home or 'en'}"
        )

    def _lock_encoding(self) -> None:
        """Wait for machines that add phrases, before their tables are locked."""
        self._pool.execute("SELECT 1 FROM settings WHERE name = %s FOR UPDATE", [_SETTING])

    def _encoding(self) -> _Encoding | None:
        rows = self._pool.execute("SELECT value FROM settings WHERE name = %s", [_SETTING])
        return _Encoding(**json.loads(rows[0][0])) if rows else None

    def _save(self, encoding: _Encoding) -> None:
        self._pool.execute(
            "INSERT INTO settings VALUES (%s, %s) "
            "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            [_SETTING, json.dumps(asdict(encoding))],
        )

    def _loaded(self, home: str | None) -> PhraseModel:
        """The model of that name, loaded once."""
        name = home or "en"
        if self._model is None or self._model_name != name:
            self._model, self._model_name = load_phrase_model(name), name
        return self._model

    def _is_encoding_due(self) -> bool:
        """Whether documents are not encoded, and this role may write."""
        with self._pool.reading():
            ((may_write,),) = self._pool.execute(
                "SELECT has_table_privilege('phrases', 'INSERT') AND NOT pg_is_in_recovery()"
            )
            if not may_write:
                return False
            known = self._encoding()
            if known is None or known.format != FORMAT:
                return True
            return bool(self._pool.execute(_MISSING, [1]))

    def _extension_schema(self) -> str:
        """The quoted schema of pgvector; the search path has the schema of the corpus alone."""
        rows = self._pool.execute(
            "SELECT quote_ident(nspname) FROM pg_extension e "
            "JOIN pg_namespace n ON n.oid = e.extnamespace WHERE extname = 'vector'"
        )
        if not rows:
            raise CorpusError(_NO_EXTENSION.format(place=self._name))
        return str(rows[0][0])

    def _create_extension(self) -> None:
        """Create the extension if it is missing; CorpusError if that is not possible."""
        from psycopg import errors

        rows = self._pool.execute(
            "SELECT default_version, installed_version FROM pg_available_extensions "
            "WHERE name = 'vector'"
        )
        if not rows:
            raise CorpusError(
                f"{self._name}: Phrases need the extension pgvector, which is not installed "
                "on the server. Install it there, such as the package postgresql-16-pgvector, or "
                "index without --phrases."
            )
        default, installed = rows[0]
        version = installed or default
        if tuple(map(int, version.split(".")[:2])) < (0, 7):
            raise CorpusError(
                f"{self._name}: Phrases need pgvector 0.7 or later, got {version}. Update "
                "it on the server, and run there: ALTER EXTENSION vector UPDATE"
            )
        if installed is None:
            try:
                self._pool.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
            except (errors.InsufficientPrivilege, errors.InvalidSchemaName) as error:
                raise CorpusError(_NO_EXTENSION.format(place=self._name)) from error


_NO_EXTENSION = (
    "{place}: Phrases need the extension pgvector, which this database does not have. Let an "
    "administrator run in it: CREATE EXTENSION vector"
)


def _packed_words(phrases: EncodedPhrases) -> list[bytes]:
    """The words around each phrase with their weights."""
    packed = np.empty(phrases.words.shape, _WORD)
    packed["word"] = phrases.words
    packed["weight"] = quantize_weights(phrases.weights)
    return [row.tobytes() for row in packed]


def _binary_vectors(phrases: EncodedPhrases) -> list[bytes]:
    """Vectors as pgvector sends and receives them: their length, 0, and numbers of 16 bits."""
    header = struct.pack(">hh", phrases.dense.shape[1], 0)
    return [header + row.tobytes() for row in _clipped(phrases.dense).astype(">f2")]


def _vector_text(vector: np.ndarray[Any, Any]) -> str:
    """A vector as pgvector reads it."""
    return "[" + ",".join(f"{value:.9g}" for value in _clipped(vector).tolist()) + "]"


def _clipped(vectors: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Within the range of 16 bits; hardly any number is that large."""
    limit = np.finfo(np.float16).max
    clipped: np.ndarray[Any, Any] = np.clip(vectors, -limit, limit)
    return clipped
