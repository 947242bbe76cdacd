"""
Building a sharded corpus: each shard by one task, in any process, on any machine.

A task writes its shard under a temporary name and renames the folder when it is complete. The name
depends on the number of the shard and on the build alone, so a task that is repeated, or that runs
twice at the same time, leaves one shard. The manifest is written last. Until then, a corpus that
was in the folder before is read as it was.

`build_shards` does this for files, with processes of this machine. `write_shard` and
`finish_shards` are for other engines, such as Spark (`askline.integrations.spark`).
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple, TypedDict

from ..errors import CorpusError, InputError, Problem
from ..text.atomic_write import atomic_write
from ..text.readers.folders import FileSelection, find_files
from ..text.readers.limits import DEFAULT_LIMITS
from .corpus import Corpus
from .document_records import READER_VERSION, STANDARD_INPUT, FileIds
from .ingest import NotReadCounts, PathInput, Share, parse_paths
from .lock import LOCK_NAME, writer_lock
from .results import AddReport, NotReadFiles
from .search_index import FORMAT
from .shards import Manifest, ShardInfo
from .storage import MANIFEST_NAME, SHARD_FILE, STORE_NAME
from .store import Store

__all__ = ["build_shards", "finish_shards", "shard_name", "write_shard"]

_SHARD_PREFIX = "shard-"
_TEMPORARY_PREFIX = ".building-"
_ATTEMPTS = 3
_LOCK_SECONDS = 2.0


class _Reading(TypedDict):
    """The arguments of `Corpus.add` that say which files are read, and how."""

    include: Sequence[str]
    exclude: Sequence[str]
    no_ignore: bool
    columns: Sequence[str]
    follow_links: bool
    read_seconds: float
    read_megabytes: int


class _BuiltShard(NamedTuple):
    info: ShardInfo
    report: AddReport | None
    """None if the shard was there already."""


def build_shards(
    paths: PathInput,
    folder: str | os.PathLike[str],
    *,
    shards: int,
    processes: int | None = None,
    on_shard: Callable[[ShardInfo], None] | None = None,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    no_ignore: bool = False,
    columns: Sequence[str] = (),
    follow_links: bool = False,
    read_seconds: float = DEFAULT_LIMITS.seconds,
    read_megabytes: int = DEFAULT_LIMITS.megabytes,
) -> AddReport:
    """
    Build a sharded corpus of files and folders, with several processes.

    Files are distributed over `shards` shards by their ids. `processes` shards are built at the
    same time; the default is one per CPU core. The other arguments are those of `Corpus.add`. A
    process that is killed is started again. If this process is killed, the next call continues:
    shards that are complete are kept, and so are those whose files have not changed. `on_shard` is
    called after each shard. Documents of shards that were kept are counted as unchanged.
    """
    given = parse_paths(paths)
    if shards < 1:
        raise InputError(f"shards must be at least 1, got {shards}.")
    if STANDARD_INPUT in given:
        raise InputError("Standard input cannot be read into shards. Give files or folders.")
    started = monotonic()
    reading = _Reading(
        include=include,
        exclude=exclude,
        no_ignore=no_ignore,
        columns=columns,
        follow_links=follow_links,
        read_seconds=read_seconds,
        read_megabytes=read_megabytes,
    )
    target = _prepare(Path(folder).expanduser())
    with writer_lock(target, timeout=_LOCK_SECONDS):
        jobs = [
            _Job(str(target), shard_name(number, build), given, number, shards, reading)
            for number, build in enumerate(_fingerprints(given, shards, reading))
        ]

        def build(job: _Job) -> _BuiltShard:
            built = _build_in_process(job)
            if on_shard is not None:
                on_shard(built.info)
            return built

        with ThreadPoolExecutor(processes or os.cpu_count() or 1) as pool:
            built = list(pool.map(build, jobs))
        finish_shards(target, [each.info for each in built])
    return _merged_report(built, monotonic() - started)


def write_shard(
    folder: str | os.PathLike[str],
    number: int,
    texts: Iterable[tuple[str, str]],
    *,
    build: str = "",
    phrases: bool = False,
) -> ShardInfo:
    """
    Write shard `number` with the given (id, text) pairs, if this build has not written it yet.

    `build` names the build: a repeated task of the same build finds the shard and reads no text.
    The ids must be unique over all shards. With `phrases`, the phrases are encoded too. The shard
    is read once `finish_shards` has named it.
    """

    def fill(corpus: Corpus) -> AddReport:
        report = corpus.add(texts)
        if phrases:
            corpus.encode_phrases()
        return report

    return _write(Path(folder).expanduser(), shard_name(number, build), fill).info


def finish_shards(folder: str | os.PathLike[str], shards: Sequence[ShardInfo]) -> None:
    """
    Make a corpus of the shards of a build, in this order, and delete all others in the folder.

    CorpusError if one of them is not there; the corpus is then as it was before.
    """
    target = Path(folder).expanduser()
    for info in shards:
        if ShardInfo.read(target / info.name) != info:
            raise CorpusError(
                f"{target / info.name} is not the shard that its task reported. Build it again."
            )
    with atomic_write(target / MANIFEST_NAME) as stream:
        stream.write(Manifest(tuple(shards)).to_json().encode())
    names = {info.name for info in shards}
    for entry in target.iterdir():
        is_own = entry.name.startswith((_SHARD_PREFIX, _TEMPORARY_PREFIX))
        if is_own and entry.name not in names:
            shutil.rmtree(entry, ignore_errors=True)


def shard_name(number: int, build: str) -> str:
    """The name of a shard's folder: the same for every attempt of a build."""
    digest = hashlib.sha256(build.encode()).hexdigest()
    return f"{_SHARD_PREFIX}{number:05d}-{digest[:12]}"


