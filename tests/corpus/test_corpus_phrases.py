"""The phrase index of a corpus: sync with the store, repair, and answers."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from askline.corpus import Corpus, corpus_phrases
from askline.corpus import phrase_index_sync as encoded
from askline.corpus.lock import writer_lock
from askline.corpus.phrase_index_sync import PassageId
from askline.corpus.shard_building import finish_shards, write_shard
from askline.errors import CorpusError, InputError, ModelError
from askline.phrases import PhraseIndex, PhraseModel

from ..phrases.models import make_folder
from .conftest import storage_of

pytest.importorskip("tokenizers", reason="tokenizers is not installed")


TEXTS = {
    "austen": "Jane Austen wrote Emma. Emma is a novel.",
    "herbert": "Frank Herbert wrote Dune. Dune is a planet of sand.",
    "paris": "Paris is the capital of France. It is a city.",
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_folder(tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture
def corpus(tmp_path: Path, model: Path) -> Iterator[Corpus]:
    with Corpus.open(tmp_path / "index", ranker="jaccard") as corpus:
        corpus.add(TEXTS)
        corpus.encode_phrases(model)
        yield corpus


def _encoded(corpus: Corpus) -> list[str]:
    """Documents whose phrases are there, by their names."""
    index = PhraseIndex.open(storage_of(corpus).phrases._index_folder())
    numbers = {PassageId.parse(name).document_id for name in index.documents}
    described = [corpus._store.document(number) for number in sorted(numbers)]
    return [one.name if one else "gone" for one in described]


def test_the_nearest_phrases_are_returned_with_their_sentences(corpus: Corpus) -> None:
    answers = corpus.nearest("who wrote emma ?", top_k=6).answers
    assert len({(answer.document, answer.start) for answer in answers}) == 6
    assert [answer.score for answer in answers] == sorted(
        (answer.score for answer in answers), reverse=True
    )
    for answer in answers:
        assert answer.phrase is not None
        assert answer.text[answer.phrase.start : answer.phrase.end] == answer.phrase.text
        assert TEXTS[answer.document][answer.start : answer.end] == answer.text


def test_phrase_search_finds_sentences_without_shared_words(corpus: Corpus) -> None:
    assert corpus.ask("zebra ?").answers == ()
    answers = corpus.ask("zebra ?", phrases=True, top_k=9)
    assert len(answers.answers) == 6
    assert answers.stages[0].ranker == "(passages + phrases) % 100"
    assert all(answer.phrase is not None for answer in answers.answers)


def test_the_ranker_ranks_sentences_of_both_searches(corpus: Corpus) -> None:
    best = corpus.ask("what is the capital of france", phrases=True, blend=0.0).best
    assert best is not None
    assert best.text == "Paris is the capital of France."
    assert (best.before, best.after) == ("", "It is a city.")


@pytest.mark.slow
def test_changes_of_the_store_are_encoded(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus.add({"paris": "Paris is a city in France.", "sand": "Sand is a planet."})
    corpus.remove("austen")
    assert not corpus.status().encoded
    done: list[int] = []
    corpus.encode_phrases(on_document=lambda: done.append(1))
    assert len(done) == 2  # the changed one and the new one alone
    assert sorted(_encoded(corpus)) == ["herbert", "paris", "sand"]
    assert corpus.status().encoded
    texts = {answer.text for answer in corpus.nearest("who ?", top_k=9).answers}
    assert "Jane Austen wrote Emma." not in texts
    assert "Paris is a city in France." in texts


def test_a_question_encodes_missing_documents(corpus: Corpus) -> None:
    corpus.add({"sand": "Sand is a planet."})
    found = {answer.document for answer in corpus.nearest("what ?", top_k=9).answers}
    assert "sand" in found


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["manifest", "vectors", "folder", "rubbish"])
def test_a_missing_or_damaged_phrase_index_is_rebuilt(
    tmp_path: Path, corpus: Corpus, model: Path, damage: str
) -> None:
    before = [answer.text for answer in corpus.nearest("who wrote emma ?").answers]
    corpus.close()
    folder = tmp_path / "index" / "phrases"
    if damage == "manifest":
        (folder / "phrases.json").write_text("{", encoding="utf-8")
    elif damage == "vectors":
        (folder / "000000" / "vectors.npy").write_bytes(b"\x93NUMPY")
    elif damage == "rubbish":
        (folder / "phrases.json").write_text("[]", encoding="utf-8")
    else:
        for file in sorted(folder.rglob("*"), reverse=True):
            file.rmdir() if file.is_dir() else file.unlink()
        folder.rmdir()
    with Corpus.open(tmp_path / "index", ranker="jaccard") as again:
        again.encode_phrases(model)
        assert [answer.text for answer in again.nearest("who wrote emma ?").answers] == before


def test_the_model_is_remembered(tmp_path: Path, corpus: Corpus) -> None:
    corpus.close()
    with Corpus.open(tmp_path / "index", ranker="jaccard") as again:
        assert again.nearest("who ?").answers


@pytest.mark.slow
def test_another_model_rebuilds_the_phrase_index(tmp_path: Path, corpus: Corpus) -> None:
    phrases = corpus.status().phrases
    other = make_folder(tmp_path / "other", words=0)
    corpus.encode_phrases(other)
    assert corpus.status().phrases == phrases
    assert corpus.nearest("who ?").answers
    with pytest.raises(ModelError, match="No model folder"):
        corpus.encode_phrases(tmp_path / "nowhere")


def test_a_reader_uses_the_model_that_another_process_chose(tmp_path: Path, corpus: Corpus) -> None:
    folder = tmp_path / "index"
    assert corpus.nearest("who ?").answers
    other = make_folder(tmp_path / "other", words=0)
    with Corpus.open(folder, ranker=None) as another:
        another.encode_phrases(other)
    stamp = PhraseIndex.open(folder / "phrases").stamp
    assert corpus.nearest("who ?").answers
    assert PhraseIndex.open(folder / "phrases").stamp == stamp


@pytest.mark.slow
def test_the_temporary_phrase_index_is_deleted_with_the_corpus(
    model: Path, recwarn: pytest.WarningsRecorder
) -> None:
    corpus = Corpus.in_memory(ranker=None)
    corpus.add({"emma": "Jane Austen wrote Emma."})
    corpus.encode_phrases(model)
    place = storage_of(corpus).phrases._index_folder()
    assert place.is_dir()
    del corpus
    gc.collect()
    assert not place.exists()
    assert not recwarn


KILLED = """
import os, sys
from askline.corpus import Corpus, phrase_index_sync as encoded
from askline.phrases import phrase_index as manifest, index_segments as segments

