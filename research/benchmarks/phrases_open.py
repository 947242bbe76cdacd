"""
Three ways to answer with a phrase, over all paragraphs at once.

    ASKLINE_DATA=DIR python -m research.benchmarks.phrases --index FOLDER
    ASKLINE_DATA=DIR python -m research.benchmarks.phrases_open --index FOLDER [--questions 1000]

1. the nearest phrase of the index; 2. the sentences of the hundred nearest phrases, ranked, and
what the ranker's reader marks in the best; 3. sentences found by words, ranked by the same ranker,
and its reader. For each: exact match, F1, whether paragraph and sentence are right, time, and
bytes per paragraph. Also the time to encode a paragraph, in one pass and in the paper's way, one
pass per phrase. Writes research/results/phrases_open.json.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np

from askline.corpus import Corpus
from askline.data.squad import Paragraph, SpanQuestion, read_paragraphs
from askline.evaluation.measures import Language, exact_match, f1
from askline.phrases.phrase_encoder import PhraseEncoder
from askline.phrases.phrase_index import PhraseAnswer, PhraseIndex, nearest_phrases, ranked_phrases
from askline.phrases.phrase_model import PhraseModel, document_tensors, read_phrase_folder
from askline.rankers.spec import load

from .common import data_root, save
from .common import load as known_result
from .phrases import drawn, golds, means

Asked = tuple[Paragraph, SpanQuestion]
PAIRED = 4  # paragraphs, each with a hundred passes


@dataclass(frozen=True, slots=True)
class Said:
    """An answer: text, paragraph, and the offsets of its sentence."""

    text: str
    paragraph: str
    start: int
    end: int


def main() -> None:
    """Measure, print, save."""
    given = _arguments()
    paragraphs = drawn(read_paragraphs(data_root() / given.on).paragraphs, None)
    asked = drawn_questions(paragraphs, given.retime or given.questions)
    with tempfile.TemporaryDirectory() as folder:
        rows = {
            name: _row(asked, answer, given.language) | {"bytes a paragraph": size}
            for name, answer, size in _ways(given, paragraphs, Path(folder))
        }
    encoding = _encoding(given.model, paragraphs)
    for name, row in {**rows, "encoding, ms a paragraph": encoding}.items():
        print(f"{name:32}", "  ".join(f"{key} {value:,.2f}" for key, value in row.items()))
    record = {"on": given.on, "paragraphs": len(paragraphs), "questions": len(asked)}
    record |= {"ranker": given.ranker, "rows": rows, "encoding, ms a paragraph": encoding}
    if given.retime:
        known = known_result(given.name)
        rows = {name: row | _times(rows[name]) for name, row in known["rows"].items()}
        record |= {"questions": known["questions"], "timed questions": len(asked), "rows": rows}
    print(save(given.name, record, "faiss-cpu"))


def _ways(
    given: argparse.Namespace, paragraphs: Sequence[Paragraph], folder: Path
) -> list[tuple[str, Callable[[str], Said | None], float]]:
    found: list[tuple[str, Callable[[str], Said | None], float]] = []
    index, model = PhraseIndex.open(given.index), PhraseModel.load(given.model)
    size = index.size_bytes / len(paragraphs)
    ranker = load(given.ranker) if given.ways != "1" else None
    if "1" in given.ways:
        found.append(
            ("nearest phrase", lambda text: _said(nearest_phrases(text, model, index)), size),
        )
    if "2" in given.ways and ranker is not None:
        found.append(
            (
                "nearest phrases, judged",
                lambda text: _said(ranked_phrases(text, model, index, ranker)),
                size,
            )
        )
    if "3" in given.ways and ranker is not None:
        corpus = Corpus.open(folder / "corpus", ranker=ranker)
        corpus.add_texts((paragraph.id, paragraph.text) for paragraph in paragraphs)
        bytes_ = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        found.append(
            (
                "sentences first, then read",
                lambda text: _asked(corpus, text),
                bytes_ / len(paragraphs),
            )
        )
    return found


def _times(row: dict[str, float]) -> dict[str, float]:
    return {name: value for name, value in row.items() if name.endswith(" ms")}


def _said(found: Sequence[PhraseAnswer]) -> Said | None:
    if not found:
        return None
    best = found[0]
    return Said(best.phrase.text, best.phrase.document, best.start, best.start + len(best.sentence))


def _row(
    asked: Sequence[Asked], answer: Callable[[str], Said | None], language: Language
) -> dict[str, float]:
    """Measures and time of the first answer; the first questions are warm-up."""
    exact, soft, paragraphs, sentences, times = [], [], [], [], []
    for _, question in asked[:5]:
        answer(question.text)
    for paragraph, question in asked:
        begun = time.perf_counter()
        found = answer(question.text)
        times.append(1000 * (time.perf_counter() - begun))
        said = found.text if found else ""
        exact.append(exact_match(said, golds(question), language=language))
        soft.append(f1(said, golds(question), language=language))
        paragraphs.append(found is not None and found.paragraph == paragraph.id)
        sentences.append(
            found is not None
            and paragraphs[-1]
            and any(found.start <= one.start < found.end for one in question.answers)
        )
    return {
        **means(EM=exact, F1=soft, paragraph=paragraphs, sentence=sentences),
        "p50 ms": float(np.percentile(times, 50)),
        "p95 ms": float(np.percentile(times, 95)),
    }


def _encoding(folder: str | None, paragraphs: Sequence[Paragraph]) -> dict[str, float]:
    """One thread; one pass per phrase is measured on the first paragraphs only."""
    model = PhraseModel.load(folder, threads=1)
    texts = [paragraph.text for paragraph in drawn(paragraphs, 100)]
    model.encode(texts[0])
    begun = time.perf_counter()
    for text in texts:
        model.encode(text)
    once = 1000 * (time.perf_counter() - begun) / len(texts)
    path = folder or str(files("askline.models") / "shipped" / "phrases")
    config, tensors, _ = read_phrase_folder(path)
    own = document_tensors(tensors) if config.document_layers else tensors
    encoder = PhraseEncoder(config.document_encoder, own)
    spent, some = 0.0, texts[:PAIRED]
    for text in some:
        for tokens, spans in model.candidate_tokens(text):
            begun = time.perf_counter()
            for first, last in spans:
                encoder.encode(np.concatenate([tokens, tokens[first : last + 1], tokens[-1:]]))
            spent += time.perf_counter() - begun
    return {"in one pass": once, "in a pass for each phrase": 1000 * spent / len(some)}


def drawn_questions(paragraphs: Sequence[Paragraph], count: int | None) -> list[Asked]:
    """A sample of `count` questions with their paragraphs, in their order; all if None."""
    every = [(paragraph, question) for paragraph in paragraphs for question in paragraph.questions]
    if count is None or count >= len(every):
        return every
    places = np.random.default_rng(0).permutation(len(every))[:count]
    return [every[place] for place in sorted(places)]


def _asked(corpus: Corpus, text: str) -> Said | None:
    answers = corpus.ask(text, top_k=1).answers
    if not answers:
        return None
    best = answers[0]
    said = best.phrase.text if best.phrase else best.text
    return Said(said, best.document, best.start, best.end)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--model", help="model folder  [default: the shipped model]")
    parser.add_argument("--on", default="squad/dev-v1.1.json")
    parser.add_argument("--questions", type=int, help="number of sampled questions  [default: all]")
    parser.add_argument("--retime", type=int, help="measure only times, with N questions")
    parser.add_argument("--ways", default="123", help="which of the three ways, as digits")
    parser.add_argument("--ranker", default="cascade")
    parser.add_argument("--language", choices=["en", "fr"], default="en")
    parser.add_argument("--name", default="phrases_open", help="name of the result file")
    return parser.parse_args()


if __name__ == "__main__":
    main()
