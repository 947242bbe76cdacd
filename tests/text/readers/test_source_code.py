from __future__ import annotations

from pathlib import Path

import pytest

from askline.text.readers import iter_sentences
from askline.text.readers.file_kinds import LANGUAGES

from .samples import check, originals, read, refusal, shown

PYTHON = '''#!/usr/bin/env python3
# Copyright 2024 The keepers. All rights reserved.
"""
The lamp of the tower.

It is lit at dusk::

    lamp.light()

and put out at dawn.
"""

import os  # noqa: F401

# The shutter is opened before
# the lamp is lit.
SHUTTER = "# no comment"


class Lamp:
    """A lamp that burns oil."""

    # Seconds for one turn.
    turn = 10

    def light(self, keeper: str) -> None:
        """
        Light the lamp.

        :param keeper: Who lights it.
        :type keeper: str
        >>> Lamp().light("Ann")
        True
        """
        print("""not a docstring""")
        text = (
            "also none"
        )
        # x = 1
        return text


# It is wound every morning.
def wind(clock):
    r\'\'\'Wind the ``clock`` of :class:`Tower`.\'\'\'


# The end of the module.
'''


def found(folder: Path, name: str, source: str) -> list[tuple[str, str]]:
    """The heading and text of each sentence."""
    document = read(folder, name, source)
    check(document)
    return [
        (sentence.heading, document.text[sentence.start : sentence.end])
        for sentence in iter_sentences(document)
        if sentence.kind != "heading"
    ]


def test_python_comments_and_docstrings(tmp_path: Path) -> None:
    assert found(tmp_path, "a.py", PYTHON) == [
        ("", "The lamp of the tower."),
        ("", "It is lit at dusk:"),
        ("", "and put out at dawn."),
        ("", "The shutter is opened before the lamp is lit."),
        ("Lamp", "A lamp that burns oil."),
        ("Lamp", "Seconds for one turn."),
        ("Lamp.light", "Light the lamp."),
        ("Lamp.light", "keeper: Who lights it."),
        ("wind", "It is wound every morning."),
        ("wind", "Wind the clock of Tower."),
        ("Module", "The end of the module."),
    ]


def test_slices_of_comments(tmp_path: Path) -> None:
    document = read(tmp_path, "a.py", PYTHON)
    slices = dict(zip([text for _, text in shown(document)], originals(document), strict=True))
    assert slices["The lamp of the tower."] == "The lamp of the tower."
    assert slices["Lamp"] == "Lamp"
    assert slices["The shutter is opened before the lamp is lit."] == (
        "The shutter is opened before\n# the lamp is lit."
    )
    assert str(document.place(document.text.index("A lamp that"))) == "line 21"


