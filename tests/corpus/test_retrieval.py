from __future__ import annotations

import math
from pathlib import Path

import pytest

from askline.corpus import Corpus, HasPassages, RetrievedSentence
from askline.corpus.retrieval import standard_scores

from .conftest import write


@pytest.mark.parametrize(
    ("scores", "expected"),
    [([1.0, 3.0], [-1.0, 1.0]), ([4.0, 4.0], [0.0, 0.0]), ([], None), ([1.0, math.inf], None)],
    ids=["two", "equal", "none", "without end"],
)
def test_standard_scores(scores: list[float], expected: list[float] | None) -> None:
    assert standard_scores(scores) == expected


PAGE = "# Pumps\n\nA pump moves water. It runs at night.\n\n# Valves\n\nA valve stops water.\n"


def test_a_retrieved_sentence_knows_its_passage(tmp_path: Path) -> None:
    with Corpus.in_memory() as corpus:
        corpus.add(write(tmp_path / "page.md", PAGE))
        retriever = corpus.retriever()
        assert isinstance(retriever, HasPassages)
        (pump,) = [each for each in retriever.retrieve("pump", 10) if "moves" in each.text]
        assert pump.passage is not None
        first, last = pump.passage
        passage = retriever.passage(pump)
        assert [each.ordinal for each in passage] == list(range(first, last + 1))
        texts = [each.text for each in passage if each.kind == "sentence"]
        assert texts == ["A pump moves water.", "It runs at night."]
        assert [PAGE[each.start : each.end] for each in passage] == [each.text for each in passage]
        corpus.remove("page.md")
        assert retriever.passage(pump) == []


def test_a_passage_ends_at_its_row(tmp_path: Path) -> None:
    rows = '{"text": "A pump moves water. It hums."}\n{"text": "A pump leaks. It drips."}\n'
    with Corpus.in_memory() as corpus:
        corpus.add(write(tmp_path / "rows.jsonl", rows))
        retriever = corpus.retriever()
        assert isinstance(retriever, HasPassages)
        (leak,) = [each for each in retriever.retrieve("pump leak", 10) if "leaks" in each.text]
        assert [each.text for each in retriever.passage(leak)] == ["A pump leaks.", "It drips."]


def test_a_sentence_of_another_retriever_has_no_passage() -> None:
    with Corpus.in_memory() as corpus:
        corpus.add_texts({"pump": "A pump moves water."})
        retriever = corpus.retriever()
        assert isinstance(retriever, HasPassages)
        found = RetrievedSentence("pump", 0, "A pump.", 0, 7, "line", 1, "", "", 1.0)
        assert found.passage is None
        assert retriever.passage(found) == []


def test_a_sentence_that_matches_in_a_passage_that_does_not_is_found() -> None:
    answer = "This brass key unlocks it."
    filler = " ".join(f"Fence {n} is painted in spring." for n in range(14))
    short = {f"short {n}": f"Here a brass key lies, number {n}." for n in range(60)}
    with Corpus.in_memory() as corpus:
        corpus.add_texts({**short, "long": f"{filler} {answer} {filler}"})
        retriever = corpus.retriever()
        found = retriever.retrieve("Which brass key opens it?", 40)
        assert answer in [each.text for each in found]
        assert len({(each.document, each.ordinal) for each in found}) == len(found) == 40
        scores = [each.score for each in found]
        assert scores == sorted(scores, reverse=True)
        # So few sentences are all chosen from the best passages.
        assert answer not in [e.text for e in retriever.retrieve("Which brass key opens it?", 3)]
