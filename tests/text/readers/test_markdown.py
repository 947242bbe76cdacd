from __future__ import annotations

import time
from pathlib import Path

import pytest

from askline.text.readers import iter_sentences
from askline.text.readers.markdown import read_markdown

from .samples import check, originals, read, shown

PAGE = """---
title: "Front"
---
# On *bridges* #

The **old** bridge ([the first](http://x.org/a_(b) "t")) was
built of `wood_work`. It
> quoted on
> two lines.

Stone
-----
- one item
  goes on
- [ ] another
  1. inner
* * *
| Year | Built `a|b` |
|------|:-----:|
| 1931 | no \\| yes |

```python
# no heading
x = 1

y = 2
```

    indented code

<!-- hidden
text --> shown

[ref]: http://x.org
See [here][ref] and ![a picture](p.png), 2 * 3, snake_case and \\*stars\\* &amp; so on.[^1]

[^1]: The note.
"""


def test_every_block_is_separate(tmp_path: Path) -> None:
    document = read(tmp_path, "a.md", PAGE)
    assert document.title == "Front"
    assert shown(document) == [
        ("heading", "On bridges"),
        ("sentence", "The old bridge (the first) was\nbuilt of wood_work."),
        ("sentence", "It\nquoted on\ntwo lines."),
        ("heading", "Stone"),
        ("sentence", "one item\ngoes on"),
        ("sentence", "another"),
        ("sentence", "inner"),
        ("columns", "Year\nBuilt a|b"),
        ("row", "1931\nno | yes"),
        ("code", "# no heading\nx = 1\n\ny = 2"),
        ("code", "indented code"),
        ("sentence", "shown"),
        ("sentence", "See here and a picture, 2 * 3, snake_case and *stars* & so on."),
        ("sentence", "The note."),
    ]
    assert {s.heading for s in iter_sentences(document)} == {
        "",
        "On bridges",
        "Stone",
        "Stone · Year | Built a|b",
    }
    check(document)


def test_offsets_slice_the_source_including_marks(tmp_path: Path) -> None:
    document = read(tmp_path, "a.md", PAGE)
    found = originals(document)
    assert found[0] == "On *bridges"
    assert found[1].startswith("The **old** bridge ([the first](http://x.org/a_(b)")
    assert found[2] == "It\n> quoted on\n> two lines."
    assert found[8] == "1931 | no \\| yes"
    assert [document.place(s.start).number for s in iter_sentences(document)][:5] == [
        4,
        6,
        7,
        11,
        13,
    ]


def test_windows_line_ends_count_as_one_line_break(tmp_path: Path) -> None:
    document = read(tmp_path, "a.md", PAGE.replace("\n", "\r\n"))
    assert [kind for kind, _ in shown(document)].count("row") == 1
    assert document.place(document.text.index("The note.")).number == PAGE.count("\n")
    check(document)


