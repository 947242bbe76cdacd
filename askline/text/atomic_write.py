"""Write a file so that readers see either the old content or the new, never a part of it."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ..errors import InputError

__all__ = [
    "atomic_write",
]


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """
    Yield a temporary file in the same folder, which replaces `path` when the block succeeds.

    The content is flushed to disk before the replacement. If the block raises, `path` is unchanged
    and the temporary file is removed.
    """
    target = Path(path).expanduser()
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except OSError as error:
        # numpy reports a full disk without an error number: "100 requested and 50 written".
        reason = error.strerror or f"{error}; the disk may be full"
        raise InputError(f"{target} cannot be written: {reason}.") from error
    finally:
        temporary.unlink(missing_ok=True)
