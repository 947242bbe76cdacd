"""
What a trained network is worth: whether candidates hold the answer, and which one is taken.

The whole way: paragraphs to an extractor, extractor and readers to a phrase model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache, partial
from os import PathLike
from typing import Any, Literal

import numpy as np
import torch

from ...data.squad import Paragraph
from ...errors import InputError
from ...evaluation.phrase_scores import (
    Language,
    PhraseScores,
    exact_match,
    f1,
    normalize_phrase,
    score_phrases,
)
from ...phrases.tokenization import default_overlap, tokenize_question
from ..checkpoint import Epoch
from ..transformer.pair_network import read_encoder
from .contrastive_training import (
    Lesson,
    PhraseLoss,
    collate,
    make_lesson,
    score_batch,
    train_phrases,
)
from .phrase_examples import Asked, Material, make_material
from .phrase_export import hold_words
from .phrase_extractor import Candidates, Ends, Extractor, train_extractor
from .phrase_network import Form, PhraseNetwork, check_window
from .phrase_teacher import PairText, Reader, TeacherTables, cross_read, label_pairs
from .phrase_training import OnStep, PhraseRecipe, device_of, precision

__all__ = [
    "Means",
    "Plan",
    "answer_within",
    "candidate_recall",
    "fit_extractor",
    "fit_phrases",
]

Places = list[list[tuple[float, int, int]]]


def candidate_recall(
    material: Sequence[Material],
    candidates: Sequence[Candidates],
    paragraphs: Sequence[Paragraph],
    *,
    limit: int = 100,
    language: Language = "en",
) -> PhraseScores:
    """The best exact match and F1 among each paragraph's `limit` likeliest candidates."""
    exact, soft = [], []
    for paragraph, places in zip(
        paragraphs, _places(material, candidates, paragraphs), strict=True
    ):
        kept = sorted(places, reverse=True)[:limit]
        texts = {paragraph.text[start:end] for _, start, end in kept} or {""}
        for question in paragraph.questions:
            golds = [answer.text for answer in question.answers]
            exact.append(max(exact_match(text, golds, language=language) for text in texts))
            soft.append(exact[-1] or max(f1(text, golds, language=language) for text in texts))
    return PhraseScores(np.array(exact), np.array(soft))


@torch.no_grad()
def answer_within(
    network: PhraseNetwork,
    material: Sequence[Material],
    candidates: Sequence[Candidates],
    paragraphs: Sequence[Paragraph],
    tokeniser: Any,
    *,
    language: Language = "en",
    batch: int = 8,
) -> PhraseScores:
    """Exact match and F1 of the candidate nearest to each question, in its own paragraph."""
    network.eval()
    tokens = lru_cache(maxsize=None)(lambda text: tokenize_question(text, tokeniser))
    best: dict[str, tuple[float, str]] = {}
    useful = [at for at, (spans, _) in enumerate(candidates) if len(spans)]
    useful = [at for at in useful if paragraphs[material[at].paragraph].questions]
    useful.sort(key=lambda at: len(material[at].window))
    for start in range(0, len(useful), batch):
        lessons, asked = [], []
        for at in useful[start : start + batch]:
            paragraph = paragraphs[material[at].paragraph]
            questions = [(one.id, tokens(one.text)) for one in paragraph.questions]
            lessons.append(_lesson(material[at], candidates[at], questions))
            asked += [(name, paragraph.text, material[at], candidates[at]) for name, _ in questions]
        for (name, text, one, (spans, _)), (score, place) in zip(
            asked, _nearest(network, lessons), strict=True
        ):
            first, last = spans[place]
            said = text[one.window.starts[first] : one.window.ends[last]]
            best[name] = max(best.get(name, (-np.inf, "")), (score, said))
    golds = {
        question.id: [answer.text for answer in question.answers]
        for paragraph in paragraphs
        for question in paragraph.questions
    }
    answers = {name: best.get(name, (0.0, ""))[1] for name in golds}
    return score_phrases(answers, golds, language=language)


def _places(
    material: Sequence[Material],
    candidates: Sequence[Candidates],
    paragraphs: Sequence[Paragraph],
) -> Places:
    found: Places = [[] for _ in paragraphs]
    for one, (spans, chances) in zip(material, candidates, strict=True):
        for (first, last), chance in zip(spans, chances, strict=True):
            place = (float(chance), int(one.window.starts[first]), int(one.window.ends[last]))
            found[one.paragraph].append(place)
    return found


def _lesson(one: Material, candidates: Candidates, questions: Sequence[tuple[str, Any]]) -> Lesson:
    nothing = np.zeros((0, 2), np.int32)
    asked = tuple(Asked(name, tokens, nothing) for name, tokens in questions)
    flags = np.zeros((len(asked), len(candidates[0])), bool)
    return Lesson(one.window, *candidates, asked, flags, flags, None)


def _nearest(network: PhraseNetwork, lessons: Sequence[Lesson]) -> list[tuple[float, int]]:
    """The best score and its candidate, question after question."""
    device = device_of(network)
    batch = collate(lessons, device)
    with precision(device):
        phrases = network.encode_phrases(batch.tokens, batch.inside, batch.spans)
        questions = network.encode_questions(batch.questions, batch.asked)
        _, whole = score_batch(network, batch, phrases, questions)
    rows = torch.arange(len(batch.home), device=device)
    scores, places = whole[rows, batch.home].max(-1)
    return list(zip(scores.tolist(), places.tolist(), strict=True))


Note = Callable[[str], None]


