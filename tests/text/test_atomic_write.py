from __future__ import annotations

from pathlib import Path

import pytest

from askline.errors import InputError
from askline.text.atomic_write import atomic_write


def test_new_file_replaces_the_old_one(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    target.write_bytes(b"old")
    with atomic_write(target) as stream:
        stream.write(b"new")
        assert target.read_bytes() == b"old"
    assert target.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [target]


def test_old_file_stays_when_writing_fails(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    target.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), atomic_write(target) as stream:  # noqa: PT012
        stream.write(b"half")
        raise ZeroDivisionError
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_error_names_the_file_that_cannot_be_written(tmp_path: Path) -> None:
    with (
        pytest.raises(InputError, match=r"nowhere/a\.txt cannot be written: No such file"),
        atomic_write(tmp_path / "nowhere" / "a.txt"),
    ):
        pass
