"""The real Claude Code in a sandbox: it works, and leaves nothing harmful behind."""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from sidestage.agents.claude_code.private_files import ClaudePrivateFiles
from sidestage.ids import TerminalId
from sidestage.terminals.environment import child_environment
from sidestage.terminals.model import CreateTerminal, SandboxProfile
from sidestage.terminals.programs import find_program_dirs
from terminal_host.host.sandbox import BubblewrapConfiner
from tests.e2e.pty_program import PtyProgram
from tests.e2e.real_claude import Json, RealClaude, read_registry
from tests.e2e.sandbox.bench import require_ordinary_user
from tests.fakes.logins import make_login
from tests.waiting import wait_for

pytestmark = [pytest.mark.sandbox, pytest.mark.claude]

TERMINAL = TerminalId("terminal:0123456789abcdef0123456789abcdef")


class SandboxedClaude:
    """A real CLI, outside and inside of a sandbox, on one home."""

    def __init__(self, outside: RealClaude) -> None:
        require_ordinary_user()
        self.outside = outside
        self.project = outside.make_project("project")
        self.state = outside.root / "state"
        self.private = self.state / "terminals" / TERMINAL
        self.files = ClaudePrivateFiles(state_dir=self.state, home=outside.home)
        self.config_dir: Path | None = None
        self.read_only = False
        self.confiner = BubblewrapConfiner()

    @contextmanager
    def start(
        self,
        *arguments: str,
        transcript: Path | None = None,
        argv: Sequence[str] | None = None,
    ) -> Iterator[PtyProgram]:
        """Run the CLI (or *argv*) inside; merge back when the block ends."""
        prepared = self.files.prepare(
            terminal_id=TERMINAL,
            directory=self.project,
            config_dir=self.config_dir,
            transcript=transcript,
        )
        added = {"SIDESTAGE_TERMINAL": str(TERMINAL)}
        if prepared.config_dir:
            added["CLAUDE_CONFIG_DIR"] = str(prepared.config_dir)
        environment = self.outside.environment()
        environment["GITHUB_TOKEN"] = "must-not-pass"
        program = [str(self.outside.program), "--permission-mode", "manual", *arguments]
        request = CreateTerminal(
            terminal_id=TERMINAL,
            argv=tuple(argv or program),
            environment=child_environment(
                environment,
                passed=[name for name in environment if name.startswith("DISABLE_")],
                added=added,
            ),
            directory=self.project,
            cols=100,
            rows=40,
            sandbox=SandboxProfile(
                project=self.project,
                project_read_only=self.read_only,
                home=self.outside.home,
                state_dir=self.state,
                program_dirs=find_program_dirs(
                    ["claude"], path=environment["PATH"], home=self.outside.home
                ),
                agent=prepared.files,
            ),
        )
        with self.confiner.confine(request) as confined:
            terminal = PtyProgram(
                confined.argv,
                directory=self.project,
                environment=request.environment,
                pass_fds=confined.pass_fds,
            )
        with terminal:
            yield terminal
        self.files.finish(TERMINAL)

    def begin(self, prompt: str) -> Path:
        """Begin a session outside, end it, and return its transcript."""
        with self.outside.start(prompt, directory=self.project) as terminal:
            terminal.wait_for("Stub answer")
            wait_for(self.is_idle, "the outside session is idle")
            terminal.send("/exit\r")
            assert terminal.wait_end() == 0
        (transcript,) = self.outside.transcripts()
        return transcript

    def is_idle(self) -> bool:
        """Tell whether the one registered session, inside or outside, waits."""
        entries = self.outside.registry() + self.registry()
        return [entry.get("status") for entry in entries] == ["idle"]

    def registry(self) -> list[Json]:
        """Return the terminal's private registry."""
        return read_registry(self.private / "sessions")


@pytest.fixture
def claude(tmp_path: Path) -> Iterator[SandboxedClaude]:
    with RealClaude.create(tmp_path) as outside:
        yield SandboxedClaude(outside)


def test_a_session_resumed_inside_goes_on_in_the_same_transcript(
    claude: SandboxedClaude,
) -> None:
    transcript = claude.begin("first words")
    before = transcript.read_bytes()
    with claude.start("--resume", transcript.stem, transcript=transcript) as terminal:
        terminal.wait_for("first words")  # the earlier turns are shown
        (entry,) = wait_for(claude.registry, "a registry entry")
        assert entry["sessionId"] == transcript.stem
        # The pid in the registry is the real one: discovery needs it.
        command = Path(f"/proc/{entry['pid']}/cmdline").read_bytes()
        assert transcript.stem.encode() in command
        assert Path(f"/proc/{entry['pid']}/cwd").resolve() == claude.project
        wait_for(claude.is_idle, "the resumed session is idle")
        terminal.send("and on\r")
        terminal.wait_for("Stub answer to: and on")
        wait_for(claude.is_idle, "the answer is complete")
        terminal.send("/exit\r")
        assert terminal.wait_end() == 0
        assert claude.registry() == []
        assert not claude.outside.registry()
    after = transcript.read_bytes()
    assert after.startswith(before)
    assert b"Stub answer to: and on" in after.removeprefix(before)
    assert claude.outside.transcripts() == [transcript]
    assert not claude.private.exists()


