"""
Training arrays of the French cascade: vocabulary, tokens in both languages, and word alignments.

    ASKLINE_DATA=DIR python -m research.recipes.french.arrays --pairs pairs.jsonl \\
        --translated translated.jsonl --tokenizer tokenizer.json --out data.npz

The vocabulary is a WordPiece of 20,000 pieces, trained on the French side if the tokenizer file is
not there yet. French pieces are aligned with pieces of the English vocabulary by IBM model 1 with a
prior for the diagonal. The alignment gives each French piece its first embedding, each French token
the English token whose states it should have, and answers that were lost in translation their
place in the French sentence.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from askline.engine.tokenizer import WordPiece
from askline.rankers.cascade import shipped_folder
from askline.training.cascade.context_examples import (
    ContextExamples,
    PassageQuestion,
    TrainingPassage,
    paragraph_passages,
)
from research.benchmarks.common import data_root

from .folder import piaf

IntArray = NDArray[np.int64]
PIECES = 20_000
SPECIAL = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
"""In this order; the marker of a sentence in a passage is the second."""
KINDS = ("new_wiki", "squad", "reddit", "amazon_reviews", "piaf", "mt")
_ALPHABET = (
    "abcdefghijklmnopqrstuvwxyz0123456789'’«»“”\"-–—.,;:!?()[]{}/%&@#*+=<>€$£°²³_~|…·œæß•§^`\\"
)
_MOST_PACKAGE_PAIRS, _LONGEST = 80_000, 80
_ALIGNED_TEXTS = 110_000  # that the alignment model is fitted to
_EM_STEPS, _DIAGONAL = 5, 4.0
_ENGLISH_PIECES = 30_522
_INITIAL_PIECES = 6  # English pieces whose mean a French embedding starts from, most of it


class Item(NamedTuple):
    """A French passage, with the same in English where it is a translation."""

    kind: str
    passage: TrainingPassage
    english: Sequence[str] | None = None
    """Its sentences."""
    questions: Sequence[str | None] = ()
    """In English."""
    answers: Sequence[str] = ()
    """The English answer of each question; empty if it is not known."""


def translated_items() -> Iterator[Item]:
    """`squadshifts-fr`, with the English questions from their sources, in the same order."""
    root = data_root()
    sources = {
        name: [
            (article.get("title", ""), paragraph)
            for article in json.loads((root / "squadshifts" / f"{name}_v1.0.json").read_text())[
                "data"
            ]
            for paragraph in article["paragraphs"]
        ]
        for name in ("new_wiki", "reddit", "amazon_reviews")
    }
    contexts = json.loads((root / "squad" / "train-800-contexts.json").read_text())
    sources["squad"] = [("", paragraph) for paragraph in contexts]
    seen: Counter[str] = Counter()
    with gzip.open(root / "squadshifts-fr" / "translated.jsonl.gz", "rt") as lines:
        for line in lines:
            row = json.loads(line)
            kind = row["source"]
            title, paragraph = sources[kind][seen[kind]]
            seen[kind] += 1
            title = title.replace("_", " ") if kind == "new_wiki" else ""
            same = len(paragraph["qas"]) == len(row["questions"])
            yield Item(
                kind,
                _translated_passage(row, kind + title, title),
                row["english"],
                [own["question"] if same else None for own in paragraph["qas"]]
                if same
                else [None] * len(row["questions"]),
                [_first_answer(own) for own in paragraph["qas"]] if same else (),
            )


def set_items(path: Path | None) -> Iterator[Item]:
    """Paragraphs of other sets, as `research.recipes.french.text sets` wrote them."""
    for line in path.read_text("utf-8").splitlines() if path else ():
        row = json.loads(line)
        english = [own["english"] for own in row["questions"]]
        yield Item(row["source"], _translated_passage(row, row["source"]), row["english"], english)


def _translated_passage(row: Mapping[str, Any], name: str, title: str = "") -> TrainingPassage:
    sentences = tuple(row["sentences"])
    questions = []
    for own in row["questions"]:
        at = own["sentence"]
        span = find_answer(sentences[at], own["answer"])
        questions.append(PassageQuestion(own["question"], (at,), ((at, *span),) if span else ()))
    return TrainingPassage(name, sentences, tuple(questions), title)


def find_answer(sentence: str, answer: str | None) -> tuple[int, int] | None:
    start = sentence.lower().find(answer.lower()) if answer else -1
    return None if start < 0 or answer is None else (start, start + len(answer))


def _first_answer(entry: dict[str, Any]) -> str:
    return str(entry["answers"][0]["text"] if "answers" in entry else entry["answer"])


def pair_items(path: Path) -> Iterator[Item]:
    """Translated SQuAD pairs: a sentence with all its questions is a passage."""
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    by_sentence: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        if row["sentence"] and row["question"] and len(row["sentence"]) <= 1200:
            by_sentence.setdefault(row["english_sentence"], []).append(row)
    for english, own in by_sentence.items():
        questions = tuple(PassageQuestion(row["question"], (0,)) for row in own)
        passage = TrainingPassage("mt", (own[0]["sentence"],), questions)
        yield Item("mt", passage, [english], [row["english_question"] for row in own])


def train_tokenizer(items: Sequence[Item], pairs: Sequence[str], path: Path) -> None:
    """WordPiece with the rules of BERT: lowercase, without accents."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    texts = list(pairs)
    for item in items:
        weight = {"piaf": 4, "new_wiki": 2, "squad": 2}.get(item.kind, 1)
        asked = (question.text for question in item.passage.questions)
        texts += [" ".join([*item.passage.sentences, *asked])] * weight
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(strip_accents=True, lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=PIECES,
        special_tokens=SPECIAL,
        initial_alphabet=list(_ALPHABET),
        limit_alphabet=260,
        min_frequency=3,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.save(str(path))


class Alignment(NamedTuple):
    """The probability of a French piece given an English one, for pairs that occur together."""

    keys: IntArray  # French piece * _ENGLISH_PIECES + English piece, ascending
    probabilities: NDArray[np.float32]
    counts: NDArray[np.float32]
    """How often the two were aligned."""

    @classmethod
    def fit(cls, texts: Sequence[tuple[IntArray, IntArray]]) -> Alignment:
        """IBM model 1 by expectation maximization; places near the diagonal are preferred."""
        french, english, prior, groups = [], [], [], []
        group = 0
        for one, other in texts:
            french.append(np.repeat(one, len(other)))
            english.append(np.tile(other, len(one)))
            near = _near_diagonal(len(one), len(other))
            prior.append((near / near.sum(1, keepdims=True)).ravel().astype(np.float32))
            groups.append(np.repeat(np.arange(group, group + len(one)), len(other)))
            group += len(one)
        keys = np.concatenate(french).astype(np.int64) * _ENGLISH_PIECES + np.concatenate(english)
        keys, places = np.unique(keys, return_inverse=True)
        owner, flat_prior = np.concatenate(groups), np.concatenate(prior)
        given = keys % _ENGLISH_PIECES
        probabilities = 1 / np.bincount(given, minlength=_ENGLISH_PIECES)[given]
        counts: NDArray[Any] = probabilities
        for _ in range(_EM_STEPS):
            share = probabilities[places] * flat_prior
            share /= (np.bincount(owner, share, minlength=group) + 1e-9)[owner]
            counts = np.bincount(places, share, minlength=len(keys))
            totals = np.bincount(given, counts, minlength=_ENGLISH_PIECES) + 1e-6
            probabilities = counts / totals[given]
        return cls(keys, probabilities.astype(np.float32), counts.astype(np.float32))

    def align(self, french: IntArray, english: IntArray) -> NDArray[np.int16]:
        """For each French token the English one, -1 without a clear one."""
        if not len(french) or not len(english):
            return np.full(len(french), -1, np.int16)
        keys = french.astype(np.int64)[:, None] * _ENGLISH_PIECES + english[None]
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        known = np.where(self.keys[at] == keys, self.probabilities[at], 1e-7)
        values = known * _near_diagonal(len(french), len(english))
        best, rows = values.argmax(1), np.arange(len(french))
        highest = values[rows, best]
        clear = (highest > 0.5 * values.sum(1)) & (highest > 1e-6)
        return np.where(clear, best, -1).astype(np.int16)

    def initial_pieces(
        self, french: WordPiece, english: WordPiece, seen: IntArray
    ) -> tuple[IntArray, NDArray[np.float32]]:
        """For each French piece up to six English ones, and their weights."""
        numbers = np.zeros((len(french.vocabulary), _INITIAL_PIECES), np.int64)
        weights = np.zeros(numbers.shape, np.float32)
        owners = self.keys // _ENGLISH_PIECES
        totals = np.bincount(owners, self.counts, minlength=len(numbers)) + 1e-9
        shares = self.counts / totals[owners]
        found: list[dict[int, float]] = [{} for _ in range(len(numbers))]
        for at in np.lexsort((-shares, owners)).tolist():
            own = found[owners[at]]
            if len(own) < _INITIAL_PIECES and shares[at] > 0.03:
                own[int(self.keys[at] % _ENGLISH_PIECES)] = float(shares[at])
        for piece, number in french.vocabulary.items():
            own = found[number]
            same = english.vocabulary.get("'" if piece == "’" else piece)
            is_word = piece.isalpha() or piece.startswith("##")
            if same is not None and (not own or seen[number] < 5 or not is_word):
                own = {same: 1.0}
            elif same in own:
                own[same] *= 2
            elif not own:
                own = dict.fromkeys(english.token_ids(piece.removeprefix("##")), 1.0)
            best = sorted(own.items(), key=lambda item: -item[1])[:_INITIAL_PIECES]
            total = sum(weight for _, weight in best)
            for place, (other, weight) in enumerate(best):
                numbers[number, place], weights[number, place] = other, weight / total
        return numbers, weights


def _near_diagonal(rows: int, columns: int) -> NDArray[np.float64]:
    one, other = (np.arange(rows) + 0.5) / rows, (np.arange(columns) + 0.5) / columns
    return np.asarray(np.exp(-_DIAGONAL * np.abs(one[:, None] - other[None])))


def project(aligned: NDArray[np.int16], first: int, last: int) -> tuple[int, int] | None:
    """The French tokens of English tokens `first` to `last`; None if others are among them."""
    hits = np.flatnonzero((aligned >= first) & (aligned <= last))
    if not len(hits):
        return None
    low, high = int(hits[0]), int(hits[-1])
    inside = aligned[low : high + 1]
    foreign = (inside >= 0) & ((inside < first) | (inside > last))
    too_long = high - low + 1 > 2.2 * (last - first + 1) + 2
    return None if foreign.any() or too_long else (low, high)


def english_texts(items: Sequence[Item]) -> list[str]:
    """By the numbers that `ContextExamples` gives the French texts; empty if there is none."""
    texts: list[str] = []
    for item in items:
        texts += item.english or [""] * len(item.passage.sentences)
    texts += [item.passage.title if item.english else "" for item in items if item.passage.title]
    for item in items:
        texts += [own or "" for own in item.questions or [None] * len(item.passage.questions)]
    return texts


def lost_answers(
    items: Sequence[Item],
    examples: ContextExamples,
    english: WordPiece,
    aligned: Sequence[NDArray[np.int16]],
) -> Iterator[tuple[int, int, int, int]]:
    """Spans of questions whose answer is known in English only."""
    known = set(examples.spans[:, 0].tolist())
    number = -1
    for at, item in enumerate(items):
        for place, question in enumerate(item.passage.questions):
            number += 1
            if number in known or not item.answers or item.english is None:
                continue
            (sentence,) = question.answers
            text, answer = item.english[sentence], item.answers[place]
            start = text.find(answer)
            tokens = [
                token
                for token, (_, left, right) in enumerate(english.tokens_with_offsets(text))
                if start >= 0 and left < start + len(answer) and right > start
            ]
            own = aligned[int(examples.passage_texts[at]) + sentence]
            span = project(own, tokens[0], tokens[-1]) if tokens else None
            if span is not None:
                yield number, sentence, *span


def make(pairs_file: Path, translated: Path, tokenizer: Path) -> dict[str, NDArray[Any]]:
    """All arrays by name."""
    pairs = [json.loads(line) for line in pairs_file.read_text("utf-8").splitlines()]
    np.random.default_rng(1).shuffle(pairs)
    pairs = [own for own in pairs if 8 <= len(own["french"]) <= 400]
    items = [
        *translated_items(),
        *(Item("piaf", passage) for passage in paragraph_passages(piaf(held_out=False))),
        *pair_items(translated),
    ]
    if not tokenizer.exists():
        train_tokenizer(items, [own["french"] for own in pairs[:60_000]], tokenizer)
    french, english = (
        WordPiece.load(path) for path in (tokenizer, shipped_folder() / "tokenizer.json")
    )
    examples = ContextExamples.of([item.passage for item in items], french)
    held_out = ContextExamples.of(paragraph_passages(piaf(held_out=True)), french)

    def tokens(wordpiece: WordPiece, text: str) -> IntArray:
        return np.array(wordpiece.token_ids(text), np.int64)

    theirs = [tokens(english, text) for text in english_texts(items)]
    ours = [examples.text(number).astype(np.int64) for number in range(len(theirs))]
    both = [(tokens(french, own["french"]), tokens(english, own["english"])) for own in pairs]
    both = [own for own in both if all(0 < len(side) <= _LONGEST for side in own)]
    both = both[:_MOST_PACKAGE_PAIRS]
    texts = [own for own in zip(ours, theirs, strict=True) if all(map(len, own))] + both
    chosen = np.random.default_rng(0).permutation(len(texts))[:_ALIGNED_TEXTS].tolist()
    fitted = [texts[at] for at in chosen if max(map(len, texts[at])) <= 90]
    alignment = Alignment.fit(fitted)
    seen = np.bincount(np.concatenate([own for own, _ in fitted]), minlength=PIECES)
    numbers, weights = alignment.initial_pieces(french, english, seen)
    aligned = [alignment.align(*own) for own in zip(ours, theirs, strict=True)]
    spans = np.array(list(lost_answers(items, examples, english, aligned))).reshape(-1, 4)
    made: dict[str, NDArray[Any]] = {
        "kinds": np.array([KINDS.index(item.kind) for item in items]),
        "map_i": numbers,
        "map_w": weights,
        "al": np.concatenate(aligned),
        "tal": np.concatenate([alignment.align(*own) for own in both]),
    }
    for name, sequences in (
        ("en", theirs),
        ("tfr", [own for own, _ in both]),
        ("ten", [other for _, other in both]),
    ):
        made[f"{name}_tokens"] = np.concatenate(sequences)
        made[f"{name}_offsets"] = np.cumsum([0, *map(len, sequences)])
    for prefix, own in (("ex", examples), ("dx", held_out)):
        made |= {f"{prefix}_{name}": getattr(own, name) for name in ContextExamples.__slots__}
    made["ex_spans"] = np.concatenate([examples.spans, spans])
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("--pairs", type=Path, required=True, help="made by `text packages`")
    parser.add_argument("--translated", type=Path, required=True, help="made by `text translate`")
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    arrays: dict[str, Any] = make(options.pairs, options.translated, options.tokenizer)
    np.savez_compressed(options.out, **arrays)


if __name__ == "__main__":
    main()
