"""
Parallel French and English text: translations inside Debian packages, and translated questions.

    python -m research.recipes.french.text packages DIR --out pairs.jsonl
    ASKLINE_DATA=DIR python -m research.recipes.french.text translate MODEL \\
        --out translated.jsonl [--pairs 20467]
    python -m research.recipes.french.text sets MODEL --on SET.json [--on …] \\
        --out sets.jsonl

`packages` reads a folder with packages unpacked by `dpkg-deb -x` or `tar`, and with Debian's
`Translation-fr.bz2` and `Translation-en.xz`: gettext catalogs, the help pages of LibreOffice in
both languages, and package descriptions. `translate` translates SQuAD pairs, by default the first
9,997, with an Opus-MT model (en → fr), converted for ctranslate2 (`ct2-transformers-converter`)
with its SentencePiece files beside it. `sets` translates paragraphs and their questions from files
in SQuAD's format (`research.mining.question_sets`). The lines of packages have `french`, `english`
and `source`; those of pairs have `question` and `sentence` in both languages; those of sets have
the form of `squadshifts-fr`.
"""

from __future__ import annotations

import argparse
import bz2
import gettext
import html
import json
import lzma
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from askline.text.sentences import split_sentences
from research.benchmarks.common import data_root

TRANSLATED_PAIRS = 9_997
"""The others are lowercased and tokenized; their spaces are repaired before translation."""
_BATCH, _TOGETHER = 512, 64  # pairs per call, and texts that are decoded together
_MIN_LENGTH, _MAX_LENGTH = 3, 1500
_LENGTH_RATIO = (0.5, 2.6)  # of French to English characters
_BRACKETS = {"-lrb-": "(", "-rrb-": ")", "-lsb-": "[", "-rsb-": "]", "``": '"', "`": "'"}
_ARTICLE = re.compile(r"^(?:les?|la|l['’]|une?|des|du) ?", re.IGNORECASE)
_HELP = re.compile(r'<(p|h[1-6])[^>]*\bid="(\w+)"[^>]*>(.*?)</\1>', re.DOTALL)
_PO_LINE = re.compile(r'(msgid|msgstr|msgctxt|msgid_plural|msgstr\[\d\])\s+"(.*)"$')


class Pair(NamedTuple):
    """The same text in both languages."""

    french: str
    english: str
    source: str


def clean(text: str) -> str:
    """Without the markup of HTML, manual pages and menus."""
    text = html.unescape(re.sub(r"<[^>]+>", " ", text))
    text = re.sub(r"\b[BIRPSC]<+ ?([^<>]*?) ?>+", r"\1", text)
    text = re.sub(r"\\f[BIRP]|\\&|\\-", "", text)
    if len(text) < 60:
        text = re.sub(r"[_&](?=\w)", "", text)
    return " ".join(text.split())


def is_prose(pair: Pair) -> bool:
    """Whether a pair is text and not a format string, a name or a bad alignment."""
    french, english = pair.french, pair.english
    if not english or not _MIN_LENGTH <= len(french) <= _MAX_LENGTH:
        return False
    if french == english and len(english) > 25:
        return False
    if not re.search(r"[a-zA-Z]{2}", french):
        return False
    if len(french) < 80 and re.search(r"%[^ ]|[{}\\]", french):
        return False
    low, high = _LENGTH_RATIO
    return len(english) <= 20 or low < len(french) / len(english) < high


def from_catalog(path: Path) -> Iterator[tuple[str, str]]:
    """A compiled gettext catalog."""
    with path.open("rb") as stream:
        catalog: dict[Any, str] = gettext.GNUTranslations(stream)._catalog  # type: ignore[attr-defined]
    for key, french in catalog.items():
        english = key[0] if isinstance(key, tuple) else key
        yield french, english.rpartition("\x04")[2]


def from_po(text: str) -> Iterator[tuple[str, str]]:
    """A gettext source catalog, without the translations that are marked as fuzzy."""
    for block in text.split("\n\n"):
        if ", fuzzy" in block:
            continue
        fields: dict[str, str] = {}
        key = ""
        for line in block.split("\n"):
            if match := _PO_LINE.match(line):
                key = match[1]
                fields[key] = match[2]
            elif line.startswith('"') and key:
                fields[key] += line[1:-1]
        french = fields.get("msgstr") or fields.get("msgstr[0]", "")
        yield _unescape(french), _unescape(fields.get("msgid", ""))


