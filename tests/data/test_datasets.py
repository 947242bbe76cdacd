from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import askline.data as data
from askline.data import dataset_names, load_dataset, load_paragraphs
from askline.errors import DataError, InputError, UnknownNameError

from .samples import write, write_json

QUESTION = '{"question": "Who?", "candidates": ["No.", "Ann."], "labels": [0, 1]}'
PAIRS = ['{"question": "Who?", "sentence": "Ann."}']


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("ASKLINE_DATA", raising=False)
    (tmp_path / "squad").mkdir()
    write(tmp_path / "squad" / "train-pairs.jsonl", *PAIRS)
    return tmp_path


def squad(titles: int, prefix: str) -> dict[str, object]:
    def qa(name: str) -> dict[str, object]:
        return {"id": name, "question": "Who?", "answers": [{"text": "Ann", "answer_start": 0}]}

    return {
        "data": [
            {
                "title": f"{prefix}{number}",
                "paragraphs": [{"context": f"Ann {number}.", "qas": [qa(f"{prefix}{number}")]}],
            }
            for number in range(titles)
        ]
    }


def test_public_names_are_sorted_and_exist() -> None:
    assert data.__all__ == sorted(data.__all__)
    assert all(hasattr(data, name) for name in data.__all__)


def test_dataset_names_are_sorted_and_complete() -> None:
    names = dataset_names()
    assert list(names) == sorted(names)
    assert {"wikiqa:test", "trecqa:train-all", "trecqa-clean:dev", "squad2:dev"} <= set(names)
    assert {"squadshifts:train", "piaf:dev", "fquad:valid", "asnq:dev", "nq:train"} <= set(names)


