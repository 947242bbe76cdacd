from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askline import load
from askline.corpus import (
    Answer,
    AnswerPhrase,
    Corpus,
    HasNeighbors,
    RetrievedSentence,
    Retriever,
    answer,
)
from askline.corpus.sentence_ranking import in_document_order
from askline.errors import InputError
from askline.rankers.base import Ranker
from askline.types import Span


def _found(
    document: str, ordinal: int, text: str = "Text.", score: float = 1.0
) -> RetrievedSentence:
    return RetrievedSentence(document, ordinal, text, 0, len(text), "line", 1, "", document, score)


class Engine:
    """A retriever of a third party, which does not know neighbors."""

    def __init__(self, *found: RetrievedSentence) -> None:
        self.found = found

    def retrieve(self, question: str, k: int) -> list[RetrievedSentence]:
        return list(self.found[:k])

    def __len__(self) -> int:
        return 1_000

    def __str__(self) -> str:
        return "engine"


class Recorder(Ranker):
    """Ranks in the order given, and records what it was given."""

    def score_texts(self, question: str, texts: Sequence[str]) -> list[float]:
        self.candidates = list(texts)
        return [-float(index) for index in range(len(texts))]


@pytest.fixture
def corpus() -> Iterator[Corpus]:
    with Corpus.in_memory() as corpus:
        corpus.add_texts(
            {
                "rock": "The rock is far out. Its lighthouse was lit in 1698. A storm took it.",
                "faq": "When was the lighthouse lit?\n\nNobody wrote it down.",
                "harbour": "The lighthouse of the harbour is new. Boats pass it.",
            }
        )
        yield corpus


def test_documents_by_their_best_sentence_and_each_in_its_own_order() -> None:
    found = [_found("b", 7), _found("a", 3), _found("b", 2), _found("a", 0)]
    ordered = [(each.document, each.ordinal) for each in in_document_order(found)]
    assert ordered == [("b", 2), ("b", 7), ("a", 0), ("a", 3)]


def test_answer_takes_any_retriever_and_any_ranker() -> None:
    engine, ranker = Engine(_found("b", 1, "Second."), _found("b", 0, "First.")), Recorder()
    assert isinstance(engine, Retriever)
    assert not isinstance(engine, HasNeighbors)
    answers = answer("Which?", engine, ranker, top_k=1)
    assert ranker.candidates == ["First.", "Second."]
    assert answers.best is not None
    assert (answers.best.text, answers.best.before, answers.best.stage) == ("First.", "", 1)
    assert [(stage.ranker, stage.entered, stage.kept) for stage in answers.stages] == [
        ("engine % 100", 1_000, 2),
        ("Recorder", 2, 2),
    ]


def test_answer_without_a_ranker_keeps_the_order_of_the_retrieval() -> None:
    engine = Engine(_found("b", 1, "Second.", 3.0), _found("b", 0, "First.", 2.0))
    answers = answer("Which?", engine)
    assert [(each.text, each.score, each.stage) for each in answers.answers] == [
        ("Second.", 3.0, 0),
        ("First.", 2.0, 0),
    ]
    assert [stage.ranker for stage in answers.stages] == ["engine % 100"]


@pytest.mark.parametrize(
    ("blend", "texts"),
    [(0.0, ["A.", "B.", "C."]), (1.0, ["A.", "C.", "B."]), (100.0, ["C.", "A.", "B."])],
    ids=["ranker", "both", "retrieval"],
)
def test_scores_of_ranker_and_retrieval_are_blended(blend: float, texts: list[str]) -> None:
    # As standard scores: the ranker gives A, B, C 1.2, 0, -1.2, the retrieval 0.2, -1.3, 1.1.
    found = (_found("d", 0, "A.", 2.0), _found("d", 1, "B.", 0.0), _found("d", 2, "C.", 3.2))
    result = answer("Which?", Engine(*found), Recorder(), blend=blend)
    assert [each.text for each in result.answers] == texts


def test_blending_keeps_what_an_earlier_stage_dropped() -> None:
    found = tuple(_found("d", at, f"{at}", float(at)) for at in range(4))
    ranker = load("rr % 2 >> rr")
    result = answer("Which?", Engine(*found), ranker, blend=100.0)
    assert [(each.text, each.stage) for each in result.answers] == [
        ("1", 2),
        ("0", 2),
        ("2", 1),
        ("3", 1),
    ]


