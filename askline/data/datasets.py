"""
Datasets by name: `NAME:SPLIT`, as on the command line and in result tables; licenses and counts.

Files are read from one data folder with a subfolder per dataset. Each file may be gzipped or not,
whatever its name in the list below. SelQA and WikiQA, whose formats are small, are read here, the
others by a module each.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Protocol

from ..errors import InputError, UnknownNameError
from ..text.words import split_words
from ..types import Candidate, Question, QuestionSet
from .data_files import (
    DataFile,
    JsonObject,
    RowError,
    UniqueIds,
    check_text,
    get_list,
    get_text,
    get_texts,
    json_type,
)
from .jsonl_questions import read_jsonl, read_pairs
from .natural_questions import read_asnq, read_natural_questions
from .squad import Paragraph, hold_out, read_paragraphs, read_squad, to_question_set
from .transforms import filter_questions
from .trecqa import read_trecqa, read_trecqa_all

__all__ = [
    "DATA_VARIABLE",
    "DatasetStatistics",
    "compute_statistics",
    "data_license",
    "dataset_names",
    "load_dataset",
    "load_paragraphs",
    "read_selqa",
    "read_wikiqa",
]


DATA_VARIABLE = "ASKLINE_DATA"
"""The environment variable with the path of the data folder; read by `load_dataset`."""

_TRECQA: dict[str, tuple[str, ...]] = {
    "train": ("trecqa/TRAIN.xml",),
    "train-all": ("trecqa/train-all.jsonl.gz",),
    "dev": ("trecqa/DEV.xml",),
    "test": ("trecqa/TEST.xml",),
}
_SHIFTS: dict[str, tuple[str, ...]] = {
    "new_wiki": ("squadshifts/new_wiki_v1.0.json",),
    "reddit": ("squadshifts/reddit_v1.0.json",),
    "amazon": ("squadshifts/amazon_reviews_v1.0.json",),
}
_ALL_SHIFTS = tuple(file for files in _SHIFTS.values() for file in files)

_FILES: dict[str, dict[str, tuple[str, ...]]] = {
    "asnq": {split: (f"asnq/{split}.tsv",) for split in ("train", "dev")},
    "fquad": {"valid": ("fquad/valid.json",)},
    "nq": {split: (f"nq/simplified-nq-{split}.jsonl.gz",) for split in ("train", "dev")},
    "piaf": dict.fromkeys(("train", "dev"), ("piaf/piaf-v1.1.json",)),
    "selqa": {"dev": ("selqa/selqa-ass-dev.json",)},
    "squad-pairs": {"train": ("squad/train-pairs.jsonl",)},
    "squad1": {"train": ("squad/train-800-contexts.json",), "dev": ("squad/dev-v1.1.json",)},
    "squad2": {"dev": ("squad/dev-v2.0.json",)},
    "squadshifts": _SHIFTS | dict.fromkeys(("all", "train", "dev"), _ALL_SHIFTS),
    "trecqa": _TRECQA,
    "trecqa-clean": _TRECQA,
    "wikiqa": {split: (f"wikiqa/WikiQA-{split}.tsv",) for split in ("train", "dev", "test")},
}
"""The files of every split, relative to the data folder."""

_HELD_OUT_SPLIT = frozenset({"piaf", "squadshifts"})
"""Published without splits: `hold_out` splits each file into `train` and `dev`."""

_LICENSES = {
    "wikiqa": "Microsoft Research Data License: for research, not for shipping",
    "trecqa": "none stated (newswire): for measuring only",
    "squadshifts": "CC BY 4.0",
    "squad1": "CC BY-SA 4.0",
    "squad2": "CC BY-SA 4.0",
    "squad-pairs": "CC BY-SA 4.0",
    "selqa": "Apache-2.0",
    "piaf": "open license (Etalab)",
    "fquad": "CC BY-NC-SA 3.0: for measuring only",
}


def dataset_names() -> tuple[str, ...]:
    """Every `NAME:SPLIT` that `load_dataset` accepts, sorted."""
    return tuple(sorted(f"{name}:{split}" for name in _FILES for split in _FILES[name]))


def load_dataset(
    name: str, *, root: str | PathLike[str] | None = None, seed: int = 0
) -> QuestionSet:
    """
    Load a labelled question set; its name is `name` as given.

    `name` is one of
    - `NAME:SPLIT` out of `dataset_names()`;
    - `NAME` alone: the train split, or the first split of a dataset without one;
    - the path of a .jsonl or .jsonl.gz file in askline's own format;
    - `NAME:PATH`: another file in the format of that dataset.

    `root` is the data folder; the default is the value of the environment variable ASKLINE_DATA.
    `seed` matters for TrecQA only, whose candidates are shuffled.
    """
    dataset, colon, split = name.partition(":")
    if name in _FILES:
        return load_dataset(f"{name}:{_default_split(name)}", root=root, seed=seed)
    if dataset in _FILES and colon:
        if split in _FILES[dataset]:
            return _load_split(dataset, split, root, seed)
        if Path(split).suffix or os.sep in split or Path(split).is_file():
            return _read(dataset, Path(split), name, seed)
    elif name.endswith((".jsonl", ".jsonl.gz")):
        return read_jsonl(name, name=name)
    elif Path(name).expanduser().is_file():
        raise InputError(
            f"Expected a .jsonl or .jsonl.gz file in askline's own format, got {name}. For a file "
            f"in the format of a dataset, write NAME:{name} with one of these names: "
            f"{', '.join(_FILES)}."
        )
    raise UnknownNameError("dataset or .jsonl file", name, dataset_names())


def load_paragraphs(name: str, *, root: str | PathLike[str] | None = None) -> tuple[Paragraph, ...]:
    """
    Load the paragraphs of a dataset in SQuAD's format; names and splits as in `load_dataset`.

    Returns an empty tuple for other formats.
    """
    if name in _FILES:
        return load_paragraphs(f"{name}:{_default_split(name)}", root=root)
    dataset, _, split = name.partition(":")
    if _READERS.get(dataset) is not read_squad:
        return ()
    files = _FILES[dataset].get(split)
    if files is None:
        return read_paragraphs(split).paragraphs
    parts = [
        read_paragraphs(_find_file(file, _data_folder(name, files, root), name)) for file in files
    ]
    if dataset in _HELD_OUT_SPLIT and split in ("train", "dev"):
        parts = [hold_out(part)[split == "dev"] for part in parts]
    return tuple(paragraph for part in parts for paragraph in part.paragraphs)


def data_license(name: str, *, default: str = "see the data") -> str:
    """The license of a dataset, given as NAME or NAME:SPLIT."""
    return _LICENSES.get(name.partition(":")[0], default)


def _default_split(dataset: str) -> str:
    splits = list(_FILES[dataset])
    return "train" if "train" in splits else splits[0]


def _load_split(
    dataset: str, split: str, root: str | PathLike[str] | None, seed: int
) -> QuestionSet:
    name = f"{dataset}:{split}"
    files = _FILES[dataset][split]
    paths = [_find_file(file, _data_folder(name, files, root), name) for file in files]
    if dataset in _HELD_OUT_SPLIT and split in ("train", "dev"):
        parts = [hold_out(read_paragraphs(path))[split == "dev"] for path in paths]
        return _join(name, [to_question_set(part) for part in parts])
    return _join(name, [_read(dataset, path, name, seed) for path in paths])


def _read(dataset: str, path: Path, name: str, seed: int) -> QuestionSet:
    if not dataset.startswith("trecqa"):
        return _READERS[dataset](path, name=name)
    read = read_trecqa_all if ".jsonl" in path.name else read_trecqa
    question_set = read(path, name=name, seed=seed)
    return filter_questions(question_set, "both") if dataset == "trecqa-clean" else question_set


def _data_folder(name: str, files: Sequence[str], root: str | PathLike[str] | None) -> Path:
    folder = os.fspath(root) if root is not None else os.environ.get(DATA_VARIABLE, "")
    if not folder:
        raise InputError(
            f"{name} is read from {', '.join(files)} in a data folder, and none is given. "
            f"Set {DATA_VARIABLE}, or use --data DIR (in Python: root=)."
        )
    return Path(folder).expanduser()


def _find_file(file: str, folder: Path, name: str) -> Path:
    path = folder / file
    other = path.with_suffix("") if path.suffix == ".gz" else path.with_name(f"{path.name}.gz")
    for candidate in (path, other):
        if candidate.is_file():
            return candidate
    raise InputError(
        f"No file {path}, which {name} is read from. Put it there, or choose another data folder "
        f"with {DATA_VARIABLE} or --data DIR (in Python: root=)."
    )


def _join(name: str, parts: Sequence[QuestionSet]) -> QuestionSet:
    questions = [question for part in parts for question in part]
    unique = UniqueIds("question")
    for number, question in enumerate(questions, 1):
        try:
            unique.add(question.id, f"question {number}")
        except RowError as error:
            raise InputError(f"The files of {name} cannot be joined. {error}") from error
    return QuestionSet(name, tuple(questions))


def read_selqa(
    path: str | PathLike[str], *, name: str | None = None, keep_empty: bool = True
) -> QuestionSet:
    """
    Read SelQA: a JSON list of questions with candidates and the indexes of the answers.

    Candidates keep the order of their section; ids are `Q` and the position from 1.

    The published files have empty candidates (42 of 9,419 in dev), all of them negatives. They are
    counted in the published figures, so they are kept unless `keep_empty` is false. An empty
    candidate that is labelled as an answer is a problem.
    """
    file = DataFile(path)
    document = file.document()
    if not isinstance(document, list):
        file.fail(0, f"Expected a JSON list of questions, got {json_type(document)}.")
    questions = file.parse_items(document, "", partial(_selqa_question, keep_empty=keep_empty))
    return file.question_set(name, questions)


def _selqa_question(record: JsonObject, _: str, position: int, *, keep_empty: bool) -> Question:
    question_id = f"Q{position + 1}"
    sentences = get_texts(record, "candidates", blank=True)
    answers = _selqa_answers(record, sentences)
    candidates = tuple(
        Candidate(f"{question_id}-{index}", sentence, index in answers)
        for index, sentence in enumerate(sentences)
        if keep_empty or sentence.strip()
    )
    return Question(question_id, get_text(record, "question"), candidates)


def _selqa_answers(record: JsonObject, sentences: list[str]) -> set[int]:
    answers: set[int] = set()
    for value in get_list(record, "answers"):
        if not isinstance(value, int) or not 0 <= value < len(sentences):
            raise RowError(
                f"'answers' must be indexes from 0 to {len(sentences) - 1}, got {value!r:.40}."
            )
        if not sentences[value].strip():
            raise RowError(f"'candidates'[{value}] is an answer but empty. Fill it in.")
        answers.add(value)
    return answers


_WIKIQA_COLUMNS = ("QuestionID", "Question", "SentenceID", "Sentence", "Label")


def read_wikiqa(path: str | PathLike[str], *, name: str | None = None) -> QuestionSet:
    """
    Read WikiQA's official TSV, with a header and a row per sentence. Quotation marks are text.

    Columns are found by name, so their order and additional columns do not matter. The rows of a
    question need not be adjacent; questions are in the order of their first rows.
    """
    file = DataFile(path)
    drafts: dict[str, tuple[str, list[Candidate]]] = {}
    unique = UniqueIds("sentence")
    for line, (question_id, question, sentence_id, sentence, label) in _wikiqa_rows(file):
        try:
            if label not in ("0", "1"):
                raise RowError(f"Label must be 0 or 1, got {label!r:.40}.")
            candidate = Candidate(sentence_id, check_text(sentence, "Sentence"), label == "1")
            text, candidates = drafts.setdefault(
                check_text(question_id, "QuestionID"), (check_text(question, "Question"), [])
            )
            if text != question:
                raise RowError(
                    f"{question_id} has a different question text in an earlier row. Correct it."
                )
            unique.add(f"{question_id} {check_text(sentence_id, 'SentenceID')}", f"line {line}")
            candidates.append(candidate)
        except RowError as error:
            file.add_problem(line, str(error))
    questions = [Question(key, text, tuple(rows)) for key, (text, rows) in drafts.items()]
    return file.question_set(name, questions)


def _wikiqa_rows(file: DataFile) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Line number and the five columns of every row with as many fields as the header."""
    lines = file.lines()
    line, header = next(lines, (0, ""))
    if line != 1:  # an empty file, or a first line that could not be decoded
        return
    columns = header.split("\t")
    missing = [column for column in _WIKIQA_COLUMNS if column not in columns]
    if missing:
        file.add_problem(
            1, f"No column {', '.join(missing)}. Expected {', '.join(_WIKIQA_COLUMNS)}."
        )
        return
    indexes = [columns.index(column) for column in _WIKIQA_COLUMNS]
    for line, text in lines:
        fields = text.split("\t")
        if len(fields) == len(columns):
            yield line, tuple(fields[index] for index in indexes)
        elif text:
            file.add_problem(
                line,
                f"Expected {len(columns)} tab-separated columns, got {len(fields)}. "
                "Correct or remove the row.",
            )


