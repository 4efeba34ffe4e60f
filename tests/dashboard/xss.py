"""Hostile texts: a thousand that call `hit()` where a page takes them for anything but text."""

from __future__ import annotations

from itertools import islice, product
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# What leads out of where a text may stand: an attribute, a tag, a comment, a script, a title.
_OUT_OF = (
    *("", '"', "'", '">', "'>", "`>", "</p>", "</a>", "-->", "]]>", "</pre>", "</code>", "</td>"),
    *(
        "</title>",
        "</style>",
        "</script>",
        "</textarea>",
        "<!--",
        '" ',
        "' ",
        "/>",
        "\\",
        "{{",
        "}}",
    ),
    *("%22>", "&quot;>", "&#34;>", "\x0c", "\n", "\u2028", "</svg>", "</math>", "</select>", "<"),
)
_CALLS = (
    *("<script>hit()</script>", "<ScRiPt>hit()</sCrIpT>", "<script/x>hit()</script>"),
    *("<img src=x onerror=hit()>", "<img/src/onerror=hit()>", "<svg onload=hit()>"),
    *("<svg/onload=hit()//", "<body onload=hit()>", "<input autofocus onfocus=hit()>"),
    *("<details open ontoggle=hit()>", "<video src onerror=hit()>", "<a href=javascript:hit()>"),
    *("<iframe src=javascript:hit()>", "<iframe srcdoc='<b>'>", "<object data=javascript:hit()>"),
    *("<form action=javascript:hit()><button>", "<base href=//evil>", "onmouseover=hit() x="),
    *("autofocus onfocus=hit() x=", "javascript:hit()", "<b hx-on:load=hit()>", "<b hx-get=/x>"),
    *("<b data-hx-on:load='hit()'>", "<math><mi xlink:href=javascript:hit()>", "{{hit()}}"),
    *(
        "{% include 'x' %}",
        "${hit()}",
        "<style>*{background:red}</style>",
        "<meta http-equiv=refresh>",
    ),
    *("<link rel=stylesheet href=//evil>", "<template><b onclick=hit()>", "\u202ehit()\u202c"),
)
LONGEST = 48
COUNT = 1000


def _made() -> Iterator[str]:
    for out_of, call in product(_OUT_OF, _CALLS):
        text = f"{out_of}{call}"
        if len(text) <= LONGEST:
            yield text


VARIANTS: tuple[str, ...] = tuple(islice(dict.fromkeys(_made()), COUNT))
