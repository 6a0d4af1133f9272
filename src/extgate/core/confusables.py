"""Letters that look like others: a skeleton under which look-alike names are equal.

A small cut of Unicode's confusables (UTS 39, revision 32): the Cyrillic, Greek, Armenian, Cherokee and full-width
look-alikes of Latin letters and digits, which are what names of tools are forged with.
"""

from __future__ import annotations

import unicodedata

_PAIRS = (
    "аaеeоoрpсcхxуyіiјjѕsһhԁdԛqԝwɡgνvοoαaρpιiκkτtυuχxγyωwηnѵvАAВBЕEКKМMНHОOРPСCТTХXУYІIЈJЅSΑAΒBΕEΖZΗHΙIΚKΜMΝNΟOΡPΤTΥYΧX"
    "օoսuհhոnցgզqԼLՏSᎪAᏴBᏟCᎠDᎬEᏀGᎻHᎥiᎫJᏦKᏞLᎷMᏢPᎡRᏚSᎢTᏙVᎳWᏃZ‐-‑-‒-–-—-−-․.∕/⁄/˗-ꞏ.ꓮAꓐBꓚCꓓDꓰEꓝFꓖGꓧHꓲIꓙJꓗKꓡLꓟMꓠNꓳOꓑPꓣRꓢSꓔTꓴUꓦVꓪWꓫXꓬYꓜZ"
)
_TABLE = {ord(_PAIRS[i]): _PAIRS[i + 1] for i in range(0, len(_PAIRS), 2)}
_SAME = str.maketrans({"0": "o", "1": "l", "i": "l", "|": "l"})


def skeleton(name: str) -> str:
    """The name with look-alikes made equal: two names that a reader could confuse have one skeleton.

    Case, width and accents are folded; `0` and `o`, `1`, `i`, `l` and `|` are one.
    """
    text = unicodedata.normalize("NFKD", name.strip().translate(_TABLE))
    text = "".join(c for c in text if not unicodedata.combining(c) and unicodedata.category(c) != "Cf")
    return text.translate(_TABLE).casefold().translate(_SAME)
