from __future__ import annotations

import time
from pathlib import Path

import pytest

from askline.text.readers import iter_sentences
from askline.text.readers.latex import read_latex

from .samples import check, originals, read, shown

PAGE = r"""\documentclass{article}
\usepackage[utf8]{inputenc}
\newcommand{\foo}[1]{Not text. #1}
\title{On \emph{lamps}}
\author{Jane}
\begin{document}
\maketitle
\section[Short]{Part \textbf{one}}\label{sec:one}
% A comment. Not text.
Lead \emph{text} with 5\,\% of $x^2$, see~\cite{a,b}
and \href{http://example.org}{a link}. Two.

New paragraph % hidden
goes on.
\begin{equation}
  a = b
\end{equation}
\begin{itemize}
  \item item one
    goes on
  \item second
\end{itemize}
\begin{description}
  \item[retries] How often it
    is tried. The default is 3.
\end{description}
\begin{verbatim}
x = 1.  % Not a sentence.
\end{verbatim}
\begin{lstlisting}[language=C]
y = 2;
\end{lstlisting}
\begin{tabular}{ll}
  Name & Value \\
  \hline
  a & one \\
  b & two \\
\end{tabular}
End.
\end{document}
Not read.
"""


def test_every_block_is_separate(tmp_path: Path) -> None:
    document = read(tmp_path, "a.tex", PAGE)
    assert (document.kind, document.title) == ("latex", "On lamps")
    found = [(kind, " ".join(text.split())) for kind, text in shown(document)]
    assert found == [
        ("heading", "Part one"),
        ("sentence", "Lead text with 5 % of x^2, see and a link."),
        ("sentence", "Two."),
        ("sentence", "New paragraph goes on."),
        ("sentence", "item one goes on"),
        ("sentence", "second"),
        ("sentence", "retries: How often it is tried."),
        ("sentence", "The default is 3."),
        ("code", "x = 1. % Not a sentence."),
        ("code", "y = 2;"),
        ("columns", "Name Value"),
        ("row", "a one"),
        ("row", "b two"),
        ("sentence", "End."),
    ]
    assert {s.heading for s in iter_sentences(document)} >= {"", "Part one"}
    check(document)


def test_offsets_slice_the_source_including_commands(tmp_path: Path) -> None:
    found = originals(read(tmp_path, "a.tex", PAGE))
    assert found[0] == r"Part \textbf{one"
    assert found[1].startswith(r"Lead \emph{text} with 5\,\% of $x^2$, see~\cite{a,b}")
    assert found[6] == "retries] How often it\n    is tried."


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (r"caf\'e na\"{\i}ve \c{c}a \~n", "café naïve ça ñ"),
        ("``quoted'' -- and --- so\\ldots", "“quoted” – and — so…"),
        (r"\textcolor{red}{Red} \unknown{kept} \verb|a_b|", "Red kept a_b"),
        (r"A\footnote{The note.} word", "A (The note.) word"),
        (r"\[ a = b \] $$c$$ text", "text"),
        (r"It is \[ a = b. \] Next $$c$$ one.", "It is . Next one."),
        (r"It has $2^{22}$ B, so \(b \ge \log_2 N\).", "It has 2^22 B, so b ≥ log _2 N."),
        (r"\newcommand{\mus}{$\mu$s}It takes 25 \mus here.", "It takes 25 μs here."),
        (r"\begin{spacing}{1.5}Text.\end{spacing}", "Text."),
        (r"50\% \& \$3 \_ \{x\}", "50% & $3 _ {x}"),
        ("a\n\nb", "a\nb"),
        (r"\begin{figure}[h]\includegraphics[w=1]{a}\caption{A lamp.}\end{figure}", "A lamp."),
        (r"\section{open", "open"),
        (r"See Section~\ref{sec:lamp}, \cite{a}.", "See Section lamp, ."),
        ("", ""),
    ],
)
def test_latex_syntax(source: str, text: str) -> None:
    content = read_latex(source)
    assert "\n".join(content.text[b.start : b.end] for b in content.blocks).strip() == text


def test_spaces_after_a_command_take_linear_time() -> None:
    start = time.process_time()
    for command in ("\\begin{verbatim}", "\\title", "\\section"):
        read_latex(command + " " * 30_000 + "x")
    assert time.process_time() - start < 2
