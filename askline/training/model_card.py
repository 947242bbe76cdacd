"""The model card: the README.md of a model folder, with data, licenses, measures and command."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["ModelCard", "data_license"]

_LICENSES = {
    "wikiqa": "Microsoft Research Data License: for research, not for shipping",
    "trecqa": "none stated (newswire): for measuring only",
    "squadshifts": "CC BY 4.0",
    "squad1": "CC BY-SA 4.0",
    "squad2": "CC BY-SA 4.0",
    "squad-pairs": "CC BY-SA 4.0",
    "selqa": "Apache-2.0",
    "piaf": "open license (Etalab)",
    "fquad": "CC BY-NC-SA 3.0: for measuring only",
}


def data_license(name: str, *, default: str = "see the data") -> str:
    """The license of a dataset, given as NAME or NAME:SPLIT."""
    return _LICENSES.get(name.partition(":")[0], default)


@dataclass(frozen=True, slots=True)
class ModelCard:
    """What a card says, in order."""

    title: str
    facts: Sequence[str] = ()
    """List items; an indented one belongs to the item before."""
    text: str = ""
    command: str = ""
    """The command that trains the same weights again."""
    table: Sequence[Sequence[str]] = ()
    """Measures; the first row is the header."""

    def to_markdown(self) -> str:
        """The card as Markdown."""
        lines = [f"# {self.title}", "", *map(_item, self.facts), ""]
        if self.text:
            lines += [self.text, ""]
        if self.command:
            lines += ["```", self.command, "```", ""]
        if self.table:
            header, *rows = self.table
            every = [header, ["---"] * len(header), *rows]
            lines += [*(f"| {' | '.join(row)} |" for row in every), ""]
        return "\n".join(lines)


def _item(fact: str) -> str:
    indent = len(fact) - len(fact.lstrip())
    return f"{' ' * indent}- {fact.lstrip()}"