def test_infinite_scores_are_not_blended() -> None:
    class Sure(Recorder):
        def score_texts(self, question: str, texts: Sequence[str]) -> list[float]:
            return [math.inf, *super().score_texts(question, texts)[1:]]

    found = (_found("d", 0, "A.", 0.0), _found("d", 1, "B.", 9.0))
    best = answer("Which?", Engine(*found), Sure(), blend=100.0).best
    assert best is not None
    assert (best.text, best.score) == ("A.", math.inf)


@pytest.mark.parametrize("ranker", [None, load("bm25")], ids=str)
def test_without_retrieved_sentences_there_is_no_answer(ranker: Ranker | None) -> None:
    answers = answer("Which?", Engine(), ranker)
    assert answers.best is None
    assert {stage.kept for stage in answers.stages} == {0}


@pytest.mark.parametrize(
    ("question", "options", "message"),
    [
        (" \n", {}, "The question must not be empty"),
        (None, {}, "must be a string, got NoneType"),
        ("Who?", {"top_k": 0}, "top_k must be a positive integer, got 0"),
        ("Who?", {"top_k": "3"}, "top_k must be a positive integer, got '3'"),
        ("Who?", {"top_k": 1.5}, "top_k must be a positive integer, got 1.5"),
        ("Who?", {"retrieved": None}, "retrieved must be a positive integer, got None"),
        ("Who?", {"top_k": 9, "retrieved": 3}, "at most retrieved, got top_k=9, retrieved=3"),
        ("Who?", {"context": "1"}, "context must be an integer of at least 0, got '1'"),
        ("Who?", {"threshold": "0.1"}, "must be a probability from 0 to 1, got '0.1'"),
    ],
)
def test_answer_refuses_invalid_arguments(
    question: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        answer(question, Engine(), load("bm25"), **options)


@pytest.mark.slow
def test_the_ranker_reads_misspelled_words_corrected() -> None:
    corpus = Corpus.in_memory()
    report = corpus.add({"a": "The fridge stands in the kitchen.", "b": "The lamp is in the hall."})
    assert report.added == 2
    right, wrong = corpus.ask("Where is the fridge?"), corpus.ask("Where is the frige?")
    assert (wrong.question, wrong.read_as) == ("Where is the frige?", "Where is the fridge?")
    assert right.best is not None
    assert wrong.best is not None
    assert wrong.best.text == right.best.text
    assert wrong.best.probability == pytest.approx(right.best.probability, abs=0.15)
    assert right.read_as == right.question


@pytest.mark.slow
def test_the_corpus_knows_the_neighbors(corpus: Corpus) -> None:
    best = corpus.ask("Was its lighthouse lit by 1698?").best
    assert best is not None
    assert best.text == "Its lighthouse was lit in 1698."
    assert (best.before, best.after) == ("The rock is far out.", "A storm took it.")


def test_a_sentence_that_only_repeats_the_question_is_not_an_answer(corpus: Corpus) -> None:
    found = corpus.retriever().retrieve("When was the lighthouse lit?", 100)
    texts = [sentence.text for sentence in found]
    assert "When was the lighthouse lit?" not in texts
    assert "Nobody wrote it down." in texts  # it is next to the question


def test_retrieval_prefers_the_sentence_with_the_words(corpus: Corpus) -> None:
    found = corpus.retriever().retrieve("lighthouse lit 1698", 3)
    assert found[0].text == "Its lighthouse was lit in 1698."
    assert [sentence.score for sentence in found] == sorted(
        (sentence.score for sentence in found), reverse=True
    )


def test_retrieval_gives_at_most_k_and_nothing_for_unknown_words(corpus: Corpus) -> None:
    retriever = corpus.retriever()
    assert len(retriever.retrieve("lighthouse", 2)) == 2
    assert retriever.retrieve("zeppelin", 10) == []
    assert retriever.retrieve("?!", 10) == []


@pytest.mark.slow
def test_the_same_question_gets_the_same_answers(corpus: Corpus) -> None:
    first, second = (corpus.ask("When was it lit?").answers for _ in range(2))
    assert first == second


class Reading(Recorder):
    """A ranker whose scores are probabilities, and which points at the last word of a candidate."""

    threshold = 0.4

    def __init__(self, *probabilities: float, mute: bool = False) -> None:
        self.probabilities = probabilities
        self.mute = mute

    def score_texts(self, question: str, texts: Sequence[str]) -> list[float]:
        return list(self.probabilities)

    def find_spans(self, question: str, texts: Sequence[str]) -> list[Span | None]:
        no_answer = 9.0 if self.mute else -9.0
        return [Span(text.rindex(" ") + 1, len(text) - 1, 0.0, no_answer) for text in texts]


def test_the_order_follows_the_probability() -> None:
    found = (_found("d", 0, "It was lit in 1698.", 9.0), _found("d", 1, "It was lit late.", 1.0))
    plain = answer("When?", Engine(*found), Reading(0.5, 0.6), blend=0.0)
    mixed = answer("When?", Engine(*found), Reading(0.5, 0.6), blend=5.0)
    assert [each.probability for each in plain.answers] == [0.6, 0.5]
    # Of two sentences, one is a standard deviation above the mean and one below it.
    wanted = [0.5, 1 / (1 + math.exp(5.0 - math.log(0.6 / 0.4)))]
    assert [each.probability for each in mixed.answers] == pytest.approx(wanted)
    assert mixed.best is not None
    assert mixed.best.phrase == AnswerPhrase("1698", 14, 18)
    assert mixed.best.text[14:18] == "1698"
    assert mixed.answers[1].phrase is None


@given(
    st.lists(
        st.tuples(st.floats(0, 1), st.floats(-50, 50), st.sampled_from("ab")),
        min_size=1,
        max_size=12,
    ),
    st.floats(0, 5),
)
def test_probabilities_never_rise_down_the_list(
    candidates: list[tuple[float, float, str]], blend: float
) -> None:
    found = [
        _found(document, at, "It was lit.", score)
        for at, (_, score, document) in enumerate(candidates)
    ]
    ranker = Reading(*(probability for probability, _, _ in candidates), mute=True)
    answers = answer("When?", Engine(*found), ranker, top_k=12, retrieved=12, blend=blend)
    for higher, lower in zip(answers.answers, answers.answers[1:], strict=False):
        if higher.stage == lower.stage:
            assert higher.probability is not None
            assert lower.probability is not None
            assert higher.probability >= lower.probability
            assert higher.score >= lower.score
    assert answers.threshold is not None
    assert answers.answered == any(
        (each.probability or 0) >= answers.threshold for each in answers.answers
    )


def test_retrieval_counts_half_for_a_calibrated_ranker() -> None:
    found = (_found("d", 0, "It was lit.", 9.0), _found("d", 1, "It was lit late.", 1.0))
    result = answer("When?", Engine(*found), Reading(0.5, 0.75), blend=2.0)
    odds = math.log(3.0)
    assert [each.score for each in result.answers] == pytest.approx([0.0, odds - 2.0])


@pytest.mark.parametrize(("probability", "answered"), [(0.39, False), (0.41, True)])
def test_a_probability_below_the_threshold_is_not_an_answer(
    probability: float, answered: bool
) -> None:
    result = answer("When?", Engine(_found("d", 0, "It was lit.")), Reading(probability))
    assert (result.threshold, result.answered) == (0.4, answered)
    assert result.best is not None


def test_a_reader_that_finds_nothing_gives_no_phrase() -> None:
    result = answer("When?", Engine(_found("d", 0, "It was lit.")), Reading(0.9, mute=True))
    assert result.best is not None
    assert result.best.phrase is None


def test_without_a_calibrated_ranker_every_best_sentence_is_an_answer() -> None:
    result = answer("When?", Engine(_found("d", 0, "It was lit.")), Recorder())
    assert (result.threshold, result.answered) == (None, True)
    assert result.best is not None
    assert result.best.probability is None


def test_a_ranker_of_one_stage_with_a_threshold_gives_probabilities() -> None:
    class Sure(Recorder):
        threshold = 0.5

        def score_texts(self, question: str, texts: Sequence[str]) -> list[float]:
            return [0.75]

    result = answer("When?", Engine(_found("d", 0, "It was lit.")), Sure())
    assert result.best is not None
    assert (result.best.probability, result.answered) == (0.75, True)


@pytest.mark.parametrize(
    ("text", "phrase"),
    [("It burns oil.", AnswerPhrase("oil", 9, 12)), ("Oil", None)],
    ids=["in the sentence", "in the heading alone"],
)
def test_the_phrase_is_in_the_sentence_and_not_in_its_context(
    text: str, phrase: AnswerPhrase | None
) -> None:
    class Within(Reading):
        def find_spans(self, question: str, texts: Sequence[str]) -> list[Span | None]:
            self.read_in = list(texts)
            if " " in text:
                return super().find_spans(question, texts)
            return [Span(0, 4, 0.0, -9.0) if one.startswith("Lamp") else None for one in texts]

    ranker = Within(0.9)
    found = replace(_found("d", 0, text), heading="Lamps")
    best = answer("What do lamps burn?", Engine(found), ranker).best
    assert best is not None
    assert (best.text, best.phrase) == (text, phrase)
    assert ranker.read_in == ([f"Lamps: {text}"] if phrase else [text])


def test_answered_counts_every_answer_that_is_returned() -> None:
    found = (_found("a", 0, "It was lit.", 9.0), _found("b", 0, "It was lit late.", 1.0))
    answers = answer("When?", Engine(*found), Reading(0.3, 0.6), blend=0.0)
    swapped = replace(answers, answers=answers.answers[::-1])
    for each in (answers, swapped):
        assert each.answered
        assert [one.document for one in each.above_threshold] == ["b"]
        assert [one.document for one in each.below_threshold] == ["a"]
        assert each.best is not None
        assert each.best.document == "b"


def test_a_threshold_of_the_caller_replaces_that_of_the_ranker() -> None:
    found = (_found("a", 0, "It was lit."), _found("b", 0, "It was lit late."))
    strict = answer("When?", Engine(*found), Reading(0.5, 0.2), threshold=0.6)
    assert (strict.threshold, strict.answered) == (0.6, False)
    lenient = answer("When?", Engine(*found), Reading(0.1, 0.2), threshold=0.0)
    assert lenient.answered
    assert len(lenient.above_threshold) == 2


@pytest.mark.parametrize(
    ("ranker", "options", "message"),
    [
        (Reading(0.5), {"threshold": 1.5}, "a probability from 0 to 1, got 1.5"),
        (load("bm25"), {"threshold": 0.5}, "needs a ranker with probabilities, .* got bm25"),
        (None, {"threshold": 0.5}, "got no ranker"),
        (None, {"context": -1}, "context must be an integer of at least 0, got -1"),
    ],
    ids=["too high", "not calibrated", "no ranker", "negative context"],
)
def test_answer_refuses_thresholds_and_contexts_that_do_not_fit(
    ranker: Ranker | None, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        answer("When?", Engine(_found("a", 0)), ranker, **options)


def test_a_threshold_of_zero_fits_every_ranker() -> None:
    result = answer("When?", Engine(_found("a", 0)), load("bm25"), threshold=0.0)
    assert (result.threshold, result.answered) == (None, True)


class Pages(Engine):
    """A retriever that knows neighbors: the ordinals around a sentence."""

    def neighbors(self, sentence: RetrievedSentence, count: int = 1) -> tuple[str, str]:
        at = sentence.ordinal
        before, after = range(at - count, at), range(at + 1, at + 1 + count)
        return " ".join(map(str, before)), " ".join(map(str, after))


def _joined(*probabilities: float, **changes: Any) -> list[Answer]:
    """The answers out of sentences 4, 5, 6 … of one document."""
    found = [
        _found("d", 4 + at, f"It was lit in {1700 + at}.", 1.0) for at in range(len(probabilities))
    ]
    found[1] = replace(found[1], **changes)
    engine = Pages(*found)
    ranker = Reading(*probabilities)
    return list(answer("When?", engine, ranker, join=True, top_k=2).answers)


def test_sentences_that_follow_each_other_and_answer_are_joined() -> None:
    first, second = _joined(0.7, 0.9, 0.2, 0.3)
    assert first.text == "It was lit in 1700. It was lit in 1701."
    assert first.probability == pytest.approx(0.9)
    assert first.sentences == 2
    assert first.phrase == AnswerPhrase("1701", 34, 38)
    assert first.text[34:38] == "1701"
    assert (first.before, first.after) == ("3", "6")
    assert (second.text, second.sentences) == ("It was lit in 1703.", 1)


@pytest.mark.parametrize(
    "changes",
    [{"document": "e"}, {"heading": "Lamps"}, {"row": 3}, {"ordinal": 9}, {"text": "lit " * 200}],
    ids=lambda changes: next(iter(changes)),
)
def test_other_sentences_are_not_joined(changes: dict[str, Any]) -> None:
    assert {each.sentences for each in _joined(0.8, 0.9, **changes)} == {1}


def test_sentences_that_are_much_less_probable_are_not_joined() -> None:
    assert {each.sentences for each in _joined(0.5, 0.9)} == {1}


def test_sentences_below_the_threshold_are_not_joined() -> None:
    assert {each.sentences for each in _joined(0.39, 0.41)} == {1}
    found = (_found("d", 0, "It was lit."), _found("d", 1, "It was late."))
    always = answer("When?", Engine(*found), Reading(0.2, 0.9), join=True, threshold=0.0)
    assert {each.sentences for each in always.answers} == {1}


def test_without_join_every_sentence_is_an_answer() -> None:
    found = (_found("d", 0, "It was lit."), _found("d", 1, "It was late."))
    assert len(answer("When?", Engine(*found), Reading(0.8, 0.9)).answers) == 2


@pytest.mark.parametrize(
    ("context", "before", "after"),
    [(0, "", ""), (1, "Two.", "Four."), (3, "One. Two.", "Four. Five.")],
)
def test_context_is_the_number_of_neighbors_within_the_section(
    tmp_path: Path, context: int, before: str, after: str
) -> None:
    text = "# A\n\nOld.\n\n# Lamps\n\nOne. Two. It was lit in 1698. Four. Five.\n\n# B\n\nNew.\n"
    (tmp_path / "lamps.md").write_text(text, encoding="utf-8")
    with Corpus.in_memory(ranker=None) as corpus:
        corpus.add(tmp_path)
        best = corpus.ask("When was it lit?", context=context).best
    assert best is not None
    assert (best.before, best.after) == (before, after)


LONG_COPY = "The lamp of the rock was lit for the first time in November of the year 1698."


def test_the_same_sentence_in_several_places_is_one_answer() -> None:
    first = replace(_found("v1/a.md", 0, LONG_COPY, 3.0), headings=("A",), heading="A")
    second = replace(_found("v2/a.md", 7, LONG_COPY.upper(), 2.0), number=9)
    engine = Engine(first, _found("b.md", 0, "The lamp was lit.", 2.5), second)
    answers = answer("When was it lit?", engine, top_k=2)
    assert [each.document for each in answers] == ["v1/a.md", "b.md"]
    assert [(each.document, each.number) for each in answers.answers[0].also_at] == [("v2/a.md", 9)]
    assert answers.answers[1].also_at == ()


def test_short_sentences_under_different_headings_are_different_answers() -> None:
    found = [replace(_found(f"{name}.md", 0, "It is 5."), heading=name) for name in "ab"]
    assert len(answer("What is it?", Engine(*found)).answers) == 2
    same = [replace(each, heading="a", title="t") for each in found]
    assert len(answer("What is it?", Engine(*same)).answers) == 1


def test_code_among_the_neighbors_keeps_its_lines(tmp_path: Path) -> None:
    code = "```\nheight = 22\n\n  lit = 1\n```"
    text = f"Set the lamp's height\n    in metres:\n\n{code}\n\nIt was lit in 1698. Then\nfour.\n"
    (tmp_path / "lamps.md").write_text(text, encoding="utf-8")
    with Corpus.in_memory(ranker=None) as corpus:
        corpus.add(tmp_path)
        best = corpus.ask("When was it lit?", context=2).best
    assert best is not None
    assert best.before == "Set the lamp's height in metres:\n    height = 22\n\n      lit = 1"
    assert best.after == "Then four."