encoded.PASSAGES_PER_BATCH, step, real = 1, 0, segments.atomic_write

def counted(path):
    global step
    step += 1
    if step == int(sys.argv[3]):
        os._exit(9)
    return real(path)

segments.atomic_write = manifest.atomic_write = counted
with Corpus.open(sys.argv[1], ranker=None) as corpus:
    corpus.encode_phrases(sys.argv[2])
"""


@pytest.mark.slow
@pytest.mark.parametrize("step", [1, 2, 5, 10, 11, 15, 21, 30, 31], ids=str)
def test_encoding_continues_after_a_killed_process(tmp_path: Path, model: Path, step: int) -> None:
    with Corpus.open(tmp_path / "index", ranker=None) as corpus:
        corpus.add(TEXTS)
        program = [sys.executable, "-c", KILLED, str(tmp_path / "index"), str(model), str(step)]
        done = subprocess.run(program, capture_output=True)
        assert done.returncode == 9, done.stderr.decode()
        corpus.encode_phrases(model)
        assert sorted(_encoded(corpus)) == sorted(TEXTS)
        sentences = [answer.text for answer in corpus.nearest("who ?", top_k=9).answers]
        assert len(sentences) == len(set(sentences)) == 6


@pytest.mark.slow
def test_a_long_document_is_written_in_parts(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoded, "PASSAGES_PER_BATCH", 2)
    text = "\n\n".join(f"Jane Austen wrote novel {number} in Paris." * 10 for number in range(20))
    with Corpus.open(tmp_path / "index", ranker=None) as corpus:
        corpus.add({"long": text, "short": "Dune is a planet."})
        corpus.encode_phrases(model)
        index = PhraseIndex.open(tmp_path / "index" / "phrases")
        names = [PassageId.parse(name) for name in index.documents]
        assert len(names) == len(set(names)) > 4
        segments = [path for path in index.folder.iterdir() if path.is_dir()]
        assert len(segments) <= 8  # small ones were joined
        assert corpus.nearest("who ?", top_k=1).answers


@pytest.mark.slow
def test_no_lock_is_held_while_phrases_are_encoded(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = storage_of(corpus).phrases._index_folder().parent
    real = encoded.PhraseIndexSync._encode_batch
    held: list[bool] = []

    def watched(self, waiting, done):  # type: ignore[no-untyped-def]
        with writer_lock(folder), writer_lock(folder / "phrases"):
            held.append(True)
        return real(self, waiting, done)

    monkeypatch.setattr(encoded.PhraseIndexSync, "_encode_batch", watched)
    corpus.add({"sand": "Sand is a planet."})
    corpus.encode_phrases()
    assert held


@pytest.mark.slow
def test_a_model_change_by_another_process_is_reported(
    tmp_path: Path, corpus: Corpus, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_folder(tmp_path / "other", words=0)
    real = encoded.PhraseIndexSync._encode_batch

    def crossed(self, waiting, done):  # type: ignore[no-untyped-def]
        monkeypatch.setattr(encoded.PhraseIndexSync, "_encode_batch", real)
        with Corpus.open(tmp_path / "index", ranker=None) as second:
            second.encode_phrases(other)
        return real(self, waiting, done)

    monkeypatch.setattr(encoded.PhraseIndexSync, "_encode_batch", crossed)
    corpus.add({"sand": "Sand is a planet."})
    with pytest.raises(CorpusError, match="another process encodes them with another model"):
        corpus.encode_phrases(model)


def test_a_corpus_in_memory_has_phrases_too(model: Path) -> None:
    with Corpus.in_memory(ranker=None) as corpus:
        assert corpus.status().phrases is None
        corpus.add(TEXTS)
        corpus.encode_phrases(model)
        assert corpus.nearest("who wrote emma ?", top_k=1).best is not None
        place = storage_of(corpus).phrases._index_folder()
        assert place.is_dir()
    assert not place.exists()


def test_headings_and_long_lines_keep_their_places(tmp_path: Path, model: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Emma\n\nJane Austen wrote it.\n\n" + "sand " * 3000, encoding="utf-8")
    with Corpus.in_memory(ranker=None) as corpus:
        corpus.add(page)
        corpus.encode_phrases(model)
        answers = corpus.nearest("who wrote emma ?", top_k=50).answers
        assert answers
        for answer in answers:
            assert answer.text != "Emma"
            assert answer.phrase is not None
            assert answer.text[answer.phrase.start : answer.phrase.end] == answer.phrase.text


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    ["", "a", "?!… —", "👍🏽 emma cafe\u0301 東京 дюна !", "e\u0301\u0301 emma 👩‍👩‍👧 paris"],
    ids=["empty", "one", "no letters", "mixed", "marks"],
)
def test_unusual_texts_are_encoded_and_searched(model: Path, text: str) -> None:
    with Corpus.in_memory(ranker=None) as corpus:
        corpus.add({"odd": text, "plain": TEXTS["austen"]})
        corpus.encode_phrases(model)
        assert corpus.status().encoded
        for answer in corpus.nearest("emma ?", top_k=9).answers:
            assert answer.phrase is not None
            assert answer.text[answer.phrase.start : answer.phrase.end] == answer.phrase.text


def test_nearest_refuses_an_empty_question(corpus: Corpus) -> None:
    with pytest.raises(InputError, match="must not be empty"):
        corpus.nearest("  ")


@pytest.mark.slow
def test_ten_megabytes_in_one_paragraph_are_encoded(model: Path) -> None:
    with Corpus.in_memory(ranker=None) as corpus:
        corpus.add({"huge": "sand " * 2_000_000, "plain": TEXTS["austen"]})
        corpus.encode_phrases(model)
        assert corpus.status().encoded
        assert {answer.document for answer in corpus.nearest("who ?", top_k=9).answers} <= {
            "huge",
            "plain",
        }


FRENCH_TEXTS = {
    "eiffel": "Gustave Eiffel a construit le viaduc de Garabit. Il est dans le Cantal.",
    "hugo": "Victor Hugo a écrit Les Misérables. C'est un roman sur la pauvreté.",
}


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The names of the models that are loaded; all of them are tiny ones."""
    names: list[str] = []
    folders = {name: make_folder(tmp_path / name, words=at) for at, name in enumerate(("en", "fr"))}

    def load(name: str) -> PhraseModel:
        names.append(name)
        return PhraseModel.load(folders.get(name, Path(name)))

    monkeypatch.setattr(corpus_phrases, "load_phrase_model", load)
    return names


