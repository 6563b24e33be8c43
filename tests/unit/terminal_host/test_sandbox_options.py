"""The options of bubblewrap: what they say, and in which order."""

from dataclasses import replace
from pathlib import Path

import pytest

from sidestage.errors import SandboxUnavailable
from sidestage.terminals.model import AgentFiles, SandboxProfile
from terminal_host.host.sandbox_options import Descriptors, list_options
from terminal_host.host.sandbox_project import list_mounts


@pytest.fixture
def profile(tmp_path: Path) -> SandboxProfile:
    home, state = tmp_path / "home", tmp_path / "home/.state"
    project = home / "project"
    for folder in (project, state):
        folder.mkdir(parents=True)
    return make_profile(project, home, state)


def make_profile(
    project: Path,
    home: Path,
    state: Path,
    *,
    read_only: bool = False,
    agent: AgentFiles | None = None,
    program_dirs: tuple[Path, ...] = (),
    network: bool = True,
) -> SandboxProfile:
    return SandboxProfile(
        project=project,
        project_read_only=read_only,
        home=home,
        state_dir=state,
        program_dirs=program_dirs,
        agent=agent,
        network=network,
    )


def options_of(profile: SandboxProfile, git_config: int | None = None) -> list[str]:
    return list(
        list_options(
            profile,
            directory=profile.project,
            project=list_mounts(profile),
            descriptors=Descriptors(seccomp=7, git_config=git_config),
        )
    )


def place(options: list[str], *words: str | Path) -> int:
    """Return where *words* stand in a row; fails if they do not."""
    wanted = [str(word) for word in words]
    for index in range(len(options)):
        if options[index : index + len(wanted)] == wanted:
            return index
    raise AssertionError(f"{wanted} is not in {options}")


def test_masks_come_before_what_is_let_through_and_the_state_mask_last(
    profile: SandboxProfile,
) -> None:
    options = options_of(profile)
    root = place(options, "--ro-bind", "/", "/")
    masks = [place(options, "--tmpfs", where) for where in ("/run", "/tmp", "/sys")]
    home = place(options, "--tmpfs", profile.home)
    project = place(options, "--bind", profile.project, profile.project)
    state = place(options, "--tmpfs", profile.state_dir)
    assert root < min(masks)
    assert max(masks) < home < project < state
    assert not [word for word in options[state + 1 :] if "bind" in word]


def test_nothing_takes_the_terminal_or_the_pids_away(profile: SandboxProfile) -> None:
    options = options_of(profile)
    assert not {"--new-session", "--unshare-pid", "--setenv"} & set(options)
    assert {"--unshare-user", "--die-with-parent", "--unshare-ipc"} <= set(options)


def test_it_starts_in_the_folder_with_the_filter(profile: SandboxProfile) -> None:
    options = options_of(profile)
    place(options, "--chdir", profile.project)
    place(options, "--seccomp", "7")


def test_a_read_only_project_is_bound_read_only_and_nowhere_else(
    profile: SandboxProfile,
) -> None:
    (profile.project / ".git/hooks").mkdir(parents=True)
    closed = make_profile(
        profile.project, profile.home, profile.state_dir, read_only=True
    )
    options = options_of(closed)
    place(options, "--ro-bind", profile.project, profile.project)
    assert "--bind" not in options


def test_settings_are_read_only_and_git_is_pinned_with_read_only_hooks(
    profile: SandboxProfile,
) -> None:
    git, settings = profile.project / ".git", profile.project / ".claude"
    (git / "hooks").mkdir(parents=True)
    settings.mkdir()
    options = options_of(profile)
    project = place(options, "--bind", profile.project, profile.project)
    pinned = place(options, "--bind", git, git)
    hooks = place(options, "--ro-bind", git / "hooks", git / "hooks")
    assert project < pinned < hooks
    assert project < place(options, "--ro-bind", settings, settings)


def test_a_link_in_the_project_is_never_bound(profile: SandboxProfile) -> None:
    """Bubblewrap follows the link: a repository could name ~/.ssh that way."""
    for name in (".git", ".claude"):
        (profile.project / name).symlink_to(profile.home)
    options = options_of(profile)
    assert not [word for word in options if word.endswith((".git", ".claude"))]


def test_the_agent_sees_its_own_transcripts_and_private_files_only(
    profile: SandboxProfile,
) -> None:
    config, private = profile.home / ".claude", profile.state_dir / "terminals/1"
    agent = AgentFiles(
        config_dir=config,
        transcripts=config / "projects/-p",
        private_dir=private,
        config_file=profile.home / ".claude.json",
        read_only=(config / "settings.json",),
        read_write=(config / "projects/-q",),
        hook_program=Path("/opt/hook.py"),
    )
    options = options_of(
        make_profile(profile.project, profile.home, profile.state_dir, agent=agent)
    )
    stand_in = place(options, "--bind", private / "config", config)
    for words in (
        ("--bind", agent.transcripts, agent.transcripts),
        ("--bind", config / "projects/-q", config / "projects/-q"),
        ("--bind", private / "sessions", config / "sessions"),
        ("--ro-bind", config / "settings.json", config / "settings.json"),
        ("--bind", private / "claude.json", agent.config_file),
        ("--ro-bind", private / "hook", "/run/sidestage"),
        ("--ro-bind", "/opt/hook.py", "/run/sidestage-hook.py"),
    ):
        assert place(options, *words) > stand_in


def test_the_git_configuration_comes_from_its_descriptor(
    profile: SandboxProfile,
) -> None:
    options = options_of(profile, git_config=9)
    place(options, "--ro-bind-data", "9", "/run/sidestage-gitconfig")


def test_a_home_with_two_names_is_found_by_both(profile: SandboxProfile) -> None:
    other = profile.home.with_name("other")
    other.symlink_to(profile.home)
    options = options_of(make_profile(profile.project, other, profile.state_dir))
    place(options, "--tmpfs", profile.home)
    place(options, "--symlink", profile.home, other)


@pytest.mark.parametrize("where", ["home", ".", "home/.state"])
def test_a_program_folder_with_private_files_is_refused(
    profile: SandboxProfile, where: str
) -> None:
    folder = profile.home.parent / where
    wide = make_profile(
        profile.project, profile.home, profile.state_dir, program_dirs=(folder,)
    )
    with pytest.raises(SandboxUnavailable, match="private files"):
        options_of(wide)


def test_a_second_account_s_state_outside_the_home_is_hidden(
    profile: SandboxProfile, tmp_path: Path
) -> None:
    account = tmp_path / "account"
    account.mkdir()
    (profile.home / ".claude").mkdir()
    inside = profile.home / ".claude"
    hiding = replace(profile, hidden=(account, tmp_path / "absent", inside))
    options = options_of(hiding)
    hidden = place(options, "--tmpfs", account)
    assert hidden < place(options, "--bind", profile.project, profile.project)
    # There is nothing to hide in the home, and a mask would leave an empty folder.
    assert not {str(tmp_path / "absent"), str(inside)} & set(options)


def test_without_network_a_namespace_of_its_own_is_asked_for(
    profile: SandboxProfile,
) -> None:
    cut = make_profile(profile.project, profile.home, profile.state_dir, network=False)
    assert "--unshare-net" in options_of(cut)
    assert "--unshare-net" not in options_of(profile)
