"""ONNX Runtime sessions, each created when it is first needed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from threading import Lock
from typing import Any

from .graph_cache import GraphCache, onnx_runtime

__all__ = ["SessionCache", "create_session"]

_Part = tuple[str, int, int]
"""The name of a part of a network, its first layer and the layer after its last one."""


class SessionCache:
    """
    The sessions of a network's parts. Any number of threads may use one.

    If it has a graph cache, parts are opened from its files where they exist. `name` tells the
    graphs of networks of one model apart.
    """

    def __init__(self, name: str = "encoder") -> None:
        self.graph_cache: GraphCache | None = None
        self._name = name
        self._sessions: dict[_Part, Any] = {}
        self._graphs: dict[_Part, Callable[[], bytes]] = {}
        self._lock = Lock()

    def __len__(self) -> int:
        """The number of sessions created so far."""
        return len(self._sessions)

    def get(self, part: str, first: int, last: int, graph: Callable[[], bytes]) -> Any:
        """The session of a part, by its name and layers; `graph` builds it at the first use."""
        key = (part, first, last)
        if key not in self._sessions:
            with self._lock:
                if key not in self._sessions:
                    self._sessions[key] = self._open_cached(key) or create_session(graph())
                    if self.graph_cache is not None:
                        self._graphs[key] = graph
        return self._sessions[key]

    def write_missing(self) -> None:
        """
        Write graphs that were used and are not in the graph cache.

        They are built once more for it: as long as a question waits, no time is spent on writing.
        """
        for key, graph in list(self._graphs.items()):
            if self.graph_cache is not None and not self.graph_cache.path(self._file(key)).exists():
                self.graph_cache.store(self._file(key), graph())

    def _open_cached(self, key: _Part) -> Any | None:
        if self.graph_cache is None:
            return None
        path = self.graph_cache.path(self._file(key))
        if not path.exists():
            return None
        try:
            return create_session(str(path))
        except Exception:  # ONNX Runtime raises many types; the graph is built from the weights
            self.graph_cache.discard(self._file(key))
            return None

    def _file(self, key: _Part) -> str:
        return "-".join(map(str, (self._name, *key)))


@cache
def _register_arena() -> None:
    """Let ONNX Runtime make the arena that all sessions of the process share."""
    onnxruntime = onnx_runtime()
    kind, place = onnxruntime.OrtAllocatorType, onnxruntime.OrtMemType
    memory = onnxruntime.OrtMemoryInfo("Cpu", kind.ORT_ARENA_ALLOCATOR, 0, place.DEFAULT)
    with suppress(RuntimeError):  # another library of the process has made it already
        onnxruntime.create_and_register_allocator(memory, None)


def create_session(graph: bytes | str) -> Any:
    """
    An ONNX Runtime session on one thread: batches run side by side instead.

    `graph` is the content of an ONNX file, or its path.
    """
    onnxruntime = onnx_runtime()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.enable_mem_pattern = False  # shapes differ from batch to batch
    # One arena for all sessions. Without it, most operators wait for fresh pages of the system; an
    # arena per session would need as much memory as all layers together.
    _register_arena()
    options.add_session_config_entry("session.use_env_allocators", "1")
    # Higher levels fuse sums and norms into an operator that is four times as slow.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