@dataclass(frozen=True, slots=True, eq=False)
class Means:
    """What all steps need."""

    tokeniser: Any
    """A `tokenizers.Tokenizer`."""
    device: str = "cpu"
    language: Language = "en"
    window: int = 384
    note: Note = lambda _: None
    step: Callable[[str, int, int], None] = lambda _what, _done, _of: None
    """Hears after every step what learns, how many steps are done, and of how many."""

    def material(self, paragraphs: Sequence[Paragraph]) -> list[Material]:
        """The windows of paragraphs."""
        size = self.window
        return make_material(paragraphs, self.tokeniser, size=size, overlap=default_overlap(size))

    def epoch(self, what: str) -> Callable[[Epoch], None]:
        """Says how an epoch went."""
        return lambda epoch: self.note(f"{what}  epoch {epoch.number}  loss {epoch.loss:.4f}")

    def steps(self, what: str) -> OnStep:
        """Tells of steps."""
        return partial(self.step, what)


def fit_extractor(
    init: str | PathLike[str],
    paragraphs: Sequence[Paragraph],
    recipe: PhraseRecipe,
    means: Means,
    *,
    ends: Ends = "conditional",
    dev: Sequence[Paragraph] = (),
) -> tuple[Extractor, dict[str, float]]:
    """The extractor, and on dev the percentage of questions whose answer its candidates hold."""
    material = means.material(paragraphs)
    if not any(one.questions for one in material):
        raise InputError("Expected paragraphs with answered questions, got none.")
    encoder, _ = read_encoder(init, plain=False)
    check_window(encoder, means.window)
    network = Extractor(encoder, ends).to(means.device)
    train_extractor(
        network,
        material,
        recipe,
        on_epoch=means.epoch("extractor"),
        on_step=means.steps("extractor"),
    )
    if not dev:
        return network, {}
    held = means.material(dev)
    candidates = network.extract([one.window for one in held])
    return network, candidate_recall(held, candidates, dev, language=means.language).percent


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """What a phrase network is, and what it learns from besides the paragraphs."""

    form: Form = "span"
    lexical: bool = True
    init: str | PathLike[str] | None = None
    """The encoder to start from; without one, the extractor's goes on."""
    loss: PhraseLoss | None = None
    teacher: tuple[str | PathLike[str], PhraseRecipe] | None = None
    """The encoder that readers start from, and how they are trained."""
    pairs: Sequence[PairText] = ()
    """Used where there is a teacher to mark the answers in them."""
    word_bits: Literal[4, 8] = 8
    """With 4, the words' embeddings are rounded before training and left so."""


def fit_phrases(
    extractor: Extractor,
    paragraphs: Sequence[Paragraph],
    recipe: PhraseRecipe,
    means: Means,
    *,
    plan: Plan | None = None,
    dev: Sequence[Paragraph] = (),
) -> tuple[PhraseNetwork, dict[str, float]]:
    """The phrase network, and on dev EM and F1 of its nearest candidate within the paragraph."""
    plan = plan or Plan()
    check_window(extractor.encoder, means.window)
    material = [one for one in means.material(paragraphs) if one.questions]
    texts = [paragraphs[one.paragraph].text for one in material]
    tables: list[TeacherTables | None] = [None] * len(material)
    if plan.teacher is not None:
        start = partial(_reader, plan.teacher[0], means.device)
        how = plan.teacher[1]
        readers, found = cross_read(
            start, material, how, on_epoch=means.epoch("reader"), on_step=means.steps("reader")
        )
        tables = list(found)
        size, overlap = means.window, default_overlap(means.window)
        for one in label_pairs(readers, plan.pairs, means.tokeniser, size=size, overlap=overlap):
            material.append(one.material)
            texts.append(one.text)
            tables.append(one.tables)
        means.note(f"pairs marked: {sum(len(one.questions) for one in material)} questions in all")
    lessons = _lessons(extractor, material, texts, tables, means)
    network = _start(plan, extractor).to(means.device)
    if plan.word_bits == 4:
        hold_words(network)
    train_phrases(
        network,
        lessons,
        recipe,
        how=plan.loss,
        on_epoch=means.epoch("phrases"),
        on_step=means.steps("phrases"),
    )
    if not dev:
        return network, {}
    held = means.material(dev)
    if network.spans is not None:  # what is written finds its own candidates
        extractor = Extractor.sharing(network.encoder, network.spans)
    candidates = extractor.extract([one.window for one in held])
    scores = answer_within(network, held, candidates, dev, means.tokeniser, language=means.language)
    return network, scores.percent


def _lessons(
    extractor: Extractor,
    material: Sequence[Material],
    texts: Sequence[str],
    tables: Sequence[TeacherTables | None],
    means: Means,
) -> list[Lesson]:
    candidates = extractor.extract([one.window for one in material])
    normalise = partial(normalize_phrase, language=means.language)
    return [
        make_lesson(one, found, text, normalise=normalise, teacher=table)
        for one, found, text, table in zip(material, candidates, texts, tables, strict=True)
    ]


def _reader(init: str | PathLike[str], device: str) -> Reader:
    return Reader(read_encoder(init, plain=False)[0]).to(device)


def _start(plan: Plan, extractor: Extractor) -> PhraseNetwork:
    if plan.init is not None:
        encoder = read_encoder(plan.init, plain=False)[0]
        return PhraseNetwork(encoder, plan.form, lexical=plan.lexical)
    encoder = deepcopy(extractor.encoder)  # candidates are still to come from the extractor's own
    network = PhraseNetwork(encoder, plan.form, lexical=plan.lexical)
    if network.spans is not None and extractor.spans.ends == network.spans.ends:
        network.spans.load_state_dict(extractor.spans.state_dict())
    return network
