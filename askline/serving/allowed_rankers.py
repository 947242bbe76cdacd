"""
Which rankers a request may name.

Those the service was started with, by their spec texts; and sequences of these and of rankers that
come with askline: names, cuts and arrows, no options. So no path from a request ever reaches the
file system.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..errors import AsklineError, SpecError, unknown_name_message
from ..rankers.pipeline import Cut, Pipeline
from ..rankers.spec import load
from ..types import Ranker

__all__ = [
    "BUILT_IN",
    "WEIGHTY",
    "Roster",
]

BUILT_IN = ("bm25", "cascade", "cosinet", "idf-overlap", "jaccard", "rr", "wo", "wo+rr")
WEIGHTY = ("cascade", "cosinet")
"""Of these, those with weights of their own."""
_STAGE = re.compile(r"\s*([a-z0-9+-]{1,30})\s*(?:%\s*([1-9]\d{0,5})\s*)?")
_LONGEST = 200  # characters of a spec out of a request
_STAGES = 8


class Roster:
    """Rankers by spec text. Sequences are put together from rankers that are loaded once."""

    def __init__(self, models: Sequence[str]) -> None:
        self.default, *_ = self.models = tuple(models)
        self._loaded = {spec: load(spec) for spec in models}
        self._loaded |= {str(ranker): ranker for ranker in self._loaded.values()}

    def ranker(self, spec: str | None) -> Ranker:
        """The ranker of that name; the default for None. SpecError says what may be named."""
        if spec is None or spec in self._loaded:
            return self._loaded[spec or self.default]
        stages = tuple(self._stage(name, keep) for name, keep in self._parsed(spec))
        return stages[0] if len(stages) == 1 else Pipeline(stages)

    def served(self, model: str | None) -> Ranker:
        """For clients that must name some model: the default where the name is not one of ours."""
        try:
            return self.ranker(model)
        except AsklineError:
            return self.ranker(None)

    def _stage(self, name: str, keep: str | None) -> Ranker:
        if name not in self._loaded:
            if name not in BUILT_IN:
                raise SpecError(unknown_name_message("ranker", name, {*BUILT_IN, *self.models}))
            self._loaded[name] = load(name)
        return Cut(self._loaded[name], int(keep)) if keep else self._loaded[name]

    def _parsed(self, spec: str) -> list[tuple[str, str | None]]:
        parts = spec[: _LONGEST + 1].split(">>")
        matches = [_STAGE.fullmatch(part) for part in parts]
        if len(spec) > _LONGEST or len(parts) > _STAGES or None in matches:
            raise SpecError(
                f"A request may name {', '.join(self.models)} or a sequence such as "
                f"'jaccard % 20 >> bm25' of at most {_STAGES} rankers without options, "
                f"got {spec[:_LONGEST]!r}."
            )
        return [(match[1], match[2]) for match in matches if match]
