"""What result files say about themselves: hardware, versions, commit, time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .lines import Section
from .links import LINKS, Measured
from .places import ResultFiles

__all__ = ["Origin", "missing", "origins"]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a file's figures come from; a plus sign after the commit means uncommitted changes."""

    file: str
    time: str
    commit: str
    machine: str
    packages: str


_PLOTTED = ("peers", "calibration", "cascade_grid", "cascade_gpu", "engine_growth")


def origins(results: ResultFiles, sections: Iterable[Section]) -> list[Origin]:
    """Of every file that a row or a picture is drawn from, and that is there."""
    found = ((name, results.get(name)) for name in _files(sections))
    return [_origin(name, record) for name, record in found if record is not None]


def missing(results: ResultFiles, sections: Iterable[Section]) -> list[str]:
    """Files that rows want and that are not there."""
    return [name for name in _files(sections) if results.get(name) is None]


def _files(sections: Iterable[Section]) -> list[str]:
    found = set(_PLOTTED)
    for section in sections:
        links = LINKS[section.table.id]
        for link in (*links.rows.values(), *(extra.link for extra in links.extras)):
            if isinstance(link, Measured):
                found |= {where.file for where in link.places if where is not None}
    return sorted(found)


def _origin(name: str, record: dict[str, Any]) -> Origin:
    about = record.get("environment", {})
    device = record.get("device") or record.get("trained_on") or about.get("device") or ""
    machine = "; ".join(filter(None, (_processor(about), _named(device))))
    packages = {"python": about.get("python"), **about.get("packages", {})}
    return Origin(
        name,
        str(about.get("time", "–"))[:16].replace("T", " "),
        str(about.get("commit", "–")),
        machine or "–",
        ", ".join(f"{key} {value}" for key, value in packages.items() if value) or "–",
    )


def _processor(about: dict[str, Any]) -> str:
    """With its widest instructions for bytes, which speeds depend on; older files lack them."""
    cores = f"{about['cores']} cores" if "cores" in about else ""
    widest = next(iter(about.get("instructions", ())[-1:]), "")
    return ", ".join(filter(None, (about.get("cpu", ""), cores, widest)))


def _named(device: str) -> str:
    return "" if device == "cpu" else device
