"""
Datasets by name: `NAME:SPLIT`, as on the command line and in result tables.

Files are read from one data folder with a subfolder per dataset. Each file may be gzipped or not,
whatever its name in the list below.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Protocol

from ..errors import InputError, UnknownNameError
from ..types import QuestionSet
from .data_files import RowError, UniqueIds
from .jsonl_questions import read_jsonl, read_pairs
from .natural_questions import read_asnq, read_natural_questions
from .selqa import read_selqa
from .squad import Paragraph, hold_out, read_paragraphs, read_squad, to_question_set
from .transforms import filter_questions
from .trecqa import read_trecqa, read_trecqa_all
from .wikiqa import read_wikiqa

__all__ = [
    "DATA_VARIABLE",
    "dataset_names",
    "load_dataset",
    "load_paragraphs",
]


class _Reader(Protocol):
    def __call__(self, path: Path, /, *, name: str) -> QuestionSet: ...


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
