from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from askline.corpus.cache import cache_root, cached_index_folder, delete_cached_index
from askline.corpus.lock import writer_lock
from askline.engine.user_folders import delete_oldest


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))


def _filled(path: str, size: int, *, age: int) -> Path:
    folder = cached_index_folder([path])
    (folder / "store.sqlite").write_bytes(b"x" * size)
    os.utime(folder, (1_000_000 - age, 1_000_000 - age))
    return folder


def test_the_same_paths_share_a_folder_whatever_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cached_index_folder(["a", "b"]) == cached_index_folder(
        [str(tmp_path / "b"), Path("a"), "./a"]
    )
    assert cached_index_folder(["a"]) != cached_index_folder(["a", "b"])


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX permissions")
def test_the_cache_folder_is_private() -> None:
    assert stat.S_IMODE(cached_index_folder(["a"]).stat().st_mode) == 0o700


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="XDG")
def test_without_the_variable_the_cache_is_in_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_root() == tmp_path / ".cache" / "askline" / "folders"


def test_the_least_recently_used_folders_are_deleted_first() -> None:
    old, newer, newest = (
        _filled(name, 100, age=age) for name, age in (("o", 9), ("n", 5), ("w", 1))
    )
    delete_oldest(250, keep=newest, delete=delete_cached_index)
    assert [folder.exists() for folder in (old, newer, newest)] == [False, True, True]
    delete_oldest(10, keep=newest, delete=delete_cached_index)
    assert [folder.exists() for folder in (newer, newest)] == [False, True]


def test_a_folder_in_use_is_kept() -> None:
    used, spare = _filled("used", 100, age=9), _filled("spare", 100, age=1)
    with writer_lock(used):
        delete_oldest(150, keep=spare, delete=delete_cached_index)
    assert used.exists()
