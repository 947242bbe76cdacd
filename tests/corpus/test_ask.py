from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from askline import load
from askline.corpus import AnswerPhrase, Corpus, HasNeighbors, RetrievedSentence, Retriever, answer
from askline.corpus.ask import in_document_order
from askline.engine.spans import Span
from askline.errors import InputError
from askline.rankers.base import Ranker


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
        ("Who?", {"top_k": 0}, "top_k must be at least 1"),
        ("Who?", {"top_k": 9, "retrieved": 3}, "at most retrieved, got top_k=9, retrieved=3"),
    ],
    ids=["blank", "none", "no top", "too few"],
)
def test_answer_refuses_invalid_arguments(
    question: str, options: dict[str, int], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        answer(question, Engine(), load("bm25"), **options)


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


def test_probabilities_do_not_change_with_the_blend() -> None:
    found = (_found("d", 0, "It was lit in 1698.", 9.0), _found("d", 1, "It was lit late.", 1.0))
    plain = answer("When?", Engine(*found), Reading(0.5, 0.6), blend=0.0)
    mixed = answer("When?", Engine(*found), Reading(0.5, 0.6), blend=5.0)
    assert [each.probability for each in plain.answers] == [0.6, 0.5]
    assert [each.probability for each in mixed.answers] == [0.5, 0.6]
    assert mixed.best is not None
    assert mixed.best.phrase == AnswerPhrase("1698", 14, 18)
    assert mixed.best.text[14:18] == "1698"
    assert mixed.answers[1].phrase is None


def test_retrieval_counts_half_for_a_calibrated_ranker() -> None:
    found = (_found("d", 0, "It was lit.", 9.0), _found("d", 1, "It was lit late.", 1.0))
    result = answer("When?", Engine(*found), Reading(0.5, 0.75), blend=2.0)
    odds = math.log(3.0)
    assert [each.score for each in result.answers] == pytest.approx([1.0, odds - 1.0])


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
