"""The private files of a terminal: made, and merged back."""

import json
from pathlib import Path

import pytest

from sidestage.agents.claude_code.folder_names import encode_folder
from sidestage.agents.claude_code.private_files import (
    ClaudePrivateFiles,
    TerminalHooks,
)
from sidestage.ids import TerminalId
from tests.fakes.logins import make_login
from tests.fakes.private_owner import TERMINAL, Owner


@pytest.fixture
def owner(tmp_path: Path) -> Owner:
    return Owner(tmp_path)


def test_the_private_folder_is_the_owner_s_alone_and_complete(owner: Owner) -> None:
    owner.prepare()
    folders = [owner.private, *(owner.private / n for n in ("config", "sessions"))]
    assert {folder.stat().st_mode & 0o777 for folder in folders} == {0o700}
    assert (owner.private / "hook").is_dir()
    copied = owner.private / "claude.json"
    assert copied.stat().st_mode & 0o777 == 0o600
    assert list(json.loads(copied.read_text())) == ["projects"]


@pytest.mark.parametrize("inside", [Path("/run/sidestage"), None])
def test_the_agent_gets_our_hooks_by_a_settings_file_of_its_own(
    owner: Owner, inside: Path | None
) -> None:
    hooks = TerminalHooks(
        program=owner.home / "hook.py", settings="{}", folder_inside=inside
    )
    owner.files = ClaudePrivateFiles(
        state_dir=owner.state, home=owner.home, hooks=hooks
    )
    prepared = owner.prepare()
    written = owner.private / "hook" / "settings.json"
    seen = written if inside is None else inside / "settings.json"
    assert prepared.arguments == ("--settings", str(seen))
    assert prepared.files.hook_program == owner.home / "hook.py"
    assert written.read_text() == "{}"


def test_without_hooks_it_gets_no_arguments(owner: Owner) -> None:
    assert owner.prepare().arguments == ()


def test_what_exists_of_the_settings_is_shown_read_only(owner: Owner) -> None:
    files = owner.prepare().files
    assert set(files.read_only) == {
        owner.config / "settings.json",
        owner.config / "commands",
    }
    assert files.read_write == ()
    assert files.config_file == owner.config_file


def test_the_folder_s_transcripts_are_made_and_shared(owner: Owner) -> None:
    files = owner.prepare().files
    assert files.transcripts == (
        owner.config / "projects" / encode_folder(owner.project)
    )
    assert files.transcripts.is_dir()


def test_a_resumed_transcript_is_shared_where_it_lies(owner: Owner) -> None:
    """The CLI appends to it there; a fork of it goes to the folder it starts in."""
    transcript = owner.config / "projects/-elsewhere/1.jsonl"
    files = owner.prepare(transcript=transcript).files
    assert files.transcripts == transcript.parent
    assert files.read_write == (
        owner.config / "projects" / encode_folder(owner.project),
    )


def test_a_transcript_outside_the_state_folder_shares_nothing(owner: Owner) -> None:
    files = owner.prepare(transcript=owner.home / ".ssh/keys/1.jsonl").files
    assert files.transcripts.parent == owner.config / "projects"


def test_another_account_s_state_folder_holds_its_configuration(owner: Owner) -> None:
    other = owner.home / "work-claude"
    other.mkdir()
    prepared = owner.prepare(config_dir=other)
    assert prepared.config_dir == other
    assert prepared.files.config_file == other / ".claude.json"
    assert prepared.files.transcripts.is_relative_to(other)


def test_the_default_state_folder_needs_no_variable(owner: Owner) -> None:
    assert owner.prepare(config_dir=owner.config).config_dir is None


def test_an_old_configuration_inside_the_state_folder_is_used(owner: Owner) -> None:
    legacy = owner.config / ".config.json"
    legacy.write_text("{}")
    assert owner.prepare().files.config_file == legacy


def test_a_folder_in_a_repository_uses_the_repository_s_entry(owner: Owner) -> None:
    (owner.project / ".git").mkdir()
    owner.prepare(directory=owner.project / "sub")
    copied = json.loads((owner.private / "claude.json").read_text())
    assert list(copied["projects"]) == [str(owner.project / "sub"), str(owner.project)]


def test_a_terminal_that_may_be_running_keeps_its_files(owner: Owner) -> None:
    owner.prepare()
    (owner.private / "sessions/1.json").write_text("{}")
    with pytest.raises(FileExistsError):
        owner.prepare()
    assert (owner.private / "sessions/1.json").exists()


def test_a_failed_preparation_leaves_nothing(owner: Owner) -> None:
    (owner.config / "projects").write_text("in the way")
    with pytest.raises(OSError, match="projects"):
        owner.prepare()
    assert not owner.private.exists()


def test_counters_and_login_come_back_and_the_folder_goes(owner: Owner) -> None:
    owner.prepare()
    copied = owner.private / "claude.json"
    inside = json.loads(copied.read_text())
    inside["projects"][str(owner.project)]["lastCost"] = 3
    inside["mcpServers"] = {"evil": {}}
    copied.write_text(json.dumps(inside))
    (owner.private / "config/.credentials.json").write_text(make_login(1))
    # A server that was restarted meanwhile merges as well.
    ClaudePrivateFiles(state_dir=owner.state, home=owner.home).finish(TERMINAL)
    merged = json.loads(owner.config_file.read_text())
    assert merged["projects"][str(owner.project)]["lastCost"] == 3
    assert merged["mcpServers"] == {}
    assert (owner.config / ".credentials.json").read_text() == make_login(1)
    assert not owner.private.exists()


def test_a_private_folder_spoiled_inside_is_still_removed(owner: Owner) -> None:
    owner.prepare()
    before = owner.config_file.read_text()
    (owner.private / "claude.json").write_text("garbage")
    (owner.private / "config/link").symlink_to(owner.project)
    (owner.project / "kept").touch()
    (owner.private / "config/closed/deep").mkdir(parents=True)
    (owner.private / "config/closed").chmod(0)
    owner.files.finish(TERMINAL)
    assert owner.config_file.read_text() == before
    assert (owner.project / "kept").exists()
    assert not owner.private.exists()


def test_a_terminal_without_private_files_is_no_error(owner: Owner) -> None:
    owner.files.finish(TerminalId("terminal:none"))
    owner.private.mkdir(parents=True)  # a preparation that was killed half-way
    owner.files.finish(TERMINAL)
    assert not owner.private.exists()


def test_logins_of_all_running_terminals_are_brought_in_step(owner: Owner) -> None:
    owner.prepare()
    (owner.config / ".credentials.json").write_text('{"n": 2}')
    owner.files.sync_logins()
    inside = owner.private / "config/.credentials.json"
    assert inside.read_text() == '{"n": 2}'


LONG = "/home/dev" + "".join(f"/deeply-nested-directory-name-0{n}" for n in range(8))


# Names the CLI itself gave to these folders.
@pytest.mark.parametrize(
    ("directory", "name"),
    [
        ("/home/dev/my_proj.v2", "-home-dev-my-proj-v2"),
        ("/home/dev/sp ace/x", "-home-dev-sp-ace-x"),
        ("/home/dev/ünï/日本", "-home-dev--n----"),
        (LONG, LONG.replace("/", "-")[:200] + "-ggw0xk"),
    ],
)
def test_folders_are_named_as_the_cli_names_them(directory: str, name: str) -> None:
    assert encode_folder(Path(directory)) == name


def test_a_character_beyond_16_bits_is_two_units() -> None:
    assert encode_folder(Path("/a/😀")) == "-a---"
