"""A folder of shards answers as one index does, and says what is missing."""

from __future__ import annotations

import json
import pickle
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from askline.corpus import Corpus, HasPassages, finish_shards, write_shard
from askline.demo import documents
from askline.errors import CorpusError

QUESTIONS = [
    "How long is the Trans-Siberian railway?",
    "What do honey bees collect?",
    "When was the metre defined?",
    "How does the moon cause tides?",
    "Which lens do lighthouses use?",
    "How is cofee roasted?",
    "How is the temperature of the roaster controlled in a large plant?",
]


def _texts() -> dict[str, str]:
    """The demo's pages by paragraph: short and long ones, several of a page."""
    return {
        f"{name}/{number}": paragraph
        for name, text in documents()
        for number, paragraph in enumerate(text.split("\n\n"))
        if paragraph.strip()
    }


def _build(folder: Path, texts: dict[str, str], shards: int = 3) -> Path:
    """Shards by length, so that their statistics differ much."""
    ordered = sorted(texts.items(), key=lambda item: len(item[1]))
    ends = [len(ordered) * number**2 // shards**2 for number in range(shards + 1)]
    finish_shards(
        folder,
        [write_shard(folder, at, ordered[ends[at] : ends[at + 1]]) for at in range(shards)],
    )
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return _build(tmp_path / "shards", _texts())


@pytest.fixture
def single() -> Iterator[Corpus]:
    with Corpus.in_memory(ranker=None) as corpus:
        corpus.add(_texts())
        yield corpus


def _places(corpus: Corpus, question: str, k: int = 100) -> list[tuple[float, str, int]]:
    found = corpus.retriever().retrieve(question, k)
    return sorted((-round(each.score, 3), each.document, each.ordinal) for each in found)


def test_scores_are_those_of_a_single_index(folder: Path, single: Corpus) -> None:
    with Corpus.open(folder, ranker=None) as sharded:
        for question in QUESTIONS:
            expected = single.retriever().retrieve(question, 60)
            found = sharded.retriever().retrieve(question, 60)
            assert found
            assert [each.score for each in found] == pytest.approx(
                [each.score for each in expected], abs=1e-4
            )
            assert _places(sharded, question, 10)[:5] == _places(single, question, 10)[:5]


def test_all_results_of_a_rare_shard_are_found(tmp_path: Path) -> None:
    """All best passages are in one shard, which must give more than its part."""
    rng = random.Random(1)
    words = "lamp oil wick glass flame tower keeper".split()
    texts = {f"a{n}": " ".join(rng.choices(words, k=8)) + "." for n in range(60)}
    texts |= {f"b{n}": "A ship came near. " * 30 + f"One lamp in {n} places." for n in range(60)}
    shards = [[item for item in texts.items() if item[0][0] == letter] for letter in "ab"]
    folder = tmp_path / "shards"
    finish_shards(folder, [write_shard(folder, at, own) for at, own in enumerate(shards)])
    with Corpus.in_memory(ranker=None) as single, Corpus.open(folder, ranker=None) as sharded:
        single.add(texts)
        for question in ("Which lamp has a wick?", "Where was the ship near the lamp?"):
            assert _scores(sharded, question) == pytest.approx(_scores(single, question), abs=1e-4)


def _scores(corpus: Corpus, question: str) -> list[float]:
    return [each.score for each in corpus.retriever().retrieve(question, 40)]


def test_a_ranker_gets_passages_and_neighbors(folder: Path, single: Corpus) -> None:
    with Corpus.open(folder, ranker="bm25") as sharded:
        found = sharded.ask(QUESTIONS[0])
        assert found.missing_shards == ()
        best = found.best
        assert best is not None
        assert sharded.sentences(best.document)
        retriever = sharded.retriever()
        assert isinstance(retriever, HasPassages)
        assert retriever.passage(retriever.retrieve(QUESTIONS[0], 5)[0])
        expected = single.ask(QUESTIONS[0])
        assert expected.stages[0].entered == found.stages[0].entered


def test_reading_covers_all_shards(folder: Path, single: Corpus) -> None:
    with Corpus.open(folder, ranker=None) as sharded:
        names = [each.name for each in sharded.documents(limit=10_000)]
        assert names == sorted(_texts())
        page = sharded.documents(after=names[4], limit=3)
        assert [each.name for each in page] == names[5:8]
        for name in names:
            assert sharded.sentences(name) == single.sentences(name)
        assert sharded.sentences("unknown") is None
        status, expected = sharded.status(), single.status()
        assert (status.documents, status.sentences) == (expected.documents, expected.sentences)
        assert status.characters == expected.characters
        assert status.searchable
        assert status.shards == 3
        assert sharded.verify().documents == len(names)
        copy: Corpus = pickle.loads(pickle.dumps(sharded))
        assert _places(copy, QUESTIONS[0]) == _places(sharded, QUESTIONS[0])
        copy.close()


def test_it_cannot_be_changed(folder: Path) -> None:
    with Corpus.open(folder, ranker=None) as sharded:
        with pytest.raises(CorpusError, match="sharded index.*askline index PATH"):
            sharded.add({"new": "A text."})
        with pytest.raises(CorpusError, match="sharded index"):
            sharded.remove("coffee/0")
        with pytest.raises(CorpusError, match="sharded index"):
            sharded.remove_document("coffee/0")


def _shard_folders(folder: Path) -> list[Path]:
    manifest = json.loads((folder / "shards.json").read_text())
    return [folder / each["name"] for each in manifest["shards"]]


def test_a_missing_shard_is_named(folder: Path) -> None:
    lost = _shard_folders(folder)[1]
    shutil.rmtree(lost)
    with pytest.raises(CorpusError, match=rf"1 of 3 shards .*{lost.name}: The folder is missing"):
        Corpus.open(folder, ranker=None)


def test_a_damaged_shard_is_named(folder: Path) -> None:
    damaged = _shard_folders(folder)[2]
    store = damaged / "store.sqlite"
    content = bytearray(store.read_bytes())
    content[4096 : len(content) - 4096] = bytes(len(content) - 8192)
    store.write_bytes(content)
    with pytest.raises(CorpusError, match=rf"1 of 3 shards .*{damaged.name}: .*damaged"):
        Corpus.open(folder, ranker=None)


def test_a_shard_of_another_build_is_named(folder: Path, tmp_path: Path) -> None:
    other = _shard_folders(_build(tmp_path / "other", _texts()))[0]
    own = _shard_folders(folder)[0]
    shutil.rmtree(own)
    shutil.copytree(other, own)
    with pytest.raises(CorpusError, match=f"{own.name}: It belongs to another build"):
        Corpus.open(folder, ranker=None)


def test_partial_answers_say_what_is_missing(folder: Path) -> None:
    with Corpus.open(folder, ranker=None) as whole:
        all_names = {each.name for each in whole.documents(limit=10_000)}
    lost = _shard_folders(folder)[0]
    shutil.rmtree(lost)
    with Corpus.open(folder, ranker="bm25", allow_partial=True) as partial:
        answers = partial.ask(QUESTIONS[0])
        assert answers.answers
        assert [each.name for each in answers.missing_shards] == [lost.name]
        assert "missing" in answers.missing_shards[0].problem
        status = partial.status()
        assert status.shards == 3
        assert [each.name for each in status.missing_shards] == [lost.name]
        left = {each.name for each in partial.documents(limit=10_000)}
        assert left < all_names
        copy: Corpus = pickle.loads(pickle.dumps(partial))
        assert copy.missing_shards == partial.missing_shards
        copy.close()


def _break(corpus: Corpus) -> None:
    corpus._storage.parts[2].store.close()


def test_a_shard_that_breaks_while_open_is_left_out(folder: Path) -> None:
    broken = _shard_folders(folder)[2]
    with Corpus.open(folder, ranker=None, allow_partial=True) as partial:
        assert not partial.ask(QUESTIONS[0]).missing_shards
        _break(partial)
        answers = partial.ask(QUESTIONS[0])
        assert [each.name for each in answers.missing_shards] == [broken.name]
        assert answers.answers
    with Corpus.open(folder, ranker=None) as strict:
        _break(strict)
        with pytest.raises(CorpusError, match=broken.name):
            strict.ask(QUESTIONS[0])


def test_without_any_shard_there_is_no_corpus(folder: Path) -> None:
    for shard in _shard_folders(folder):
        shutil.rmtree(shard)
    with pytest.raises(CorpusError, match="3 of 3 shards"):
        Corpus.open(folder, ranker=None, allow_partial=True)


@pytest.mark.parametrize("content", ["", "{}", '{"format": 1, "shards": []}', '{"format": 2}'])
def test_a_bad_manifest_is_an_error(folder: Path, content: str) -> None:
    (folder / "shards.json").write_text(content)
    with pytest.raises(CorpusError, match=r"shards\.json"):
        Corpus.open(folder, ranker=None)


def test_a_damaged_search_index_of_a_shard_is_rebuilt(folder: Path) -> None:
    with Corpus.open(folder, ranker=None) as corpus:
        before = _places(corpus, QUESTIONS[0])
    for segment in (_shard_folders(folder)[1] / "search").glob("*.store"):
        segment.write_bytes(b"")
    with Corpus.open(folder, ranker=None) as corpus:
        assert corpus.ask(QUESTIONS[0]).answers
        assert _places(corpus, QUESTIONS[0]) == before


def test_an_empty_shard_counts_for_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "shards"
    texts = list(_texts().items())
    parts = [texts[::2], [], texts[1::2]]
    finish_shards(folder, [write_shard(folder, at, part) for at, part in enumerate(parts)])
    with Corpus.open(folder, ranker=None) as sharded, Corpus.in_memory(ranker=None) as single:
        single.add(dict(texts))
        assert _scores(sharded, QUESTIONS[1]) == pytest.approx(
            _scores(single, QUESTIONS[1]), abs=1e-4
        )


@pytest.mark.slow
def test_phrases_of_all_shards_are_searched(folder: Path, single: Corpus) -> None:
    with Corpus.open(folder, ranker=None) as sharded:
        sharded.encode_phrases()
        assert sharded.status().encoded
        found = sharded.nearest(QUESTIONS[0])
        expected = single.nearest(QUESTIONS[0])
        assert [each.text for each in found] == [each.text for each in expected]
        both = sharded.ask(QUESTIONS[0], phrases=True)
        assert [each.text for each in both] == [
            each.text for each in single.ask(QUESTIONS[0], phrases=True)
        ]
