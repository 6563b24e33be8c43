"""Changes to a JSON text that leave every other byte alone."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidestage.agents.claude_code.json_text import (
    NotJson,
    insert,
    read_root,
    remove,
)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{}", '{\n  "k": [\n    1\n  ]\n}'),
        ("{}\n", '{\n  "k": [\n    1\n  ]\n}\n'),
        ('{"a": 1}', '{"a": 1, "k": [1]}'),
        ('{\n  "a": 1\n}\n', '{\n  "a": 1,\n  "k": [\n    1\n  ]\n}\n'),
        ('{\n\t"a": 1\n}', '{\n\t"a": 1,\n\t"k": [\n\t\t1\n\t]\n}'),
        (
            '{\r\n    "a": 1\r\n}',
            '{\r\n    "a": 1,\r\n    "k": [\r\n        1\r\n    ]\r\n}',
        ),
    ],
)
def test_what_is_put_in_is_written_in_the_texts_own_style(
    text: str, expected: str
) -> None:
    assert insert(text, read_root(text), [1], key="k") == expected


@given(
    st.dictionaries(st.text(max_size=5), VALUES, max_size=4),
    st.sampled_from([None, 1, 2, "\t"]),
    VALUES,
)
def test_what_was_put_in_and_taken_out_leaves_every_byte(
    values: dict[str, Any], indent: int | str | None, value: Any
) -> None:
    values.pop("ours", None)
    text = json.dumps(values, indent=indent, ensure_ascii=False)
    longer = insert(text, read_root(text), value, key="ours")
    assert json.loads(longer) == values | {"ours": value}
    root = read_root(longer)
    ours = root.find("ours")
    assert ours is not None
    assert remove(longer, root, ours) == text


def test_of_two_alike_keys_the_last_counts() -> None:
    text = '{"a": 1, "a": 2}'
    found = read_root(text).find("a")
    assert found is not None
    assert text[found.value_start : found.end] == "2"


@pytest.mark.parametrize("key", ["a", "b", "c"])
def test_any_member_can_be_taken_out(key: str) -> None:
    text = '{ "a": 1, "b": [2, {}], "c": "}" }'
    root = read_root(text)
    item = root.find(key)
    assert item is not None
    left = json.loads(text)
    del left[key]
    assert json.loads(remove(text, root, item)) == left


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 1),
        ("[]", 1),
        ("5", 1),
        ('{\n  "a": 1,\n}', 3),
        ('{\n  // a comment\n  "a": 1\n}', 2),
        ('{\n  "a": 1\n', 3),
        ("[" * 100_000, 1),
    ],
)
def test_what_is_no_object_is_refused_with_its_line(text: str, line: int) -> None:
    with pytest.raises(NotJson) as raised:
        read_root(text)
    assert raised.value.line == line
