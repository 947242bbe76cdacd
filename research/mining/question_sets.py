"""
Question sets of public repositories in SQuAD's format, to train the context pass on.

    export ASKLINE_DATA=DIR
    python -m research.mining.question_sets --mirrors DIR --out DIR [--keep-out SET ...]

Reads the sets of `ORIGINS` from git directories OWNER+NAME/repo in `--mirrors`, and writes one file
NAME.json per set, which `research.recipes.context_teacher` takes as `--on squad1:OUT/NAME.json`.
Questions and paragraphs of the `--keep-out` sets of askline.data are left out.
"""

from __future__ import annotations

import argparse
import ast
import csv
import io
import json
import math
import random
import re
import zipfile
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import nlargest
from pathlib import Path
from typing import Any, NamedTuple

from askline.data import load_dataset, load_paragraphs
from askline.text.sentences import split_sentences

from .sources import git_files
from .wording import content_words

__all__ = ["ORIGINS", "READERS", "Asked", "KeptOut", "Origin", "Passage", "checked", "convert"]


@dataclass(frozen=True, slots=True)
class Origin:
    """One set: where its files are, and what is taken of it."""

    name: str
    format: str
    """The name of its reader in `READERS`."""
    license: str
    taken: str
    repository: str
    """`OWNER/NAME@COMMIT`, or several with spaces between them."""
    paths: tuple[str, ...]
    """Beginnings of the paths of its files."""
    max_answer: int = 30
    """Words; longer answers are dropped."""
    max_questions: int = 1000
    """Per text; of more, this number is drawn at random."""


ORIGINS = (
    Origin(
        *("squad_train_44articles", "squad", "CC BY-SA 4.0 (SQuAD; the repository has none)"),
        "the first 44 articles of the train file of SQuAD 1.1",
        "tomhosking/aqleaderboard@79ed2dc0dff5",
        ("data/test-v1.1.json",),
    ),
    Origin(
        *("squad_train_14articles", "squad", "CC BY-SA 4.0 (SQuAD; the repository has none)"),
        "14 other articles of the train file of SQuAD 1.1",
        "jucho2725/mrc_odqa_tutorial@d0f1056eb75f",
        ("data/squad/dev.json",),
    ),
    Origin(
        *("squad_train_paragraphs", "parts", "CC BY-SA 4.0 (SQuAD; one repository has MIT)"),
        "single paragraphs from all articles of the train file of SQuAD 1.1",
        "bigai-nlco/RouterLens@1c18cc756be0 liweijiang/QASystem@389940c29e95 "
        "sayondutta/Dynamic-Coattention-Network@83b44ce6a7a8",
        (
            *("data/squad/dev.json", "data/squad/all_val/val.", "data/squad/small_train/train."),
            *("data/vocab.dat", "data/train."),
        ),
    ),
    Origin(
        *("tydiqa_english", "squad", "Apache-2.0"),
        "TyDi QA, gold passages, English, train and dev",
        "sagorbrur/tydiqa-language-specific@55c6649475e0",
        ("language_data/english/english_tydiqa_",),
    ),
    Origin(
        *("qamr_wiki_devtest", "qamr", "MIT"),
        "QAMR, sentences of Wikipedia and Wikinews, dev and test",
        "uwnlp/qamr@956b0eb2d585",
        ("data/wiki-sentences.tsv", "data/filtered/dev.tsv", "data/filtered/test.tsv"),
        max_questions=12,
    ),
    Origin(
        *("fairytaleqa", "fairytales", "Apache-2.0"),
        "FairytaleQA, questions whose answer is in the text, all splits",
        "uci-soe/FairytaleQAData@a24ddc173646",
        ("data-by-train-split/questions/", "data-by-train-split/section-stories/"),
    ),
    Origin(
        *("onestopqa", "onestop", "CC BY-SA 4.0"),
        "OneStopQA, all three levels of reading",
        "berzak/onestop-qa@7a058755e1ff",
        ("annotations/annotated_articles/",),
        max_answer=60,
    ),
    Origin(
        *("doc2dial_val", "doc2dial", "CC BY 3.0 (Doc2Dial; the repository has none)"),
        "Doc2Dial, validation part, turns that need no others",
        "doc2dial/sharedtask-dialdoc2021@919d1650c110",
        ("data/doc2dial/v1.0.1/doc2dial_rc_val.csv.zip",),
        max_answer=80,
    ),
)

