"""Full-screen programs, and the agent itself, at the moment of the kill."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from sidestage.terminals.model import CreateTerminal
from terminal_host.host.ended_screen import LOST_NOTICE
from tests.e2e.durability.conftest import Bench, bottom_notice, lines_of
from tests.e2e.real_claude import RealClaude

NewTerminal = Callable[..., CreateTerminal]
LINES = "".join(f"line {number} of the text\n" for number in range(1, 200))


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (("less", "text"), "line 1 of the text"),
        (("vim.tiny", "-u", "NONE", "text"), "line 1 of the text"),
        (("htop",), "CPU"),
        (("tmux", "-L", "{tmp}", "new", "cat text; exec cat"), "line 199 of the text"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
async def test_a_full_screen_programs_screen_stays_and_the_notice_scrolls_nothing(
    bench: Bench,
    new_terminal: NewTerminal,
    tmp_path: Path,
    program: tuple[str, ...],
    expected: str,
) -> None:
    """durability 9."""
    assert shutil.which(program[0]), f"{program[0]} is missing: see scripts/test"
    (tmp_path / "text").write_text(LINES)
    argv = [each.replace("{tmp}", tmp_path.name) for each in program]
    terminal = await bench.host.create(new_terminal(*argv))
    await bench.until_recorded(terminal.terminal_id, expected)
    listed = (await bench.crash())[terminal.terminal_id]
    emulator = await bench.seen(listed)
    assert emulator.mode(1049, private=True)
    assert bottom_notice(emulator) == LOST_NOTICE
    text = "\n".join(lines_of(emulator)[:-1])
    assert expected in text
    if program[0] in ("less", "vim.tiny"):
        assert lines_of(emulator)[0] == "line 1 of the text"
        assert lines_of(emulator)[22] == "line 23 of the text"


@pytest.mark.claude
async def test_claude_codes_screen_stays(
    bench: Bench, new_terminal: NewTerminal, tmp_path: Path
) -> None:
    """durability 9."""
    with RealClaude.create(tmp_path / "claude") as claude:
        project = claude.make_project("project")
        environment = claude.environment()
        request = new_terminal(
            *("sh", "-c", f"cd {project} && exec {claude.program} hello"),
            cols=100,
            rows=30,
            **environment,
        )
        terminal = await bench.host.create(request)
        await bench.until_recorded(terminal.terminal_id, "Stub answer to: hello", "❯")
        listed = (await bench.crash())[terminal.terminal_id]
        emulator = await bench.seen(listed)
        assert bottom_notice(emulator) == LOST_NOTICE
        text = emulator.text(1000)
        assert "Stub answer to: hello" in text
        assert "❯" in text
        assert not emulator.mode(25, private=True)
