from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from askline.corpus import Corpus
from askline.corpus.document_records import text_record
from askline.corpus.passages import PassageHit
from askline.corpus.search_index import PassageWriter, SearchIndex
from askline.corpus.store import Store
from askline.errors import CorpusError
from askline.text.words import split_identifiers

from .conftest import storage_of, write


@pytest.fixture
def store() -> Iterator[Store]:
    store = Store.in_memory()
    store.put(
        [text_record("rock", "The lamp was lit in 1698."), text_record("bread", "Yeast rises.")]
    )
    yield store
    store.close()


def _terms(index: SearchIndex, text: str) -> dict[str, float]:
    return {index.stem(word): 1.0 for word in split_identifiers(text)}


def _names(store: Store, index: SearchIndex, text: str) -> list[str]:
    hits = index.search(_terms(index, text), 10)
    return [found[0] for hit in hits if (found := store.document(hit.document_id))]


def test_update_indexes_passages_under_every_form_of_a_word(store: Store) -> None:
    index = SearchIndex.in_memory()
    assert index.stamp() is None
    index.update(store)
    assert index.stamp() == (store.identity, store.generation)
    assert _names(store, index, "LAMPS lit") == ["rock"]
    assert _names(store, index, "rising") == ["bread"]
    assert _names(store, index, "") == []


def test_passages_are_found_by_the_title_too(store: Store) -> None:
    index = SearchIndex.in_memory()
    index.update(store)
    assert _names(store, index, "rock") == ["rock"]


def test_update_applies_added_and_removed_documents(store: Store) -> None:
    index = SearchIndex.in_memory()
    index.update(store)
    store.put([text_record("rock", "The tower fell."), text_record("lens", "A lens of glass.")])
    store.remove(["bread"])
    index.update(store)
    assert _names(store, index, "lamp yeast") == []
    assert _names(store, index, "tower glass") == ["rock", "lens"]
    assert len(index.search(_terms(index, "tower glass"), 10)) == 2


def test_two_updates_find_everything_once(store: Store) -> None:
    index = SearchIndex.in_memory()
    index.update(store)
    index.update(store)
    assert _names(store, index, "lamp") == ["rock"]


@pytest.mark.slow
@pytest.mark.parametrize("forgotten", [False, True], ids=["remembered", "forgotten"])
def test_an_older_copy_of_the_index_catches_up(
    store: Store, tmp_path: Path, forgotten: bool
) -> None:
    index = SearchIndex.create(tmp_path / "search")
    index.update(store)
    store.remove(["bread"])
    if forgotten:
        store.forget_removals(store.generation)
    later = SearchIndex.open(tmp_path / "search")
    assert later is not None
    later.update(store)
    assert later.search(_terms(later, "yeast"), 10) == []
    assert _names(store, later, "lamp") == ["rock"]


def test_an_index_of_another_store_is_rebuilt(store: Store) -> None:
    index = SearchIndex.in_memory()
    index.update(store)
    other = Store.in_memory()
    other.put([text_record("salt", "Salt slows the yeast.")])
    index.update(other)
    assert _names(other, index, "lamp lit") == []
    assert _names(other, index, "yeast") == ["salt"]
    other.close()


def test_an_index_newer_than_a_restored_store_is_rebuilt(tmp_path: Path) -> None:
    path, copy = tmp_path / "store.sqlite", tmp_path / "copy.sqlite"
    index = SearchIndex.in_memory()
    for name in ("old", "new"):
        store = Store.open(path, may_migrate=True)
        assert store is not None
        store.put([text_record(name, f"The {name} lamp.")])
        index.update(store)
        store.close()
        if not copy.exists():
            shutil.copy(path, copy)
    back = Store.open(copy, may_migrate=False)
    assert back is not None
    index.update(back)
    assert _names(back, index, "lamp") == ["old"]
    assert index.stamp() == (back.identity, back.generation)
    back.close()


def test_rare_words_have_higher_weights_than_common_ones(store: Store) -> None:
    store.put([text_record(f"{number}", "The lamp burns.") for number in range(9)])
    index = SearchIndex.in_memory()
    index.update(store)
    weights = index.term_weights(["lamp", "yeast", "unheard"])
    assert weights["yeast"] > weights["lamp"] > 0
    assert "unheard" not in weights