@pytest.mark.parametrize(
    ("texts", "language"),
    [
        (TEXTS, "en"),
        (FRENCH_TEXTS, "fr"),
        ({**FRENCH_TEXTS, "paris": TEXTS["paris"]}, "fr"),
        ({**FRENCH_TEXTS, **TEXTS}, "en"),
        ({"de": "Der Zug ist nicht in der Stadt. Er war aber auch nicht auf dem Land."}, "en"),
    ],
    ids=["English", "French", "mostly French", "mostly English", "another language"],
)
def test_most_documents_choose_the_model(
    tmp_path: Path, loaded: list[str], texts: dict[str, str], language: str
) -> None:
    with Corpus.open(tmp_path / "index", ranker="jaccard") as corpus:
        corpus.add(texts)
        corpus.encode_phrases()
        assert loaded == [language]


def test_the_model_stays_once_phrases_are_encoded(tmp_path: Path, loaded: list[str]) -> None:
    with Corpus.open(tmp_path / "index", ranker="jaccard") as corpus:
        corpus.add(FRENCH_TEXTS)
        corpus.encode_phrases()
        corpus.add(TEXTS)
        assert len(_encoded(corpus)) == 2
        corpus.encode_phrases()
    with Corpus.open(tmp_path / "index", ranker="jaccard") as corpus:
        assert corpus.nearest("who wrote emma ?", top_k=9).answers
    assert loaded == ["fr", "fr"]


