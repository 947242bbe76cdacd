"""Passages of a document with the questions that their sentences answer."""

from __future__ import annotations

import hashlib
import random
import re
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .documents import Item, Section, iter_plain, read_sections
from .entries import entry_kind, from_entry, short_name
from .headings import from_heading
from .statements import from_statement
from .wording import Draft, content_words

__all__ = ["MinedPassage", "MinedQuestion", "mine_file", "mine_sections"]

MAX_SENTENCES = 20
MAX_CHARACTERS = 1400
_MERGE_BELOW = 450
_NEGATIVES = 3
_ENTRIES_PER_PASSAGE = 4
_SENTENCES_PER_PASSAGE = 3
_LEAD_IN = re.compile(r"(?::|as follows\.?)$")
_EMPTY_ANSWER = re.compile(
    r"^(?:see|refer to|please (?:see|refer|read)|for (?:more|further|details|a (?:full"
    r"|complete))|this (?:section|chapter|page|guide|article|topic|document|tutorial) |"
    r"in this (?:section|chapter|guide|article|tutorial)|the following|note:?$|note that"
    r"|warning|yes\.?$|no\.?$|maybe\.?$|new in version|changed in version|added in"
    r"|deprecated|"
    r"todo|tip:?$|important:?$|table of contents|contents$|last (?:updated|modified)"
    r"|applies to|edit this|author|copyright|we(?:'ll| will) |let's|you(?:'ll| will) learn|"
    r"[—–@\"“#>]|before you|prerequisites|by default$|example|figure|image|previous|next"
    r"|home$|up$|back to)",
    re.I,
)


@dataclass(slots=True)
class MinedQuestion:
    question: str
    answers: list[int]
    kind: str


@dataclass(slots=True)
class MinedPassage:
    document: str
    title: str
    sentences: list[str]
    questions: list[MinedQuestion] = field(default_factory=list)

    def record(self, source: str, license_name: str) -> dict[str, Any]:
        """The line of the output file."""
        return {"source": source, "license": license_name, **asdict(self)}


@dataclass(slots=True)
class _Piece:
    """A part of a section that fits into a passage, with the question of its heading."""

    path: tuple[str, ...]
    heading: str
    items: list[Item]
    is_first: bool
    draft: Draft | None = None

    @property
    def characters(self) -> int:
        return sum(len(item.text) for item in self.items)


def mine_file(path: Path, name: str, product: str, seed: int = 1) -> list[MinedPassage]:
    """The passages of one file. `name` identifies the document, `product` is what it is about."""
    rng = random.Random(
        int.from_bytes(hashlib.sha256(f"{seed} {name}".encode()).digest()[:8], "big")
    )
    sections = read_sections(path)
    if not _is_english(sections):
        return []
    if re.search(r"\.[1-9]\w*$", path.name):
        product = path.name.rsplit(".", 1)[0]
    return mine_sections(sections, name, product, rng)


def mine_sections(
    sections: list[Section], name: str, product: str, rng: random.Random
) -> list[MinedPassage]:
    """The passages of a document: those with questions, and a few others of the same document."""
    known = frozenset(
        word
        for text in iter_plain(sections)
        for word in re.findall(r"(?<![\w.])[a-z][a-z'-]+", text)
    )
    faq = bool(re.search(r"\bfaqs?\b|frequently[ -]asked", name, re.I))
    pieces = [piece for section in sections for piece in _pieces(section)]
    for piece in pieces:
        if piece.is_first and _first_content(piece.items) is not None:
            in_faq = faq or any(
                re.search(r"\bfaqs?\b|frequently asked|\bquestions\b", part, re.I)
                for part in piece.path
            )
            piece.draft = from_heading(piece.heading, piece.path, product, in_faq, known, rng)
    asked = Counter(piece.draft.question.lower() for piece in pieces if piece.draft)
    for piece in pieces:
        if piece.draft and asked[piece.draft.question.lower()] > 1:
            piece.draft = None
    passages = [_passage(group, name, product, rng) for group in _groups(pieces, rng)]
    _drop_repeated(passages)
    empty = [
        passage for passage in passages if not passage.questions and len(passage.sentences) >= 2
    ]
    kept = {id(passage) for passage in rng.sample(empty, min(_NEGATIVES, len(empty)))}
    passages = [passage for passage in passages if passage.questions or id(passage) in kept]
    return passages if any(passage.questions for passage in passages) else []


def _is_english(sections: list[Section]) -> bool:
    words = Counter(
        word for text in list(iter_plain(sections))[:80] for word in text.lower().split()
    )
    total = sum(words.values())
    return (
        total >= 20
        and sum(words[word] for word in ("the", "of", "to", "and", "for")) > 0.08 * total
    )