def test_a_permission_dialog_and_a_tool_work_inside(claude: SandboxedClaude) -> None:
    with claude.start("stub:bash(env > seen.txt; ls -a ~ >> seen.txt)") as terminal:
        terminal.wait_for("Do you want to proceed")
        terminal.answer("1", dialog="Do you want to proceed")
        terminal.wait_for("Done.")
        terminal.send("/exit\r")
        terminal.wait_end()
    seen = (claude.project / "seen.txt").read_text()
    assert "must-not-pass" not in seen
    assert "\n.ssh" not in seen


def test_another_account_s_session_is_resumed_in_its_own_state_folder(
    claude: SandboxedClaude,
) -> None:
    account = claude.outside.home / "accounts/work"
    account.mkdir(parents=True)
    claude.outside.config_file.rename(account / ".claude.json")
    environment = claude.outside.environment(CLAUDE_CONFIG_DIR=str(account))
    with claude.outside.start(
        "first words", directory=claude.project, environment=environment
    ) as terminal:
        terminal.wait_for("Stub answer")
        terminal.send("/exit\r")
        terminal.wait_end()
    (transcript,) = account.glob("projects/*/*.jsonl")
    claude.config_dir = account
    with claude.start("--resume", transcript.stem, transcript=transcript) as terminal:
        wait_for(claude.is_idle, "the resumed session is idle")
        terminal.send("and on\r")
        terminal.wait_for("Stub answer to: and on")
        terminal.send("/exit\r")
        assert terminal.wait_end() == 0
    assert b"Stub answer to: and on" in transcript.read_bytes()
    entry = json.loads((account / ".claude.json").read_text())["projects"]
    assert entry[str(claude.project)]["lastSessionId"] == transcript.stem


def test_a_tool_cannot_write_in_a_read_only_project(claude: SandboxedClaude) -> None:
    claude.read_only = True
    with claude.start("stub:bash(touch made.txt; echo status=$?)") as terminal:
        terminal.wait_for("Do you want to proceed")
        terminal.answer("1", dialog="Do you want to proceed")
        terminal.wait_for("Done.")
        terminal.send("/exit\r")
        terminal.wait_end()
    (transcript,) = claude.outside.transcripts()
    assert b"Read-only file system" in transcript.read_bytes()
    assert not (claude.project / "made.txt").exists()


def test_only_counters_of_the_project_come_back(claude: SandboxedClaude) -> None:
    outside = claude.outside.read_config()
    outside["projects"]["/another"] = {"hasTrustDialogAccepted": True}
    outside["mcpServers"] = {"mine": {"command": "true"}}
    claude.outside.config_file.write_text(json.dumps(outside))
    forged = (
        "import json; from pathlib import Path\n"
        "path = Path.home() / '.claude.json'; config = json.loads(path.read_text())\n"
        "assert 'mcpServers' not in config and len(config['projects']) == 1\n"
        "config['mcpServers'] = {'evil': {'command': 'evil'}}\n"
        "config['oauthAccount'] = {'emailAddress': 'evil@example.org'}\n"
        "for entry in config['projects'].values():\n"
        "    entry.update(mcpServers={'evil': {'command': 'evil'}}, lastCost=4.5,\n"
        "        allowedTools=['Bash'], enabledMcpjsonServers=['evil'],\n"
        "        lastUnknown='evil', hasClaudeMdExternalIncludesApproved=True)\n"
        "path.write_text(json.dumps(config))\n"
    )
    with claude.start(argv=["python3", "-c", forged]) as terminal:
        # An outside CLI writes its own change meanwhile.
        outside["projects"]["/later"] = {"lastCost": 1}
        claude.outside.config_file.write_text(json.dumps(outside))
        assert terminal.wait_end() == 0, terminal.text
    merged = claude.outside.read_config()
    assert merged["projects"][str(claude.project)].pop("lastCost") == 4.5
    assert merged == outside


