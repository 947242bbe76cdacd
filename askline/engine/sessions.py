"""ONNX Runtime sessions, each created when it is first needed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from threading import Lock
from typing import Any

__all__ = ["SessionCache", "create_session"]


class SessionCache:
    """The sessions of a network's parts. Any number of threads may use one."""

    def __init__(self) -> None:
        self._sessions: dict[tuple[str, int, int], Any] = {}
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
                    self._sessions[key] = create_session(graph())
        return self._sessions[key]

    @property
    def parts(self) -> list[tuple[str, int, int]]:
        """The keys of the sessions created so far, sorted."""
        return sorted(self._sessions)


@cache
def _register_arena() -> None:
    """Let ONNX Runtime make the arena that all sessions of the process share."""
    import onnxruntime

    kind, place = onnxruntime.OrtAllocatorType, onnxruntime.OrtMemType
    memory = onnxruntime.OrtMemoryInfo("Cpu", kind.ORT_ARENA_ALLOCATOR, 0, place.DEFAULT)
    with suppress(RuntimeError):  # another library of the process has made it already
        onnxruntime.create_and_register_allocator(memory, None)


def create_session(graph: bytes) -> Any:
    """An ONNX Runtime session on one thread: batches run side by side instead."""
    import onnxruntime

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
