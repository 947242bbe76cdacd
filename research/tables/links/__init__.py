"""Every published row, tied to a figure of ours or to the reason why there is none."""

from __future__ import annotations

from . import cascade, cosinet, phrases, report, sequential
from .link import Absent, Extra, Link, Measured, TableLinks

__all__ = ["LINKS", "Absent", "Extra", "Link", "Measured", "TableLinks"]

LINKS: dict[str, TableLinks] = {
    **cosinet.TABLES,
    **cascade.TABLES,
    **sequential.TABLES,
    **report.TABLES,
    **phrases.TABLES,
}