@pytest.mark.parametrize(
    ("source", "kinds"),
    [
        ("Title\n=====\n", [("heading", "Title")]),
        ("a\n\n---\n\nb", [("text", "a"), ("text", "b")]),
        ("#hashtag", [("text", "#hashtag")]),
        ("1. a\n2. b", [("item", "a"), ("item", "b")]),
        ("in\n1986. that was", [("text", "in\n1986. that was")]),
        ("~~~\nnever closed\n", [("code", "never closed\n")]),
        ("a | b\nno table", [("text", "a | b\nno table")]),
        ("**a *b* c** __d__ ~~e~~", [("text", "a b c d e")]),
        ("unpaired ** and _x and `tick", [("text", "unpaired ** and _x and `tick")]),
        ("<b>bold</b> <https://x.org>", [("text", "bold https://x.org")]),
        ("It is $\\nu_{\\rm max}$ of $x_1$, `$a_1$`.", [("text", "It is ν_max of x_1, $a_1$.")]),
        ("From $5 to $6_000 or $HOME/$x.", [("text", "From $5 to $6_000 or $HOME/$x.")]),
        ("- `make all`\n- `make`", [("code", "make all"), ("item", "make")]),
        ("", []),
    ],
    ids=[
        *("setext", "rule", "hashtag", "numbers", "year", "open-fence", "no-table", "emphasis"),
        *("unpaired", "tags", "formulas", "prices", "commands", "empty"),
    ],
)
def test_markdown_syntax(source: str, kinds: list[tuple[str, str]]) -> None:
    content = read_markdown(source)
    found = [(b.kind, content.text[b.start : b.end].strip("\n")) for b in content.blocks]
    assert found == [(kind, text.strip("\n")) for kind, text in kinds]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "piece"),
    [
        *[("", piece) for piece in ("`", "`a``", "[", "](", "![a](", "*a ", "_a", "<a ", "> ")],
        *[("", piece) for piece in ("- ", "|", "&", "\n<!--", "<!--", "<!--a-->", "> <!--a-->")],
        ("", "<script></script>\n"),  # the whole source was converted to lowercase for each
        ("# a", " "),
        ("---\ntitle: a", " "),
        ("[a](", " "),
        ("a|b\n-", " "),
        ("a|b\n-|-\n", "` `` ``` ```` ````` "),
        ("", "~" * 50_000 + "\n"),  # the closing mark was compiled as a regular expression
    ],
)
def test_time_is_linear_in_length(before: str, piece: str) -> None:
    start = time.process_time()
    read_markdown(before + piece * (100_000 // len(piece)) + "x")
    assert time.process_time() - start < 2


def test_thousands_of_comments_on_one_line_are_skipped(tmp_path: Path) -> None:
    document = read(tmp_path, "a.md", "<!--a-->" * 490 + "Text.\n")
    assert shown(document) == [("sentence", "Text.")]


@pytest.mark.parametrize(
    ("row", "cells"),
    [
        ("a`b|c`d | e", ["ab|cd", "e"]),
        ("`a | b", ["`a", "b"]),
        ("``a`b|c``d | e", ["a`b|cd", "e"]),
        ("```a|b``c|d", ["```a|b``c", "d"]),
        (r"a\|b|c", ["a|b", "c"]),
        ("````|a", ["````", "a"]),
        ("||a||", ["a"]),
    ],
)
def test_bars_in_code_do_not_separate_cells(row: str, cells: list[str]) -> None:
    content = read_markdown(f"a|b\n-|-\n{row}\n")
    assert [content.text[block.start : block.end] for block in content.blocks][2:] == cells


@pytest.mark.parametrize(
    ("source", "kinds"),
    [
        (
            '!!! note "Read all of this first"\n    It is short.\n\nEnd.',
            ["Read all of this first", "It is short.", "End."],
        ),
        ("??? tip\n\n    It is short.\n\n    ```\n    x\n    ```\n", ["It is short.", "x"]),
        (
            '=== "Linux"\n\n    Use apt.\n\n=== "macOS"\n\n    Use brew.\n',
            ["Use apt.", "Use brew."],
        ),
        (":::warning\n\nIt is hot.\n\n:::\n", ["It is hot."]),
        ("::: tip Mind the open door\nIt is hot.\n:::\n", ["Mind the open door", "It is hot."]),
        ("/// note | Mind the open door\nIt is hot.\n///\n", ["Mind the open door", "It is hot."]),
        ("> [!NOTE]\n> It is hot.\n", ["It is hot."]),
        ('--8<-- "a.md"\n{! a.md !}\n{% include "a.md" %}\n{{< youtube x >}}\nText.', ["Text."]),
        ("{{% note %}}\nIt is hot.\n{{% /note %}}\n", ["It is hot."]),
        ("{{< highlight go >}}\nx := 1\n{{< /highlight >}}\nText.", ["x := 1", "Text."]),
        ("# Top {#top}\n\nText{: .lead } here.\n{: .fs-6 }\n", ["Top", "Text here."]),
        ('# Top { id="a" }\n\n[It](a.md){ .button } is hot.', ["Top", "It is hot."]),
        ("# Top {/* #top */}\n\nText.", ["Top", "Text."]),
        ("import Tabs from '@theme/Tabs';\nimport './a.css';\n\nText.", ["Text."]),
        ("export const A = () => (\n  <div>\n    no\n  </div>\n);\n\nText.", ["Text."]),
        ("import your data from the old index.", ["import your data from the old index."]),
        ("<Tabs groupId={x} items={['a']}>\n<Tab>\n\nText.\n\n</Tab>\n</Tabs>", ["Text."]),
        ("[![Build](a.svg)](http://x.org) ![Logo](b.png)\n\nText.", ["Text."]),
        ("- [Install](install.md)\n- [Use](#use)\n\nText.", ["Text."]),
        ("- [Svelte](https://svelte.dev)\n", ["Svelte"]),
        ("- [Install](install.md) explains it.", ["Install explains it."]),
        ("See [the guide].\n\n[the guide]: guide.md", ["See the guide."]),
        ("An [aside] stays.", ["An [aside] stays."]),
        ("[TOC]\n\nText.\n\n*[HTML]: Hypertext\n", ["Text."]),
        (":material-check: Done :tada: at 10:30:45.", ["Done  at 10:30:45."]),
        ("Term\n: Its meaning.\n: Another.\n", ["Term: Its meaning.", "Another."]),
        ("**Term**\n\n:   Its meaning\n    goes on.\n", ["Term: Its meaning\ngoes on."]),
        ("Why is it so?\n: Because.\n", ["Why is it so?", "Because."]),
    ],
)
def test_what_sites_add_to_markdown(tmp_path: Path, source: str, kinds: list[str]) -> None:
    document = read(tmp_path, "a.md", source)
    blocks = [document.text[block.start : block.end].strip() for block in document.blocks]
    assert [text for text in blocks if text] == kinds
    check(document)


def test_items_and_questions_have_their_context(tmp_path: Path) -> None:
    source = (
        "# FAQ\n\n**Why is it slow?**\n\nIt reads files:\n\n- all of them:\n  - big ones\n\n"
        "  and more\n- twice\n\nRun this:\n\n```\nx\n```\n\n1. Not of the code\n"
    )
    document = read(tmp_path, "a.md", source)
    found = {document.text[s.start : s.end]: s for s in iter_sentences(document)}
    assert found["Why is it slow?"].kind == "heading"
    assert found["It reads files:"].headings == ("FAQ", "Why is it slow?")
    assert found["all of them:"].lead_in == "It reads files:"
    assert found["big ones"].lead_in == "all of them:"
    assert found["twice"].lead_in == "It reads files:"
    assert (found["x"].kind, found["x"].lead_in) == ("code", "Run this:")
    assert found["Not of the code"].lead_in == ""


def test_lines_with_hard_breaks_are_sentences(tmp_path: Path) -> None:
    source = (
        "Jane Doe  \n12 Harbour *Street*  \nPort Ellis\n\n"
        "Open daily\\\nFrom nine to five\\\nShut in May\n\nA wrapped line\nof text.\n"
    )
    document = read(tmp_path, "a.md", source)
    assert [text for _, text in shown(document)] == [
        *("Jane Doe", "12 Harbour Street", "Port Ellis"),
        *("Open daily", "From nine to five", "Shut in May"),
        "A wrapped line\nof text.",
    ]
    check(document)
