"""
Fuzz the file readers with mutated files, and check that time grows linearly with the text.

    python -m research.fuzzing.readers [--files N] [--seconds N] [--seed N] [--save]

Every file is read as `askline index` reads it: in a child process, within the default limits. A
finding is a crash of the process, a file past a limit, or an exception that is not a message for
the user. Then the splitter and the readers of text formats read long repetitions of their tokens,
once and twice as long: taking more than three times as long is a finding. `--save` writes
research/results/reader_fuzzing.json. The exit code is 1 if there is a finding; the files are kept.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from askline.errors import DataError
from askline.text.readers import FileContent, ReaderPool, ReadLimitError, ReadLimits, read_content
from askline.text.readers.document import FileKind
from askline.text.sentences import split_sentences
from research.benchmarks.common import save

from .mutations import BINARY, KINDS, TOKENS, MutatedFile, mutated_files, suffix_of

__all__ = ["fuzz_files", "fuzz_time", "main"]

_DEFECTS = ("The reader of its format failed", "Its text cannot be split")
_AHEAD = 16
_MOST_SECONDS = 20.0  # for one growing text
_SHORT_SECONDS = 0.2  # below this, differences of times are noise


def fuzz_files(
    folder: Path, *, files: int, seconds: float, seed: int, limits: ReadLimits
) -> dict[str, Any]:
    """Read mutated files until one of both is reached; files with findings stay in the folder."""
    outcomes: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    findings: list[dict[str, object]] = []
    slowest = 0.0
    end = time.monotonic() + seconds
    waiting: deque[tuple[MutatedFile, Path, Future[FileContent], float]] = deque()

    def finish() -> None:
        nonlocal slowest
        file, path, future, started = waiting.popleft()
        outcome, message = _outcome(future)
        slowest = max(slowest, time.monotonic() - started)
        outcomes[file.kind][outcome] += 1
        if outcome in ("read", "refused"):
            path.unlink()
        else:
            findings.append({"file": path.name, "outcome": outcome, "message": message})
            print(f"{path}: {outcome}: {message}", flush=True)

    with ReaderPool(limits) as pool:
        for file in islice(mutated_files(seed), files):
            if time.monotonic() > end:
                break
            path = folder / f"{file.seed}.{file.suffix}"
            path.write_bytes(file.data)
            waiting.append((file, path, pool.submit(path), time.monotonic()))
            if len(waiting) > _AHEAD:
                finish()
        while waiting:
            finish()
    total = sum(outcomes.values(), Counter())
    return {
        "seed": seed,
        "files": total.total(),
        "limits": {"seconds": limits.seconds, "megabytes": limits.megabytes},
        "outcomes": {kind: dict(sorted(counts.items())) for kind, counts in outcomes.items()},
        "crashes": total["crash"],
        "past_limit": total["past limit"],
        "defects": total["defect"],
        "slowest_seconds": round(slowest, 2),
        "findings": findings,
    }


def _outcome(future: Future[FileContent]) -> tuple[str, str]:
    try:
        future.result()
    except ReadLimitError as error:
        message = error.problems[0].message
        return ("crash" if "ended the reader" in message else "past limit"), message
    except DataError as error:
        message = error.problems[0].message
        return ("defect" if message.startswith(_DEFECTS) else "refused"), message
    except Exception as error:
        return "defect", repr(error)
    return "read", ""


def fuzz_time(folder: Path, *, seconds: float, seed: int, length: int = 20_000) -> dict[str, Any]:
    """Compare the time of a text with that of one twice as long, until the time is over."""
    rng = random.Random(seed)
    end = time.monotonic() + seconds
    signal.signal(signal.SIGALRM, _stop)
    findings: list[dict[str, object]] = []
    count, worst = 0, 0.0
    while time.monotonic() < end:
        kind = rng.choice([each for each in KINDS if each not in BINARY])
        tokens = TOKENS[kind]
        before, after = ("".join(rng.choices(tokens, k=rng.randint(0, 3))) for _ in range(2))
        unit = "".join(rng.choices(tokens, k=rng.choice((1, 1, 2, 3))))

        def measure(
            factor: int,
            kind: FileKind = kind,
            before: str = before,
            unit: str = unit,
            after: str = after,
        ) -> float:
            text = before + unit * (factor * length // len(unit)) + after
            if kind == "text":
                return _seconds(lambda: split_sentences(text))
            path = folder / f"time.{suffix_of(kind)}"
            path.write_text(text, encoding="utf-8", newline="")
            return _seconds(lambda: read_content(path))

        once, twice = measure(1), measure(2)
        count += 1
        if twice > _SHORT_SECONDS and twice > 3 * once:  # measured again, longer: noise goes away
            once, twice = measure(2), measure(4)
        ratio = twice / max(once, 1e-9) if twice > _SHORT_SECONDS else 0.0
        worst = max(worst, ratio)
        if ratio > 3 or once > _MOST_SECONDS / 2:
            findings.append(
                {"kind": kind, "before": before, "unit": unit, "after": after, "ratio": ratio}
            )
            print("not linear:", findings[-1], flush=True)
    return {
        "texts": count,
        "characters": [length, 2 * length],
        "largest_ratio": round(worst, 2),
        "findings": findings,
    }


def _seconds(call: Callable[[], object]) -> float:
    """Processor seconds of a call, which is stopped when it takes too long."""
    start = time.process_time()
    signal.setitimer(signal.ITIMER_REAL, _MOST_SECONDS)
    with suppress(DataError, _StoppedError):
        call()
    signal.setitimer(signal.ITIMER_REAL, 0)
    return time.process_time() - start


class _StoppedError(BaseException):
    """Not an Exception, because readers turn those into messages."""


def _stop(*_: object) -> None:
    raise _StoppedError


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--files", type=int, default=10**9)
    parser.add_argument("--seconds", type=float, default=300.0, help="in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", action="store_true")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="askline-fuzzing-"))
    started = time.monotonic()
    files = fuzz_files(
        folder,
        files=arguments.files,
        seconds=arguments.seconds * 0.75,
        seed=arguments.seed,
        limits=ReadLimits(),
    )
    left = min(arguments.seconds * 0.25, arguments.seconds - (time.monotonic() - started))
    linear = fuzz_time(folder, seconds=left, seed=arguments.seed)
    print(
        f"{files['files']:,} mutated files: {files['crashes']} crashes, {files['past_limit']} past "
        f"a limit, {files['defects']} other defects; slowest {files['slowest_seconds']} s. "
        f"{linear['texts']:,} growing texts: {len(linear['findings'])} not linear."
    )
    if arguments.save:
        figures = {"mutated_files": files, "growing_texts": linear}
        print(f"Saved to {save('reader_fuzzing', figures, 'pypdfium2', 'charset-normalizer')}")
    if files["findings"] or linear["findings"]:
        print(f"The files are in {folder}.")
        sys.exit(1)
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


if __name__ == "__main__":
    main()
