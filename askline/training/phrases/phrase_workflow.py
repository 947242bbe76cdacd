"""
The trainings behind `askline train extractor` and `askline train phrases`, and their evaluation.

An extractor is trained on paragraphs; a phrase model on an extractor's candidates and, if wanted,
on the scores of teachers. The evaluation measures whether the candidates contain the answer, and
which candidate is chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import lru_cache, partial
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from ...data.squad import Paragraph
from ...errors import InputError
from ...evaluation.measures import (
    Language,
    PhraseScores,
    exact_match,
    f1,
    normalize_phrase,
    score_phrases,
)
from ...phrases.phrase_model import PhraseForm
from ...phrases.tokenization import default_overlap, tokenize_question
from ..loop import TrainingProgress
from ..transformer.pair_network import autocast, read_encoder
from .contrastive_training import (
    PhraseExample,
    PhraseLoss,
    collate,
    make_example,
    score_batch,
    train_phrases,
)
from .phrase_export import freeze_words
from .phrase_networks import (
    Candidates,
    Extractor,
    PhraseNetwork,
    SpanEnds,
    check_window,
    train_extractor,
)
from .phrase_teacher import (
    PairText,
    PhraseTeacher,
    TeacherTables,
    cross_train_teachers,
    mark_answers,
)
from .phrase_training import (
    AnswerWindow,
    PhraseRecipe,
    TrainingCallbacks,
    WindowQuestion,
    answer_windows,
    device_of,
)

__all__ = [
    "PhrasePlan",
    "PhraseRun",
    "answer_within",
    "build_extractor",
    "build_phrase_model",
    "candidate_recall",
]

Places = list[list[tuple[float, int, int]]]


def candidate_recall(
    windows: Sequence[AnswerWindow],
    candidates: Sequence[Candidates],
    paragraphs: Sequence[Paragraph],
    *,
    limit: int = 100,
    language: Language = "en",
) -> PhraseScores:
    """The best exact match and F1 among each paragraph's `limit` likeliest candidates."""
    exact, soft = [], []
    for paragraph, places in zip(paragraphs, _places(windows, candidates, paragraphs), strict=True):
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
    windows: Sequence[AnswerWindow],
    candidates: Sequence[Candidates],
    paragraphs: Sequence[Paragraph],
    tokenizer: Any,
    *,
    language: Language = "en",
    batch: int = 8,
) -> PhraseScores:
    """Exact match and F1 of the candidate nearest to each question, in its own paragraph."""
    network.eval()
    tokens = lru_cache(maxsize=None)(lambda text: tokenize_question(text, tokenizer))
    best: dict[str, tuple[float, str]] = {}
    useful = [at for at, (spans, _) in enumerate(candidates) if len(spans)]
    useful = [at for at in useful if paragraphs[windows[at].paragraph].questions]
    useful.sort(key=lambda at: len(windows[at].window))
    for start in range(0, len(useful), batch):
        examples, asked = [], []
        for at in useful[start : start + batch]:
            paragraph = paragraphs[windows[at].paragraph]
            questions = [(one.id, tokens(one.text)) for one in paragraph.questions]
            examples.append(_unlabeled_example(windows[at], candidates[at], questions))
            asked += [(name, paragraph.text, windows[at], candidates[at]) for name, _ in questions]
        for (name, text, one, (spans, _)), (score, place) in zip(
            asked, _nearest(network, examples), strict=True
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
    windows: Sequence[AnswerWindow],
    candidates: Sequence[Candidates],
    paragraphs: Sequence[Paragraph],
) -> Places:
    found: Places = [[] for _ in paragraphs]
    for one, (spans, log_probabilities) in zip(windows, candidates, strict=True):
        for (first, last), score in zip(spans, log_probabilities, strict=True):
            place = (float(score), int(one.window.starts[first]), int(one.window.ends[last]))
            found[one.paragraph].append(place)
    return found


def _unlabeled_example(
    one: AnswerWindow, candidates: Candidates, questions: Sequence[tuple[str, Any]]
) -> PhraseExample:
    nothing = np.zeros((0, 2), np.int32)
    asked = tuple(WindowQuestion(name, tokens, nothing) for name, tokens in questions)
    flags = np.zeros((len(asked), len(candidates[0])), bool)
    return PhraseExample(one.window, *candidates, asked, flags, flags, None)


def _nearest(network: PhraseNetwork, examples: Sequence[PhraseExample]) -> list[tuple[float, int]]:
    """The best score and its candidate, question after question."""
    device = device_of(network)
    batch = collate(examples, device)
    with autocast(device):
        phrases = network.encode_phrases(batch.tokens, batch.mask, batch.spans)
        questions = network.encode_questions(batch.questions, batch.asked)
        _, whole = score_batch(network, batch, phrases, questions)
    rows = torch.arange(len(batch.home), device=device)
    scores, places = whole[rows, batch.home].max(-1)
    return list(zip(scores.tolist(), places.tolist(), strict=True))