def _pieces(section: Section) -> list[_Piece]:
    """A section cut into parts of at most a passage, between blocks where possible."""
    found: list[_Piece] = []
    items: list[Item] = []
    length = 0
    for item in section.items:
        if item.kind == "code" and len(item.text) > 300:
            item.text = item.text[:300].rsplit("\n", 1)[0]
        if len(item.text) > 700 or len(item.text) < 2:
            continue
        full = len(items) >= MAX_SENTENCES or length + len(item.text) > MAX_CHARACTERS
        tidy = item.first and (len(items) >= MAX_SENTENCES - 4 or length > MAX_CHARACTERS - 250)
        if items and (full or tidy):
            found.append(_Piece(section.path, section.heading, items, not found))
            items, length = [], 0
        items.append(item)
        length += len(item.text)
    if items:
        found.append(_Piece(section.path, section.heading, items, not found))
    return found


def _groups(pieces: list[_Piece], rng: random.Random) -> list[list[_Piece]]:
    """Short neighbours of one parent together, as entries of a FAQ; long pieces alone."""
    groups: list[list[_Piece]] = []
    for piece in pieces:
        last = groups[-1] if groups else []
        fits = (
            last
            and piece.path == last[-1].path
            and piece.is_first
            and sum(other.characters for other in last) + piece.characters <= MAX_CHARACTERS
            and sum(len(other.items) for other in last) + len(piece.items) <= MAX_SENTENCES
        )
        if (
            fits
            and (piece.characters < _MERGE_BELOW or last[-1].characters < _MERGE_BELOW)
            and rng.random() < 0.75
        ):
            last.append(piece)
        else:
            groups.append([piece])
    return groups


def _passage(group: list[_Piece], name: str, product: str, rng: random.Random) -> MinedPassage:
    items = [item for piece in group for item in piece.items]
    headings = [piece.heading for piece in group]
    questions: list[MinedQuestion] = []
    start = 0
    for piece in group:
        answers = _heading_answers(piece.draft, piece.items) if piece.draft else []
        texts = [piece.items[index].text for index in answers]
        if piece.draft and answers and _is_good(piece.draft, texts):
            indices = [start + index for index in answers]
            questions.append(MinedQuestion(piece.draft.question, indices, piece.draft.kind))
        start += len(piece.items)
    # A heading that became a question is hidden, else the title would tell where the answer is.
    hidden = len(group) > 1 or bool(questions)
    path = [part for part in group[0].path if part not in headings]
    title = " > ".join(part for part in (*path, *([] if hidden else headings)) if part)
    passage = MinedPassage(name, title[:200], [item.text for item in items], questions)
    _ask_entries(passage, items, group, product, rng)
    _ask_sentences(passage, items, product, rng)
    return passage


def _first_content(items: list[Item]) -> int | None:
    for index, item in enumerate(items[:4]):
        if (
            item.kind == "sentence"
            and len(item.text) >= 20
            and not _EMPTY_ANSWER.match(item.text)
            and not item.text.endswith("?")
        ):
            return index
    return None


def _heading_answers(draft: Draft, items: list[Item]) -> list[int]:
    """
    The one to three sentences near the start that answer best; empty if none is likely to.

    A sentence gains by words of the question, by an answer's form (an instruction for "how", "is a"
    for "what", "because" for "why") and by being first. Code counts with the lead-in before it.
    """
    first = _first_content(items)
    if first is None:
        return []
    words = content_words(draft.question)
    form = _answer_form(draft)
    scores: dict[int, float] = {}
    for index in range(first, min(first + 5, len(items))):
        item = items[index]
        text = item.text
        if (
            item.kind != "sentence"
            or len(text) < 20
            or text.endswith("?")
            or _EMPTY_ANSWER.match(text)
        ):
            continue
        before_code = (
            _LEAD_IN.search(text) and index + 1 < len(items) and items[index + 1].kind == "code"
        )
        if _LEAD_IN.search(text) and not before_code and index + 1 < len(items):
            continue
        shared = len(words & content_words(text))
        scores[index] = (
            shared
            + (1.5 if form.search(text) else 0)
            + (1 if index == first else 0)
            + (1 if before_code and draft.kind == "how-to" else 0)
        )
    if not scores:
        return []
    if draft.kind in ("how-to", "limitation", "requirement"):
        scores = {index: score for index, score in scores.items() if _has_form(items, index, form)}
        if not scores:
            return []
    best = max(scores.values())
    if best < (2.5 if draft.kind == "how-to" else 1.5):
        return []
    chosen = sorted(
        sorted(scores, key=lambda index: (-scores[index], index))[
            : 2 if draft.kind == "how-to" else 3
        ]
    )
    chosen = [index for index in chosen if scores[index] >= max(best - 1, 2)] or [
        max(scores, key=lambda index: scores[index])
    ]
    for index in list(chosen):
        if (
            _LEAD_IN.search(items[index].text)
            and index + 1 < len(items)
            and items[index + 1].kind == "code"
        ):
            chosen.append(index + 1)
    return sorted(set(chosen))[:3]


