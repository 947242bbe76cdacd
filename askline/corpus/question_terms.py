"""
From a question to the terms to search: its own words, and others that the documents may use.

The words of the question count fully, stop words not at all. Other terms count less: derivations
(`founder`, `founded`), words written together or apart (`time out`, `timeout`), and for a word that
the index does not have, the nearest words that it has. The figure of each is in
research/notes/corpus.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import NamedTuple

from ..text.words import STOP_WORDS, split_identifiers, split_words
from .similar_words import SimilarWord, SimilarWords

__all__ = [
    "QuestionTerms",
    "RetrievalOptions",
    "TermIndex",
    "correct_question",
    "question_terms",
]

_WORD = re.compile(r"[^\W\d_]+")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_VOWELS = "aeiouy"
_MIN_SIMILAR_LETTERS = 3
_MIN_CORRECTED_LETTERS = 4
_MIN_TWICE_CORRECTED_LETTERS = 7
_MAX_CORRECTED_LETTERS = 20
_MAX_CORRECTED_WORDS = 3
"""Words of a question that are corrected, most of it: a millisecond each."""
_CORRECTIONS = 3
_UNLIKELY_EDIT = 1.5
"""An uncommon edit to a term is as likely as a common one to a term that is 4.5 times as rare."""
_MIN_PART_LETTERS = 3
_MAX_DERIVED_WORDS = 3


@dataclass(frozen=True)
class RetrievalOptions:
    """
    What counts besides the words of the question, each with its weight; 0 leaves it out.

    The defaults were chosen on dev sets (research/results/retrieval.json).
    """

    stop_words: float = 0.2
    """
    Weight of stop words in the score of a sentence. Passages are searched without them, unless the
    question has no other words that the index knows.
    """
    titles: float = 0.15
    """Weight of a term in the title, the file name or the headings, besides that in the text."""
    identifiers: bool = True
    """Whether parts and wholes of identifiers in the question are searched."""
    derived: float = 0.5
    joined: float = 0.4
    """Two words of the question as one word, and a word that the index lacks as two."""
    corrected: float = 0.8
    soft_match: float = 1.0
    """Weight of the match of word vectors in the score of a sentence."""
    own_match: bool = True
    """Whether some sentences are chosen by their own match among more passages."""
    sentence_vectors: bool = True
    """Whether the sentences found are scored again, by all matches and by sentence vectors."""


class TermIndex(NamedTuple):
    """The vocabulary of an index."""

    stem: Callable[[str], str]
    weights: Callable[[Iterable[str]], Mapping[str, float]]
    """Inverse document frequencies of the terms that the index has."""


class QuestionTerms(NamedTuple):
    """The terms of a question."""

    own: frozenset[str]
    """The terms of all words of the question, stop words included."""
    factors: dict[str, float]
    """The weight of each term to search, 1 for terms of the question; all are in the index."""
    weights: dict[str, float]
    """
    The factor times the inverse document frequency, for scoring sentences; stop words are included
    and derivations are not: a soft match by `words` finds these.
    """
    words: dict[str, float]
    """The words of the question without stop words, corrected, with the weights of their terms."""
    corrected: dict[str, str]
    """The nearest term of the index, spelled like the word, for words that it lacks."""


def question_terms(
    question: str, index: TermIndex, similar: SimilarWords | None, options: RetrievalOptions
) -> QuestionTerms:
    """The terms of a question; without `similar`, no derivations."""
    plain = split_words(question)
    words = list(dict.fromkeys(split_identifiers(question) if options.identifiers else plain))
    stems = {word: index.stem(word) for word in words}
    own = frozenset(stem for stem in stems.values() if stem)
    content = [word for word in words if word not in STOP_WORDS]
    search = _Search(index, own)
    search.add_own(stems[word] for word in content)
    unknown = [word for word in content if stems[word] not in search.idf and word.isalpha()]
    if options.joined:
        search.add_joined(plain, options.joined)
    corrected: dict[str, str] = {}
    for word in unknown[:_MAX_CORRECTED_WORDS]:
        if not (options.joined and search.add_split(word, options.joined)) and options.corrected:
            nearest = search.add_corrections(word, options.corrected)
            corrected |= {word: nearest} if nearest else {}
    terms = [stems[word] for word in words]
    if not search.factors or options.stop_words == 1.0:
        search.add_own(terms)
    weights = {term: factor * search.idf[term] for term, factor in search.factors.items()}
    for term, idf in index.weights(set(terms) - search.factors.keys() - {""}).items():
        weights[term] = options.stop_words * idf
    rarest = max(search.idf.values(), default=1.0)
    content = [corrected.get(word, word) for word in content]
    word_weights = {word: search.idf.get(index.stem(word), rarest) for word in content}
    if similar is not None:
        for word, weight in word_weights.items():
            if word.isalpha() and len(word) >= _MIN_SIMILAR_LETTERS:
                search.add_derived(similar.derived(word), options.derived, weight)
    return QuestionTerms(own, search.factors, weights, word_weights, corrected)


def correct_question(
    question: str, corrected: Mapping[str, str], index: TermIndex, known: SimilarWords
) -> str:
    """
    The question with its misspelled words corrected, for a ranker: it reads words, not terms.

    `corrected` are those of its terms. A word is replaced if it has no vector, and a form of the
    nearest term one or two edits away has one. A capital letter inside a question marks a name or
    an abbreviation, which stays.
    """

    def correct(found: re.Match[str]) -> str:
        word, low = found[0], found[0].lower()
        is_first = not question[: found.start()].strip()
        is_lower = word.islower() or (is_first and word[1:].islower())
        if low not in corrected or not is_lower or low in known:
            return word
        common, term = _common_edits(low), index.stem(corrected[low])
        forms = {corrected[low], *_edits(low), *common}
        spelled = [form for form in forms if form in known and index.stem(form) == term]
        if not spelled:
            return word
        form = min(spelled, key=lambda form: (form not in common, form))
        return form if word.islower() else form.capitalize()

    return _WORD.sub(correct, question)


class _Search:
    """The terms to search, as they are found."""

    def __init__(self, index: TermIndex, own: frozenset[str]) -> None:
        self.factors: dict[str, float] = {}
        self.idf: dict[str, float] = {}
        self._index, self._own = index, own

    def add_own(self, terms: Iterable[str]) -> None:
        """Terms of the question, in their order."""
        self._add({term: 1.0 for term in terms if term and term not in self.factors})

    def add_derived(self, words: Sequence[SimilarWord], weight: float, limit: float) -> None:
        """A few of the most similar words; each weighs at most a part of the weight `limit`."""
        if not weight:
            return
        factors: dict[str, float] = {}
        for word, cosine in words:
            if word not in STOP_WORDS:
                factors.setdefault(self._index.stem(word), weight * cosine)
        known = self._index.weights(term for term in factors if term not in self._own)
        for term in list(known)[:_MAX_DERIVED_WORDS]:
            self._add({term: factors[term] * min(1.0, limit / known[term])})

    def add_joined(self, words: Sequence[str], weight: float) -> None:
        """Two words that follow each other as one; not two stop words."""
        pairs = pairwise(words)
        joined = [a + b for a, b in pairs if not (a in STOP_WORDS and b in STOP_WORDS)]
        terms = {self._index.stem(word) for word in joined} - self._own
        self._add(dict.fromkeys(sorted(terms), weight))

    def add_split(self, word: str, weight: float) -> bool:
        """Whether the word is two words of the index; the most frequent two are added."""
        stem = self._index.stem
        cuts = range(_MIN_PART_LETTERS, len(word) - _MIN_PART_LETTERS + 1)
        pairs = [(stem(word[:cut]), stem(word[cut:])) for cut in cuts]
        known = self._index.weights({term for pair in pairs for term in pair if term})
        pairs = [pair for pair in pairs if pair[0] in known and pair[1] in known]
        if pairs:
            best = min(pairs, key=lambda pair: max(known[pair[0]], known[pair[1]]))
            self._add(dict.fromkeys(best, weight))
        return bool(pairs)

    def add_corrections(self, word: str, weight: float) -> str | None:
        """
        The nearest terms of the index: the best with the whole weight, others with less.

        Returns the corrected word; None if there is no term near it. Terms are one edit away: a
        letter too many, missing or exchanged, or two letters swapped. If there is none and the word
        is long, two edits of the most common kinds. A swap, a doubled letter and a wrong vowel are
        likelier than other edits, and frequent terms are likelier than rare ones.
        """
        if not _MIN_CORRECTED_LETTERS <= len(word) <= _MAX_CORRECTED_LETTERS:
            return None
        common = _common_edits(word)
        forms = {self._index.stem(form): form for form in chain(_edits(word), common)}
        known = self._known(forms)
        if not known and len(word) >= _MIN_TWICE_CORRECTED_LETTERS:
            twice = chain.from_iterable(map(_common_edits, sorted(common)))
            forms = {self._index.stem(form): form for form in twice}
            known = self._known(forms)

        def cost(term: str) -> tuple[float, str]:
            return known[term] + (0.0 if forms[term] in common else _UNLIKELY_EDIT), term

        best = sorted(known, key=cost)[:_CORRECTIONS]
        for place, term in enumerate(best, start=1):
            self._add({term: weight / place})
        return forms[best[0]] if best else None

    def _known(self, terms: Iterable[str]) -> Mapping[str, float]:
        return self._index.weights(term for term in terms if len(term) >= _MIN_PART_LETTERS)

    def _add(self, factors: Mapping[str, float]) -> None:
        """Terms that the index has; a term that is there already keeps the higher factor."""
        for term, idf in self._index.weights(factors).items():
            self.idf[term] = idf
            self.factors[term] = max(factors[term], self.factors.get(term, 0.0))


def _edits(word: str) -> Iterator[str]:
    """Every form one edit away."""
    for at in range(len(word) + 1):
        head, tail = word[:at], word[at:]
        if tail:
            yield head + tail[1:]
        if len(tail) > 1:
            yield head + tail[1] + tail[0] + tail[2:]
        for letter in _LETTERS:
            yield head + letter + tail
            if tail:
                yield head + letter + tail[1:]


def _common_edits(word: str) -> set[str]:
    """Forms with two letters swapped, one doubled or left out, or another vowel."""
    forms = set()
    for at, letter in enumerate(word):
        head, tail = word[:at], word[at + 1 :]
        forms |= {head + tail, head + letter + letter + tail}
        if tail:
            forms.add(head + tail[0] + letter + tail[1:])
        if letter in _VOWELS:
            forms.update(head + vowel + tail for vowel in _VOWELS)
    return forms - {word}
