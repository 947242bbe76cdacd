from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from askline.errors import CorpusError, InputError
from askline.phrases.phrase_index import Manifest, PhraseIndex
from askline.phrases.phrase_model import EncodedPhrases, EncodedQuestion, PhraseModel, PhraseSpan

from .models import make_folder

TEXTS = {
    "austen": "Jane Austen wrote Emma. Emma is a novel.",
    "herbert": "Frank Herbert wrote Dune. Dune is a planet of sand.",
    "paris": "Paris is the capital of France. It is a city.",
}


def _add(index: PhraseIndex, model: PhraseModel, *names: str) -> None:
    index.add([(name, TEXTS[name], model.encode(TEXTS[name], limit=20)) for name in names])


def _made_up(count: int, model: PhraseModel) -> tuple[str, EncodedPhrases]:
    """Phrases with random vectors, for sizes that no encoder is needed for."""
    rng = np.random.default_rng(4)
    text = "emma " * count
    dense = rng.standard_normal((count, 9)).astype(np.float32)
    phrases = tuple(PhraseSpan("emma", 5 * at, 5 * at + 4, -1.0) for at in range(count))
    zeros = np.zeros((count, 4), np.float32)
    return text, EncodedPhrases(phrases, dense, zeros.astype(np.int32), zeros)


@pytest.fixture
def question(model: PhraseModel) -> EncodedQuestion:
    return model.encode_question("who wrote emma ?")


def test_search_is_the_dot_product_of_all_that_is_stored(
    tmp_path: Path, model: PhraseModel, question: EncodedQuestion
) -> None:
    index = PhraseIndex.open(tmp_path / "index", create=True)
    _add(index, model, "austen", "herbert")
    _add(index, model, "paris")
    hits = index.search(question, 5)
    coded = {name: model.encode(text, limit=20) for name, text in TEXTS.items()}
    every = sorted(
        (
            float(score)
            for one in coded.values()
            for score in one.dense @ question.dense + question.lexical(one.words, one.weights)
        ),
        reverse=True,
    )
    assert [hit.score for hit in hits] == pytest.approx(every[:5], abs=0.3)
    assert all(TEXTS[hit.document][hit.start : hit.end] == hit.text for hit in hits)
    assert len(index) == sum(map(len, coded.values()))


def test_documents_are_added_deleted_and_replaced(
    tmp_path: Path, model: PhraseModel, question: EncodedQuestion
) -> None:
    index = PhraseIndex.open(tmp_path / "index", create=True)
    _add(index, model, *TEXTS)
    index.delete(["austen", "never there"])
    assert index.documents == ["herbert", "paris"]
    assert {hit.document for hit in index.search(question, 100)} == {"herbert", "paris"}
    index.add([("paris", "Paris!", model.encode("Paris!"))])
    assert index.text("paris") == "Paris!"
    assert index.documents == ["herbert", "paris"]
    with pytest.raises(InputError, match="No document 'austen'"):
        index.text("austen")


def test_optimizing_changes_no_answer(
    tmp_path: Path, model: PhraseModel, question: EncodedQuestion
) -> None:
    index = PhraseIndex.open(tmp_path / "index", create=True)
    for name in TEXTS:
        _add(index, model, name)
    index.delete(["herbert"])
    before = index.search(question, 10)
    size = index.size_bytes
    index.optimize()
    after = index.search(question, 10)
    assert {(hit.document, hit.start, hit.end) for hit in after[:5]} == {
        (hit.document, hit.start, hit.end) for hit in before[:5]
    }
    assert index.size_bytes < size
    assert sorted(path.name for path in index.folder.iterdir()) == ["000003", "phrases.json"]