_HOW = re.compile(
    r"^(?:To|In order to|You (?:can|may|should|must|need|have to)|Use|Using|Run|Set|Add"
    r"|Click|Open|Select|Choose|Go to|Type|Enter|Create|Install|Press|Call|Edit|Make|Start"
    r"|Put|Just|Simply|First|By|Specify|Enable|Configure|Execute|Define|Write|Copy"
    r"|Download|Navigate|If you (?:want|need|wish))\b"
    r"|\b(?:can|could|may) be \w+ed (?:by|with|using|via|through|in)|\b(?:by|with)"
    r" (?:\w+ing|the)\b|\buse(?:s|d)? (?:the|a|an|to)\b|\bcommand\b|\byou (?:can|must"
    r"|should|need to|have to)\b"
)
_FORMS = (
    (re.compile(r"^(?:how (?:do|can|to|should|would|could)|where do i)", re.I), _HOW),
    (
        re.compile(r"^why\b", re.I),
        re.compile(
            r"\b(?:because|since|due to|so that|reason|as a result|therefore|in order to"
            r"|caused?|means? that|to (?:avoid|prevent|ensure))\b",
            re.I,
        ),
    ),
    (
        re.compile(r"^(?:what (?:is|are|does)|what's)", re.I),
        re.compile(
            r"\b(?:is|are) (?:an?|the)\b|\brefers? to\b|\bmeans?\b|\bprovides?\b"
            r"|\bdescribes?\b|\ballows?\b",
            re.I,
        ),
    ),
    (
        re.compile(r"^(?:can|could|do|does|is|are|will|should|may|must|am|has|have)\b", re.I),
        re.compile(
            r"^(?:yes|no|not|unfortunately|currently|you (?:can|may|do|don|should|must"
            r"|cannot)|it (?:is|depends|does|can)|absolutely|sure|of course|generally|only"
            r"|in general|there (?:is|are))\b|\b(?:cannot|can't|not|supports?|possible"
            r"|only)\b",
            re.I,
        ),
    ),
    (
        re.compile(r"^when\b", re.I),
        re.compile(r"\b(?:when|if|after|before|once|whenever|until|while|as soon as)\b", re.I),
    ),
    (
        re.compile(r"^where\b", re.I),
        re.compile(
            r"\b(?:in|at|on|under|from|to) (?:the|your|a|/)|https?:|\bfound\b|\bavailable\b", re.I
        ),
    ),
)


def _has_form(items: list[Item], index: int, form: re.Pattern[str]) -> bool:
    """Whether a sentence has the form of the answer, or leads to code."""
    after = items[index + 1].kind if index + 1 < len(items) else ""
    return bool(form.search(items[index].text)) or after == "code"


def _answer_form(draft: Draft) -> re.Pattern[str]:
    """What an answer to such a question usually contains."""
    if draft.kind == "how-to":
        return _HOW
    if draft.kind == "limitation":
        return _LIMITED
    if draft.kind == "requirement":
        return _REQUIRED
    return next((form for asked, form in _FORMS if asked.match(draft.question)), _NOTHING)


_LIMITED = re.compile(
    r"\b(?:not|cannot|can't|doesn't|don't|won't|only|no|limited|limit|unsupported|without"
    r"|unable|never|at most|maximum)\b",
    re.I,
)
_REQUIRED = re.compile(
    r"\b(?:requires?|required|needs?|must|install(?:ed)?|depends?|minimum|at least"
    r"|recommended|supported|version)\b",
    re.I,
)
_NOTHING = re.compile(r"(?!)")


def _is_good(draft: Draft, answers: list[str]) -> bool:
    """
    Whether the answer says more than the question and is likely about it.

    Questions that an author wrote may share no word with their answer; those from templates must.
    """
    words = content_words(draft.question)
    text = " ".join(answers)
    found = content_words(text)
    if len(found - words) < 2 or not words:
        return False
    if draft.question.rstrip("?. ").lower() in text.lower():
        return False
    shared = len(words & found)
    if draft.kind in ("faq", "heading-question"):
        return shared >= 1 or bool(_DIRECT.match(text))
    return shared >= min(2, len(words)) or shared >= 0.5 * len(words)


