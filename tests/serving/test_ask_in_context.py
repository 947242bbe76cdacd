"""`/v1/ask` with a cascade that reads passages, without a server around it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import askline
from askline.corpus import Corpus
from askline.rankers.base import Ranker
from askline.serving.corpus_jobs import ask_index
from askline.serving.messages import AskJob

from ..engine.tiny_contexts import context_config, int8_folder

TEXT = """# Novels

## Emma

Jane Austen wrote Emma. It appeared in 1815. She wrote it in Chawton.

## Persuasion

Jane Austen wrote Persuasion. It appeared in 1817, after the end.
"""
JOB = AskJob("Who wrote Emma?", None, True, None, 3, 100, explain=True)


@pytest.fixture(scope="module")
def ranker(tmp_path_factory: pytest.TempPathFactory) -> Ranker:
    folder = int8_folder(tmp_path_factory.mktemp("context"), context_config())
    return askline.load(f"wo % 100 >> cascade({str(folder)!r})")


@pytest.fixture
def corpus(tmp_path: Path) -> Iterator[Corpus]:
    (tmp_path / "novels.md").write_text(TEXT, encoding="utf-8")
    with Corpus.in_memory(ranker=None) as corpus:
        corpus.add([tmp_path])
        yield corpus


def test_answers_are_those_of_ask(corpus: Corpus, ranker: Ranker) -> None:
    found = ask_index(corpus, ranker, JOB, None)
    wanted = askline.corpus.answer(JOB.question, corpus.retriever(), ranker, top_k=3)
    assert [each.text for each in found.answers] == [each.text for each in wanted.answers]
    shown = [each.probability for each in found.answers]
    assert shown == [each.probability for each in wanted.answers]
    assert found.threshold == wanted.threshold
    for each in found.answers:
        assert TEXT[each.source.start : each.source.end] == each.text
        if each.phrase is not None:
            assert each.text[each.phrase.start : each.phrase.end] == each.phrase.text


def test_every_sentence_of_the_passages_is_explained(corpus: Corpus, ranker: Ranker) -> None:
    found = ask_index(corpus, ranker, JOB, None)
    assert found.candidates is not None
    texts = [candidate.text for candidate in found.candidates]
    assert texts[:3] == [each.text for each in found.answers]
    assert sorted(texts) == sorted(
        [
            "Jane Austen wrote Emma.",
            "It appeared in 1815.",
            "She wrote it in Chawton.",
            "Jane Austen wrote Persuasion.",
            "It appeared in 1817, after the end.",
        ]
    )
    last = len(found.stages) - 1
    assert any(stage.in_context for stage in found.stages[1:])
    assert not found.stages[0].in_context
    for candidate in found.candidates:
        stages = [score.stage for score in candidate.stage_scores]
        assert stages[0] == 0
        assert stages[-1] == last


def test_a_deadline_still_gives_all_answers(corpus: Corpus, ranker: Ranker) -> None:
    found = ask_index(corpus, ranker, JOB, 0.001)
    assert len(found.answers) == 3
    assert found.skipped > 0