def test_the_shortlist_is_of_all_segments_together(tmp_path: Path, model: PhraseModel) -> None:
    text, coded = _made_up(90, model)
    asked = model.encode_question("who wrote emma ?")
    rng = np.random.default_rng(6)
    words = rng.integers(0, 9, (90, 4)).astype(np.int32)
    weights = rng.uniform(0, 8, (90, 4)).astype(np.float32)  # enough to turn the order round
    found = []
    for parts in (1, 3):
        index = PhraseIndex.open(tmp_path / str(parts), create=True)
        for number, rows in enumerate(np.array_split(np.arange(90), parts)):
            some = EncodedPhrases(
                tuple(coded.phrases[row] for row in rows),
                coded.dense[rows],
                words[rows],
                weights[rows],
            )
            index.add([(f"part {number}", text, some)])
        found.append([hit.start for hit in index.search(asked, 5, shortlist=8)])
        assert len(index.search(asked, 2, shortlist=1)) == 2
    assert found[0] == found[1]


def test_an_index_can_be_opened_again(
    tmp_path: Path, model: PhraseModel, question: EncodedQuestion
) -> None:
    index = PhraseIndex.open(tmp_path / "index", create=True)
    _add(index, model, *TEXTS)
    index.delete(["paris"])
    again = PhraseIndex.open(tmp_path / "index")
    assert again.documents == ["austen", "herbert"]
    assert again.search(question, 9) == index.search(question, 9)


@pytest.mark.slow
def test_an_emptied_index_answers_nothing(
    tmp_path: Path, model: PhraseModel, question: EncodedQuestion
) -> None:
    index = PhraseIndex.open(tmp_path / "index", create=True)
    assert index.search(question) == []
    index.add([("blank", "", model.encode(""))])
    _add(index, model, "paris")
    index.delete(["paris"])
    index.optimize()
    assert index.search(question) == []
    assert len(PhraseIndex.open(tmp_path / "index")) == 0


@pytest.mark.slow
def test_lists_find_nearly_what_exact_search_finds(tmp_path: Path, model: PhraseModel) -> None:
    pytest.importorskip("faiss", reason="faiss is not installed")
    text, coded = _made_up(1200, model)
    index = PhraseIndex.open(tmp_path / "index", create=True)
    index.add([("many", text, coded)])
    questions = [model.encode_question(asked) for asked in ("who wrote emma ?", "where is paris ?")]
    exact = [{hit.start for hit in index.search(one, 10)} for one in questions]
    index.optimize(exact=1000)
    assert (index.folder / "000001" / "lists.faiss").is_file()
    found = [{hit.start for hit in index.search(one, 10, probes=200)} for one in questions]
    shared = sum(len(one & other) for one, other in zip(exact, found, strict=True))
    assert shared >= 18
    again = PhraseIndex.open(tmp_path / "index")
    assert {hit.start for hit in again.search(questions[0], 10, probes=200)} == found[0]


KILLED = """
import os, sys
from askline.phrases import PhraseIndex, PhraseModel
from askline.phrases import phrase_index as manifest, index_segments as segments

model, index, step = PhraseModel.load(sys.argv[1]), PhraseIndex.open(sys.argv[2]), 0
real = segments.atomic_write

def counted(path):
    global step
    step += 1
    if step == int(sys.argv[3]):
        os._exit(9)
    return real(path)

segments.atomic_write = manifest.atomic_write = counted
index.add([("paris", "Paris is a city.", model.encode("Paris is a city."))])
"""


@pytest.mark.slow
@pytest.mark.parametrize("step", [1, 2, 4, 7, 8, 9], ids=str)
def test_a_killed_writer_leaves_a_complete_index(
    tmp_path: Path, model: PhraseModel, model_folder: Path, step: int
) -> None:
    index = PhraseIndex.open(tmp_path / "index", create=True)
    _add(index, model, "austen", "herbert")
    program = [sys.executable, "-c", KILLED, str(model_folder), str(index.folder), str(step)]
    done = subprocess.run(program, capture_output=True)
    assert done.returncode == 9, done.stderr.decode()
    again = PhraseIndex.open(index.folder)
    assert again.documents == ["austen", "herbert"]
    _add(again, model, "paris")
    assert PhraseIndex.open(index.folder).documents == ["austen", "herbert", "paris"]


