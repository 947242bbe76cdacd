"""What a trained network is worth: whether candidates hold the answer, and which one is taken."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from ...data.squad import Paragraph
from ...evaluation.phrase_scores import Language, PhraseScores, exact_match, f1, score_phrases
from ...phrases.tokenization import question_tokens
from .extractor import Candidates
from .fitting import device_of, precision
from .lessons import Lesson, collate
from .material import Asked, Material
from .network import PhraseNetwork
from .siamese import score_batch

__all__ = ["answer_within", "candidate_recall"]

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
    tokens = lru_cache(maxsize=None)(lambda text: question_tokens(text, tokeniser))
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
