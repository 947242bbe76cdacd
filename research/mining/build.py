"""
Mine questions from documentation: `python -m research.mining.build --cache DIR --out DIR`.

Fetches the sources of `research/mining/sources.tsv` (apt, pip, npm; repositories must lie as bare
git directories OWNER+NAME/repo in `--mirrors`), reads them, and writes `train.jsonl` and
`dev.jsonl` to `--out`. The table of sources, licences and counts goes to
`research/results/mined_questions.json`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import subprocess
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from ..benchmarks import common
from .passages import mine_file
from .sources import Source, document_files, read_sources, unpack

SOURCES = Path(__file__).with_name("sources.tsv")
_MAX_FILES = 300
"""Files read per source, drawn at random: a few sources have more than ten thousand."""
_MAX_QUESTIONS = 1500
"""Per source, so that none of them dominates."""
_QUESTION_HEADING = re.compile(
    rb"^#+ [^\n]{8,120}\?\s*$|<h[1-6][^\n]{8,300}\?(?:<[^\n]*)?</h|^[^\n]{8,120}\?\n[=~^-]{4}", re.M
)
_REFUSED = "GFDL with invariant sections"

Record = dict[str, Any]


def mine_source(
    source: Source, cache: Path, mirrors: Path
) -> tuple[Source, str, list[Record], str]:
    """The passages of a source, its licence, and why it was left out, if it was."""
    try:
        folder, license_name = unpack(source, cache, mirrors)
    except (OSError, ValueError, IndexError, EOFError, subprocess.SubprocessError) as error:
        return source, "", [], f"not fetched: {type(error).__name__}: {error}"
    if license_name in ("", _REFUSED):
        return source, license_name, [], "left out for its licence"
    files = list(document_files(source, folder))
    rng = random.Random(f"7 {source.id}")
    rng.shuffle(files)
    files = sorted(files[: 3 * _MAX_FILES], key=lambda path: not _asks(path))[:_MAX_FILES]
    records: list[Record] = []
    total = 0
    for path in files:
        name = f"{source.id}/{path.relative_to(folder).as_posix()}"
        for passage in mine_file(path, name, source.product):
            records.append(passage.record(source.id, license_name))
            total += len(passage.questions)
        if total > 1.2 * _MAX_QUESTIONS:
            break
    return source, license_name, _capped(records, rng), ""


def _key(record: Record) -> str:
    return hashlib.sha256(" ".join(record["sentences"]).encode()).hexdigest()


def _asks(path: Path) -> bool:
    """Whether a file has headings that are questions; such files are read first."""
    return bool(_QUESTION_HEADING.search(path.read_bytes()[:200_000]))


def _capped(records: list[Record], rng: random.Random) -> list[Record]:
    """At most `_MAX_QUESTIONS`, whole passages; copies of a passage once."""
    seen: set[str] = set()
    unique = []
    for record in records:
        key = _key(record)
        if key not in seen:
            seen.add(key)
            unique.append(record)
    order = list(range(len(unique)))
    rng.shuffle(order)
    real = ("faq", "heading-question", "why")
    order.sort(
        key=lambda index: (
            not any(question["kind"] in real for question in unique[index]["questions"])
        )
    )
    kept: list[int] = []
    total = 0
    for index in order:
        count = len(unique[index]["questions"])
        if total + count <= _MAX_QUESTIONS:
            kept.append(index)
            total += count
    return [unique[index] for index in sorted(kept)]


def write(out: Path, parts: dict[str, list[Record]]) -> dict[str, Any]:
    """
    Write one file per part, and return their figures.

    A passage that is in several sources is kept once, in the dev set if it is there.
    """
    seen: set[str] = set()
    figures: dict[str, Any] = {}
    for part in ("dev", "train"):
        kept = []
        for record in parts[part]:
            key = _key(record)
            if key not in seen:
                seen.add(key)
                kept.append(record)
        half = out / f"{part}.tmp"
        with half.open("w", encoding="utf-8") as file:
            for record in kept:
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
        half.replace(out / f"{part}.jsonl")
        kinds = Counter(question["kind"] for record in kept for question in record["questions"])
        figures[part] = {
            "sources": len({record["source"] for record in kept if record["questions"]}),
            "passages": len(kept),
            "questions": sum(kinds.values()),
            "kinds": dict(kinds.most_common()),
        }
    return figures


def _row(source: Source, license_name: str, part: str, records: list[Record]) -> Record:
    kinds = Counter(question["kind"] for record in records for question in record["questions"])
    return {
        "source": source.id,
        "license": license_name,
        "part": part,
        "documents": len({record["document"] for record in records}),
        "passages": len(records),
        "questions": sum(kinds.values()),
        "kinds": dict(sorted(kinds.items())),
    }


def _read_ids(path: Path | None) -> set[str]:
    """Ids of sources, one per line, in small letters; `github:` means `git:`."""
    if path is None:
        return set()
    lines = (line.strip().lower() for line in path.read_text("utf-8").splitlines())
    return {line.replace("github:", "git:") for line in lines if line}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Mine questions from documentation.")
    parser.add_argument("--cache", type=Path, required=True, help="folder for fetched packages")
    parser.add_argument("--mirrors", type=Path, required=True, help="folder of bare repositories")
    parser.add_argument("--out", type=Path, required=True, help="folder for the two files")
    parser.add_argument("--keep-out", type=Path, help="file with ids of sources to leave out")
    parser.add_argument("--only", default="", help="only sources whose id contains this text")
    parser.add_argument("--workers", type=int, default=2, help="processes [default: 2]")
    parser.add_argument("--sources", type=Path, default=SOURCES, help="another list of sources")
    parser.add_argument("--no-table", action="store_true", help="write no result file")
    options = parser.parse_args(arguments)
    kept_out = _read_ids(options.keep_out)
    sources = [
        source
        for source in read_sources(options.sources)
        if options.only in source.id and source.id.lower() not in kept_out
    ]
    options.out.mkdir(parents=True, exist_ok=True)
    parts: dict[str, list[Record]] = {"train": [], "dev": []}
    table = []
    with ProcessPoolExecutor(options.workers) as pool:
        jobs = [
            pool.submit(mine_source, source, options.cache, options.mirrors) for source in sources
        ]
        for number, job in enumerate(as_completed(jobs), 1):
            source, license_name, records, problem = job.result()
            part = "dev" if source.id in DEV else "train"
            parts[part].extend(records)
            row = _row(source, license_name, part, records)
            if row["questions"]:
                table.append(row)
            print(
                f"{source.id}: {row['questions']} questions, {license_name} {problem}", flush=True
            )
            if number % 40 == 0:
                write(options.out, parts)
    for records in parts.values():  # jobs end in any order
        records.sort(key=lambda record: str(record["source"]))
    figures = write(options.out, parts)
    print(json.dumps(figures, indent=1))
    if not options.no_table:
        table.sort(key=lambda row: str(row["source"]))
        common.save("mined_questions", {**figures, "table": table})


DEV = frozenset(
    """
    git:letsencrypt/website git:pi-hole/docs git:syncthing/docs git:veracrypt/VeraCrypt
    git:qutebrowser/qutebrowser git:etcd-io/website git:prettier/prettier debian:openvpn
    debian:debian-handbook debian:tmux debian:wget debian:weechat-doc
    """.split()
)
"""The sources of the dev set; none of them has a second package among the others."""

if __name__ == "__main__":
    main()