def test_an_empty_corpus_does_not_decide(tmp_path: Path, loaded: list[str]) -> None:
    with Corpus.open(tmp_path / "index", ranker="jaccard") as corpus:
        corpus.encode_phrases()
        corpus.add(FRENCH_TEXTS)
        corpus.encode_phrases()
        assert loaded == ["en", "fr"]
        assert len(_encoded(corpus)) == 2


def test_a_language_can_be_named(tmp_path: Path, loaded: list[str]) -> None:
    with Corpus.open(tmp_path / "index", ranker="jaccard") as corpus:
        corpus.add(FRENCH_TEXTS)
        corpus.encode_phrases("en")
        corpus.encode_phrases()
        assert loaded == ["en"]
        corpus.encode_phrases("fr")
        assert loaded == ["en", "fr"]


def test_all_shards_have_one_model(tmp_path: Path, loaded: list[str]) -> None:
    shards = [
        write_shard(tmp_path / "index", 0, [*FRENCH_TEXTS.items()], phrases=True),
        write_shard(tmp_path / "index", 1, [("paris", TEXTS["paris"])], phrases=True),
    ]
    assert loaded == ["fr", "en"]
    finish_shards(tmp_path / "index", shards)
    with Corpus.open(tmp_path / "index", ranker="jaccard") as corpus:
        answers = corpus.nearest("quelle ville ?", top_k=9).answers
        assert {answer.document for answer in answers} == {*FRENCH_TEXTS, "paris"}
        assert {*loaded[2:]} == {"fr"}
