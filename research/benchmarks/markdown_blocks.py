"""
Our markdown rules beside markdown-it-py: blocks that both find, and the time each takes.

    python -m research.benchmarks.markdown_blocks FOLDER…

A block agrees where kind and shown text are the same, white space aside. What the two treat
differently on purpose counts as a difference: front matter, marks of task lists, notes.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from markdown_it import MarkdownIt

from askline.text.readers import Block, walk
from askline.text.readers.markdown import read_markdown

from .report import save

KINDS = {"heading_open": "heading", "th_open": "cell", "td_open": "cell"}
Found = Counter[tuple[str, str]]


def reference(tokens: list[Any]) -> Iterator[tuple[str, str]]:
    """Kind and text of the parser's blocks."""
    for before, token in zip([None, *tokens], tokens, strict=False):
        if token.type == "inline":
            yield KINDS.get(before.type, "text") if before else "text", shown(token.children)
        elif token.type in ("fence", "code_block"):
            yield "code", token.content


def shown(children: list[Any]) -> str:
    """The text of an inline token without its marks."""
    hidden = ("html_inline",)
    breaks = ("softbreak", "hardbreak")
    return "".join(
        " " if child.type in breaks else "" if child.type in hidden else child.content
        for child in children
    )


def counted(blocks: Iterator[tuple[str, str]]) -> Found:
    return Counter((kind, " ".join(text.split())) for kind, text in blocks if text.strip())


def _kind(block: Block) -> str:
    return "cell" if block.kind in ("row", "columns") else block.kind


def main() -> None:
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    totals: Counter[str] = Counter()
    seconds = {"askline": 0.0, "markdown-it-py": 0.0}
    for path in walk(sys.argv[1:]):
        if getattr(path, "suffix", "") != ".md":
            continue
        source = path.read_text("utf-8")  # type: ignore[union-attr]
        start = time.process_time()
        theirs = counted(reference(parser.parse(source)))
        middle = time.process_time()
        content = read_markdown(source)
        ours = counted((_kind(b), content.text[b.start : b.end]) for b in content.blocks)
        seconds["markdown-it-py"] += middle - start
        seconds["askline"] += time.process_time() - middle
        totals += Counter(
            files=1,
            characters=len(source),
            both=(theirs & ours).total(),
            only_askline=(ours - theirs).total(),
            only_markdown_it=(theirs - ours).total(),
        )
    figures = {**totals, "seconds": {name: round(spent, 1) for name, spent in seconds.items()}}
    print(figures)
    print(f"Kept in {save('markdown_blocks', figures, 'markdown-it-py')}")


if __name__ == "__main__":
    main()
