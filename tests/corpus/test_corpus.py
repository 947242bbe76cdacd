from __future__ import annotations

import io
import multiprocessing
import os
import pickle
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import askline
from askline.corpus import Corpus
from askline.corpus.lock import writer_lock
from askline.errors import CorpusError, InputError, SpecError


@pytest.mark.slow
def test_a_corpus_can_be_opened_again(tmp_path: Path, pages: Path) -> None:
    with Corpus.open(tmp_path / "index") as corpus:
        corpus.add(pages)
        first = corpus.ask("Who built the stepped lens?").answers
    with Corpus.open(tmp_path / "index", must_exist=True) as corpus:
        assert corpus.ask("Who built the stepped lens?").answers == first
        assert corpus.status().searchable


@pytest.mark.parametrize("name", ["lamps/rock.txt", "lamps/lens.md", "bread.txt"])
def test_offsets_slice_the_file_exactly(pages: Path, name: str) -> None:
    with Corpus.in_memory() as corpus:
        corpus.add(pages / name)
        found = corpus.retriever().retrieve("the light yeast Fresnel 1822 lighthouse", 100)
    original = (pages / name).read_text("utf-8")
    assert found
    for each in found:
        piece = original[each.start : each.end]
        assert piece.replace("*", "") == each.text
        assert original.count("\n", 0, each.start) + 1 == each.number


@pytest.mark.slow
def test_an_answer_knows_its_place_and_heading(pages: Path) -> None:
    with Corpus.in_memory() as corpus:
        corpus.add(pages)
        best = corpus.ask("Who built the stepped lens?").best
    assert best is not None
    assert best.text == "Augustin Fresnel built it in 1822."
    assert best.place == "lamps/lens.md:7"
    assert (best.heading, best.title) == ("The stepped lens", "Lenses")


def test_a_ranker_is_a_spec_or_a_ranker(pages: Path) -> None:
    for ranker in ("wo % 2 >> bm25", askline.load("wo % 2 >> bm25")):
        with Corpus.in_memory(ranker=ranker) as corpus:
            corpus.add(pages)
            stages = corpus.ask("How far did the light go?").stages
            assert [stage.ranker for stage in stages] == ["passages % 100", "wo % 2", "bm25"]
    with Corpus.in_memory(ranker="jacard") as corpus, pytest.raises(SpecError, match="jacard"):
        corpus.ask("Who?")


@pytest.mark.slow
def test_standard_input_is_a_document(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(b"The lamp was lit in 1698."))
    monkeypatch.setattr(sys, "stdin", stream)
    with Corpus.in_memory() as corpus:
        assert corpus.add("-").added == 1
        best = corpus.ask("When was the lamp lit?").best
    assert best is not None
    assert best.place == "-:1"


def test_paths_mean_the_same_from_any_folder(
    tmp_path: Path, pages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Corpus.in_memory() as corpus:
        corpus.add(pages)
        monkeypatch.chdir(pages)
        assert corpus.add(".").unchanged == 3
        assert corpus.remove("lamps") == ["lamps/lens.md", "lamps/rock.txt"]


def test_an_index_that_must_exist_is_not_created(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"No index in .*nowhere\. Create one: askline index"):
        Corpus.open(tmp_path / "nowhere", must_exist=True)
    assert not (tmp_path / "nowhere").exists()


def test_a_folder_with_other_files_is_refused(pages: Path) -> None:
    with pytest.raises(
        CorpusError, match=r"is not an index: it contains other files, such as bread\.txt"
    ):
        Corpus.open(pages)
    assert sorted(os.listdir(pages)) == ["bread.txt", "lamps"]


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "index").write_text("no folder", encoding="utf-8")
    with pytest.raises(CorpusError, match="cannot hold an index"):
        Corpus.open(tmp_path / "index")