def _unescape(text: str) -> str:
    for escaped, plain in (("\\n", " "), ('\\"', '"'), ("\\t", " "), ("\\\\", "\\")):
        text = text.replace(escaped, plain)
    return text


def from_help(french: Path, english: Path) -> Iterator[tuple[str, str]]:
    """Two help pages whose paragraphs have the same ids."""
    pages = [
        {match[2]: match[3] for match in _HELP.finditer(path.read_text("utf-8", "ignore"))}
        for path in (french, english)
    ]
    for key in pages[0].keys() & pages[1].keys():
        yield pages[0][key], pages[1][key]


def from_descriptions(french: Path, english: Path) -> Iterator[tuple[str, str]]:
    """Package descriptions, paragraph by paragraph where both have as many."""
    ours = _descriptions(bz2.decompress(french.read_bytes()).decode(), "fr")
    theirs = _descriptions(lzma.decompress(english.read_bytes()).decode(), "en")
    for key in ours.keys() & theirs.keys():
        one, other = ours[key], theirs[key]
        count = len(one) if len(one) == len(other) else 1
        yield from zip(one[:count], other[:count], strict=True)


def _descriptions(text: str, language: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for block in text.split("\n\n"):
        key, lines = "", list[str]()
        for line in block.split("\n"):
            if line.startswith("Description-md5:"):
                key = line.split()[1]
            elif line.startswith(f"Description-{language}:"):
                lines = [line.partition(":")[2].strip(), "."]
            elif lines and line.startswith(" "):
                lines.append(line[1:])
        if key and lines:
            found[key] = list(_paragraphs(lines))
    return found


def _paragraphs(lines: list[str]) -> Iterator[str]:
    current = ""
    for line in lines:
        is_item = line.startswith((" ", "*", "-"))
        if line.strip() == "." or is_item:
            if current:
                yield current
            current = line.strip(" *-–\u00a0") if is_item else ""
        else:
            current = f"{current} {line}".strip()
    if current:
        yield current


def from_packages(folder: Path) -> Iterator[Pair]:
    """All pairs of a folder of unpacked packages, each once."""
    found = dict[tuple[str, str], str]()
    for path in sorted(folder.rglob("*")):
        pairs: Iterator[tuple[str, str]] = iter(())
        if path.match("*/fr/LC_MESSAGES/*.mo"):
            pairs = from_catalog(path)
        elif path.name == "fr.po" or path.match("fr/*.po"):
            pairs = from_po(path.read_text("utf-8", "ignore"))
        elif path.suffix == ".html" and "libreoffice-help-fr" in str(path):
            other = str(path).replace("libreoffice-help-fr", "libreoffice-help-en-us")
            other = other.replace("/fr/", "/en-US/")
            pairs = from_help(path, Path(other)) if Path(other).is_file() else pairs
        elif path.name == "Translation-fr.bz2":
            pairs = from_descriptions(path, path.with_name("Translation-en.xz"))
        source = path.relative_to(folder).parts[0]
        for french, english in pairs:
            pair = Pair(clean(french), clean(english), source)
            if is_prose(pair) and found.setdefault((pair.french, pair.english), source) == source:
                yield pair


def untokenized(text: str) -> str:
    """Lowercased, tokenized text with its brackets, quotes and spaces as a translator expects."""
    said = " ".join(_BRACKETS.get(word, word) for word in text.split())
    said = re.sub(r'" (.*?) \'\'(?= |$)', r'"\1"', said).replace("''", '"')
    said = re.sub(r" ('s|'re|'ve|'ll|'d|'m|n't|[,.;:?!)\]%])(?= |$)", r"\1", said)
    said = re.sub(r"(^| )([(\[$]) (?=\w)", r"\1\2", said)
    return said[:1].upper() + said[1:]


class Translator:
    """An Opus-MT model on ctranslate2: greedy search, as in `squadshifts-fr`."""

    def __init__(self, model: Path) -> None:
        import ctranslate2  # type: ignore[import-not-found]
        import sentencepiece  # type: ignore[import-not-found]

        self._model = ctranslate2.Translator(str(model), compute_type="int8")
        self._source = sentencepiece.SentencePieceProcessor(str(model / "source.spm"))
        self._target = sentencepiece.SentencePieceProcessor(str(model / "target.spm"))

    def __call__(self, texts: Iterable[str]) -> dict[str, str]:
        """Each text with its translation."""
        unique = sorted(set(texts))
        pieces = [[*self._source.encode(text, out_type=str), "</s>"] for text in unique]
        found = self._model.translate_batch(
            pieces, max_batch_size=_TOGETHER, beam_size=1, max_decoding_length=200
        )
        return {
            text: self._target.decode([piece for piece in own.hypotheses[0] if piece != "</s>"])
            for text, own in zip(unique, found, strict=True)
        }


def translate_pairs(model: Path, count: int = TRANSLATED_PAIRS) -> Iterator[dict[str, str]]:
    """The first `count` SQuAD pairs with their French."""
    translator = Translator(model)
    lines = (data_root() / "squad" / "train-pairs.jsonl").read_text("utf-8").splitlines()
    pairs = [json.loads(line) for line in lines[:count]]
    for pair in pairs[TRANSLATED_PAIRS:]:
        pair |= {key: untokenized(pair[key]) for key in ("question", "sentence")}
    for begin in range(0, len(pairs), _BATCH):
        part = pairs[begin : begin + _BATCH]
        french = translator(pair[key] for pair in part for key in ("question", "sentence"))
        for pair in part:
            yield {key: french[pair[key]] for key in ("question", "sentence")} | {
                f"english_{key}": pair[key] for key in ("question", "sentence")
            }


def translate_sets(model: Path, sets: Sequence[Path]) -> Iterator[dict[str, Any]]:
    """The paragraphs of files in SQuAD's format, sentence by sentence, with their questions."""
    translator = Translator(model)
    for path in sets:
        rows = [
            row
            for article in json.loads(path.read_text("utf-8"))["data"]
            for paragraph in article["paragraphs"]
            if (row := _split_paragraph(path.stem, paragraph))["questions"]
        ]
        for begin in range(0, len(rows), _BATCH // 4):
            part = rows[begin : begin + _BATCH // 4]
            french = translator(text for row in part for text in _texts(row))
            for row in part:
                row["sentences"] = [french[text] for text in row["english"]]
                for own in row["questions"]:
                    translated = row["sentences"][own["sentence"]]
                    own["english"] = own["question"]
                    own["question"] = french[own["question"]]
                    own["answer"] = kept_answer(translated, own["answer"], french[own["answer"]])
                yield row


def _texts(row: Mapping[str, Any]) -> Iterator[str]:
    yield from row["english"]
    for own in row["questions"]:
        yield from (own["question"], own["answer"])


def _split_paragraph(source: str, paragraph: Mapping[str, Any]) -> dict[str, Any]:
    """A paragraph in sentences, with the questions whose first answer lies in one of them."""
    text = paragraph["context"]
    spans = split_sentences(text)
    questions = [
        {"question": own["question"], "sentence": at, "answer": answer["text"]}
        for own in paragraph["qas"]
        for answer in own["answers"][:1]
        for at, (low, high) in enumerate(spans)
        if low <= answer["answer_start"] <= high - len(answer["text"])
    ]
    english = [" ".join(text[low:high].split()) for low, high in spans]
    return {"source": source, "english": english, "questions": questions}


def kept_answer(sentence: str, english: str, french: str) -> str | None:
    """The words of a translated sentence that are the answer; None if they are not found."""
    plain = french.strip(" .")
    for answer in (plain, _ARTICLE.sub("", plain), english.strip()):
        start = sentence.lower().find(answer.lower())
        if answer and start >= 0:
            return sentence[start : start + len(answer)]
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("part", choices=["packages", "translate", "sets"])
    parser.add_argument("folder", type=Path, help="the unpacked packages, or the Opus-MT model")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--pairs", type=int, default=TRANSLATED_PAIRS, help="SQuAD pairs")
    parser.add_argument("--on", type=Path, action="append", default=[], help="sets to translate")
    options = parser.parse_args()
    rows: Iterator[Mapping[str, Any]]
    if options.part == "packages":
        rows = (pair._asdict() for pair in from_packages(options.folder))
    elif options.part == "translate":
        rows = translate_pairs(options.folder, options.pairs)
    else:
        rows = translate_sets(options.folder, options.on)
    with options.out.open("w", encoding="utf-8") as stream:
        for row in rows:
            stream.write(json.dumps(row, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
