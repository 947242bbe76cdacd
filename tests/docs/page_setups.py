"""What a reader has before the first block of a page: files, a server, a trained encoder."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from askline.corpus import Corpus

from ..corpus.connectors.engine import Engine
from ..phrases.models import make_tokenizer
from .blocks import ROOT, PageSession, free_port

INTEGRATIONS = ROOT / "docs" / "integrations.md"
"""Its blocks need packages of their own: `make test-integrations` runs them."""
NOT_RUN = {
    "from flashrank import": "FlashRank downloads its model from a model hub",
    "from askline.integrations.spark import": "make test-spark runs Spark, which needs Java",
    "import dask\n": "a recipe for a library that is not installed",
    "import ray\n": "a recipe for a library that is not installed",
}
"""How a block starts, and why it is not run."""

_BOOKS = {
    "emma": {"title": "Emma", "body": "Emma is a novel. Jane Austen wrote Emma in 1815."},
    "dune": {"title": "Dune", "body": "Dune is a novel by Frank Herbert."},
}


@contextmanager
def setup_of(page: Path, folder: Path, request: pytest.FixtureRequest) -> Iterator[PageSession]:
    """The session of a page, in a folder with what its reader has."""
    session = PageSession(folder, {"8080": str(free_port())})
    setup = _SETUPS.get(page.relative_to(ROOT).as_posix())
    with contextmanager(setup)(session, request) if setup else nullcontext():
        yield session


def _service(session: PageSession, _: pytest.FixtureRequest) -> Iterator[None]:
    """A service over an index, as the page before shows."""
    with Corpus.open(session.folder / "DIR", ranker=None) as corpus:
        corpus.add({"emma": "Emma is a novel. Jane Austen wrote Emma in 1815."})
    session.start_service("askline serve --index DIR")
    yield


def _migrate(session: PageSession, _: pytest.FixtureRequest) -> Iterator[None]:
    """A small cross-encoder where the hub would have the large one, and the service for Cohere."""
    _write_encoder(session.folder / "cross-encoder" / "ms-marco-MiniLM-L12-v2", classifier=True)
    here = f'api_key="KEY", base_url="http://127.0.0.1:{session.replaced["8080"]}",\n)'
    session.replaced = {**session.replaced, 'api_key="KEY",\n)': here}
    session.start_service("askline serve")
    yield


def _proxy(session: PageSession, _: pytest.FixtureRequest) -> Iterator[None]:
    session.variables = {"KEY": "a key of sixteen letters and more"}
    yield


def _search_servers(session: PageSession, request: pytest.FixtureRequest) -> Iterator[None]:
    """A PostgreSQL server, and a server that answers as OpenSearch does."""
    import psycopg
    from opensearchpy import OpenSearch

    address = f"postgresql://postgres@/postgres?host={request.getfixturevalue('postgres')}"
    with Engine() as engine, psycopg.connect(address, autocommit=True) as database:
        engine.indexes["books"] = {name: dict(book) for name, book in _BOOKS.items()}
        database.execute("DROP TABLE IF EXISTS books CASCADE")  # of other tests
        database.execute("CREATE TABLE books (id text PRIMARY KEY, title text, body text)")
        for name, book in _BOOKS.items():
            row = (name, book["title"], book["body"])
            database.execute("INSERT INTO books VALUES (%s, %s, %s)", row)
        search = f"127.0.0.1:{engine.port}"
        session.replaced = {
            "localhost:9200": search,
            "search.example.org/books?": f"{search}/books?tls=no&",
            "postgresql://localhost/library?": f"{address}&",
        }
        session.names["client"] = OpenSearch([f"http://{search}"])
        session.run_sql = lambda text: database.execute(text.encode())
        yield
        database.execute("DROP TABLE books")


def _shared_store(session: PageSession, request: pytest.FixtureRequest) -> Iterator[None]:
    """A PostgreSQL server, notes to index, and a server that answers as OpenSearch does."""
    import psycopg

    address = f"postgresql://postgres@/postgres?host={request.getfixturevalue('postgres')}"
    (session.folder / "notes").mkdir()
    (session.folder / "notes" / "emma.txt").write_text("Jane Austen wrote Emma.", "utf-8")
    with Engine() as engine, psycopg.connect(address, autocommit=True) as database:
        session.replaced = {
            **session.replaced,
            "localhost:9200": f"127.0.0.1:{engine.port}",
            "postgresql://localhost/library": address,
        }
        session.run_sql = lambda text: database.execute(text.encode())
        yield
        database.execute("DROP SCHEMA askline CASCADE")
        database.execute("DROP OWNED BY reader")
        database.execute("DROP ROLE reader")


def _phrases(session: PageSession, _: pytest.FixtureRequest) -> Iterator[None]:
    (session.folder / "PATH").mkdir()
    (session.folder / "PATH" / "emma.txt").write_text("Jane Austen wrote Emma in 1815.", "utf-8")
    yield


def _training(session: PageSession, _: pytest.FixtureRequest) -> Iterator[None]:
    """Small question sets, a small encoder, and datasets in the format of their authors."""
    folder = session.folder
    for name in ("train.jsonl", "dev.jsonl"):
        _write_lines(folder / name, [_question(number) for number in range(10)])
    (folder / "sentences.txt").write_text("It sold well.\nJane Austen wrote Emma.\n", "utf-8")
    passage = {"title": "Lending", "sentences": ["Books are lent for four weeks.", "It is free."]}
    asked = {"question": "How long can I keep a book?", "answers": [0]}
    _write_lines(folder / "faq.jsonl", [passage | {"questions": [asked]}] * 4)
    for name in ("paragraphs.json", "dev-paragraphs.json"):
        (folder / name).write_text(json.dumps(_squad("own")), "utf-8")
    data = folder / "data"
    for name in ("new_wiki_v1.0", "reddit_v1.0", "amazon_reviews_v1.0"):
        _write_json(data / "squadshifts" / f"{name}.json", _squad(name))
    _write_json(data / "squad" / "train-800-contexts.json", _squad("squad"))
    _write_encoder(folder / "ENCODER")
    session.variables = {"ASKLINE_DATA": str(data)}
    session.replaced = {"--device cuda": "--device cpu"}
    yield


def _question(number: int) -> dict[str, Any]:
    """A question with 41 candidates; ten of them have enough texts for lists of 400."""
    texts = [f"It sold {100 * number + place} copies." for place in range(40)]
    texts.append(f"Jane Austen wrote Emma in {1800 + number}.")
    labels = [0] * 40 + [1]
    return {"question": f"Who wrote Emma {number}?", "candidates": texts, "labels": labels}


def _squad(name: str, articles: int = 10) -> dict[str, Any]:
    """Paragraphs in SQuAD's format, different for each name."""
    data = []
    for number in range(articles):
        text = f"Jane Austen wrote Emma in {1800 + number}. The {name} copy is a novel."
        answer = {"text": str(1800 + number), "answer_start": text.index("18")}
        question = {
            "id": f"{name}-{number}",
            "question": f"When was Emma {number} written?",
            "answers": [answer],
        }
        data.append(
            {"title": f"{name} {number}", "paragraphs": [{"context": text, "qas": [question]}]}
        )
    return {"version": "1.1", "data": data}


