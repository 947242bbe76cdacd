from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from askline.errors import DataError, InputError
from askline.serving.api_keys import Keys

KEY = "a-long-and-random-key"


@pytest.mark.parametrize(
    ("header", "admitted"),
    [
        (f"Bearer {KEY}", True),
        (f"bearer {KEY}", True),
        (f"Bearer {KEY}x", False),
        (f"Basic {KEY}", False),
        (KEY, False),
        ("", False),
        (None, False),
    ],
)
def test_admits_who_has_the_key(header: str | None, admitted: bool) -> None:
    assert Keys.of([KEY, "another-long-and-random-key"]).admit(header) is admitted


def test_no_keys_let_everybody_in() -> None:
    assert Keys().admit(None)
    assert not Keys()


def test_keys_are_kept_as_hashes_alone() -> None:
    assert KEY not in repr(Keys.of([KEY]))


def test_short_keys_are_refused() -> None:
    with pytest.raises(InputError, match="at least 16 characters"):
        Keys.of(["short"])


def test_reads_hashes_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    digest = hashlib.sha256(KEY.encode()).hexdigest()
    path.write_text(f"# of the search team\n\nsha256:{digest}  # since May\n")
    assert Keys.read(path).admit(f"Bearer {KEY}")


def test_a_key_in_place_of_its_hash_is_refused_and_not_repeated(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text(f"{KEY}\n")
    with pytest.raises(DataError, match=r"keys:1: expected a SHA-256") as caught:
        Keys.read(path)
    assert KEY not in str(caught.value)


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("# none yet\n")
    with pytest.raises(InputError, match="at least one"):
        Keys.read(tmp_path / "keys")