def test_a_closed_corpus_is_reported(pages: Path) -> None:
    corpus = Corpus.in_memory(ranker=None)
    corpus.add(pages)
    corpus.close()
    with pytest.raises(CorpusError, match=r"closed database\. The corpus was closed\. Open it"):
        corpus.ask("Who built the stepped lens?")


@pytest.mark.parametrize("source", [None, 3], ids=["nothing", "a number"])
def test_an_invalid_source_is_refused(source: object) -> None:
    with pytest.raises(InputError, match="Expected paths, or texts with ids, got"):
        Corpus.in_memory(ranker=None).add(source)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "source",
    ["Emma is a novel.", ["a/path.txt", "Who wrote\nEmma? "]],
    ids=["one text", "several"],
)
def test_a_text_without_an_id_is_refused(source: Any) -> None:
    with pytest.raises(InputError, match=r"Expected a path, got .* an id: add\({ID: TEXT}\)\."):
        Corpus.in_memory(ranker=None).add(source)


def test_a_missing_path_is_reported_and_no_error() -> None:
    report = Corpus.in_memory(ranker=None).add(["missing file.txt"])
    assert report.failed == 1


def test_answers_are_iterable_and_the_repr_names_the_folder(tmp_path: Path, pages: Path) -> None:
    with Corpus.open(tmp_path / "index", ranker=None) as corpus:
        corpus.add(pages)
        answers = corpus.ask("Who built the stepped lens?")
        assert repr(corpus) == f"<Corpus in {tmp_path / 'index'}>"
    assert list(answers) == list(answers.answers) != []
    assert repr(Corpus.in_memory()) == "<Corpus in memory>"


def test_status_has_counts_and_the_writing_process(tmp_path: Path, pages: Path) -> None:
    with Corpus.open(tmp_path / "index") as corpus:
        corpus.add(pages)
        status = corpus.status()
        assert (status.documents, status.sentences, status.writer) == (3, 10, None)
        assert status.characters > 300
        assert min(status.store_bytes, status.search_bytes) > 0
        with writer_lock(tmp_path / "index"):
            assert corpus.status().writer == os.getpid()


@pytest.mark.slow
def test_readers_see_changes_of_another_corpus_object(tmp_path: Path, pages: Path) -> None:
    with Corpus.open(tmp_path / "index") as reader, Corpus.open(tmp_path / "index") as writer:
        assert reader.ask("Why does dough rise?").best is None
        writer.add(pages)
        assert reader.ask("Why does dough rise?").best is not None
        writer.remove(pages / "bread.txt")
        assert reader.ask("Why does dough rise?").best is None


@pytest.mark.slow
def test_readers_go_on_while_another_writes(tmp_path: Path, pages: Path) -> None:
    with Corpus.open(tmp_path / "index") as corpus:
        corpus.add(pages)
    with writer_lock(tmp_path / "index"), Corpus.open(tmp_path / "index") as reader:
        assert reader.ask("Why does dough rise?").best is not None


@pytest.mark.slow
def test_many_threads_ask_at_once(tmp_path: Path, pages: Path) -> None:
    with Corpus.open(tmp_path / "index") as corpus:
        corpus.add(pages)
        alone = corpus.ask("Who built the stepped lens?").answers
        with ThreadPoolExecutor(8) as pool:
            together = list(pool.map(corpus.ask, ["Who built the stepped lens?"] * 32))
    assert all(answers.answers == alone for answers in together)


def _best_text(corpus: Corpus, question: str) -> str | None:
    best = corpus.ask(question).best
    return None if best is None else best.text


