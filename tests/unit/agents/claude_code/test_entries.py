from typing import Any

import pytest

from sidestage.agents.claude_code.entries import parse_order, read_entries
from sidestage.agents.claude_code.lines import Line
from sidestage.sessions.transcript import EntryKind, TranscriptEntry
from tests.fakes.agent_records import answer, line, prompt, text_block, tree_record

HEX = "0" * 32


def read(record: dict[str, Any], offset: int = 0x1F) -> tuple[TranscriptEntry, ...]:
    data = line(record)
    return read_entries(Line(offset, len(data), data[:-1]), HEX)


def user(*blocks: dict[str, Any], **fields: Any) -> dict[str, Any]:
    message = {"role": "user", "content": list(blocks)}
    return tree_record("user", 1, None, message=message, **fields)


HUMAN = {"origin": {"kind": "human"}}
IMAGE = {"type": "image", "source": {"data": "x" * 1000}}


@pytest.mark.parametrize(
    ("record", "told"),
    [
        (prompt(1, None, "hello"), [(EntryKind.PROMPT, "hello")]),
        (
            user(text_block("look"), IMAGE, **HUMAN),
            [(EntryKind.PROMPT, "look"), (EntryKind.PROMPT, "[image]")],
        ),
        (user(text_block("x"), isMeta=True), []),
        (user(text_block("s"), isCompactSummary=True), [(EntryKind.COMPACTION, "s")]),
        (user({"type": "hologram"}), [(EntryKind.OPAQUE, "")]),
        (
            user({"type": "tool_result", "content": [text_block("a"), IMAGE]}),
            [(EntryKind.TOOL_RESULT, "a\n[image]")],
        ),
        (user({"type": "tool_result"}), [(EntryKind.TOOL_RESULT, "")]),
        (
            answer(1, None, {"type": "thinking", "thinking": "hm"}, text_block("so")),
            [(EntryKind.THINKING, "hm"), (EntryKind.MESSAGE, "so")],
        ),
        (answer(1, None, {"type": "redacted_thinking"}), [(EntryKind.THINKING, "")]),
        (answer(1, None, {"type": "server_tool_use"}), [(EntryKind.TOOL_CALL, "")]),
        (answer(1, None, {"type": "hologram"}), [(EntryKind.OPAQUE, "")]),
        (answer(1, None, text_block("")), []),
        (answer(1, None, text_block("x")) | {"isSidechain": True}, []),
        (
            tree_record("system", 1, None, subtype="informational", content="note"),
            [(EntryKind.NOTICE, "note")],
        ),
        (
            tree_record(
                "system",
                1,
                None,
                subtype="local_command",
                content="<local-command-stdout>\x1b[2mok\x1b[22m</local-command-stdout>",
            ),
            [(EntryKind.COMMAND, "ok")],
        ),
        (tree_record("system", 1, None, subtype="turn_duration", content="x"), []),
        (tree_record("attachment", 1, None, attachment={"type": "date"}), []),
        ({"type": "last-prompt", "lastPrompt": "x"}, []),
        ({"type": "hologram"}, [(EntryKind.OPAQUE, "")]),
    ],
)
def test_each_record_tells_its_entries(
    record: dict[str, Any], told: list[tuple[EntryKind, str]]
) -> None:
    assert [(entry.kind, entry.text) for entry in read(record)] == told


def test_an_entry_has_a_stable_id_and_place() -> None:
    first, second = read(answer(7, None, text_block("a"), text_block("b")))
    assert first.id == f"entry:{HEX}:00000000-0000-4000-8000-000000000007:0"
    assert (first.order, second.order) == ("00000000001f.0000", "00000000001f.0001")
    assert first.order < second.order
    assert parse_order(second.order) == (0x1F, 1)
    (opaque,) = read({"type": "hologram"})
    assert opaque.id == f"entry:{HEX}:1f:0"


@pytest.mark.parametrize("order", ["", "1f.0", "00000000001g.0000", "x" * 17])
def test_what_is_no_place_is_none(order: str) -> None:
    assert parse_order(order) is None


def test_controls_never_reach_an_entry() -> None:
    (entry,) = read(prompt(1, None, "a\x1b]52;c;x\x07b\u202ec\u2028d\te\nf"))
    assert entry.text == "a\ufffd]52;c;x\ufffdb\ufffdc\ufffdd\te\nf"
