"""
The graph cache: ONNX graphs of a model in the user's cache folder.

To build the graphs of a cascade, its weights are copied and its adapter is merged into them. A
command that answers one question would wait for that every time, so the commands keep the graphs in
files. A library call does not write into the cache folder unless it is asked to
(`Ranker.preload(keep_graphs=True)`).

Each model has a folder. Its name is a digest of all that the graphs depend on: the content of the
weights, the config, the code that builds graphs, the versions of numpy and ONNX Runtime, and the
processor, because the last digits of a merged weight can differ between processors. A model, a
version or a machine that is not the same has another folder. Files are written atomically. A cache
that cannot be read or written is not used, and the graphs are built as without it.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..text.atomic_write import atomic_write
from .user_folders import CachedFolder, cached_folders, delete_oldest, subfolders, user_folder

__all__ = [
    "MAX_CACHE_BYTES",
    "GraphCache",
    "cached_graphs",
    "delete_cached_graphs",
    "graph_cache_root",
    "onnx_runtime",
]

MAX_CACHE_BYTES = 2**29
"""The size limit of all folders together; the graphs of a shipped model have about 60 MB."""
_BUILDERS = (
    "engine/adapter.py",
    "engine/graphs.py",
    "engine/numpy_ops.py",
    "engine/onnx_writer.py",
    "engine/quantization.py",
    "models/cascade_config.py",
    "models/encoder_config.py",
)
"""The modules whose code decides what is in a graph."""
_MODEL_FILE = "model.json"


def graph_cache_root() -> Path:
    """The folder that contains the graphs of all models."""
    return user_folder("cache") / "graphs"


class GraphCache:
    """The graphs of one model, as files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def of_model(cls, model: Path) -> GraphCache | None:
        """The cache of a model folder; None if it cannot be read and written."""
        root = graph_cache_root()
        try:
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not _is_private(root):
                return None
            folder = root / _model_digest(model, root)
            if not folder.is_dir():
                folder.mkdir(mode=0o700, exist_ok=True)
                with atomic_write(folder / _MODEL_FILE) as stream:
                    stream.write(json.dumps({"model": str(model.absolute())}).encode())
                delete_oldest(MAX_CACHE_BYTES, keep=folder, delete=_delete)
            os.utime(folder)  # the folder that was used last is deleted last
        except (OSError, RuntimeError, InputError):  # RuntimeError: there is no home folder
            return None
        return cls(folder)

    def path(self, name: str) -> Path:
        """The file of a graph, which may be missing."""
        return self._folder / f"{name}.onnx"

    def store(self, name: str, graph: bytes) -> None:
        """Write a graph; if that is not possible, the cache stays as it is."""
        with suppress(OSError, InputError), atomic_write(self.path(name)) as stream:
            stream.write(graph)

    def discard(self, name: str) -> None:
        """Delete a file that ONNX Runtime could not open."""
        with suppress(OSError):
            self.path(name).unlink()


def cached_graphs() -> list[CachedFolder]:
    """The graphs of all models, the last used first."""
    return cached_folders(graph_cache_root(), _recorded_paths)


def delete_cached_graphs(folder: str | os.PathLike[str]) -> None:
    """Delete the graphs of a model. A process that uses them has its own copy in memory."""
    _delete(folder)
    if not subfolders(graph_cache_root()):
        _delete(graph_cache_root())  # with the recorded digests


def _delete(folder: str | os.PathLike[str]) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def _model_digest(model: Path, root: Path) -> str:
    digest = sha256(_content_digest(model / "weights.safetensors", root).encode())
    digest.update((model / "config.json").read_bytes())
    digest.update(_environment().encode())
    return digest.hexdigest()[:32]


def _content_digest(path: Path, root: Path) -> str:
    """
    The SHA-256 of a file.

    It is recorded together with what the system says about the file. Weights are read as a whole
    only if they are new or have been written to.
    """
    state = path.stat()
    identity = [
        os.path.abspath(path),
        *(state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns),
    ]
    name = sha256(json.dumps(identity).encode()).hexdigest()[:32]
    record = root / f"{name}.sha256"
    with suppress(OSError):
        if len(known := record.read_text("ascii")) == 2 * sha256().digest_size:
            return known
    digest = sha256()
    with path.open("rb") as stream:
        while block := stream.read(2**20):
            digest.update(block)
    with atomic_write(record) as stream:
        stream.write(digest.hexdigest().encode())
    return digest.hexdigest()


def onnx_runtime() -> Any:
    """
    The module `onnxruntime`, with its telemetry off unless the user has set the variable.

    Its packages for Linux collect usage data from the import on and send it to their maker (seen
    in 1.30 and 1.31). Turning that off after the import is too late.
    """
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime

    return onnxruntime


@cache
def _environment() -> str:
    """The code, the versions and the processor that the graphs depend on."""
    import numpy as np

    code, package = sha256(), Path(__file__).parents[1]
    for module in _BUILDERS:  # OSError in an installation without source files
        code.update((package / module).read_bytes())
    core: Any = getattr(np, "_core", None) or np.core
    features = getattr(core._multiarray_umath, "__cpu_features__", {})
    return json.dumps(
        [
            code.hexdigest(),
            np.__version__,
            onnx_runtime().__version__,
            sys.byteorder,
            platform.machine(),
            os.environ.get("OPENBLAS_CORETYPE", ""),
            sorted(name for name, has in features.items() if has),
        ]
    )


def _is_private(folder: Path) -> bool:
    """Whether nobody else can write into the folder."""
    if not hasattr(os, "getuid"):  # Windows: the folder of the user is private
        return True
    state = folder.stat()
    return state.st_uid == os.getuid() and not state.st_mode & 0o022


def _recorded_paths(folder: Path) -> tuple[str, ...]:
    try:
        return (str(json.loads((folder / _MODEL_FILE).read_bytes())["model"]),)
    except (OSError, ValueError, KeyError, TypeError):
        return ()