def test_unusable_input_and_files_are_reported(tmp_path: Path, model: PhraseModel) -> None:
    with pytest.raises(CorpusError, match="No phrase index in"):
        PhraseIndex.open(tmp_path / "none")
    index = PhraseIndex.open(tmp_path / "index", create=True)
    one = ("paris", TEXTS["paris"], model.encode(TEXTS["paris"]))
    with pytest.raises(InputError, match="got a name twice"):
        index.add([one, one])
    index.add([one])
    with pytest.raises(InputError, match="k must be at least 1, got 0"):
        index.search(model.encode_question("who ?"), 0)
    (index.folder / "000000" / "vectors.npy").write_bytes(b"")
    with pytest.raises(CorpusError, match="is damaged"):
        PhraseIndex.open(index.folder)
    (index.folder / "phrases.json").write_text(json.dumps({"format": 2, "next": 0, "segments": {}}))
    with pytest.raises(CorpusError, match="another version"):
        PhraseIndex.open(index.folder)
    cases: list[dict[str, object]] = [{"strange": 0}, {"segments": []}, {"next": "0"}]
    for case in cases:
        entries = {"format": 1, "next": 0, "segments": {}, **case}
        (index.folder / "phrases.json").write_text(json.dumps(entries))
        with pytest.raises(CorpusError, match="is damaged"):
            PhraseIndex.open(index.folder)
    (index.folder / "phrases.json").write_text("{")
    with pytest.raises(CorpusError, match="is damaged"):
        PhraseIndex.open(index.folder)


@pytest.mark.slow
def test_compacting_merges_many_small_segments_without_loss(
    tmp_path: Path, model: PhraseModel, question: EncodedQuestion
) -> None:
    index = PhraseIndex.open(tmp_path / "index", create=True)
    for at in range(9):
        text = f"{TEXTS['paris']} {'emma ' * at}"
        index.add([(f"paris {at}", text, model.encode(text, limit=5))], stamp={"until": at})
        index.compact()
    assert len([path for path in index.folder.iterdir() if path.is_dir()]) == 1
    assert index.documents == [f"paris {at}" for at in range(9)]
    assert len(index.search(question, 100)) == len(index) == 45
    assert PhraseIndex.open(index.folder).stamp == {"until": 8}


def test_compacting_keeps_segments_with_lists(tmp_path: Path, model: PhraseModel) -> None:
    pytest.importorskip("faiss", reason="faiss is not installed")
    index = PhraseIndex.open(tmp_path / "index", create=True)
    text, coded = _made_up(1200, model)
    index.add([("many", text, coded)])
    index.compact(exact=1000)
    _add(index, model, "paris")
    index.compact(exact=1000)
    folders = sorted(path.name for path in index.folder.iterdir() if path.is_dir())
    assert folders == ["000001", "000002"]
    assert (index.folder / "000001" / "lists.faiss").is_file()


def test_lists_that_cannot_be_read_leave_search_exact(tmp_path: Path, model: PhraseModel) -> None:
    pytest.importorskip("faiss", reason="faiss is not installed")
    index = PhraseIndex.open(tmp_path / "index", create=True)
    text, coded = _made_up(1200, model)
    index.add([("many", text, coded)])
    asked = model.encode_question("who wrote emma ?")
    exact = [hit.start for hit in index.search(asked, 10)]
    index.optimize(exact=1000)
    (index.folder / "000001" / "lists.faiss").write_bytes(b"rubbish")
    again = PhraseIndex.open(tmp_path / "index")
    assert [hit.start for hit in again.search(asked, 10)] == exact


def test_a_reader_notices_another_writer(tmp_path: Path, model: PhraseModel) -> None:
    index = PhraseIndex.open(tmp_path / "index", create=True)
    _add(index, model, "austen")
    reader = PhraseIndex.open(tmp_path / "index")
    assert reader.is_current()
    assert "austen" in reader
    _add(index, model, "paris")
    assert index.is_current()
    assert not reader.is_current()
    assert "paris" not in reader
    index.delete(["austen"])
    assert "austen" not in index


