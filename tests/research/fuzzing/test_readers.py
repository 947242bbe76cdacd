"""The fuzzer of the readers: what it makes, and a short run of it."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, cast

import pytest

from askline.errors import DataError
from askline.text.readers import SUFFIXES, ReadLimits, file_kind, read_content
from research.fuzzing import mutations
from research.fuzzing.mutations import (
    KINDS,
    MutatedFile,
    make_file,
    mutated_files,
    samples,
    suffix_of,
    suffixes_of,
)
from research.fuzzing.readers import fuzz_files, fuzz_time
from tests.text.readers.samples import make_slow_pdf


@pytest.mark.parametrize("kind", KINDS)
def test_every_format_has_a_sample_that_can_be_read(kind: str, tmp_path: Path) -> None:
    """A new format needs a file in research/fuzzing/samples and a line in tokens.txt."""
    [known] = [each for each in KINDS if each == kind]
    path = tmp_path / f"a.{suffix_of(known)}"
    path.write_bytes(samples(known)[0])
    assert file_kind(path) == kind
    assert len(read_content(path).sentences) > 0


def test_a_format_without_a_sample_or_tokens_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileNotFoundError, match="'cuneiform' has no sample. Write one"):
        samples(cast(Any, "cuneiform"))
    monkeypatch.setattr(mutations, "KINDS", (*KINDS, "cuneiform"))
    with pytest.raises(ValueError, match=r"without a line in tokens.txt: cuneiform\."):
        mutations._read_tokens()


def test_every_suffix_is_fuzzed() -> None:
    assert {suffix for kind in KINDS for suffix in suffixes_of(kind)} == {
        suffix.lstrip(".") for suffix in SUFFIXES
    }
    made = {make_file("source", seed).suffix for seed in range(2_000)}
    assert made == set(suffixes_of("source"))


def test_a_seed_always_makes_the_same_file(monkeypatch: pytest.MonkeyPatch) -> None:
    files = list(islice(mutated_files(500), 2 * len(KINDS)))
    samples.cache_clear()
    monkeypatch.setattr(time, "time", lambda: 1.7e9)  # dates in archives
    assert files == [make_file(file.kind, file.seed) for file in files]
    assert {file.kind for file in files} == set(KINDS)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_many_mutated_files_are_not_refused_at_once(kind: str, tmp_path: Path) -> None:
    """Else the fuzzer would test little more than the first check of a reader."""
    [known] = [each for each in KINDS if each == kind]
    read = 0
    for seed in range(80):
        file = make_file(known, seed)
        path = tmp_path / f"a.{file.suffix}"
        path.write_bytes(file.data)
        with suppress(DataError):
            read += len(read_content(path).sentences) > 0
    assert read >= 15


def test_mutated_files_cause_no_crash(tmp_path: Path) -> None:
    found = fuzz_files(tmp_path, files=130, seconds=60, seed=1, limits=ReadLimits(20))
    assert found.findings == []
    assert found.files == 130
    assert sum(map(found.count, ("read", "refused"))) == 130
    assert set(found.outcomes) == set(KINDS)
    assert list(tmp_path.iterdir()) == []


def test_a_stopped_run_goes_on(tmp_path: Path) -> None:
    state, folder = tmp_path / "state.json", tmp_path / "files"
    folder.mkdir()
    limits, most = ReadLimits(20), 60.0
    first = fuzz_files(folder, files=20, seconds=most, seed=3, limits=limits, state=state)
    both = fuzz_files(folder, files=50, seconds=most, seed=3, limits=limits, state=state)
    whole = fuzz_files(folder, files=50, seconds=most, seed=3, limits=limits)
    assert (first.files, both.files) == (20, 50)
    assert both.outcomes == whole.outcomes
    with pytest.raises(SystemExit, match="--seed 3, got 4"):
        fuzz_files(folder, files=50, seconds=most, seed=4, limits=limits, state=state)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit is not enforced")
def test_a_file_past_a_limit_is_a_finding_and_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bomb = MutatedFile(5, "pdf", "pdf", make_slow_pdf())
    monkeypatch.setattr("research.fuzzing.readers.mutated_files", lambda _: iter([bomb]))
    found = fuzz_files(tmp_path, files=1, seconds=60, seed=0, limits=ReadLimits(1))
    assert [each["outcome"] for each in found.findings] == ["past limit"]
    assert [path.name for path in tmp_path.iterdir()] == ["5.pdf"]


def test_quadratic_time_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(text: str) -> None:
        for at in range(0, len(text), 10):
            text.count("?", at)

    monkeypatch.setattr("research.fuzzing.readers.split_sentences", slow)
    monkeypatch.setattr("research.fuzzing.readers.KINDS", ("text",))
    found = fuzz_time(tmp_path, seconds=0.01, seed=0, length=100_000)
    assert len(found["findings"]) >= 1