KEEP_OUT = (
    *("squad1:train", "squad1:dev", "squad2:dev", "fquad:valid", "selqa:dev"),
    *("wikiqa:dev", "wikiqa:test", "trecqa:dev", "trecqa:test"),
)
"""What measures askline, and `squad1:train`, which is among the training data already."""

_MIN_QUESTION = 3
"""Words."""
_MAX_TEXT = 400
"""Words; longer texts are split between lines."""
_MAX_LINE = 600
"""Words; texts that are longer after the split are dropped."""
_MOST_TEXTS = 40
"""The answer to a question without a paragraph is searched in this many, those that share most."""
_CLEAR = 0.8
"""Another paragraph must have less than this share of the best one's weight."""
_LEAST_SHARE, _LEAST_SHARE_NEAR = 0.3, 0.5
"""Of the weight of a question's words in its paragraph: if the answer is at its token, or near."""
_SHARED = 80
"""Letters and digits; a text that shares this many in a row with a kept-out one is dropped."""
_TOKEN = re.compile(r"\w+(?:[-.,/–&]\w+)*|\.{3}|['’]\w{1,2}\b|[^\w\s]")
"""About the tokens that the places of answers count."""

Span = tuple[int, int]
Files = dict[str, bytes]
"""The files of a set by their paths, sorted."""


class Asked(NamedTuple):
    question: str
    spans: list[Span]
    """Offsets of the answers in the text: alternatives or parts."""


class Passage(NamedTuple):
    title: str
    """Empty if the set has none."""
    text: str
    asked: list[Asked]


def read_squad_json(files: Files) -> Iterator[Passage]:
    """SQuAD's own format. Of an answer that is not at its offset, the nearest occurrence counts."""
    for data in files.values():
        for article in json.loads(data)["data"]:
            for paragraph in article["paragraphs"]:
                text = paragraph["context"]
                asked = [
                    Asked(own["question"], _spans(text, own["answers"])) for own in paragraph["qas"]
                ]
                yield Passage(article.get("title", ""), text, asked)


def _spans(text: str, answers: Iterable[dict[str, Any]]) -> list[Span]:
    """The occurrence of each answer that is nearest to its offset; none if it does not occur."""
    found = [(answer["answer_start"], _occurrences(text, answer["text"])) for answer in answers]
    return [min(spans, key=lambda span: abs(span[0] - at)) for at, spans in found if spans]


def _occurrences(text: str, answer: str) -> list[Span]:
    pattern = re.escape(answer.strip())
    return [found.span() for found in re.finditer(pattern, text)] if pattern else []


def read_parts(files: Files) -> Iterator[Passage]:
    """
    Paragraphs with some of their questions, and questions with answers but without paragraphs.

    Paragraphs come from lists of contexts, questions and answers, and from files of lines of tokens
    (`.context`, `.question`, `.answer`). If a text has the answer several times, the occurrence
    counts whose sentence shares most words with the question; if that is not one, the question is
    dropped. Of two versions of a paragraph, the one that is not in tokens stays.

    The other questions are lines of numbers in `vocab.dat` (`.ids.question`), with their answers
    (`.answer`) and the tokens at which these begin (`.span`). A question belongs to the paragraph
    that has the answer at about that token and has most of its words, if that is clear.
    """
    texts: dict[str, str] = {}
    passages: dict[str, dict[str, Asked]] = defaultdict(dict)
    for text, question, answer in _triples(files):
        text = texts.setdefault(_letters(text), text)
        found = _occurrences(text, answer)
        if len(found) > 1:
            words = content_words(question)
            shared = [len(words & content_words(_sentence(text, at))) for at, _ in found]
            found = [own for own, n in zip(found, shared, strict=True) if n == max(shared)]
        if len(found) == 1:
            passages[text][_letters(question)] = Asked(question, found)
    for text, asked in _joined(files, list(texts.values())):
        passages[text].setdefault(_letters(asked.question), asked)
    for text, by_words in passages.items():
        yield Passage("", text, list(by_words.values()))


