"""
The rankers that a request may name.

A request may name the rankers that the service was started with, by their specs, and pipelines of
these and of the built-in rankers: names, cut-offs and `>>`, without options. So no path in a
request reaches the file system.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..errors import AsklineError, SpecError, unknown_name_message
from ..rankers.base import Cut, Pipeline, Ranker
from ..rankers.spec import load

__all__ = [
    "BUILT_IN_RANKERS",
    "RANKERS_WITH_WEIGHTS",
    "AllowedRankers",
]

BUILT_IN_RANKERS = ("bm25", "cascade", "cosinet", "idf-overlap", "jaccard", "rr", "wo", "wo+rr")
RANKERS_WITH_WEIGHTS = ("cascade", "cosinet")
"""The built-in rankers that need a model folder, which may not be installed."""
_STAGE = re.compile(r"\s*([a-z0-9+-]{1,30})\s*(?:%\s*([1-9]\d{0,5})\s*)?")
_MAX_SPEC_LENGTH = 200  # characters
_MAX_STAGES = 8


class AllowedRankers:
    """Rankers by spec. Each ranker is loaded once; pipelines are composed of loaded rankers."""

    def __init__(self, models: Sequence[str]) -> None:
        self.models = tuple(models)
        self._loaded = {spec: load(spec) for spec in models}
        self._loaded |= {str(ranker): ranker for ranker in self._loaded.values()}
        self.default = self._loaded[self.models[0]]

    def find(self, spec: str | None) -> Ranker:
        """Return the ranker of a spec, or the default for None. SpecError if it is not allowed."""
        if spec is None:
            return self.default
        if spec in self._loaded:
            return self._loaded[spec]
        stages = tuple(self._stage(name, keep) for name, keep in self._parse(spec))
        return stages[0] if len(stages) == 1 else Pipeline(stages)

    def find_or_default(self, model: str | None) -> Ranker:
        """Return the ranker of a name, or the default for the model names of other services."""
        try:
            return self.find(model)
        except AsklineError:
            return self.default

    def _stage(self, name: str, keep: str | None) -> Ranker:
        if name not in self._loaded:
            if name not in BUILT_IN_RANKERS:
                known = {*BUILT_IN_RANKERS, *self.models}
                raise SpecError(unknown_name_message("ranker", name, known))
            self._loaded[name] = load(name)
        return Cut(self._loaded[name], int(keep)) if keep else self._loaded[name]

    def _parse(self, spec: str) -> list[tuple[str, str | None]]:
        """Return the name and the cut-off of each stage."""
        parts = spec[: _MAX_SPEC_LENGTH + 1].split(">>")
        matches = [_STAGE.fullmatch(part) for part in parts]
        if len(spec) > _MAX_SPEC_LENGTH or len(parts) > _MAX_STAGES or None in matches:
            raise SpecError(
                f"A request may name {', '.join(self.models)} or a pipeline such as "
                f"'jaccard % 20 >> bm25' of at most {_MAX_STAGES} rankers without options, "
                f"got {spec[:_MAX_SPEC_LENGTH]!r}."
            )
        return [(match[1], match[2]) for match in matches if match]