def test_dataset_is_found_by_root_or_environment_variable(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert load_dataset("squad-pairs:train", root=root).name == "squad-pairs:train"
    assert len(load_dataset("squad-pairs:train", root=str(root))) == 1
    monkeypatch.setenv("ASKLINE_DATA", str(root))
    assert len(load_dataset("squad-pairs:train")) == 1
    with pytest.raises(InputError, match="No file"):
        load_dataset("squad-pairs:train", root=root / "elsewhere")


def test_gzip_file_can_replace_a_plain_one(root: Path) -> None:
    plain = root / "squad" / "train-pairs.jsonl"
    plain.with_name("train-pairs.jsonl.gz").write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()
    assert len(load_dataset("squad-pairs:train", root=root)) == 1


@pytest.mark.parametrize("value", [None, ""], ids=["unset", "empty"])
def test_missing_data_folder_names_the_file_and_the_settings(
    root: Path, monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    if value is not None:
        monkeypatch.setenv("ASKLINE_DATA", value)
    message = (
        r"wikiqa:test is read from wikiqa/WikiQA-test\.tsv in a data folder, and none is given\. "
        r"Set ASKLINE_DATA, or use --data DIR \(in Python: root=\)\."
    )
    with pytest.raises(InputError, match=message):
        load_dataset("wikiqa:test")


def test_missing_file_names_the_settings(root: Path) -> None:
    message = r"No file .*WikiQA-dev\.tsv, which wikiqa:dev is read from\..*ASKLINE_DATA or --data"
    with pytest.raises(InputError, match=message):
        load_dataset("wikiqa:dev", root=root)


@pytest.mark.parametrize("name", ["wikqa:test", "wikiqa:tests", "wikiqa:", "", "x"])
def test_unknown_name_lists_the_known_ones(root: Path, name: str) -> None:
    with pytest.raises(UnknownNameError, match="Known: asnq:dev, .*, wikiqa:train") as caught:
        load_dataset(name, root=root)
    if name.startswith("wikqa"):
        assert "Did you mean 'wikiqa:test'?" in str(caught.value)


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
def test_jsonl_path_is_read_in_the_own_format(root: Path, suffix: str) -> None:
    path = root / f"mine{suffix}"
    content = f"{QUESTION}\n".encode()
    path.write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
    found = load_dataset(str(path))
    assert (found.name, len(found)) == (str(path), 1)


def test_missing_path_and_other_format_are_reported(root: Path) -> None:
    with pytest.raises(InputError, match=r"No file .*none\.jsonl"):
        load_dataset(str(root / "none.jsonl"))
    other = write(root / "mine.json", QUESTION)
    with pytest.raises(
        InputError, match=r"a \.jsonl or \.jsonl\.gz file .* write NAME:.*mine\.json with"
    ):
        load_dataset(str(other))


def test_path_after_a_name_is_read_in_that_format(root: Path) -> None:
    path = write(root / "more.jsonl", *PAIRS, *PAIRS)
    found = load_dataset(f"squad-pairs:{path}")
    assert (found.name, len(found)) == (f"squad-pairs:{path}", 2)
    with pytest.raises(DataError, match=r"more\.jsonl:1: No 'candidates'"):
        load_dataset(f"trecqa:{path}")
    with pytest.raises(InputError, match=r"No file .*none\.tsv"):
        load_dataset(f"wikiqa:{root / 'none.tsv'}")


def test_file_without_suffix_is_found_in_the_current_folder(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root / "more", *PAIRS)
    monkeypatch.chdir(root)
    assert len(load_dataset("squad-pairs:more")) == 1


def test_trecqa_clean_has_both_labels_and_uses_the_seed(root: Path) -> None:
    answer = {"sentence": "Ann.", "label": 1}
    others = [{"sentence": f"No {number}.", "label": 0} for number in range(9)]
    mixed = json.dumps({"question": "Who?", "candidates": [answer, *others]})
    only = json.dumps({"question": "Who?", "candidates": [answer]})
    path = write(root / "t.jsonl", mixed, only)
    assert len(load_dataset(f"trecqa:{path}")) == 2
    assert len(load_dataset(f"trecqa-clean:{path}")) == 1
    orders = {load_dataset(f"trecqa-clean:{path}", seed=seed).questions for seed in range(5)}
    assert len(orders) > 1


def test_datasets_without_splits_are_split_by_article(root: Path) -> None:
    (root / "squadshifts").mkdir()
    for prefix in ("new_wiki", "reddit", "amazon_reviews"):
        write_json(root / "squadshifts" / f"{prefix}_v1.0.json", squad(30, prefix))
    train, dev, whole = (
        load_dataset(f"squadshifts:{s}", root=root) for s in ("train", "dev", "all")
    )
    assert (train.name, len(train), len(dev), len(whole)) == ("squadshifts:train", 81, 9, 90)
    assert not {question.id for question in train} & {question.id for question in dev}
    assert len(load_dataset("squadshifts:amazon", root=root)) == 30


def test_files_that_share_ids_are_not_joined(root: Path) -> None:
    (root / "squadshifts").mkdir()
    for file in ("new_wiki", "reddit", "amazon_reviews"):
        write_json(root / "squadshifts" / f"{file}_v1.0.json", squad(2, "same"))
    with pytest.raises(InputError, match="The files of squadshifts:all cannot be joined"):
        load_dataset("squadshifts:all", root=root)


def test_name_without_split_is_the_train_split(root: Path) -> None:
    assert load_dataset("squad-pairs", root=root).name == "squad-pairs:train"


def test_every_dataset_has_a_default_split() -> None:
    """That is, each has a training split or one split only."""
    splits: dict[str, set[str]] = {}
    for name in dataset_names():
        dataset, _, split = name.partition(":")
        splits.setdefault(dataset, set()).add(split)
    assert [name for name, of in splits.items() if "train" not in of and len(of) > 1] == []


def _paragraph(name: str) -> dict[str, Any]:
    context = f"This is {name}. It is short."
    answers = [{"text": "short", "answer_start": context.index("short")}]
    return {
        "context": context,
        "qas": [
            {"id": f"{name}-{place}", "question": "What is it?", "answers": answers}
            for place in range(3)
        ],
    }


@pytest.fixture
def paragraph_root(tmp_path: Path) -> Path:
    """SQuADShifts' three files, two articles of one paragraph in each."""
    (tmp_path / "squadshifts").mkdir()
    for name in ("new_wiki", "reddit", "amazon_reviews"):
        articles = [
            {"title": f"{name} {number}", "paragraphs": [_paragraph(f"{name} {number}")]}
            for number in range(12)
        ]
        path = tmp_path / "squadshifts" / f"{name}_v1.0.json"
        path.write_text(json.dumps({"data": articles}))
    return tmp_path


@pytest.mark.parametrize("name", ["squadshifts", "squadshifts:train", "squadshifts:dev"])
def test_load_paragraphs_matches_load_dataset(paragraph_root: Path, name: str) -> None:
    paragraphs = load_paragraphs(name, root=paragraph_root)
    asked = {question.id for paragraph in paragraphs for question in paragraph.questions}
    assert asked == {question.id for question in load_dataset(name, root=paragraph_root)}


def test_load_paragraphs_accepts_a_path(paragraph_root: Path) -> None:
    path = paragraph_root / "squadshifts" / "reddit_v1.0.json"
    assert len(load_paragraphs(f"squadshifts:{path}")) == 12


@pytest.mark.parametrize("name", ["wikiqa:train", "questions.jsonl"])
def test_other_formats_have_no_paragraphs(name: str) -> None:
    assert load_paragraphs(name) == ()


def test_load_paragraphs_names_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="which squad1:train is read from"):
        load_paragraphs("squad1:train", root=tmp_path)