@pytest.mark.parametrize("text", ["a" * 200, "naïve CAFÉ", "灯台", "\x00", "?!"], ids=ascii)
def test_hard_texts_are_indexed(text: str) -> None:
    store, index = Store.in_memory(), SearchIndex.in_memory()
    store.put([text_record("a", f"{text} lamp")])
    index.update(store)
    assert len(index.search(_terms(index, "lamp"), 10)) == 1
    store.close()


def test_accents_do_not_matter() -> None:
    store, index = Store.in_memory(), SearchIndex.in_memory()
    store.put([text_record("a", "Le café est fermé.")])
    index.update(store)
    assert _names(store, index, "cafe FERME") == ["a"]
    store.close()


def test_open_returns_none_for_a_missing_or_damaged_index(tmp_path: Path) -> None:
    assert SearchIndex.open(tmp_path / "nowhere") is None
    folder = tmp_path / "search"
    SearchIndex.create(folder)
    (folder / "meta.json").write_text("{", encoding="utf-8")
    assert SearchIndex.open(folder) is None


def test_a_term_in_the_title_counts_more_with_a_weight_for_titles() -> None:
    store, index = Store.in_memory(), SearchIndex.in_memory()
    store.put(
        [
            text_record("other", "A lamp burns here, and a lamp burns there. Lamp oil is cheap."),
            text_record("lamp", "It burns oil all night, until the keeper of the tower wakes up."),
        ]
    )
    index.update(store)
    terms = _terms(index, "lamp")
    names = [store.document(hit.document_id) for hit in index.search(terms, 10, titles=5.0)]
    assert [name and name[0] for name in names] == ["lamp", "other"]
    names = [store.document(hit.document_id) for hit in index.search(terms, 10)]
    assert [name and name[0] for name in names] == ["other", "lamp"]
    store.close()


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("Set max_retry_count to 3.", "retry"),
        ("Use a RetryPolicy.", "policy"),
        ("Call foo.bar.baz first.", "foobarbaz"),
        ("Try --dry-run first.", "dryrun"),
        ("Start HTTPServer2 now.", "server"),
        ("Start HTTPServer2 now.", "httpserver2"),
    ],
)
def test_parts_and_wholes_of_identifiers_are_indexed(text: str, word: str) -> None:
    store, index = Store.in_memory(), SearchIndex.in_memory()
    store.put([text_record("a", text)])
    index.update(store)
    assert _names(store, index, word) == ["a"]
    store.close()


def test_what_is_written_while_storing_is_what_an_update_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = tmp_path / "pages"
    for number in range(12):
        write(pages / f"{number}.txt", f"The lamp {number} burns. " * 90, age=60)

    def found(folder: Path) -> list[PassageHit]:
        with Corpus.open(folder) as corpus:
            index = storage_of(corpus).search_index()
            assert isinstance(index, SearchIndex)
            return index.search({"lamp": 1.0, "7": 2.0}, 1000)

    with Corpus.open(tmp_path / "a") as corpus:
        corpus.add(pages)
        write(pages / "3.txt", "The lamp 3 is out.", age=30)
        corpus.add(pages)
    monkeypatch.setattr(PassageWriter, "add", lambda *_: None)
    with Corpus.open(tmp_path / "b") as corpus:
        corpus.add(pages)
    at_once, later = found(tmp_path / "a"), found(tmp_path / "b")
    assert len(at_once) == len(later) > 12
    assert sorted(hit[1:3] for hit in at_once) == sorted(hit[1:3] for hit in later)


def test_a_failure_to_write_passages_leaves_them_to_the_next_update(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ValueError("the disk is full")

    write(tmp_path / "pages" / "a.txt", "The lamp burns.", age=60)
    with monkeypatch.context() as patch:
        patch.setattr("askline.corpus.search_index._add_passages", fail)
        with pytest.raises(CorpusError), Corpus.open(tmp_path / "index") as corpus:
            corpus.add(tmp_path / "pages")
    with Corpus.open(tmp_path / "index") as corpus:
        best = corpus.ask("What burns?").best
    assert best is not None