@dataclass(frozen=True, slots=True, eq=False)
class PhraseRun:
    """What all trainings of a command need."""

    tokenizer: Any
    """A `tokenizers.Tokenizer`."""
    device: str = "cpu"
    language: Language = "en"
    window: int = 384
    """Tokens that the encoder reads at a time."""
    progress: TrainingProgress = field(default_factory=TrainingProgress)
    checkpoint: Path | None = None
    """Each training of the command keeps its state in a file beside this path."""

    def windows(self, paragraphs: Sequence[Paragraph]) -> list[AnswerWindow]:
        """The windows of paragraphs, with the questions that are answered in them."""
        size = self.window
        return answer_windows(paragraphs, self.tokenizer, size=size, overlap=default_overlap(size))

    def callbacks(self, name: str) -> TrainingCallbacks:
        """Callbacks and checkpoint of one training."""
        return TrainingCallbacks(
            partial(self.progress.on_epoch, name),
            partial(self.progress.on_step, name),
            None if self.checkpoint is None else self.checkpoint_file(name),
        )

    def checkpoint_file(self, name: str) -> Path:
        """The checkpoint of one training."""
        assert self.checkpoint is not None
        return self.checkpoint.with_name(f"{self.checkpoint.name}.{name.replace(' ', '-')}.pt")


def build_extractor(
    init: str | PathLike[str],
    paragraphs: Sequence[Paragraph],
    recipe: PhraseRecipe,
    run: PhraseRun,
    *,
    ends: SpanEnds = "conditional",
    dev: Sequence[Paragraph] = (),
) -> tuple[Extractor, dict[str, float]]:
    """The extractor, and EM and F1 on dev of the best candidate of each paragraph, in percent."""
    windows = run.windows(paragraphs)
    if not any(one.questions for one in windows):
        raise InputError("Expected paragraphs with answered questions, got none.")
    encoder, _ = read_encoder(init, plain=False)
    check_window(encoder, run.window)
    network = Extractor(encoder, ends).to(run.device)
    train_extractor(network, windows, recipe, callbacks=run.callbacks("extractor"))
    if not dev:
        return network, {}
    dev_windows = run.windows(dev)
    candidates = network.extract([one.window for one in dev_windows])
    return network, candidate_recall(dev_windows, candidates, dev, language=run.language).percent


@dataclass(frozen=True, slots=True, eq=False)
class PhrasePlan:
    """What a phrase network is, and what it is trained on besides the paragraphs."""

    form: PhraseForm = "span"
    lexical: bool = True
    init: str | PathLike[str] | None = None
    """The encoder to start from; by default that of the extractor."""
    loss: PhraseLoss | None = None
    teacher: tuple[str | PathLike[str], PhraseRecipe] | None = None
    """The encoder that both teachers start from, and their recipe."""
    pairs: Sequence[PairText] = ()
    """Sentences in which the teachers mark answers; used only with a teacher."""
    word_bits: Literal[4, 8] = 8
    """With 4, the word embeddings are rounded before training and not trained."""


def build_phrase_model(
    extractor: Extractor,
    paragraphs: Sequence[Paragraph],
    recipe: PhraseRecipe,
    run: PhraseRun,
    *,
    plan: PhrasePlan | None = None,
    dev: Sequence[Paragraph] = (),
) -> tuple[PhraseNetwork, dict[str, float]]:
    """The phrase network, and EM and F1 on dev of the nearest candidate within the paragraph."""
    plan = plan or PhrasePlan()
    check_window(extractor.encoder, run.window)
    windows = [one for one in run.windows(paragraphs) if one.questions]
    texts = [paragraphs[one.paragraph].text for one in windows]
    tables: list[TeacherTables | None] = [None] * len(windows)
    if plan.teacher is not None:
        start = partial(_new_teacher, plan.teacher[0], run.device)
        teachers, found = cross_train_teachers(
            start, windows, plan.teacher[1], callbacks=run.callbacks
        )
        tables = list(found)
        size, overlap = run.window, default_overlap(run.window)
        for one in mark_answers(teachers, plan.pairs, run.tokenizer, size=size, overlap=overlap):
            windows.append(one.window)
            texts.append(one.text)
            tables.append(one.tables)
        count = sum(len(one.questions) for one in windows)
        run.progress.on_note(f"Answers marked: {count} questions in all.")
    examples = _examples(extractor, windows, texts, tables, run)
    network = _new_network(plan, extractor).to(run.device)
    if plan.word_bits == 4:
        freeze_words(network)
    train_phrases(network, examples, recipe, weights=plan.loss, callbacks=run.callbacks("phrases"))
    if not dev:
        return network, {}
    dev_windows = run.windows(dev)
    # The exported model finds its own candidates.
    extractor = Extractor.sharing(network.encoder, network.spans)
    candidates = extractor.extract([one.window for one in dev_windows])
    scores = answer_within(
        network, dev_windows, candidates, dev, run.tokenizer, language=run.language
    )
    return network, scores.percent


def _examples(
    extractor: Extractor,
    windows: Sequence[AnswerWindow],
    texts: Sequence[str],
    tables: Sequence[TeacherTables | None],
    run: PhraseRun,
) -> list[PhraseExample]:
    candidates = extractor.extract([one.window for one in windows])
    normalize = partial(normalize_phrase, language=run.language)
    return [
        make_example(one, found, text, normalize=normalize, teacher=table)
        for one, found, text, table in zip(windows, candidates, texts, tables, strict=True)
    ]


def _new_teacher(init: str | PathLike[str], device: str) -> PhraseTeacher:
    return PhraseTeacher(read_encoder(init, plain=False)[0]).to(device)


def _new_network(plan: PhrasePlan, extractor: Extractor) -> PhraseNetwork:
    if plan.init is not None:
        encoder = read_encoder(plan.init, plain=False)[0]
        return PhraseNetwork(encoder, plan.form, lexical=plan.lexical)
    encoder = deepcopy(extractor.encoder)  # the extractor's own still has to find candidates
    network = PhraseNetwork(encoder, plan.form, lexical=plan.lexical)
    if extractor.spans.ends == network.spans.ends:
        network.spans.load_state_dict(extractor.spans.state_dict())
    return network
