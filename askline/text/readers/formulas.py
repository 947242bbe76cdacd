"""
Formulas of TeX as plain text: `2^{22} \\ge N` is shown as `2^22 ≥ N`.

Symbols that are commands become characters, fractions become quotients, and braces, fonts and
spacing commands are left out. A formula is never evaluated or laid out.
"""

from __future__ import annotations

import re

__all__ = [
    "plain_formula",
]

_TOKEN = re.compile(r"\\(?P<name>[A-Za-z]+)\s*|\\(?P<symbol>.)|[{}]|\s+|&", re.DOTALL)
_GREEK = dict(
    zip(
        """alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho
        sigma tau upsilon phi chi psi omega""".split(),
        "αβγδεζηθικλμνξοπρστυφχψω",
        strict=True,
    )
)
_SYMBOLS = {
    **_GREEK,
    **{name.capitalize(): letter.upper() for name, letter in _GREEK.items()},
    "varepsilon": "ε", "vartheta": "θ", "varphi": "φ", "cdot": "·", "times": "×", "div": "÷",
    "pm": "±", "mp": "∓", "ge": "≥", "geq": "≥", "le": "≤", "leq": "≤", "ne": "≠", "neq": "≠",
    "ll": "≪", "gg": "≫", "approx": "≈", "sim": "~", "simeq": "≃", "equiv": "≡", "propto": "∝",
    "infty": "∞", "partial": "∂", "nabla": "∇", "sum": "∑", "prod": "∏", "int": "∫", "sqrt": "√",
    "in": "∈", "notin": "∉", "subset": "⊂", "cup": "∪", "cap": "∩", "forall": "∀", "exists": "∃",
    "to": "→", "rightarrow": "→", "leftarrow": "←", "Rightarrow": "⇒", "mapsto": "↦", "odot": "⊙",
    "circ": "°", "prime": "′", "ldots": "…", "dots": "…", "cdots": "…", "degree": "°", "star": "*",
    "ast": "*", "langle": "⟨", "rangle": "⟩", "mid": "|", "vert": "|", "quad": " ", "qquad": " ",
    "land": "∧", "lor": "∨", "neg": "¬", "ell": "ℓ", "hbar": "ħ", "lt": "<", "gt": ">",
}  # fmt: skip
_LEFT_OUT = frozenset(
    """rm bf it sf tt cal mathrm mathbf mathit mathsf mathtt mathcal mathbb text textrm textit
    textbf textsf texttt mbox operatorname left right big Big bigg Bigg displaystyle textstyle
    limits boldsymbol bm hat bar vec tilde overline underline mathring ensuremath""".split()
)
_FRACTIONS = frozenset(("frac", "dfrac", "tfrac", "cfrac"))
_SPACES = frozenset(",;: >")
_SHOWN = frozenset("{}%$#&_|")


def plain_formula(formula: str) -> str:
    """The formula as text. The time is linear in its length."""
    shown: list[str] = []
    groups: list[str] = []  # what is shown behind each closing brace
    position = 0
    waiting = 0  # arguments of a fraction that are still to come
    for token in _TOKEN.finditer(formula):
        shown.append(formula[position : token.start()])
        position = token.end()
        name, symbol = token["name"], token["symbol"]
        if name is not None:
            if name in _FRACTIONS:
                waiting = 1
            elif name not in _LEFT_OUT:
                shown.append(_SYMBOLS.get(name) or f"{name} ")
                if name in _SYMBOLS and token[0][-1].isspace():
                    shown.append(" ")
        elif symbol is not None:
            shown.append(symbol if symbol in _SHOWN else " " if symbol in _SPACES else "")
        elif token[0] == "{":
            groups.append("/" if waiting else "")
            waiting = 0
        elif token[0] == "}":
            shown.append(groups.pop() if groups else "")
        else:
            shown.append(" ")
    shown.append(formula[position:])
    return " ".join("".join(shown).replace("...", "…").split())
