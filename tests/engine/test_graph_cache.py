from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest

from askline.engine import graph_cache
from askline.engine.encoder import OnnxEncoder, load_encoder
from askline.engine.graph_cache import GraphCache, cached_graphs, graph_cache_root
from askline.engine.numpy_ops import FloatArray
from askline.models.folder import ModelFolder

from .tiny_cascades import CANDIDATES, QUESTION, runtime_folder, tensors
from .tiny_contexts import PASSAGES, context_config

DEPTHS, CONTEXT_DEPTHS = (1, 3), (1, 2, 3)
ROWS = np.arange(len(CANDIDATES))


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / "cache"))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return _write_model(tmp_path / "model")


def test_graphs_from_files_give_the_same_logits(model: Path) -> None:
    expected = _logits(_open(model))
    for _ in range(2):  # the first one writes the files, the second one opens them
        np.testing.assert_array_equal(_logits(_preloaded(model)), expected)
    (found,) = cached_graphs()
    assert found.paths == (str(model),)
    names = {path.name for path in Path(found.folder).iterdir()}
    assert {"encoder-embedding-0-1.onnx", "context-layers-1-2.onnx", "model.json"} <= names


def test_files_are_used(model: Path, tmp_path: Path) -> None:
    other = _write_model(tmp_path / "other", seed=1)
    for one in (model, other):
        _preloaded(one)
    last, first = (Path(each.folder) for each in cached_graphs())
    for path in last.glob("*.onnx"):
        shutil.copy(path, first)
    assert _passage_logits(_preloaded(model)).tolist() != _passage_logits(_open(model)).tolist()


def test_nothing_is_written_unless_it_is_asked_for(model: Path) -> None:
    encoder = _open(model)
    encoder.load_in_background(DEPTHS, CONTEXT_DEPTHS, keep_graphs=False)
    _wait()
    _logits(encoder)
    assert not graph_cache_root().exists()


@pytest.mark.parametrize("content", [b"", b"no graph", None])
def test_a_damaged_file_is_built_and_written_again(model: Path, content: bytes | None) -> None:
    expected = _logits(_preloaded(model))
    (found,) = cached_graphs()
    paths = sorted(Path(found.folder).glob("*.onnx"))
    originals = [path.read_bytes() for path in paths]
    for path, original in zip(paths, originals, strict=True):
        path.write_bytes(original[: len(original) // 2] if content is None else content)
    np.testing.assert_array_equal(_logits(_preloaded(model)), expected)
    assert [path.read_bytes() for path in paths] == originals


def test_other_weights_have_other_graphs(model: Path) -> None:
    _preloaded(model)
    expected = _logits(_open(_write_model(model, seed=1)))
    np.testing.assert_array_equal(_logits(_preloaded(model)), expected)
    assert len(cached_graphs()) == 2


def test_weights_written_in_place_with_the_same_times_have_other_graphs(model: Path) -> None:
    _preloaded(model)
    weights = model / "weights.safetensors"
    state = weights.stat()
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    os.utime(weights, ns=(state.st_atime_ns, state.st_mtime_ns))
    _preloaded(model)
    assert len(cached_graphs()) == 2


def test_a_copy_of_a_model_shares_its_graphs(model: Path, tmp_path: Path) -> None:
    _preloaded(model)
    _preloaded(Path(shutil.copytree(model, tmp_path / "copy")))
    assert len(cached_graphs()) == 1


def test_other_code_and_other_processors_have_other_graphs(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = set()
    for environment in ("one", "two"):
        monkeypatch.setattr(graph_cache, "_environment", lambda own=environment: own)
        cache = GraphCache.of_model(model)
        assert cache is not None
        found.add(cache.path("layers"))
    assert len(found) == 2


def test_a_folder_that_cannot_be_made_is_not_used(model: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_bytes(b"")  # a file, where there should be a folder
    assert GraphCache.of_model(model) is None
    np.testing.assert_array_equal(_logits(_preloaded(model)), _logits(_open(model)))


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs the permissions of POSIX")
def test_a_folder_that_others_can_write_to_is_not_used(model: Path) -> None:
    graph_cache_root().mkdir(parents=True)
    graph_cache_root().chmod(0o777)
    assert GraphCache.of_model(model) is None


def test_the_least_recently_used_graphs_are_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph_cache, "MAX_CACHE_BYTES", 2_500)
    for seed in range(3):
        cache = GraphCache.of_model(_write_model(tmp_path / f"model-{seed}", seed=seed))
        assert cache is not None
        cache.store("layers", b"x" * 1_000)
        os.utime(cache.path("layers").parent, (seed, seed))
    GraphCache.of_model(tmp_path / "model-0")  # used again
    GraphCache.of_model(_write_model(tmp_path / "model-3", seed=3))
    left = {Path(path).name for each in cached_graphs() for path in each.paths}
    assert left == {"model-0", "model-2", "model-3"}


def _write_model(path: Path, *, seed: int = 0) -> Path:
    config = context_config()
    return runtime_folder(path, config, tensors(config, seed=seed))


def _open(model: Path) -> OnnxEncoder:
    return load_encoder(ModelFolder.open(model, kind="cascade"))


def _preloaded(model: Path) -> OnnxEncoder:
    """An encoder whose graphs come from the cache, or have been written there."""
    encoder = _open(model)
    encoder.load_in_background(DEPTHS, CONTEXT_DEPTHS, keep_graphs=True)
    _wait()
    return encoder


def _wait() -> None:
    for thread in threading.enumerate():
        if thread.name == "askline-load":
            thread.join()


def _logits(encoder: OnnxEncoder) -> FloatArray:
    run = encoder.begin(QUESTION, CANDIDATES)
    alone = [run.advance(ROWS, depth) for depth in DEPTHS]
    return np.concatenate([*alone, _passage_logits(encoder)])


def _passage_logits(encoder: OnnxEncoder) -> FloatArray:
    passages = encoder.begin_passages([(QUESTION, PASSAGES)])
    every = np.arange(len(PASSAGES))
    return np.concatenate([passages.advance(every, depth) for depth in CONTEXT_DEPTHS])