def _write(target: Path, name: str, fill: Callable[[Corpus], AddReport]) -> _BuiltShard:
    """Write a shard under a temporary name, and rename it; of two attempts, the first one stays."""
    final = target / name
    if (known := ShardInfo.read(final)) is not None:
        return _BuiltShard(known, None)
    temporary = target / f"{_TEMPORARY_PREFIX}{name}-{secrets.token_hex(4)}"
    try:
        _prepare(target)
        with Corpus.open(temporary, ranker=None) as corpus:
            report = fill(corpus)
            status, identity = corpus.status(), corpus._store.identity
        info = ShardInfo(name, identity, status.documents, status.sentences, status.characters)
        with atomic_write(temporary / SHARD_FILE) as stream:
            stream.write(json.dumps(asdict(info), indent=1).encode())
        try:
            temporary.rename(final)
        except OSError as error:  # another attempt was faster
            if (known := ShardInfo.read(final)) is None:
                raise CorpusError(f"{final} cannot be written: {error.strerror}.") from error
            return _BuiltShard(known, None)
        return _BuiltShard(info, report)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _prepare(folder: Path) -> Path:
    """Create the folder; CorpusError if it contains anything but shards."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        names = sorted(entry.name for entry in folder.iterdir())
    except OSError as error:
        raise CorpusError(f"{folder} cannot hold shards: {error.strerror or error}.") from error
    if STORE_NAME in names:
        raise CorpusError(f"{folder} is an index without shards. Choose an empty or new folder.")
    own = (_SHARD_PREFIX, _TEMPORARY_PREFIX, f".{MANIFEST_NAME}")
    other = [name for name in names if not name.startswith(own)]
    other = [name for name in other if name not in (MANIFEST_NAME, LOCK_NAME)]
    if other:
        raise CorpusError(
            f"{folder} contains other files, such as {other[0]}. Choose an empty or new folder."
        )
    return folder


def _fingerprints(given: Sequence[str], shards: int, reading: _Reading) -> list[str]:
    """What decides the content of each shard: paths, sizes and dates of files, and options."""
    selection = FileSelection(
        include=tuple(reading["include"]),
        exclude=tuple(reading["exclude"]),
        everything=reading["no_ignore"],
        follow_links=reading["follow_links"],
    )
    common = json.dumps([READER_VERSION, FORMAT, shards, list(given), reading], default=list)
    digests = [hashlib.sha256(common.encode()) for _ in range(shards)]
    with_roots = Store.in_memory()
    ids = FileIds(with_roots, given)
    for found in find_files(given, selection):
        entry: tuple[Any, ...] = (str(found),)
        if isinstance(found, Path):
            try:
                state = found.stat()
                entry = (str(found), state.st_size, state.st_mtime_ns)
            except OSError:
                pass  # the task reports it
        digests[Share.of(found, ids, shards).number].update(repr(entry).encode("utf-8", "replace"))
    with_roots.close()
    return [digest.hexdigest() for digest in digests]


# The processes of `build_shards`


@dataclass(frozen=True, slots=True)
class _Job:
    """A shard to build, as a process gets it."""

    folder: str
    name: str
    paths: list[str]
    number: int
    shards: int
    reading: _Reading


def _build_in_process(job: _Job) -> _BuiltShard:
    """Build a shard in a process of its own; a process that is killed is started again."""
    if (known := ShardInfo.read(Path(job.folder) / job.name)) is not None:
        return _BuiltShard(known, None)
    program = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import run_job; run_job()"
    for _ in range(_ATTEMPTS):
        process = subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        with process:
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                process.stdin.write(json.dumps(asdict(job), default=list).encode() + b"\n")
                process.stdin.flush()  # it stays open: its end tells the process that we ended
                reply = process.stdout.read()
            except BrokenPipeError:
                reply = b""
            except BaseException:
                process.kill()
                raise
            code = process.wait()
        if code == 0:
            built = json.loads(reply)
            if error := built.get("error"):
                raise CorpusError(f"{job.name}: {error}")
            return _BuiltShard(ShardInfo(**built["info"]), _parse_report(built["report"]))
    raise CorpusError(
        f"The process that builds {job.name} ended {_ATTEMPTS} times, last with exit code {code}. "
        "Perhaps the memory is too small: build with fewer processes."
    )


def run_job() -> None:
    """In a process of its own: read a job from standard input, and write the result as JSON."""
    fields = json.loads(sys.stdin.buffer.readline())
    job = _Job(**fields)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    share = Share(job.number, job.shards)
    try:
        built = _write(
            Path(job.folder),
            job.name,
            lambda corpus: corpus.add(job.paths, share=share, **job.reading),
        )
    except (CorpusError, InputError) as error:
        reply: dict[str, object] = {"error": str(error)}
    else:
        report = None if built.report is None else asdict(built.report)
        reply = {"info": asdict(built.info), "report": report}
    sys.stdout.write(json.dumps(reply))
    sys.stdout.flush()


def _end_with_parent() -> None:
    """Wait until standard input is closed, which the end of the parent process does too."""
    os.read(0, 1)  # without the lock of `sys.stdin`, which the end of this process needs
    os._exit(1)


def _parse_report(fields: dict[str, Any] | None) -> AddReport | None:
    if fields is None:
        return None
    fields["problems"] = tuple(Problem(**each) for each in fields["problems"])
    fields["not_read"] = tuple(NotReadFiles(**each) for each in fields["not_read"])
    return AddReport(**fields)


def _merged_report(built: Sequence[_BuiltShard], seconds: float) -> AddReport:
    reports = [each.report for each in built if each.report is not None]
    kept = sum(each.info.documents for each in built if each.report is None)
    counts = NotReadCounts()
    for files in (files for report in reports for files in report.not_read):
        counts.add(files.example, files.reason, kind=files.kind, count=files.count)
    empty = AddReport(0, 0, kept, 0, 0, 0, (), seconds)
    return replace(
        empty,
        added=sum(each.added for each in reports),
        failed=sum(each.failed for each in reports),
        sentences=sum(each.sentences for each in reports),
        problems=tuple(problem for each in reports for problem in each.problems),
        skipped=sum(each.skipped for each in reports),
        not_read=counts.files(),
    )
