"""
The furniture of web pages: navigation, menus, banners and footers, which are not read.

An element is furniture by its name, its role, or a class or id that common site generators use. The
names are compared as a whole: `sidebar` is furniture, and `has-sidebar` may be the whole page. The
page numbers of e-books and the numbers that refer to notes are furniture too.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

__all__ = [
    "FURNITURE_ELEMENTS",
    "is_furniture",
    "is_furniture_text",
]

FURNITURE_ELEMENTS = frozenset(
    """div nav aside header footer section ul ol dl table form button dialog details span a
    template sup""".split()
)
"""Elements that can be furniture."""
_ATTRIBUTE = re.compile(
    r"""\s(?P<name>class|id|role|aria-hidden|style|hidden|epub:type)
    (?:\s*=\s*(?: "(?P<double>[^"]*)" | '(?P<single>[^']*)' | (?P<bare>[^\s"'>]+) )
    | (?=[\s/>]))""",
    re.VERBOSE | re.IGNORECASE,
)
_ROLES = frozenset(
    """navigation search contentinfo banner menu menubar toolbar dialog alertdialog doc-pagebreak
    doc-noteref doc-backlink""".split()
)
_BOOK_TYPES = frozenset(("pagebreak", "noteref", "backlink"))  # of e-books: page and note numbers
_NAMES = frozenset(
    """nav navbar nav-bar navigation site-nav site-navigation main-nav top-nav topnav subnav
    bottomnav mobile-nav nav-logo nav-content nav-panel nav-links navheader navfooter navlinks
    navpath nav-path navlist navigator menu menu-wrapper main-menu this-page-menu searchmenu
    breadcrumb breadcrumbs wy-breadcrumbs theme-doc-breadcrumbs path-navigation navigation-bar
    sidebar side-bar sphinxsidebar sphinxsidebarwrapper wy-nav-side bd-sidebar-primary
    bd-sidebar-secondary sidebar-drawer toc-drawer md-sidebar md-nav left-sidebar right-sidebar
    toc table-of-contents tableofcontents tocwrapper section-toc toc-mobile on-this-page page-toc
    footer page-footer site-footer md-footer rst-footer theme-doc-footer printfooter footer-wrapper
    related prev-next prevnext pager pagination pagination-nav rst-footer-buttons page-nav
    md-header site-header navbar-header headerlink header-link anchor-link hash-link anchorjs-link
    heading-anchor viewcode-link mw-editsection edit-link edit-this-page theme-edit-this-page
    edit-page-link last-updated theme-last-updated skip-link skip-links skiplink skip-to-content
    skip-to-main mw-jump-link sr-only visually-hidden screen-reader-text noprint no-print catlinks
    cookie cookies cookie-banner cookie-consent cookie-notice cookie-bar gdpr consent-banner
    announcement announcement-bar newsletter share-buttons social-links social-share advertisement
    ads adsbygoogle feedback page-feedback search search-box searchbox searchform searchformwrapper
    inline-search version-switcher rst-versions copybtn copy-button toolbar tooltip-content
    comments-link copyright site-info indexdiv genindextable printindex tagline site-tagline
    site-description nosearch footnote-reference footnote-ref footnote-anchor footnote-back
    footnote-backref fn-backref reversefootnote noteref note-ref pagenum pagebreak""".split()
)
_HEADER_NAMES = frozenset(("header", "page-header", "head"))
_NOTE_NUMBERS = frozenset(("footnote", "reference"))  # classes of a superscript
_NOTE = re.compile(r"note|tip|admonition|warning|caution|danger|important|callout|alert|info", re.I)
_HEADING = re.compile(r"<h[1-6]\b", re.IGNORECASE)
_MAX_TAG_CHARACTERS = 1000
_HEADER_CHARACTERS = 5000  # of a header that are searched for a heading

_PHRASES = re.compile(
    r"""[\W_]* (?: (?:previous|prev|next|up|top|home|contents?|table\ of\ contents|toc|index|menu
        |search|close|back|forward|start|chapter|section|page|topic|first|last|copy|share|print
        |sign\ in|log\ in|subscribe|loading|permalink|navigation|module|modules|source|show\ source
        |on\ this\ page|in\ this\ (?:page|article|section)|quick\ search|general\ index)
      [\W_]* ){1,8}
    | (?:edit|improve|view|suggest\ (?:edits|changes))(?:\ (?:this|the))?
        (?:\ (?:page|source|article))(?:\ source)?(?:\ (?:on|in|at)\ [\w.-]+)?[\W_]*
    | (?:edit|view|open|star|fork)\ (?:on|in)\ \w+[\W_]* | skip\ to\ .{1,40} | back\ to\ top[\W_]*
    | (?:was\ this|did\ this)\ .{1,40}help(?:ful)?\? | report\ (?:an?|this)\ \w+[\W_]*
    | (?:this\ )?(?:page\ )?(?:was\ )?last\ (?:updated|modified|changed)\b.{0,60}
    | (?:©|copyright\b|\(c\)\ ).{0,75}
    | (?:powered|built|generated|made|designed)\ (?:by|with|using)\ [^.]{1,60}
    | all\ rights\ reserved[\W_]* | (?:we|this\ (?:web)?site)\ uses?\ cookies\b.{0,60}
    | (?:accept|reject)\ (?:all\ )?cookies[\W_]*""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)


def is_furniture(name: str, tag: str, source: str, end: int) -> bool:
    """
    Whether the element that this opening tag starts is furniture.

    `end` is the offset behind the tag in the source. A header with a heading is read.
    """
    kind = _tag_kind(name, tag) if len(tag) < _MAX_TAG_CHARACTERS else "content"
    return kind == "furniture" or (kind == "header" and not _has_heading(name, source, end))


@lru_cache(4096)  # most tags of a page are equal to others
def _tag_kind(name: str, tag: str) -> Literal["furniture", "header", "content"]:
    if name in ("nav", "footer", "button", "dialog", "template"):
        return "furniture"
    kind: Literal["furniture", "header", "content"] = "header" if name == "header" else "content"
    for found in _ATTRIBUTE.finditer(tag):
        attribute = found["name"].lower()
        value = (found["double"] or found["single"] or found["bare"] or "").lower()
        if attribute == "role":
            is_furniture = value in _ROLES
        elif attribute == "aria-hidden":
            is_furniture = value == "true" and name != "span"
        elif attribute == "style":
            is_furniture = "display:none" in value.replace(" ", "")
        elif attribute == "hidden":
            is_furniture = True
        elif attribute == "epub:type":
            is_furniture = not _BOOK_TYPES.isdisjoint(value.split())
        else:
            names = set(value.split())
            if name == "sup" and not _NOTE_NUMBERS.isdisjoint(names):
                return "furniture"
            is_furniture = not _NAMES.isdisjoint(names) or names >= {"contents", "topic"}
            if not _HEADER_NAMES.isdisjoint(names):
                kind = "header"
        if is_furniture:
            return "furniture"
    return "furniture" if name == "aside" and not _NOTE.search(tag) else kind


def is_furniture_text(text: str) -> bool:
    """Whether a short block is a label of the page, such as "Edit this page" or "Next"."""
    return bool(_PHRASES.fullmatch(text))


def _has_heading(name: str, source: str, start: int) -> bool:
    stop = source.find(f"</{name}", start, start + _HEADER_CHARACTERS)
    return bool(_HEADING.search(source, start, stop if stop >= 0 else start + _HEADER_CHARACTERS))
