"""Files as an index stores them: columns and passages say the same as the document itself."""

from __future__ import annotations

from array import array
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from askline.corpus.passages import indexed_passages
from askline.text.readers import prepare_file, read_content
from askline.text.readers.kinds import SENTENCE_KINDS
from askline.text.readers.offsets import Segments
from askline.text.readers.sentence_blocks import (
    SentenceBlocks,
    SentenceColumns,
    SentenceRecord,
    unpack_block,
)

PAGES = {
    "a.md": "# Lamp\n\nThe *lamp* was lit. It burns:\n\n- oil\n- gas &amp; `max_retry`\n\n"
    "| Fuel | Year |\n|---|---|\n| oil | 1698 |\n\n## Été\n\n```\nx = 1\n```\n\nIt is out.\n",
    "b.html": "<title>T</title><h1>A</h1><p>One <b>two</b>. Three &eacute; four.</p>"
    "<table><tr><th>a<th>b<tr><td>1<td>2</table><pre>code</pre>",
    "c.txt": "Title\n=====\n\nThe lamp was lit. It burns.\r\nDr. No came.\n\n1. One\n2. Two\n",
    "d.csv": "id,title,text\n1,Un été,Text of one. More.\n2,Two,Text\n",
    "e.jsonl": '{"id": "\\ud800", "text": "A \\ud800 line."}\n{"title": "\\udfff", "text": "B."}\n',
}


def test_columns_and_passages_say_the_same_as_the_document(tmp_path: Path) -> None:
    for name, text in PAGES.items():
        path = tmp_path / name
        path.write_bytes(text.encode())
        document, sentences = read_content(path)
        prepared = prepare_file(document, sentences)
        spans = list(sentences)
        assert len(prepared.sentences) == len(spans) > 0
        for at, (record, span) in enumerate(zip(prepared.sentences, spans, strict=True)):
            assert record.ordinal == at
            assert (record.start, record.end) == document.span(span.start, span.end)
            assert record.number == document.place(span.start).number
            assert SENTENCE_KINDS[record.kind] == span.kind
            assert len(record.heading) == len(span.heading)
            assert record.headings == tuple(each.replace("\udfff", "?") for each in span.headings)
            assert record.lead_in == span.lead_in
            if span.kind not in ("row", "columns"):
                original = document.text[span.start : span.end]
                assert record.text == original.replace("\ud800", "?")
        found = [
            (first, last, words.split(), titles)
            for first, last, words, titles in prepared.passages.passages()
        ]
        again = indexed_passages(prepared.title, prepared.sentences)
        assert found == [(first, last, words.split(), own) for first, last, words, own in again]
        assert [row.row for row in prepared.rows] == [part.row for part in document.parts]


def test_text_before_the_first_line_is_in_line_1(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("One line.\n\nTwo lines.\n\nThree lines.", "utf-8")
    document, sentences = read_content(path)
    for starts, numbers in (((), [1, 1, 1]), ((5, 23), [1, 1, 2]), ((0, 11, 23), [1, 2, 3])):
        found = prepare_file(replace(document, starts=array("I", starts)), sentences).sentences
        assert [record.number for record in found] == numbers


def test_columns_of_records_give_the_records_back(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text(PAGES["a.md"], "utf-8")
    records = list(prepare_file(*read_content(path)).sentences)
    assert list(SentenceColumns.of(records)) == records
    assert list(SentenceColumns.of([])) == []


@given(
    st.lists(
        st.builds(
            SentenceRecord,
            st.just(0),
            *(st.integers(0, 2**32 - 1),) * 3,
            st.integers(0, len(SENTENCE_KINDS) - 1),
            st.sampled_from(["", "A", "Été"]),
            st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
            st.sampled_from(["", "A\nB"]),
            st.sampled_from(["", "See:"]),
        ),
        max_size=8,
    ),
    st.integers(0, 700),
    st.integers(0, 700),
)
def test_blocks_give_the_records_back(some: list[SentenceRecord], first: int, length: int) -> None:
    records = [each._replace(ordinal=at) for at, each in enumerate(some * 80)]
    blocks = SentenceBlocks.of(iter(records))
    assert len(blocks) == len(records)
    assert list(blocks) == records
    wanted = [
        record
        for block_first, block in zip(blocks.firsts, blocks.blocks, strict=True)
        for record in unpack_block(block, block_first, first, first + length)
    ]
    assert wanted == records[first : first + length + 1]


def test_blocks_are_of_some_thousand_characters() -> None:
    texts = ["x" * 100] * 500 + ["y"] * 600 + ["z" * 50_000] * 2
    records = [SentenceRecord(at, 0, 0, 1, 0, "", text) for at, text in enumerate(texts)]
    blocks = SentenceBlocks.of(records)
    assert list(blocks) == records
    assert max(map(len, blocks.blocks[:-2])) < 15_000
    assert len(blocks.blocks) < 15


@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(0, 3), st.integers(0, 5)), max_size=20),
    st.lists(st.integers(0, 60), min_size=2, max_size=20, unique=True),
)
def test_spans_of_many_parts_are_those_of_each(
    pieces: list[tuple[int, int, int]], cuts: list[int]
) -> None:
    segments, at = Segments(), 0
    for length, gap, span in pieces:
        segments.add(length, at + gap, at + gap + span)
        at += gap + span
    bounds = sorted(cuts)
    starts, ends = bounds[:-1], bounds[1:]
    expected = [segments.span(start, end) for start, end in zip(starts, ends, strict=True)]
    assert list(zip(*segments.spans(starts, ends), strict=True)) == expected
