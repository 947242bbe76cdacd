from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from askline.errors import ModelError
from askline.phrases.tokenization import load_tokenizer

TEXTS = [
    "Jane Austen wrote Emma.",
    "emmas, caf\u00e9 cafe\u0301 \U0001f44d\U0001f3fd \u6771\u4eac",
    "",
    "   ",
    "d'emma\u00a0paris",
]


@pytest.fixture
def folder(tokeniser: Any, tmp_path: Path) -> Path:
    tokeniser.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_tokens_are_those_of_the_library(folder: Path, tokeniser: Any, text: str) -> None:
    ours, theirs = load_tokenizer(folder).encode(text), tokeniser.encode(text)
    assert ours.ids == theirs.ids
    assert [start for start, _ in ours.offsets] == [start for start, _ in theirs.offsets]


def test_nothing_is_cut_or_padded(folder: Path, tokeniser: Any) -> None:
    from tokenizers import Tokenizer

    short = Tokenizer.from_str(tokeniser.to_str())
    short.enable_truncation(8)
    short.enable_padding(length=8)
    short.save(str(folder / "tokenizer.json"))
    assert len(load_tokenizer(folder).encode("emma " * 20).ids) == 22


def test_another_family_is_read_by_the_library(tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = Tokenizer(models.WordLevel({"emma": 0, "?": 1}, unk_token="?"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.enable_truncation(2)
    words.save(str(tmp_path / "tokenizer.json"))
    assert load_tokenizer(tmp_path).encode("emma emma who").ids == [0, 0, 1]


def test_what_is_no_tokeniser_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="tokenizer.json is missing"):
        load_tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelError, match="is no tokeniser"):
        load_tokenizer(tmp_path)
