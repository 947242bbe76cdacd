from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from askline.errors import InputError
from askline.tuning import ScoreTable

from .drawn import table


@pytest.mark.parametrize("light", [False, True], ids=["alone", "with a first stage"])
def test_a_table_comes_back_from_its_file(tmp_path: Path, light: bool) -> None:
    written = table(light=light)
    written.save(tmp_path / "t.npz")
    read = ScoreTable.load(tmp_path / "t.npz")
    for field in fields(ScoreTable):
        np.testing.assert_array_equal(getattr(read, field.name), getattr(written, field.name))


def test_a_table_of_some_questions() -> None:
    some = table(questions=5, size=4).take(2)
    assert (some.questions, some.sizes.tolist(), some.scores.shape) == (
        ("q0", "q1"),
        [4, 4],
        (3, 8),
    )


def test_columns_must_fit() -> None:
    whole = table(questions=5, size=4)
    with pytest.raises(InputError, match="must have 20 pairs at 3 depths, got {'labels': "):
        replace(whole, labels=whole.labels[:-1])


def test_scores_must_be_numbers() -> None:
    whole = table()
    with pytest.raises(InputError, match="scores that are no numbers"):
        replace(whole, scores=whole.scores * np.nan)


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.npz").write_bytes(b"no table")
    with pytest.raises(InputError, match="is no score table"):
        ScoreTable.load(tmp_path / "t.npz")
    np.savez(tmp_path / "u.npz", name="other")
    with pytest.raises(InputError, match="is no score table"):
        ScoreTable.load(tmp_path / "u.npz")