JAVASCRIPT = """/**
 * Reads the <b>lamp</b> of {@code tower}.
 *
 * @param {string} name - The name of the lamp.
 * @returns {number} the power in watts
 * @author Ann
 * @example
 * read("x");
 */
export async function readLamp(name) {
  // Two lamps are an error.
  const s = 'it is // no comment';
  const t = `also /* none */ ${x}`;
  const url = http://example.org/x;
}
// const old = readLamp("y");
/** The highest number of keepers. */
const MAX_KEEPERS = 3;

// eslint-disable-next-line no-console
class Tower {
  /** Opens the shutter. */
  openShutter() {}
}
"""
RUST = """//! The crate of lamps.

/// A lamp with `power`.
///
/// ```
/// let lamp = Lamp::new();
/// ```
pub struct Lamp<'a> {
    /// Power in watts.
    pub power: u32,
}
impl<'a> Lamp<'a> {
    /// Turns the lamp on.
    #[inline]
    pub fn turn_on(&self) { let s = r#"a "quoted" // no"#; let c = '"'; }
}
"""
GO = """// Copyright 2009 The Authors.
// Use of this source code is governed by a license.

// Package lamp implements the lamp.
package lamp

// Light lights the lamp.
func (l *Lamp) Light() error { return nil }
"""
JAVA = """package a;
/** The lamp of a tower. */
@Deprecated
public class Lamp {
    /** Number of turns. */
    private final Map<String, Integer> turns = null;
    /* Lights it. */
    public void light(String s) { call(); }
}
"""
SQL = """-- The table of keepers.
CREATE TABLE IF NOT EXISTS keepers (
  id INT, -- the number on the badge
  name TEXT DEFAULT '-- none'
);
/* Every night has
   one keeper. */
CREATE VIEW nights AS SELECT 1;
"""
SHELL = """#!/bin/bash
# Lights the lamp when it is dark.
light() { echo "# none" ${x#y}; } # don't use twice
# Puts it out again.
function out { echo 'it''s'; }
"""
LUA = """--[[ The module of
 the lamp. ]]

-- Lights the lamp slowly.
function Lamp.light() end
"""
HASKELL = """{- | The module of the lamp. -}
module Lamp where
-- | Lights the lamp at dusk.
light :: Int -> Int
light x = x --> 1
"""
RUBY = """=begin
The module of the lamp.
=end
# Lights the lamp at dusk.
def light
  "#{x} # none"
end
"""
R = """#' Lights the lamp at dusk.
#' @param x The number of lamps.
light.lamp <- function(x) x
"""
PERL = """=head1 Lamp tools

They light the lamp.

=cut

# Lights the lamp.
sub light { my $x = "#no"; }
"""
PHP = """<p>It's a page</p>
<?php
# Lights the lamp at dusk.
function light($x) { return '// none'; } // until dawn comes
"""


@pytest.mark.parametrize(
    ("name", "source", "expected"),
    [
        (
            "a.ts",
            JAVASCRIPT,
            [
                ("readLamp", "Reads the lamp of tower."),
                ("readLamp", "name - The name of the lamp."),
                ("readLamp", "the power in watts"),
                ("readLamp", "Two lamps are an error."),
                ("MAX_KEEPERS", "The highest number of keepers."),
                ("openShutter", "Opens the shutter."),
            ],
        ),
        (
            "a.rs",
            RUST,
            [
                ("", "The crate of lamps."),
                ("Lamp", "A lamp with power."),
                ("power", "Power in watts."),
                ("turn_on", "Turns the lamp on."),
            ],
        ),
        (
            "a.go",
            GO,
            [("lamp", "Package lamp implements the lamp."), ("Light", "Light lights the lamp.")],
        ),
        (
            "A.java",
            JAVA,
            [
                ("Lamp", "The lamp of a tower."),
                ("turns", "Number of turns."),
                ("turns", "Lights it."),
            ],
        ),
        (
            "a.sql",
            SQL,
            [
                ("keepers", "The table of keepers."),
                ("keepers", "the number on the badge"),
                ("nights", "Every night has one keeper."),
            ],
        ),
        (
            "a.sh",
            SHELL,
            [
                ("light", "Lights the lamp when it is dark."),
                ("light", "don't use twice"),
                ("out", "Puts it out again."),
            ],
        ),
        (
            "a.lua",
            LUA,
            [("", "The module of the lamp."), ("Lamp.light", "Lights the lamp slowly.")],
        ),
        (
            "a.hs",
            HASKELL,
            [("Lamp", "The module of the lamp."), ("light", "Lights the lamp at dusk.")],
        ),
        ("a.rb", RUBY, [("", "The module of the lamp."), ("light", "Lights the lamp at dusk.")]),
        (
            "a.R",
            R,
            [("light.lamp", "Lights the lamp at dusk."), ("light.lamp", "x The number of lamps.")],
        ),
        (
            "a.pl",
            PERL,
            [("", "Lamp tools"), ("", "They light the lamp."), ("light", "Lights the lamp.")],
        ),
        (
            "a.php",
            PHP,
            [("light", "Lights the lamp at dusk."), ("light", "until dawn comes")],
        ),
        (
            "a.ml",
            '(** Lights the lamp. *)\nlet light lamp = "(* no comment *)" ^ lamp\n',
            [("light", "Lights the lamp.")],
        ),
    ],
)
def test_comments_of_other_languages(
    tmp_path: Path, name: str, source: str, expected: list[tuple[str, str]]
) -> None:
    assert found(tmp_path, name, source) == expected


