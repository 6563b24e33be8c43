"""Our hooks in the CLI's settings: put in, taken out, and nothing else touched."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sidestage.agents.claude_code import hook_installer
from sidestage.agents.claude_code.hook_installer import HookInstaller
from sidestage.agents.claude_code.hook_settings import (
    MARK,
    VERBS,
    HookCommand,
    add_ours,
    find_ours,
    remove_ours,
    render_entries,
    render_settings,
)
from sidestage.errors import HooksNotWritten, HooksUnreadable, InvalidInput
from sidestage.sessions.hook_setup import HookSetup, HookState
from tests.fakes.audit import FakeAudit
from tests.fakes.principals import OWNER

COMMAND = HookCommand(
    python=Path("/usr/bin/python3"),
    program=Path("/opt/side stage/sidestage_hook.py"),
    socket=Path("/state/hook.sock"),
    spool=Path("/state/it's spool"),
)
FOREIGN = {"matcher": "Bash", "hooks": [{"type": "command", "command": "say 'hi'"}]}

SETTINGS = [
    "{}",
    "{}\n",
    '{"model": "opus"}',
    json.dumps({"zeta": 1, "hooks": {"Stop": [FOREIGN]}, "alpha": [1, 2]}, indent=2),
    json.dumps({"hooks": {"Stop": [FOREIGN], "Other": []}}, indent="\t") + "\n",
    '{\n    "permissions": {"allow": ["Bash"],\n      "deny": []},\n    "ü": "é"\n}',
    '{"hooks": {"Stop": [{"hooks": []}]}}',
    '{\r\n  "hooks": {\r\n    "Stop": []\r\n  }\r\n}\r\n',
    '{"hooks": {}}',
]


class Bench:
    def __init__(self, root: Path) -> None:
        self.config = root / "claude"
        self.config.mkdir()
        self.settings = self.config / "settings.json"
        self.kept = root / "state"
        self.audit = FakeAudit(0)
        self.installer = self.make()

    def make(self, command: HookCommand = COMMAND, *more: Path) -> HookInstaller:
        return HookInstaller(
            config_dirs=(self.config, *more),
            kept_dir=self.kept,
            command=command,
            audit=self.audit,
        )

    async def install(self) -> None:
        await self.installer.install(actor=OWNER)

    async def uninstall(self) -> None:
        await self.installer.uninstall(actor=OWNER)

    def read(self) -> dict[str, Any]:
        values: dict[str, Any] = json.loads(self.settings.read_text())
        return values

    async def state(self) -> HookState:
        [status] = await self.installer.status()
        return status.state


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def _is_the_port(installer: HookInstaller) -> HookSetup:
    return installer


# Texts.


@pytest.mark.parametrize("text", SETTINGS)
def test_our_entries_come_behind_all_that_is_there(text: str) -> None:
    before, after = json.loads(text), json.loads(add_ours(text, COMMAND))
    for event, entry in render_entries(COMMAND).items():
        there = before.get("hooks", {}).get(event, [])
        assert after["hooks"].pop(event) == [*there, entry]
    left = {k: v for k, v in before.get("hooks", {}).items() if k not in VERBS}
    assert after.pop("hooks") == left
    before.pop("hooks", None)
    assert list(after.items()) == list(before.items())


@pytest.mark.parametrize("text", SETTINGS)
def test_taking_them_out_of_a_changed_file_leaves_what_was_not_ours(text: str) -> None:
    added = add_ours(text, COMMAND)
    changed = json.dumps(json.loads(added) | {"later": True}, indent=3)
    left = json.loads(remove_ours(changed))
    assert left.pop("later") is True
    before = json.loads(text)
    # What held nothing goes with ours.
    hooks = {k: v for k, v in before.get("hooks", {}).items() if v}
    hooks_left = {k: v for k, v in left.pop("hooks", {}).items() if v}
    before.pop("hooks", None)
    assert (hooks_left, left) == (hooks, before)
    assert find_ours(remove_ours(changed)) == []


def test_an_entry_that_somebody_added_to_is_not_ours() -> None:
    mixed = json.loads(render_settings(COMMAND))
    mixed["hooks"]["Stop"][0]["hooks"].append(FOREIGN["hooks"])
    assert "Stop" not in dict(find_ours(json.dumps(mixed)))


def test_only_permission_requests_wait_and_say_how_long() -> None:
    entries = render_entries(COMMAND)
    assert set(entries) == {
        *("SessionStart", "SessionEnd", "UserPromptSubmit", "Stop", "StopFailure"),
        *("PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionRequest"),
        *("Notification", "SubagentStop"),
    }
    for event, entry in entries.items():
        [hook] = entry["hooks"]
        assert hook["timeout"] == (86_400 if event == "PermissionRequest" else 5)
        assert (" hold " in hook["command"]) == (event == "PermissionRequest")


# The command, in a real shell.


def run(command: str, **environment: str) -> tuple[int, bytes]:
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        input=b'{"a": 1}',
        capture_output=True,
        env=environment,
        timeout=20,
    )
    assert done.stderr == b""
    return done.returncode, done.stdout


def real_command(folder: Path, *, yields: bool = True) -> HookCommand:
    """Return a command that runs a program which prints its arguments."""
    odd = folder / "it's an odd $folder"
    odd.mkdir()
    program = odd / "sidestage_hook.py"
    program.write_text("import sys; print(*sys.argv[1:], sep='|')")
    return HookCommand(Path(sys.executable), program, odd / "s", odd / "p", yields)


def test_the_command_finds_its_way_through_odd_names(tmp_path: Path) -> None:
    command = real_command(tmp_path)
    odd = tmp_path / "it's an odd $folder"
    status, out = run(command.render("event"))
    expected = f"event|--socket|{odd}/s|--spool|{odd}/p\n"
    assert (status, out.decode()) == (0, expected)


def test_a_program_that_is_gone_is_silence_and_0(tmp_path: Path) -> None:
    command = real_command(tmp_path)
    command.program.unlink()
    assert run(command.render("hold")) == (0, b"")
    gone = HookCommand(tmp_path / "no python", command.program, command.socket)
    assert run(gone.render("hold")) == (0, b"")


def test_it_yields_to_the_hooks_of_a_terminal_of_ours(tmp_path: Path) -> None:
    command = real_command(tmp_path).render("event")
    assert run(command, SIDESTAGE_HOOK_SOCKET="/x") == (0, b"")
    (tmp_path / "own").mkdir()
    own = real_command(tmp_path / "own", yields=False).render("event")
    assert run(own, SIDESTAGE_HOOK_SOCKET="/x")[1] != b""


# Files.


@pytest.mark.parametrize("text", SETTINGS)
async def test_installed_twice_is_once_and_uninstalled_is_the_owners_bytes(
    bench: Bench, text: str
) -> None:
    bench.settings.write_bytes(text.encode())
    bench.settings.chmod(0o640)
    assert await bench.state() is HookState.ABSENT
    await bench.install()
    once = bench.settings.read_bytes()
    await bench.install()
    assert bench.settings.read_bytes() == once
    assert await bench.state() is HookState.INSTALLED
    assert stat.S_IMODE(bench.settings.stat().st_mode) == 0o640
    await bench.uninstall()
    assert bench.settings.read_bytes() == text.encode()
    assert stat.S_IMODE(bench.settings.stat().st_mode) == 0o640
    assert list(bench.kept.iterdir()) == []
    actions = [entry.record.action for entry in bench.audit.entries]
    assert actions == ["hooks.install", "hooks.install", "hooks.uninstall"]


async def test_a_file_that_was_not_there_goes_again(bench: Bench) -> None:
    await bench.install()
    assert stat.S_IMODE(bench.settings.stat().st_mode) == 0o600
    assert len(bench.read()["hooks"]) == len(VERBS)
    await bench.uninstall()
    assert not bench.settings.exists()
    await bench.uninstall()


async def test_an_agent_that_is_not_there_gets_no_folder(bench: Bench) -> None:
    bench.config.rmdir()
    await bench.install()
    assert not bench.config.exists()
    assert await bench.state() is HookState.ABSENT


async def test_a_link_stays_a_link_and_its_target_is_changed(
    bench: Bench, tmp_path: Path
) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text("{}")
    bench.settings.symlink_to(real)
    await bench.install()
    assert bench.settings.readlink() == real
    assert "hooks" in json.loads(real.read_text())
    await bench.uninstall()
    assert bench.settings.is_symlink()
    assert real.read_text() == "{}"


async def test_what_the_owner_changed_meanwhile_stays(bench: Bench) -> None:
    bench.settings.write_text('{\n  "a": 1\n}\n')
    await bench.install()
    text = bench.settings.read_text()
    bench.settings.write_text(text.replace('"a": 1', '"a":   2'))
    await bench.uninstall()
    assert bench.settings.read_text() == '{\n  "a":   2\n}\n'


async def test_those_of_another_installation_are_replaced(bench: Bench) -> None:
    bench.settings.write_text('{"a": 1}')
    await bench.install()
    moved = bench.make(
        HookCommand(COMMAND.python, Path("/new/sidestage_hook.py"), COMMAND.socket)
    )
    [status] = await moved.status()
    assert status.state is HookState.OUTDATED
    assert status.note is not None
    await moved.install(actor=OWNER)
    found = find_ours(bench.settings.read_text())
    assert len(found) == len(VERBS)
    assert "/new/" in str(found)
    await moved.uninstall(actor=OWNER)
    assert bench.settings.read_text() == '{"a": 1}'


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b'{\n  "a": 1,\n}', "line 3"),
        (b'{\n  "a": "\xff"\n}', "line 2"),
        (b'{\n  "hooks": []\n}', "line 2"),
        (b'{\n  "hooks": {\n    "Stop": {}\n  }\n}', "line 3"),
        (b"", "line 1"),
    ],
)
async def test_what_cannot_be_parsed_is_refused_untouched_with_its_line(
    bench: Bench, tmp_path: Path, data: bytes, line: str
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "settings.json").write_bytes(data)
    bench.settings.write_text("{}")
    both = bench.make(COMMAND, other)
    for change in (both.install, both.uninstall):
        with pytest.raises(HooksUnreadable, match=line) as raised:
            await change(actor=OWNER)
        assert str(other) in str(raised.value)
    assert (other / "settings.json").read_bytes() == data
    assert bench.settings.read_text() == "{}"
    states = [it.state for it in await both.status()]
    assert states == [HookState.ABSENT, HookState.UNREADABLE]


async def test_one_file_alone_can_be_changed(bench: Bench, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    both = bench.make(COMMAND, other)
    await both.install(only=str(bench.settings), actor=OWNER)
    assert not (other / "settings.json").exists()
    assert await bench.state() is HookState.INSTALLED
    with pytest.raises(InvalidInput):
        await both.uninstall(only="/etc/passwd", actor=OWNER)


async def test_what_is_no_file_is_refused(bench: Bench) -> None:
    os.mkfifo(bench.settings)
    assert await bench.state() is HookState.UNREADABLE
    bench.settings.unlink()
    bench.settings.symlink_to(bench.settings)
    assert await bench.state() is HookState.UNREADABLE


async def test_a_write_that_fails_leaves_the_file_whole(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.settings.write_text("{}")

    def full(*args: object, **more: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(hook_installer, "replace_file", full)
    with pytest.raises(HooksNotWritten, match="No space"):
        await bench.install()
    assert bench.settings.read_text() == "{}"


async def test_what_a_person_saves_at_the_same_moment_is_not_overwritten(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.settings.write_text("{}")

    def meanwhile(text: str, command: HookCommand) -> str:
        bench.settings.write_text('{"saved": 1}')
        return add_ours(text, command)

    monkeypatch.setattr(hook_installer, "add_ours", meanwhile)
    with pytest.raises(HooksNotWritten, match="same moment"):
        await bench.install()
    assert bench.read() == {"saved": 1}


async def test_damaged_notes_of_ours_do_not_keep_hooks_from_going(
    bench: Bench,
) -> None:
    bench.settings.write_text('{"a": 1}')
    await bench.install()
    for path in bench.kept.iterdir():
        path.write_text('{"before": "?", "written": 5}')
    await bench.uninstall()
    assert bench.settings.read_text() == '{"a": 1}'


def test_the_mark_is_a_comment() -> None:
    assert MARK.startswith("#")