@pytest.mark.parametrize("spec", ["bm25", None], ids=str)
def test_a_copy_by_pickle_opens_the_same_folder(
    tmp_path: Path, pages: Path, monkeypatch: pytest.MonkeyPatch, spec: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    with Corpus.open("index", ranker=spec) as corpus:
        corpus.add(pages)
        before = pickle.dumps(corpus)
        answers = corpus.ask("Who built the stepped lens?").answers
        assert pickle.dumps(corpus) == before  # asking a question changes nothing
    monkeypatch.chdir(pages)  # a relative folder is pickled as an absolute one
    with pickle.loads(before) as copy:
        assert copy.ask("Who built the stepped lens?").answers == answers


def test_a_copy_by_pickle_has_the_same_ranker_object(tmp_path: Path, pages: Path) -> None:
    with Corpus.open(tmp_path / "index", ranker=askline.load("wo % 2 >> bm25")) as corpus:
        corpus.add(pages)
        with pickle.loads(pickle.dumps(corpus)) as copy:
            stages = copy.ask("How far did the light go?").stages
    assert [stage.ranker for stage in stages] == ["passages % 100", "wo % 2", "bm25"]


@pytest.mark.slow
def test_worker_processes_ask_a_pickled_corpus(tmp_path: Path, pages: Path) -> None:
    questions = ["Who built the stepped lens?", "Why does dough rise?"]
    with Corpus.open(tmp_path / "index", ranker="bm25") as corpus:
        corpus.add(pages)
        expected = [_best_text(corpus, question) for question in questions]
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            found = pool.starmap(_best_text, [(corpus, question) for question in questions])
    assert found == expected
    assert None not in found


def test_a_corpus_in_memory_refuses_to_be_pickled() -> None:
    with (
        Corpus.in_memory(ranker=None) as corpus,
        pytest.raises(CorpusError, match=r"in memory cannot be pickled\. Open a folder instead"),
    ):
        pickle.dumps(corpus)


@pytest.mark.parametrize("question", ["", " ", "\n\t"], ids=["empty", "space", "lines"])
def test_an_empty_question_is_refused_everywhere(pages: Path, question: str) -> None:
    with Corpus.in_memory(ranker=None) as corpus:
        corpus.add(pages)
        for ask in (
            corpus.ask,
            corpus.nearest,
            lambda text: corpus.ask(text, phrases=True),
            lambda text: corpus.retriever().retrieve(text, 5),
        ):
            with pytest.raises(InputError, match="The question must not be empty"):
                ask(question)


TEXTS = {
    "a/lamp": "The lamp burns. It is red.",
    "a/lamp/old": "The old lamp is out.",
    "b": "# Bread\n\nDough rises.",
}


@pytest.fixture
def texts_corpus() -> Iterator[Corpus]:
    with Corpus.in_memory(ranker=None) as made:
        made.add_texts(TEXTS)
        yield made


def test_documents_are_listed_by_name_in_pages(texts_corpus: Corpus) -> None:
    first = texts_corpus.documents(limit=2)
    assert [each.name for each in first] == ["a/lamp", "a/lamp/old"]
    assert (first[0].sentences, first[0].characters, first[0].problem) == (2, 26, None)
    rest = texts_corpus.documents(after="a/lamp/old")
    assert [each.name for each in rest] == ["b"]
    assert texts_corpus.documents(after="b") == []


def test_sentences_of_a_document_slice_its_text(texts_corpus: Corpus) -> None:
    found = texts_corpus.sentences("a/lamp")
    assert found is not None
    assert [TEXTS["a/lamp"][each.start : each.end] for each in found] == [
        "The lamp burns.",
        "It is red.",
    ]
    assert [each.text for each in texts_corpus.sentences("a/lamp", 1, 1) or ()] == ["It is red."]


def test_an_unknown_document_has_no_sentences(texts_corpus: Corpus) -> None:
    assert texts_corpus.sentences("a") is None


def test_only_the_document_of_exactly_that_name_is_removed(texts_corpus: Corpus) -> None:
    assert texts_corpus.remove_document("a") is False
    assert texts_corpus.remove_document("a/lamp") is True
    assert texts_corpus.remove_document("a/lamp") is False
    assert [each.name for each in texts_corpus.documents()] == ["a/lamp/old", "b"]