@pytest.mark.parametrize("suffix", LANGUAGES)
def test_code_is_never_a_candidate(tmp_path: Path, suffix: str) -> None:
    source = 'x = call(1, "words in a string")\nif x == 2 { return y }\n'
    assert "It has no comments with text" in refusal(tmp_path, f"a.{suffix}", source)


def test_a_file_without_comments_is_empty_and_not_damaged(tmp_path: Path) -> None:
    from askline.errors import DataError
    from askline.text.readers import read_document

    (tmp_path / "a.py").write_text("x = 1\n")
    with pytest.raises(DataError) as info:
        read_document(tmp_path / "a.py")
    assert info.value.problems[0].reason == "empty"


def test_docstrings_of_other_styles(tmp_path: Path) -> None:
    source = '''def f(x, y):
    """
    Light the lamp in a line that goes
    on.

    Parameters
    ----------
    x : int
        The number of lamps, or
        0.
    y : str
        The name of the keeper.

    Args:
        x (int): The number again.
        y: The name again.

    .. versionadded:: 1.2
    - A list item here.
    """
'''
    assert [text for _, text in found(tmp_path, "a.py", source)] == [
        "Light the lamp in a line that goes on.",
        "x : int The number of lamps, or 0.",
        "y : str The name of the keeper.",
        "x (int): The number again.",
        "y: The name again.",
        "A list item here.",
    ]


def test_prose_in_comments_is_no_code(tmp_path: Path) -> None:
    source = """/**
 * Uses the lamp of the {@link Tower}
 * and what \\p name says; it is
 * an old one.
 */
void LAMP_API(int) light(int x);
// executableFile
// a/b/c.js
"""
    assert found(tmp_path, "a.h", source) == [
        ("light", "Uses the lamp of the Tower and what name says; it is an old one.")
    ]


def test_windows_line_ends(tmp_path: Path) -> None:
    source = "// One word\r\n// and two.\r\nfunction f() {}\r\n"
    assert found(tmp_path, "a.js", source) == [("f", "One word and two.")]
    doc = 'def f():\r\n    """\r\n    One.\r\n\r\n    Two words.\r\n    """\r\n'
    assert found(tmp_path, "a.py", doc) == [("f", "Two words.")]


def test_a_parameter_may_have_spaces_before_its_colon(tmp_path: Path) -> None:
    source = "/**\n * lamp : int\n *   The first one.\n * oil   :  int\n *   Its oil.\n */\n"
    assert [text for _, text in found(tmp_path, "a.js", source)] == [
        "lamp : int The first one.",
        "oil   :  int Its oil.",
    ]


def test_a_sentence_goes_on_behind_a_tag_a_number_and_an_admonition(tmp_path: Path) -> None:
    source = """def f():
    \"\"\"
    It makes a text, inserting
    <text:tab> elements for tabs. It takes at most 5 or
    10. Then it stops.

    .. warning:: The lamp **may**
                 be hot.
    <text:tab>
    \"\"\"
"""
    assert [text for _, text in found(tmp_path, "a.py", source)] == [
        "It makes a text, inserting <text:tab> elements for tabs.",
        "It takes at most 5 or 10.",
        "Then it stops.",
        "The lamp may be hot.",
    ]


def test_an_example_of_jsdoc_ends_with_the_next_tag(tmp_path: Path) -> None:
    source = """/**
 * Light the lamp.
 * @example
 * var lamp = tower.find('the first one'),
 *     oil = lamp.oil;
 * lamp.light and wait for it
 * @return the lamp itself
 */
"""
    assert [text for _, text in found(tmp_path, "a.js", source)] == [
        "Light the lamp.",
        "the lamp itself",
    ]


def test_formulas_and_names_of_tags_in_comments(tmp_path: Path) -> None:
    source = "# It is :math:`2^{b} \\ge N` or $x_{i}$, costs $5 and ends <b>here</b> (<br/>).\n"
    assert [text for _, text in found(tmp_path, "a.py", source)] == [
        "It is 2^b ≥ N or x_i, costs $5 and ends here (<br/>)."
    ]
