"""Asking with a ranker that reads passages, and what a ranker reads before a sentence."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from askline.corpus import Corpus, RetrievedSentence, answer
from askline.corpus.retrieval import standard_scores
from askline.corpus.sentence_ranking import (
    SentenceInContext,
    add_title_context,
    rank_sentences,
    title_path,
)
from askline.engine.layerwise import LayerwiseEncoder, LayerwiseRun, PassageRun
from askline.engine.numpy_ops import FloatArray, IntArray
from askline.rankers import Cascade
from askline.rankers.base import Ranker
from askline.rankers.context_cascade import AskSettings, ContextSettings
from askline.rankers.deadline import Stop
from askline.rankers.probability import LogitCalibration, TwoReadings
from askline.rankers.schedule import KeepCounts, Step
from askline.text.words import split_words
from askline.types import Passage, Span

PLACES = """# Railways

## Line 1

The first line crosses the whole country. It measures 9,289 kilometres. Trains need a week for it.

## Line 2

The second line is short. It measures 12 kilometres.

```
print("kilometres")
```

## Line 3

How long is the first line? Nobody knows how long it is.
"""


@dataclass
class PassageWords(PassageRun):
    """The logit of a sentence: long question words in its passage, plus 6 with a number."""

    encoder: PassageWordEncoder
    question: set[str]
    passages: Sequence[Passage]

    @property
    def tokens(self) -> IntArray:
        return np.array([10 * len(passage.sentences) for passage in self.passages], np.int64)

    def advance(
        self,
        passages: IntArray,
        depth: int,
        *,
        stop: Stop | None = None,
        waiting: IntArray | None = None,
    ) -> FloatArray:
        logits = list[float]()
        for number, passage in enumerate(self.passages):
            words = {*split_words(passage.title), *split_words(" ".join(passage.sentences))}
            shared = len(words & self.question)
            for sentence in passage.sentences:
                known = number in passages
                has_number = any(letter.isdigit() for letter in sentence)
                logits.append(shared + 6 * has_number - depth if known else math.nan)
        return np.array(logits, np.float32)

    def read(self, sentences: IntArray) -> list[Span | None]:
        texts = [text for passage in self.passages for text in passage.sentences]
        spans = list[Span | None]()
        for number in sentences.tolist():
            start = texts[number].find("9,289")
            spans.append(Span(start, start + 5, -0.1, -3.0) if start >= 0 else None)
        return spans


@dataclass
class SentenceWords(LayerwiseRun):
    """The logit of a sentence alone: long question words in it, plus 1 with the word week."""

    question: set[str]
    candidates: Sequence[str]

    @property
    def tokens(self) -> IntArray:
        return np.full(len(self.candidates), 10, np.int64)

    def advance(
        self,
        rows: IntArray,
        depth: int,
        *,
        stop: Stop | None = None,
        waiting: IntArray | None = None,
    ) -> FloatArray:
        words = [{*split_words(self.candidates[row])} for row in rows.tolist()]
        return np.array([len(own & self.question) + ("week" in own) for own in words], "f4") - 2


@dataclass
class PassageWordEncoder(LayerwiseEncoder):
    log: list[list[Passage]] = field(default_factory=list)
    alone: list[list[str]] = field(default_factory=list)
    depths: tuple[int, ...] = (1, 2)
    context_depths: tuple[int, ...] = (1, 2)
    reads_in_context: bool = True

    def begin(self, question: str, candidates: Sequence[str]) -> LayerwiseRun:
        self.alone.append(list(candidates))
        return SentenceWords(_long_words(question), candidates)

    def begin_passages(self, requests: Sequence[tuple[str, Sequence[Passage]]]) -> PassageWords:
        ((question, passages),) = requests
        self.log.append(list(passages))
        return PassageWords(self, _long_words(question), passages)


def _long_words(question: str) -> set[str]:
    return {word for word in split_words(question) if len(word) > 3}


def _cascade(
    passages: int = 8,
    calibration: dict[int, LogitCalibration] | None = None,
    both: TwoReadings = TwoReadings(alone=0.2, context=1.0),  # noqa: B008
    **ask: Any,
) -> Cascade:
    schedule = KeepCounts((1, 2), (Step(1, 8),))
    settings = AskSettings(passages=passages, both=both, **ask)
    context = ContextSettings(schedule, calibration or {}, settings)
    return Cascade(PassageWordEncoder(), KeepCounts((1, 2)), context=context)


@pytest.fixture
def corpus(tmp_path: Path) -> Iterator[Corpus]:
    (tmp_path / "railways.md").write_text(PLACES, encoding="utf-8")
    with Corpus.in_memory() as corpus:
        corpus.add([tmp_path])
        yield corpus


QUESTION = "How long is the first line?"
COUNTRY = "How long is the line across the whole country?"


def test_a_sentence_is_found_by_its_passage(corpus: Corpus) -> None:
    found = answer(QUESTION, corpus.retriever(), _cascade())
    best = found.answers[0]
    assert best.text == "It measures 9,289 kilometres."
    assert PLACES[best.start : best.end] == best.text
    assert best.phrase is not None
    assert best.text[best.phrase.start : best.phrase.end] == best.phrase.text == "9,289"
    assert best.headings == ("Railways", "Line 1")
    assert (best.before, best.after) == (
        "The first line crosses the whole country.",
        "Trains need a week for it.",
    )


def test_windows_have_the_path_of_headings_and_no_code(corpus: Corpus) -> None:
    ranker = _cascade()
    answer(QUESTION, corpus.retriever(), ranker)
    assert isinstance(ranker.encoder, PassageWordEncoder)
    (passages,) = ranker.encoder.log
    by_title = {passage.title: list(passage.sentences) for passage in passages}
    assert by_title["Railways > Line 1"] == [
        "The first line crosses the whole country.",
        "It measures 9,289 kilometres.",
        "Trains need a week for it.",
    ]
    assert all("print" not in text for texts in by_title.values() for text in texts)
    assert "Line 1" not in [text for texts in by_title.values() for text in texts]


def test_offsets_of_every_answer_slice_the_source(corpus: Corpus) -> None:
    found = answer(QUESTION, corpus.retriever(), _cascade(), top_k=20)
    assert len(found.answers) > 5
    for each in found.answers:
        assert PLACES[each.start : each.end] == each.text


def test_the_order_follows_the_probability(corpus: Corpus) -> None:
    found = answer(QUESTION, corpus.retriever(), _cascade(), top_k=20)
    shown = [each.probability for each in found.answers if each.probability is not None]
    assert len(shown) > 4
    assert all(better >= worse for better, worse in pairwise(shown))
    for each in found.answers:
        if each.stage == len(found.stages) - 1 and each.probability is not None:
            assert each.probability == pytest.approx(1 / (1 + math.exp(-each.score)))


@pytest.mark.parametrize("blend", [0.0, 1.0, 2.0])
def test_the_folder_says_how_readings_and_retrieval_count(corpus: Corpus, blend: float) -> None:
    ranker = _cascade(
        calibration={2: LogitCalibration(0.5, -1.0)},
        both=TwoReadings(alone=0.7, context=0.4, in_context=0.2, retrieval=0.3, bias=-0.1),
        passages=1,
    )
    retriever = corpus.retriever()
    found = retriever.retrieve(COUNTRY, 100)
    ranked = rank_sentences(COUNTRY, retriever, ranker, retrieved=100, blend=blend)
    scores = {ranked.sentences[hit.index].text: hit.score for hit in ranked.hits}
    standard = standard_scores([each.score for each in found])
    assert standard is not None
    # What the best of few sentences lacks compared with the best of a hundred.
    missing = math.sqrt(2 * math.log(100)) - math.sqrt(2 * math.log(len(found)))
    standard = [score + missing for score in standard]
    retrieval = {each.text: score for each, score in zip(found, standard, strict=True)}
    in_context = {ranked.sentences[at].text for at in ranked.in_context}
    assert "The first line crosses the whole country." in in_context
    assert "The second line is short." not in in_context
    for text, alone, context in (
        ("The first line crosses the whole country.", 3 - 2, 3 - 2),
        ("It measures 9,289 kilometres.", 1 - 2, 3 + 6 - 2),  # the heading has the word line
        ("The second line is short.", 1 - 2, None),
    ):
        own = retrieval.get(text, min(standard))
        expected = 0.7 * alone + 0.3 * blend * own - 0.1
        if context is not None:
            expected += 0.4 * (0.5 * context - 1.0) + 0.2
        assert scores[text] == pytest.approx(expected, abs=1e-5), text


@pytest.mark.parametrize("more", [0, 1, 3])
def test_the_best_sentences_in_context_are_read_alone_too(corpus: Corpus, more: int) -> None:
    ranker = _cascade(sentences=1, passages=1, more=more)
    found = answer(COUNTRY, corpus.retriever(), ranker, top_k=20)
    assert isinstance(ranker.encoder, PassageWordEncoder)
    first, *later = ranker.encoder.alone
    assert len(first) == 1
    ((passage,),) = ranker.encoder.log
    assert len(passage.sentences) == 3
    expected = min(more, 2)  # one of the three has been read alone already
    assert [len(texts) for texts in later] == ([expected] if expected else [])
    read = [each for each in found.answers if each.stage == len(found.stages) - 1]
    # Without a further reading, the last stage is that of the passages, which have decided more.
    assert len(read) == (1 + expected if more else 3)
    if more:
        assert found.stages[-1].depth == 2
        cost = found.stages[-1].cost
        assert cost is not None
        assert cost.token_layers == 2 * 10 * expected
        assert read[0].text == "It measures 9,289 kilometres."
    shown = [each.probability for each in found.answers if each.probability is not None]
    assert shown == sorted(shown, reverse=True)


def test_only_the_most_promising_sentences_are_read_alone(corpus: Corpus) -> None:
    ranker = _cascade(sentences=2, passages=1, more=0)
    found = answer(QUESTION, corpus.retriever(), ranker, top_k=50)
    assert isinstance(ranker.encoder, PassageWordEncoder)
    assert [len(texts) for texts in ranker.encoder.alone] == [2]
    ((passage,),) = ranker.encoder.log
    unread = [each for each in found.answers if each.probability is None]
    assert unread
    assert all(each.stage == 0 for each in unread)
    assert not {each.text for each in unread} & {*passage.sentences}
    places = [(each.document, each.start) for each in found.answers]
    assert len(places) == len(set(places))


def test_the_schedule_of_asking_is_that_of_the_folder(corpus: Corpus) -> None:
    ranker = _cascade(schedule=KeepCounts((1, 2), (Step(1, 3),)), more=0)
    found = answer(QUESTION, corpus.retriever(), ranker, top_k=50)
    alone = [stage for stage in found.stages if stage.depth and not stage.in_context]
    assert [(stage.depth, stage.kept) for stage in alone] == [(1, 3), (2, 3)]


def test_the_threshold_of_asking_replaces_that_of_the_ranker(corpus: Corpus) -> None:
    assert answer(QUESTION, corpus.retriever(), _cascade()).threshold == 0.5
    assert answer(QUESTION, corpus.retriever(), _cascade(threshold=0.2)).threshold == 0.2
    own = answer(QUESTION, corpus.retriever(), _cascade(threshold=0.2), threshold=0.9)
    assert own.threshold == 0.9


def test_a_sentence_that_repeats_the_question_is_read_and_not_answered(corpus: Corpus) -> None:
    ranker = _cascade()
    found = answer(QUESTION, corpus.retriever(), ranker, top_k=50)
    assert isinstance(ranker.encoder, PassageWordEncoder)
    assert QUESTION in [text for passage in ranker.encoder.log[0] for text in passage.sentences]
    assert QUESTION not in [each.text for each in found.answers]


def test_only_the_passages_of_the_best_sentences_are_read(corpus: Corpus) -> None:
    ranker = _cascade(passages=1)
    found = answer(COUNTRY, corpus.retriever(), ranker, top_k=50)
    assert isinstance(ranker.encoder, PassageWordEncoder)
    ((passage,),) = ranker.encoder.log
    assert passage.title == "Railways > Line 1"
    others = [each for each in found.answers if each.text not in passage.sentences]
    assert others
    assert all(each.probability is not None for each in others)  # they were read alone


class _Last(Ranker):
    """Prefers the second line."""

    def score_texts(self, question: str, texts: Sequence[str]) -> list[float]:
        return [100.0 * ("12 kilometres" in text) for text in texts]


def test_the_first_stage_of_a_pipeline_helps_to_choose(corpus: Corpus) -> None:
    ranker = _Last() % 100 >> _cascade(sentences=1, passages=1)
    question = "How many kilometres does it measure?"  # retrieval finds two lines alike
    found = answer(question, corpus.retriever(), ranker, top_k=50)
    assert found.answers[0].heading == "Line 2"
    assert [stage.ranker for stage in found.stages][1] == "_Last % 1"
    assert found.answers[0].stage == len(found.stages) - 1
    assert {each.stage for each in found.answers[2:]} == {1}


class _NoPassages:
    """A search server: it knows sentences and nothing about what stands around them."""

    def retrieve(self, question: str, k: int) -> list[RetrievedSentence]:
        text = "It measures 9,289 kilometres."
        return [RetrievedSentence("a", 0, text, 0, len(text), "line", 1, "", "a", 1.0)]

    def __len__(self) -> int:
        return 1

    def __str__(self) -> str:
        return "server"


def test_without_passages_sentences_are_read_one_by_one() -> None:
    ranker = _cascade()
    answer(QUESTION, _NoPassages(), ranker)
    assert isinstance(ranker.encoder, PassageWordEncoder)
    assert ranker.encoder.log == []
    assert ranker.encoder.alone[0] == ["It measures 9,289 kilometres."]


def test_nothing_found_is_no_answer(corpus: Corpus) -> None:
    found = answer("zebra?", corpus.retriever(), _cascade())
    assert found.answers == ()
    assert not found.answered


def test_rows_of_a_table_are_passages_of_their_own(tmp_path: Path) -> None:
    rows = "id,text\n1,It is 9 km long. It has one track.\n2,The state owns it.\n"
    (tmp_path / "faq.csv").write_text(rows, encoding="utf-8")
    ranker = _cascade()
    with Corpus.in_memory() as corpus:
        corpus.add([tmp_path])
        answer("Who owns the track and how long is it?", corpus.retriever(), ranker)
    assert isinstance(ranker.encoder, PassageWordEncoder)
    (passages,) = ranker.encoder.log
    assert sorted(list(passage.sentences) for passage in passages) == [
        ["It is 9 km long.", "It has one track."],
        ["The state owns it."],
    ]


def _found(text: str, title: str = "", heading: str = "") -> RetrievedSentence:
    return RetrievedSentence("a.md", 0, text, 0, len(text), "line", 1, heading, title, 1.0)


@pytest.mark.parametrize(
    ("found", "lead"),
    [
        (_found("MIT.", "Tidepool", "Licence"), "Tidepool · Licence: "),
        (_found("Tidepool has the MIT licence.", "Tidepool", "Licence"), ""),
        (_found("Its licences are free.", "Tidepool", "Licence"), "Tidepool: "),
        (_found("It is MIT.", "The travel policy", "What is it for?"), ""),
        (_found("It is MIT.", "Licence", "Licence"), "Licence: "),
        (_found("It is MIT.", "tidepool_licence-2.txt"), "tidepool licence 2: "),
        (_found("It is MIT.", "On Tidepool v.Two"), "On Tidepool v.Two: "),
        (_found("It is MIT."), ""),
    ],
    ids=[
        "both",
        "neither is needed",
        "one",
        "empty words",
        "twice",
        "file name",
        "title",
        "nothing above",
    ],
)
def test_title_and_heading_are_added_if_they_share_words_with_the_question(
    found: RetrievedSentence, lead: str
) -> None:
    (result,) = add_title_context("What licence does Tidepool have?", [found])
    assert result == SentenceInContext(lead + found.text, len(lead))


def test_column_names_are_added_to_a_table_row() -> None:
    row = _found("Norway | €71", "Travel", "Expenses · Country | Daily allowance")
    (result,) = add_title_context("What is the daily allowance in Norway?", [row])
    assert result.text == "Expenses · Country | Daily allowance: Norway | €71"


def test_the_path_and_the_lead_in_are_added_if_they_have_new_words() -> None:
    item = replace(
        _found("apt", "Tidepool guide", "Linux"),
        headings=("Tidepool guide", "Install", "Linux"),
        lead_in="You can install it with:",
    )
    (result,) = add_title_context("How do I install Tidepool on Linux?", [item])
    assert result.text == "Tidepool guide · Linux · You can install it with: apt"
    assert result.text[result.sentence_start :] == "apt"


def test_long_sentences_and_titles_are_truncated() -> None:
    (result,) = add_title_context("Which lamp?", [_found("x " * 9_000, "lamp " * 900)])
    assert (result.sentence_start, len(result.text)) == (202, 4_202)


@pytest.mark.parametrize(
    ("title", "headings", "heading", "path"),
    [
        ("travel-policy.txt", (), "", "travel policy"),
        ("Policy", ("Policy", "Trains"), "Trains", "Policy > Trains"),
        ("Policy", ("Trains",), "Trains · class, price", "Policy > Trains · class, price"),
        ("Policy", (), "Trains", "Policy > Trains"),
        ("", (), "", ""),
        ("T" * 150, ("H" * 40, "I" * 40), "I" * 40, f"{'H' * 40} > {'I' * 40}"),
        ("T" * 300, (), "", "T" * 200),
    ],
    ids=["file name", "title again", "columns", "heading", "nothing", "long path", "long title"],
)
def test_the_path_of_a_passage_ends_with_the_nearest_heading(
    title: str, headings: tuple[str, ...], heading: str, path: str
) -> None:
    assert title_path(replace(_found("x", title, heading), headings=headings)) == path