def _triples(files: Files) -> Iterator[tuple[str, str, str]]:
    """Contexts, questions and answers of a set's files, those in tokens last."""
    for path, data in files.items():
        if path.endswith(".json"):
            for row in json.loads(data):
                answer = row["answer"] if isinstance(row["answer"], str) else row["answer"][0]
                yield row["context"], row["question"], answer
    for path in files:
        if path.endswith(".context") and not path.endswith(".ids.context"):
            stem = path.removesuffix("context")
            parts = (_lines(files, f"{stem}{kind}") for kind in ("context", "question", "answer"))
            for tokens in zip(*parts, strict=True):
                text, question, answer = (_append_tokens("", own.split())[0] for own in tokens)
                yield text, question, answer


def _joined(files: Files, texts: Sequence[str]) -> Iterator[tuple[str, Asked]]:
    """The questions without paragraphs, each with its text."""
    containing: dict[str, list[int]] = defaultdict(list)
    for number, text in enumerate(texts):
        for word in content_words(text):
            containing[word].append(number)
    weights = {word: math.log(len(texts) / len(own)) for word, own in containing.items()}
    tokens = [[found.start() for found in _TOKEN.finditer(text)] for text in texts]
    vocabulary = _lines(files, "data/vocab.dat")
    parts = (_lines(files, f"data/train.{kind}") for kind in ("ids.question", "answer", "span"))
    for numbers, answer_tokens, span in zip(*parts, strict=True):
        question = _append_tokens("", [vocabulary[int(own)] for own in numbers.split()])[0]
        answer = _append_tokens("", answer_tokens.split())[0]
        token = int(span.split()[0])
        words = content_words(question)
        shared: dict[int, float] = defaultdict(float)
        for word in sorted(words & weights.keys()):
            for number in containing[word]:
                shared[number] += weights[word]
        found = []
        for number in nlargest(_MOST_TEXTS, shared, key=shared.__getitem__):
            for start, end in _occurrences(texts[number], answer):
                far = abs(bisect_right(tokens[number], start) - 1 - token)
                if far <= max(2, token // 25):  # other programs cut some tokens otherwise
                    found.append((shared[number], -far, number, (start, end)))
        if not found:
            continue
        weight, far, number, own = max(found)
        rival = max((one[0] for one in found if one[2] != number), default=0)
        share = weight / sum(weights.get(word, math.log(len(texts))) for word in words)
        if rival <= _CLEAR * weight and share >= (_LEAST_SHARE_NEAR if far else _LEAST_SHARE):
            yield texts[number], Asked(question, [own])


def _lines(files: Files, path: str) -> list[str]:
    return files[path].decode().rstrip("\n").split("\n") if path in files else []


def _sentence(text: str, at: int) -> str:
    """The sentence with the character at this offset."""
    return next((text[start:end] for start, end in split_sentences(text) if at < end), "")


def read_qamr(files: Files) -> Iterator[Passage]:
    """
    QAMR: sentences in tokens, and questions that up to three crowd workers answered.

    Sentences that follow each other become one text. Questions are kept if two workers marked
    overlapping answers, and if they have five words, two of them content words of the text. Of
    those with the same first answer, the two stay that share most words with the text.
    """
    sentences: dict[str, str] = {}
    rows: dict[str, list[list[str]]] = defaultdict(list)
    for path, data in files.items():
        for line in data.decode().split("\n"):
            cells = line.split("\t")
            if path.endswith("sentences.tsv"):
                sentences[cells[0]] = cells[-1]
            elif cells[0].startswith("Wiki1k:"):
                rows[cells[0]].append(cells)
    for group in _neighbors(rows):
        text = ""
        found: dict[str, Asked] = {}
        for key in group:
            text, tokens = _append_tokens(text, sentences[key].split())
            for row in rows[key]:
                question = row[5][0].upper() + row[5][1:].rstrip("? ") + "?"
                for first, last in _agreed(row):
                    own = found.setdefault(_letters(question), Asked(question, []))
                    own.spans.append((tokens[first][0], tokens[last][1]))
        words = content_words(text)
        by_answer: dict[int, list[tuple[int, int, Asked]]] = defaultdict(list)
        for own in found.values():
            shared = len(content_words(own.question) & words)
            if shared >= 2 and len(own.question.split()) >= 5:
                by_answer[min(own.spans)[0]].append((shared, len(own.question), own))
        best = (sorted(rivals, reverse=True)[:2] for rivals in by_answer.values())
        yield Passage("", text, [own for rivals in best for _, _, own in rivals])


def _neighbors(keys: Iterable[str]) -> list[list[str]]:
    """Keys `PARAGRAPH:NUMBER`, in groups of numbers that follow each other."""
    places = sorted((key.rpartition(":")[0], int(key.rpartition(":")[2])) for key in keys)
    groups: list[list[str]] = []
    for index, (paragraph, number) in enumerate(places):
        if not index or places[index - 1] != (paragraph, number - 1):
            groups.append([])
        groups[-1].append(f"{paragraph}:{number}")
    return groups


def _agreed(row: Sequence[str]) -> list[Span]:
    """First and last tokens of the answers without gaps; none if no two workers agree."""
    cells = [cell.rpartition(":")[2] for cell in row[6:9]]
    answers = [[int(one) for one in own.split()] for own in cells if re.fullmatch(r"[\d ]+", own)]
    votes = Counter(number for own in answers for number in own)
    if len(answers) > 1 and max(votes.values()) == 1:
        return []
    return [(own[0], own[-1]) for own in answers if own[-1] - own[0] == len(own) - 1]


_PENN = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
_ATTACHED = re.compile(r"\.\.\.|n't|'.{0,2}|[,.;:?!%)\]}’”]")
_OPENING = frozenset("([{$£€#“‘")


def _append_tokens(text: str, tokens: Iterable[str]) -> tuple[str, list[Span]]:
    """A text and a sentence in tokens of the Penn Treebank, and the offsets of the tokens."""
    spans = []
    is_glued, is_quoted = not text, False
    for token in tokens:
        opens = token == "``" or (token == '"' and not is_quoted)
        closes = token == "''" or (token == '"' and is_quoted)
        is_quoted = opens if token == '"' else is_quoted
        word = '"' if opens or closes else _PENN.get(token, token).replace("\\/", "/")
        text += "" if is_glued or closes or _ATTACHED.fullmatch(word) else " "
        spans.append((len(text), len(text) + len(word)))
        text += word
        is_glued = opens or word in _OPENING
    return text, spans


def read_fairytales(files: Files) -> Iterator[Passage]:
    """
    FairytaleQA: a table of questions and a table of sections per story.

    Kept are questions about one section that has an answer word for word; an answer of one word
    must be there once.
    """
    for path in (path for path in files if "/questions/" in path):
        story = path.replace("/questions/", "/section-stories/").replace("-questions", "-story")
        sections = {row["section"].strip(): row["text"].strip() for row in _table(files[story])}
        asked: dict[str, list[Asked]] = defaultdict(list)
        for row in _table(files[path]):
            text = sections.get(row["cor_section"].strip(), "")
            if row["local-or-sum"].strip() == "local" and text:
                answers = [row.get(f"answer{number}") or "" for number in range(1, 7)]
                spans = [span for answer in answers for span in _mentioned(text, answer)]
                question = row["question"].strip()
                asked[text].append(Asked(question[:1].upper() + question[1:], spans))
        title = path.rpartition("/")[2].removesuffix("-questions.csv")
        for text, own in asked.items():
            yield Passage(title, text, own)


def _table(data: bytes) -> Iterator[dict[str, str]]:
    return csv.DictReader(io.StringIO(data.decode("utf-8-sig", "replace")))


def _mentioned(text: str, answer: str) -> list[Span]:
    """Where a text has an answer first, in whole words; upper and lower case are the same."""
    answer = answer.strip().rstrip(". ")
    found = re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", text, re.I) if answer else None
    is_clear = " " in answer or text.lower().count(answer.lower()) == 1
    return [found.span()] if found and is_clear else []


def read_onestop(files: Files) -> Iterator[Passage]:
    """OneStopQA: each paragraph at three levels of reading, with <A1> around the first answer."""
    for data in files.values():
        title, *paragraphs = data.decode().split("# Paragraph")
        for paragraph in paragraphs:
            questions = re.findall(r"^Q\d?:[ \t]*(.+?)\s*$", paragraph, re.M)
            for level in re.findall(r"^(?:Adv|Int|Ele):[ \t]*(.+)$", paragraph, re.M):
                text = _untagged(level.strip())
                asked = [
                    Asked(question, _tagged(level.strip(), f"A{number}"))
                    for number, question in enumerate(questions, 1)
                    if question.endswith("?")
                ]
                yield Passage(title.replace("# Title", "").strip(), text, asked)


def _untagged(text: str) -> str:
    return re.sub(r"</?[AD]\d>", "", text)


def _tagged(text: str, tag: str) -> list[Span]:
    """Offsets of what is inside a tag, in the text without tags."""
    found = re.finditer(rf"<{tag}>(.*?)</{tag}>", text)
    starts = [(len(_untagged(text[: own.start()])), own[1]) for own in found]
    return [(start, start + len(_untagged(inside))) for start, inside in starts]


_REFERS = re.compile(r"\b(?:it|that|this|they|them|those|these|its|their|there|ones?|so)\b", re.I)


def read_doc2dial(files: Files) -> Iterator[Passage]:
    """
    Doc2Dial as a packed table: the last turns of dialogues first, with their document.

    Kept are first turns of users with four words or more, and later turns that are questions of
    six words or more without a word that refers to other turns.
    """
    csv.field_size_limit(10**9)
    asked: dict[tuple[str, str], list[Asked]] = defaultdict(list)
    for data in files.values():
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            table = packed.read(packed.namelist()[0])
        for row in _table(table):
            last, _, earlier = row["question"].strip().partition("\t")
            speaker, _, turn = last.partition(":")
            turn, length = turn.strip(), len(turn.split())
            if earlier and (length < 6 or not turn.endswith("?") or _REFERS.search(turn)):
                continue
            if speaker == "user" and length >= 4:
                text, found = row["context"], ast.literal_eval(row["answers"])
                pairs = zip(found["text"], found["answer_start"], strict=True)
                spans = _spans(text, [{"text": own, "answer_start": at} for own, at in pairs])
                asked[row["title"].partition("#")[0], text].append(Asked(turn, spans))
    for (title, text), own in asked.items():
        yield Passage(title, text, own)


READERS: dict[str, Callable[[Files], Iterator[Passage]]] = {
    "squad": read_squad_json,
    "parts": read_parts,
    "qamr": read_qamr,
    "fairytales": read_fairytales,
    "onestop": read_onestop,
    "doc2dial": read_doc2dial,
}


class KeptOut:
    """Questions, articles and texts that no set may have."""

    def __init__(self, names: Iterable[str]) -> None:
        """`names` are names of sets as in `askline.data.load_dataset`."""
        self._questions: set[str] = set()
        self._articles: set[str] = set()
        self._runs: set[int] = set()
        for name in names:
            paragraphs = load_paragraphs(name)
            for paragraph in paragraphs:
                self._articles.add(_letters(paragraph.article))
                self.add(paragraph.text, (own.text for own in paragraph.questions))
            for question in () if paragraphs else load_dataset(name):
                self._questions.add(_letters(question.text))
                for candidate in question.candidates:
                    self._runs.update(_runs(candidate.text))

    def add(self, text: str, questions: Iterable[str]) -> None:
        self._runs.update(_runs(text))
        self._questions.update(map(_letters, questions))

    def has_text(self, title: str, text: str) -> bool:
        """Whether an article has the title, or a paragraph or sentence a part of the text."""
        is_known = bool(title) and _letters(title) in self._articles
        return is_known or any(run in self._runs for run in _runs(text))

    def has_question(self, question: str) -> bool:
        return _letters(question) in self._questions


def _letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", text.lower())


def _runs(text: str) -> Iterator[int]:
    letters = _letters(text)
    return (hash(letters[at : at + _SHARED]) for at in range(len(letters) - _SHARED + 1))


def checked(origin: Origin, passages: Iterable[Passage], kept_out: KeptOut) -> list[Passage]:
    """
    The texts and questions of a set that pass all checks; long texts are split.

    Equal texts become one, with the title of the first. A question is kept once per text.
    """
    texts: dict[str, tuple[str, dict[str, Asked]]] = {}
    for whole in passages:
        if kept_out.has_text(whole.title, whole.text):
            continue
        for start, end in _pieces(whole.text):
            text = whole.text[start:end]
            if len(text.split()) > _MAX_LINE:
                continue
            asked = texts.setdefault(text, (whole.title, {}))[1]
            for own in whole.asked:
                question = " ".join(own.question.split())
                spans = dict.fromkeys(_stripped(whole.text, *span) for span in own.spans)
                inside = [(a - start, b - start) for a, b in spans if start <= a < b <= end]
                short = [(a, b) for a, b in inside if len(text[a:b].split()) <= origin.max_answer]
                long_enough = len(question.split()) >= _MIN_QUESTION
                if short and long_enough and not kept_out.has_question(question):
                    asked.setdefault(question.lower(), Asked(question, short))
    rng = random.Random(5)
    found = []
    for text, (title, by_words) in texts.items():
        questions = list(by_words.values())
        if len(questions) > origin.max_questions:
            questions = rng.sample(questions, origin.max_questions)
        if questions:
            found.append(Passage(title, text, questions))
    return found


def _pieces(text: str) -> Iterator[Span]:
    """Offsets of pieces of whole lines, of at most `_MAX_TEXT` words if no line is longer."""
    start = end = 0
    for line in text.splitlines(keepends=True):
        if start < end and len(text[start : end + len(line)].split()) > _MAX_TEXT:
            yield _stripped(text, start, end)
            start = end
        end += len(line)
    yield _stripped(text, start, end)


def _stripped(text: str, start: int, end: int) -> Span:
    """Offsets without the white space around what is between them."""
    part = text[start:end]
    return start + len(part) - len(part.lstrip()), start + len(part.rstrip())


def convert(origin: Origin, mirrors: Path, kept_out: KeptOut) -> list[Passage]:
    """Read a set from its repository, and check it."""
    files: Files = {}
    for place in origin.repository.split():
        name, _, commit = place.partition("@")
        repository = mirrors / name.replace("/", "+") / "repo"
        files |= git_files(repository, commit, lambda path: path.startswith(origin.paths))
    passages = checked(origin, READERS[origin.format](files), kept_out)
    if not passages:
        raise ValueError(
            f"Expected questions in {', '.join(origin.paths)} of {origin.repository}, got none. "
            f"Clone the repositories into {mirrors} with their history."
        )
    return passages


def write_squad(path: Path, passages: Sequence[Passage]) -> int:
    """Write a file in SQuAD's format; returns the number of questions."""
    data: list[dict[str, Any]] = []
    number = 0
    for title, text, asked in passages:
        qas = []
        for question, spans in asked:
            answers = [{"text": text[start:end], "answer_start": start} for start, end in spans]
            qas.append({"id": f"{path.stem}-{number}", "question": question, "answers": answers})
            number += 1
        if not data or data[-1].get("title", "") != title:
            data.append({"title": title, "paragraphs": []} if title else {"paragraphs": []})
        data[-1]["paragraphs"].append({"context": text, "qas": qas})
    path.write_text(json.dumps({"version": path.stem, "data": data}, ensure_ascii=False), "utf-8")
    return number


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Convert question sets to SQuAD's format.")
    parser.add_argument("--mirrors", type=Path, required=True, help="folder of repositories")
    parser.add_argument("--out", type=Path, required=True, help="folder for the files")
    sets = f"sets to leave out [default: {' '.join(KEEP_OUT)}]"
    parser.add_argument("--keep-out", nargs="+", default=KEEP_OUT, metavar="SET", help=sets)
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    kept_out = KeptOut(given.keep_out)
    for origin in ORIGINS:
        passages = convert(origin, given.mirrors, kept_out)
        count = write_squad(given.out / f"{origin.name}.json", passages)
        print(f"{origin.name}: {len(passages)} texts, {count} questions", flush=True)
        for passage in passages:
            kept_out.add(passage.text, (own.question for own in passage.asked))


if __name__ == "__main__":
    main()