class _Reader(Protocol):
    def __call__(self, path: Path, /, *, name: str) -> QuestionSet: ...


_READERS: dict[str, _Reader] = {
    "asnq": read_asnq,
    "fquad": read_squad,
    "nq": read_natural_questions,
    "piaf": read_squad,
    "selqa": read_selqa,
    "squad-pairs": read_pairs,
    "squad1": read_squad,
    "squad2": read_squad,
    "squadshifts": read_squad,
    "wikiqa": read_wikiqa,
}
"""The reader of each dataset, except TrecQA, which has two formats and takes a seed."""


@dataclass(frozen=True, slots=True)
class DatasetStatistics:
    """
    Counts over all questions of a set, as in the papers' tables; averages of an empty set are 0.

    The Cascade Transformer's table counts only questions with an answer: filter first.
    """

    name: str
    questions: int
    candidates: int
    """With repetitions."""
    answerable: int
    """Questions with at least one answer."""
    both: int
    """Questions with at least one answer and at least one negative."""
    positives: int
    """Candidates that are answers."""
    question_words: float
    """Average length of a question in words (`askline.text.words`)."""
    candidate_words: float
    """Average length of a candidate in words, with repetitions."""

    @property
    def percent_answerable(self) -> float:
        """The share of answerable questions, from 0 to 100."""
        return 100 * _ratio(self.answerable, self.questions)

    @property
    def candidates_per_question(self) -> float:
        """Average length of a candidate list."""
        return _ratio(self.candidates, self.questions)

    @property
    def positives_per_question(self) -> float:
        """Average number of answers in a candidate list."""
        return _ratio(self.positives, self.questions)


def compute_statistics(question_set: QuestionSet) -> DatasetStatistics:
    """One pass over the set; a text that several questions share is tokenized once."""
    lengths: dict[str, int] = {}
    question_words = candidate_words = positives = answerable = both = 0
    for question in question_set:
        question_words += len(split_words(question.text))
        answers = 0
        for candidate in question.candidates:
            length = lengths.get(candidate.text)
            if length is None:
                length = lengths[candidate.text] = len(split_words(candidate.text))
            candidate_words += length
            answers += candidate.is_answer
        positives += answers
        answerable += answers > 0
        both += 0 < answers < len(question.candidates)
    return DatasetStatistics(
        name=question_set.name,
        questions=len(question_set),
        candidates=question_set.candidate_count,
        answerable=answerable,
        both=both,
        positives=positives,
        question_words=_ratio(question_words, len(question_set)),
        candidate_words=_ratio(candidate_words, question_set.candidate_count),
    )


def _ratio(part: float, whole: int) -> float:
    return part / whole if whole else 0.0
