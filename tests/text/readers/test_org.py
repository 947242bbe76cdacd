from __future__ import annotations

from pathlib import Path

import pytest

from askline.text.readers import iter_sentences
from askline.text.readers.org import read_org

from .samples import check, originals, read, shown

PAGE = """\
#+TITLE: The page
#+OPTIONS: toc:nil
# A comment.

Lead /text/ with *marks*, =a_b= and [[http://example.org][a link]].

* TODO [#A] Part one [1/2]                :work:home:
SCHEDULED: <2026-01-01 Thu>
:PROPERTIES:
:ID: 12
:END:
Text below
on two lines. Two.

- item one
  goes on
  + [ ] nested
- max_retries :: How often it
  is tried. The default is 3.
1. step

#+begin_src python
x = 1.  # Not a sentence.
#+end_src
: fixed. width.

| Name | Value |
|------+-------|
| a    | one   |
| b    | two   |

#+begin_quote
Quoted text.
#+end_quote
#+begin_export html
<b>Raw.</b>
#+end_export

[fn:1] The footnote.
"""


def test_every_block_is_separate(tmp_path: Path) -> None:
    document = read(tmp_path, "a.org", PAGE)
    assert (document.kind, document.title) == ("org", "The page")
    assert shown(document) == [
        ("sentence", "Lead text with marks, a_b and a link."),
        ("heading", "Part one"),
        ("sentence", "Text below on two lines."),
        ("sentence", "Two."),
        ("sentence", "item one goes on"),
        ("sentence", "nested"),
        ("sentence", "max_retries: How often it is tried."),
        ("sentence", "The default is 3."),
        ("sentence", "step"),
        ("code", "x = 1.  # Not a sentence."),
        ("code", ": fixed. width."),
        ("columns", "Name\nValue"),
        ("row", "a\none"),
        ("row", "b\ntwo"),
        ("sentence", "Quoted text."),
        ("sentence", "The footnote."),
    ]
    assert [s.heading for s in iter_sentences(document)][-1] == "Part one"
    check(document)


def test_offsets_slice_the_source_including_marks(tmp_path: Path) -> None:
    found = originals(read(tmp_path, "a.org", PAGE))
    assert found[0].startswith("Lead /text/ with *marks*, =a_b= and [[http://example.org][a link")
    assert found[6] == "max_retries :: How often it\n  is tried."
    assert found[12] == "a    | one"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (
            "[[file:a.org]] <https://x.org> at <2026-01-01 Thu>",
            "a.org https://x.org at 2026-01-01 Thu",
        ),
        ("a[fn:1] {{{version}}} <<target>>b", "a  b"),
        ("2 * 3 / 4 and snake_case", "2 * 3 / 4 and snake_case"),
        (":NOTE:\nkept text\n:END:", "kept text"),
        ("-----\n\ntext", "text"),
        ("Write *//* or https://a.b/c/.", "Write // or https://a.b/c/."),
        ("Use ~--home=~/.lamp~ or =~/.lamp=.", "Use --home=~/.lamp or ~/.lamp."),
        ("Add `lamp-mode`, not `lamp'.", "Add lamp-mode, not `lamp'."),
        ("#+begin_example\n  *$ lamp 'a*'*\n#+end_example", "$ lamp 'a*'"),
        ("- term ::", "term"),
        ("- term ::\n\n  Meaning.", "term: Meaning."),
        ("- term ::\n\nText.", "term\nText."),
        ("", ""),
    ],
)
def test_org_syntax(source: str, text: str) -> None:
    content = read_org(source)
    assert "\n".join(content.text[b.start : b.end] for b in content.blocks) == text
