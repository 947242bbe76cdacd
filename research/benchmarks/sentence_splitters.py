"""
Sentence splitters side by side: boundaries, sentences per paragraph, speed.

    ASKLINE_DATA=DIR python -m research.benchmarks.sentence_splitters --write

Gold boundaries come from datasets of split sentences, joined into one text; a sentence without an
end mark is followed by a blank line, and its boundary is not counted. Packages that are not
installed are skipped with a note. Writes research/results/sentence_splitters.json.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from importlib import import_module
from itertools import groupby, islice, pairwise
from pathlib import Path

from .common import data_root, save

Spans = list[tuple[int, int]]
Splitter = Callable[[str], Spans]

NAME = "sentence_splitters"
_ENDS_WITH_MARK = re.compile(r"[.!?…]['\"”’»)\]\s]*$")


@dataclass(frozen=True, slots=True)
class Document:
    """A text, the offsets of its sentence ends, and those that are not counted."""

    text: str
    ends: frozenset[int] = frozenset()
    given: frozenset[int] = frozenset()
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Row:
    """One splitter on one set, in percent; None if the set has no gold boundaries."""

    splitter: str
    set: str
    precision: float | None
    recall: float | None
    f1: float | None
    sentences: float
    """Sentences per text, weighted by the number of questions."""
    megabytes_per_second: float


# The sets


def joined(sentences: Iterable[str], *, glue: str = " ") -> Document:
    """One text of many sentences, with its boundaries."""
    text = ""
    ends: set[int] = set()
    given: set[int] = set()
    for sentence in (s.strip() for s in sentences):
        if not sentence:
            continue
        marked = bool(_ENDS_WITH_MARK.search(text))
        if text:
            (ends if marked else given).add(len(text))
            text += glue if marked else "\n\n"
        text += sentence
    return Document(text, frozenset(ends), frozenset(given))


def wikiqa(path: Path) -> Iterator[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    for _, group in groupby(rows, key=lambda row: row["QuestionID"]):
        yield [row["Sentence"] for row in group]


def selqa(path: Path) -> list[list[str]]:
    return [question["candidates"] for question in json.loads(path.read_text(encoding="utf-8"))]


def trecqa(path: Path, *, size: int = 10) -> Iterator[list[str]]:
    """Tokenized newswire, ten candidates per text; a sentence follows each opening tag."""
    lines = path.read_text(encoding="utf-8").splitlines()
    tagged = (
        following.replace("\t", " ")
        for line, following in pairwise(lines)
        if line in ("<positive>", "<negative>")
    )
    while chunk := list(islice(tagged, size)):
        yield chunk


def squad(path: Path) -> list[Document]:
    paragraphs = (
        p for a in json.loads(path.read_text(encoding="utf-8"))["data"] for p in a["paragraphs"]
    )
    return [Document(p["context"], weight=len(p["qas"])) for p in paragraphs]


def sets(root: Path) -> dict[str, tuple[str, list[Document]]]:
    """Language and documents by name. SQuAD dev was not used for tuning."""
    selqa_dev = selqa(root / "selqa/selqa-ass-dev.json")
    lowered = [[sentence.lower() for sentence in sentences] for sentences in selqa_dev]
    return {
        "WikiQA train": ("en", [joined(s) for s in wikiqa(root / "wikiqa/WikiQA-train.tsv")]),
        "WikiQA dev": ("en", [joined(s) for s in wikiqa(root / "wikiqa/WikiQA-dev.tsv")]),
        "SelQA dev": ("en", [joined(s) for s in selqa_dev]),
        "SelQA dev, lower case": ("en", [joined(s) for s in lowered]),
        "SelQA dev, no space": ("en", [joined(s, glue="") for s in selqa_dev]),
        "TrecQA train, tokenised": ("en", [joined(s) for s in trecqa(root / "trecqa/TRAIN.xml")]),
        "SQuADShifts wiki": ("en", squad(root / "squadshifts/new_wiki_v1.0.json")),
        "SQuADShifts reddit": ("en", squad(root / "squadshifts/reddit_v1.0.json")),
        "SQuADShifts amazon": ("en", squad(root / "squadshifts/amazon_reviews_v1.0.json")),
        "PIAF (French)": ("fr", squad(root / "piaf/piaf-v1.1.json")),
        "SQuAD v2 dev": ("en", squad(root / "squad/dev-v2.0.json")),
    }


# The splitters, each as a function of the language


def askline_splitter(_: str) -> Splitter:
    from askline.text.sentences import split_sentences

    return split_sentences


def nupunkt_splitter(_: str) -> Splitter:
    split: Splitter = import_module("nupunkt").sent_spans
    return split


def sentencex_splitter(language: str) -> Splitter:
    boundaries = import_module("sentencex").get_sentence_boundaries
    return lambda text: [(b["start_index"], b["end_index"]) for b in boundaries(language, text)]


def syntok_splitter(_: str) -> Splitter:
    analyze = import_module("syntok.segmenter").analyze

    def split(text: str) -> Spans:
        sentences = [tokens for paragraph in analyze(text) for tokens in paragraph]
        return [(t[0].offset, t[-1].offset + len(t[-1].value)) for t in sentences]

    return split


def pysbd_splitter(language: str) -> Splitter:
    segmenter = import_module("pysbd").Segmenter(language=language, clean=False, char_span=True)
    return lambda text: [(span.start, span.end) for span in segmenter.segment(text)]


def blingfire_splitter(_: str) -> Splitter:
    split = import_module("blingfire").text_to_sentences_and_offsets
    return lambda text: list(split(text)[1])


def spacy_splitter(language: str) -> Splitter:
    """The rule-based sentencizer, which needs no model."""
    nlp = import_module("spacy").blank(language)
    nlp.add_pipe("sentencizer")
    return lambda text: [(s.start_char, s.end_char) for s in nlp(text).sents]


SPLITTERS: dict[str, Callable[[str], Splitter]] = {
    "askline": askline_splitter,
    "nupunkt": nupunkt_splitter,
    "sentencex": sentencex_splitter,
    "syntok": syntok_splitter,
    "pysbd": pysbd_splitter,
    "blingfire": blingfire_splitter,
    "spacy": spacy_splitter,
}


# Measuring


def trimmed(spans: Spans, text: str) -> Spans:
    """Spans without white space at their ends and without empty ones, for all splitters."""
    kept = []
    for start, end in spans:
        piece = text[start:end].rstrip()
        if piece.lstrip():
            kept.append((start + len(piece) - len(piece.lstrip()), start + len(piece)))
    return kept


def measure(name: str, split: Splitter, title: str, documents: list[Document]) -> Row:
    """Boundaries match at the same character. One pass, timed in processor seconds."""
    began = time.process_time()
    found = [split(document.text) for document in documents]
    seconds = time.process_time() - began
    right = predicted = gold = count = 0
    for document, spans in zip(documents, found, strict=True):
        spans = trimmed(spans, document.text)
        count += document.weight * len(spans)
        ends = {end for _, end in spans[:-1]} - document.given
        right += len(ends & document.ends)
        predicted += len(ends)
        gold += len(document.ends)
    size = sum(len(document.text.encode()) for document in documents) / 1e6
    return Row(
        splitter=name,
        set=title,
        precision=per_cent(right, predicted) if gold else None,
        recall=per_cent(right, gold) if gold else None,
        f1=per_cent(2 * right, predicted + gold) if gold else None,
        sentences=round(count / sum(document.weight for document in documents), 3),
        megabytes_per_second=round(size / seconds, 2),
    )


def per_cent(part: int, whole: int) -> float:
    return round(100 * part / whole, 2) if whole else 0.0


def measure_all(root: Path, names: Iterable[str]) -> tuple[list[Row], list[str]]:
    """Rows, and the packages behind them."""
    rows, packages = [], []
    collected = sets(root)
    for name in names:
        try:
            SPLITTERS[name]("en")
            packages.append(name)
        except ImportError:
            print(f"{name} is not installed: left out")
            continue
        for title, (language, documents) in collected.items():
            rows.append(measure(name, SPLITTERS[name](language), title, documents))
            print(line(rows[-1]), flush=True)
    return rows, packages


def line(row: Row) -> str:
    shares = (f"{'–' if s is None else f'{s:.2f}':>6}" for s in (row.precision, row.recall, row.f1))
    rest = f"{row.sentences:>7.3f} {row.megabytes_per_second:>7.2f}"
    return f"{row.set:<24} {row.splitter:<10} {' '.join(shares)} {rest}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=SPLITTERS, default=list(SPLITTERS))
    parser.add_argument(
        "--write", action="store_true", help=f"save the figures to research/results{NAME}.json"
    )
    arguments = parser.parse_args()
    print(f"{'set':<24} {'splitter':<10} {'P':>6} {'R':>6} {'F1':>6} {'a text':>7} {'MB/s':>7}")
    rows, packages = measure_all(data_root(), arguments.only)
    if arguments.write:
        print(f"Saved to {save(NAME, {'rows': [asdict(row) for row in rows]}, *packages)}")


if __name__ == "__main__":
    main()
