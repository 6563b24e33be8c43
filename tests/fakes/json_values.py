"""JSON as nobody meant it: any value, and good messages with one field gone wrong."""

from copy import deepcopy
from typing import Any

from hypothesis import strategies as st

TEXTS = st.text(max_size=20)
NUMBERS = st.one_of(st.integers(), st.integers(-1, 600), st.floats())
SCALARS = st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(TEXTS, inner, max_size=4)
    ),
    max_leaves=8,
)
"""Any JSON value; texts hold zeros and signs of every plane."""


@st.composite
def damaged(draw: st.DrawFn, good: dict[str, Any]) -> dict[str, Any]:
    """Return *good* with one field, however deep it lies, missing or of any value."""
    value = deepcopy(good)
    fields = value
    while True:
        name = draw(st.sampled_from(sorted(fields)))
        inner = fields[name]
        if not (isinstance(inner, dict) and inner and draw(st.booleans())):
            break
        fields = inner
    if draw(st.booleans()):
        del fields[name]
    else:
        fields[name] = draw(VALUES)
    return value