def _write_encoder(folder: Path, *, classifier: bool = False) -> None:
    """A BERT of twelve narrow layers with random weights, and its tokenizer."""
    transformers: Any = pytest.importorskip("transformers", reason="transformers is not installed")
    import torch

    torch.manual_seed(3)
    tokenizer = make_tokenizer()
    config = transformers.BertConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=32,
        num_hidden_layers=12,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=512,
        num_labels=1,
        initializer_range=0.2,
    )
    kind = transformers.BertForSequenceClassification if classifier else transformers.BertModel
    kind(config).save_pretrained(folder)
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=512,
    ).save_pretrained(folder)


def _write_json(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), "utf-8")


def _write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")


def _deadlines(session: PageSession, _: pytest.FixtureRequest) -> Iterator[None]:
    """A copy of the shipped cascade, whose schedule may be changed."""
    shipped = ROOT / "askline" / "models" / "shipped" / "cascade"
    shutil.copytree(shipped, session.folder / "DIR")
    _write_lines(session.folder / "dev.jsonl", [_question(number) for number in range(10)])
    yield


_SETUPS: dict[str, Callable[[PageSession, pytest.FixtureRequest], Iterator[None]]] = {
    "docs/guides/deadlines.md": _deadlines,
    "docs/guides/migrate.md": _migrate,
    "docs/guides/phrases.md": _phrases,
    "docs/guides/proxy.md": _proxy,
    "docs/guides/search-servers.md": _search_servers,
    "docs/guides/shared-store.md": _shared_store,
    "docs/guides/service.md": _service,
    "docs/guides/training.md": _training,
}