def test_a_hook_written_inside_is_not_run_by_the_next_session_outside(
    claude: SandboxedClaude,
) -> None:
    """With `~/.claude` bound read-write the next `claude` ran it, and read any key."""
    trap = claude.outside.home / "escaped"
    hook = {"hooks": [{"type": "command", "command": f"touch {trap}"}]}
    server = {"evil": {"command": "/bin/sh", "args": ["-c", f"touch {trap}"]}}
    escape = (
        "import contextlib, json; from pathlib import Path\n"
        f"hooks = {{'hooks': {{'SessionStart': [{hook}]}}}}\n"
        "home = Path.home()\n"
        "for name in ('settings.json', 'settings.local.json'):\n"
        "    for folder in (home / '.claude', Path('.claude')):\n"
        "        with contextlib.suppress(OSError):\n"
        "            folder.mkdir(exist_ok=True)\n"
        "            (folder / name).write_text(json.dumps(hooks))\n"
        "config = json.loads((home / '.claude.json').read_text())\n"
        f"config['mcpServers'] = {server}\n"
        f"for entry in config['projects'].values(): entry['mcpServers'] = {server}\n"
        "(home / '.claude.json').write_text(json.dumps(config))\n"
        "for parent in (home / '.claude', Path('.claude').absolute()):\n"
        "    with contextlib.suppress(OSError): parent.rename(str(parent) + '.old')\n"
    )
    (claude.project / ".claude").mkdir()
    settings = claude.outside.config_dir / "settings.json"
    before = settings.read_bytes()
    with claude.start(argv=["python3", "-c", escape]) as terminal:
        assert terminal.wait_end() == 0, terminal.text
    assert settings.read_bytes() == before
    assert list((claude.project / ".claude").iterdir()) == []
    claude.begin("after it")
    assert not trap.exists()


def test_the_trap_of_the_escape_test_does_catch(claude: SandboxedClaude) -> None:
    """The same hook, written outside, is run: so the test above shows something."""
    trap = claude.outside.home / "escaped"
    hook = {"hooks": [{"type": "command", "command": f"touch {trap}"}]}
    claude.outside.write_settings({"hooks": {"SessionStart": [hook]}})
    claude.begin("with a hook")
    assert trap.exists()


OLD_LOGIN, NEW_LOGIN = make_login(1), make_login(2)
_REFRESH = (
    "import os; from pathlib import Path\n"
    "path = Path.home() / '.claude/.credentials.json'\n"
    "fresh = path.with_name('.credentials.json.tmp.1')\n"
    "fresh.write_text('%s'); fresh.replace(path)\n"
)
"""As the CLI writes it: a file beside it, then a rename."""


def test_a_login_made_inside_is_there_afterwards(claude: SandboxedClaude) -> None:
    login = claude.outside.config_dir / ".credentials.json"
    with claude.start(argv=["python3", "-c", _REFRESH % NEW_LOGIN]) as terminal:
        assert terminal.wait_end() == 0, terminal.text
    assert login.read_text() == NEW_LOGIN
    assert login.stat().st_mode & 0o777 == 0o600


_SPOIL = (
    "import os; from pathlib import Path\n"
    "login = Path.home() / '.claude/.credentials.json'\n"
    "login.unlink(); login.mkdir()\n"
    "os.chdir(login)\n"
    "for _ in range(60):\n"
    "    os.mkdir('d' * 200); os.chdir('d' * 200)\n"
    "os.chmod(login, 0); os.chmod(login.parent, 0)\n"
)


def test_folders_made_inside_do_not_keep_the_private_files(
    claude: SandboxedClaude,
) -> None:
    """A folder for the login kept them, with a descriptor lost at each look.

    So did folders deeper than a path is long: "File name too long".
    """
    login = claude.outside.config_dir / ".credentials.json"
    login.write_text(OLD_LOGIN)
    with claude.start(argv=["python3", "-c", _SPOIL]) as terminal:
        assert terminal.wait_end() == 0, terminal.text
    assert not claude.private.exists()
    claude.files.removal.sweep(threading.Event())
    assert list((claude.state / "terminals-ended").iterdir()) == []
    assert login.read_text() == OLD_LOGIN


def test_a_login_of_another_account_stays_inside(claude: SandboxedClaude) -> None:
    """Whatever a program inside wrote there became the owner's login."""
    login = claude.outside.config_dir / ".credentials.json"
    login.write_text(OLD_LOGIN)
    other = make_login(2, accountUuid="account-2")
    with claude.start(argv=["python3", "-c", _REFRESH % other]) as terminal:
        assert terminal.wait_end() == 0, terminal.text
    assert login.read_text() == OLD_LOGIN


def test_a_login_refreshed_on_both_sides_ends_with_the_newer(
    claude: SandboxedClaude,
) -> None:
    """Bound as a file, the inside kept the old inode after a refresh outside."""
    login = claude.outside.config_dir / ".credentials.json"
    login.write_text(OLD_LOGIN)
    inside = "cat ~/.claude/.credentials.json; read x; cat ~/.claude/.credentials.json"
    with claude.start(argv=["sh", "-c", inside]) as terminal:
        terminal.wait_for("access-1")
        fresh = login.with_name("fresh")
        fresh.write_text(NEW_LOGIN)
        fresh.replace(login)
        claude.files.sync_logins()
        terminal.send("\r")
        terminal.wait_for("access-2")
        terminal.wait_end()
    assert login.read_text() == NEW_LOGIN


def test_the_real_cli_finds_its_login_inside(claude: SandboxedClaude) -> None:
    login = claude.outside.config_dir / ".credentials.json"
    login.write_text(OLD_LOGIN)
    with claude.start("hello") as terminal:
        terminal.wait_for("Stub answer to: hello")
        copy = claude.private / "config/.credentials.json"
        assert copy.read_text() == OLD_LOGIN
        assert copy.stat().st_mode & 0o777 == 0o600