@pytest.mark.parametrize("exact", [10_000, 1_000], ids=["exact", "lists"])
def test_deleted_documents_take_no_places_in_the_results(
    tmp_path: Path, model: PhraseModel, question: EncodedQuestion, exact: int
) -> None:
    if exact < 10_000:
        pytest.importorskip("faiss", reason="faiss is not installed")
    index = PhraseIndex.open(tmp_path / "index", create=True)
    text, coded = _made_up(2000, model)
    near = replace(coded, dense=np.tile(100 * question.dense, (2000, 1)).astype(np.float32))
    own = model.encode(TEXTS["paris"], limit=20)
    index.add([("near", text, near), ("paris", TEXTS["paris"], own)])
    index.optimize(exact=exact)
    index.delete(["near"])
    hits = index.search(question, len(own), shortlist=len(own), probes=200)
    assert [hit.document for hit in hits] == ["paris"] * len(own)
    index.compact(exact=exact)
    assert len(index) == len(own)


def test_refused_documents_change_nothing(tmp_path: Path, model: PhraseModel) -> None:
    index = PhraseIndex.open(tmp_path / "index", create=True)
    _add(index, model, "paris")
    broken = "Paris \ud83d is a city."
    with pytest.raises(InputError, match="'paris' cannot be stored as UTF-8"):
        index.add([("paris", broken, model.encode(broken))])
    index.delete(["never there"])
    assert PhraseIndex.open(index.folder).text("paris") == TEXTS["paris"]


def test_a_document_without_phrases_is_not_kept(tmp_path: Path, model: PhraseModel) -> None:
    index = PhraseIndex.open(tmp_path / "index", create=True)
    _add(index, model, "paris")
    index.add([("blank", " ", model.encode(" ")), ("paris", "", model.encode(""))])
    _add(index, model, "austen")
    assert index.documents == ["austen"]


def test_vectors_of_another_model_are_refused(tmp_path: Path, model: PhraseModel) -> None:
    other = PhraseModel.load(make_folder(tmp_path / "other", words=0))
    index = PhraseIndex.open(tmp_path / "index", create=True)
    _add(index, model, "paris")
    with pytest.raises(InputError, match="must be of one model, got"):
        _add(index, other, "austen")
    with pytest.raises(InputError, match="must be of one model, got"):
        PhraseIndex.open(index.folder).search(other.encode_question("who ?"))
    assert index.documents == ["paris"]
    index.delete(["paris"])
    index.optimize()
    _add(index, other, "austen")  # nothing of the first is left
    assert index.search(other.encode_question("who ?"))


def test_a_reader_reopens_after_a_concurrent_merge(
    tmp_path: Path, model: PhraseModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = PhraseIndex.open(tmp_path / "index", create=True)
    _add(index, model, "austen")
    _add(index, model, "paris")
    read = Manifest.read

    def joined_behind(folder: Path) -> Manifest | None:
        found = read(folder)
        monkeypatch.setattr(Manifest, "read", read)
        index.optimize()
        return found

    monkeypatch.setattr(Manifest, "read", joined_behind)
    assert PhraseIndex.open(index.folder).documents == ["austen", "paris"]


def test_a_failed_write_changes_nothing(
    tmp_path: Path, model: PhraseModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise InputError("disk full")

    index = PhraseIndex.open(tmp_path / "index", create=True)
    _add(index, model, "paris", "austen")
    _add(index, model, "herbert")
    with monkeypatch.context() as patch:
        patch.setattr("askline.phrases.phrase_index.write_segment", fails)
        with pytest.raises(InputError, match="disk full"):
            _add(index, model, "paris")
    with monkeypatch.context() as patch:
        patch.setattr("askline.phrases.phrase_index.faiss_installed", lambda: True)
        patch.setattr("askline.phrases.index_segments.build_lists", fails)
        with pytest.raises(InputError, match="disk full"):
            index.optimize(exact=1)
    index.delete(["never there"])
    assert PhraseIndex.open(index.folder).documents == ["paris", "austen", "herbert"]