_DIRECT = re.compile(r"(?:Yes|No|You|Use|To|Because|This is|It|We|There|Not|The|In|If|By|I)\b")


def _ask_entries(
    passage: MinedPassage, items: list[Item], group: list[_Piece], product: str, rng: random.Random
) -> None:
    """Questions about options, settings, functions and terms of the passage."""
    around = " ".join((*group[0].path, group[0].heading)).lower()
    settings = bool(
        re.search(
            r"\b(?:options?|settings?|configuration|parameters?|directives?|variables?"
            r"|properties|attributes|fields|keywords)\b",
            around,
        )
    )
    glossary = bool(re.search(r"\b(?:glossary|terminology|terms|definitions|concepts)\b", around))
    terms = Counter(item.term for item in items if item.term)
    drafts: list[tuple[int, Draft]] = []
    for index, item in enumerate(items):
        term, description = item.term, ""
        if item.kind == "row" and item.text.count(" | ") in (1, 2, 3) and settings:
            cells = item.text.split(" | ")
            term, description = cells[0], max(cells[1:], key=len)
        elif term and item.kind == "sentence":
            description = re.sub(r"^(?::| [-–—]+)\s*", "", item.text[len(term) :]).lstrip(": ")
        if not term or not description or terms[term] > 1:
            continue
        kind = entry_kind(term, settings)
        if kind:
            draft = from_entry(term, description, kind, product, rng)
        elif (
            glossary
            and len(term.split()) <= 4
            and len(description) > 25
            and not description.endswith(":")
        ):
            bare = term.strip("`*\"' ")
            draft = Draft(
                rng.choice(
                    (
                        f"What is {bare}?",
                        f"What does {bare} mean?",
                        f"what is meant by {bare}",
                        f"definition of {bare}",
                    )
                ),
                "definition",
            )
        else:
            draft = None
        if draft and (draft.kind in ("what-does", "definition") or _is_new(draft, term)):
            drafts.append((index, draft))
        if kind in ("option", "setting") and item.kind == "sentence":
            default = _default_question(items, index, term, kind, rng)
            if default and (draft is None or rng.random() < 0.4):
                drafts.append(default)
    for index, draft in sorted(
        rng.sample(drafts, min(_ENTRIES_PER_PASSAGE, len(drafts))), key=lambda pair: pair[0]
    ):
        passage.questions.append(MinedQuestion(draft.question, [index], draft.kind))


def _default_question(
    items: list[Item], index: int, term: str, kind: str, rng: random.Random
) -> tuple[int, Draft] | None:
    """`The default is 5.` in the entry of `--foo` answers "What is the default of --foo?"."""
    name = short_name(term, kind)
    if kind == "setting" and len(term.split()) <= 3 and not re.search(r"[(=,]", term):
        name = term
    if len(name) < 3:
        return None
    for other in range(index + 1, min(index + 6, len(items))):
        if items[other].block != items[index].block:
            break
        if "unset" not in items[other].text and re.match(
            r"(?:The )?default (?:value )?(?:is|for this)|(?:It )?defaults to|default:",
            items[other].text,
            re.I,
        ):
            question = rng.choice(
                (
                    f"What is the default value of {name}?",
                    f"What is the default of {name}?",
                    f"What does {name} default to?",
                    f"{name} default",
                )
            )
            return other, Draft(question, "value")
    return None


def _is_new(draft: Draft, term: str) -> bool:
    """Whether the entry says something that the question does not: its term at least."""
    return (
        not (content_words(term) and content_words(term) <= content_words(draft.question))
        and len(draft.question) < 150
    )


def _ask_sentences(
    passage: MinedPassage, items: list[Item], product: str, rng: random.Random
) -> None:
    """Questions that single sentences of running text answer."""
    taken = {answer for question in passage.questions for answer in question.answers}
    drafts: list[tuple[int, Draft]] = []
    for index, item in enumerate(items):
        if item.kind != "sentence" or index in taken or item.term:
            continue
        draft = from_statement(item.text, product, rng)
        if (
            draft
            and len(draft.question) < 150
            and len(content_words(item.text) - content_words(draft.question)) >= 2
        ):
            drafts.append((index, draft))
    for index, draft in sorted(
        rng.sample(drafts, min(_SENTENCES_PER_PASSAGE, len(drafts))), key=lambda pair: pair[0]
    ):
        passage.questions.append(MinedQuestion(draft.question, [index], draft.kind))


def _drop_repeated(passages: list[MinedPassage]) -> None:
    """A question that a document asks twice has no single answer."""
    asked = Counter(
        question.question.lower() for passage in passages for question in passage.questions
    )
    for passage in passages:
        passage.questions = [
            question for question in passage.questions if asked[question.question.lower()] == 1
        ]
