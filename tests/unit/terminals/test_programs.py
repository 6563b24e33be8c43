"""Which folders of the home a sandbox shows for its programs."""

from pathlib import Path

import pytest

from sidestage.terminals.programs import (
    find_program_dirs,
    install_folder,
    read_git_config,
    real_folders,
    through_real_folder,
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return (tmp_path / "home").resolve()


def put_program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_a_native_installer_s_link_shows_both_its_folders(home: Path) -> None:
    real = put_program(home / ".local/share/claude/versions/2.1")
    link = home / ".local/bin/claude"
    link.parent.mkdir(parents=True)
    link.symlink_to(real)
    assert find_program_dirs(["claude"], path=str(link.parent), home=home) == (
        link.parent,
        real.parent,
    )


def test_a_package_of_npm_shows_the_outermost_node_modules(home: Path) -> None:
    prefix = home / ".nvm/versions/node/v22"
    real = put_program(prefix / "lib/node_modules/@a/code/node_modules/b/bin/claude")
    put_program(prefix / "bin/node")
    (prefix / "bin/claude").symlink_to(Path("..") / real.relative_to(prefix))
    found = find_program_dirs(["claude", "node"], path=str(prefix / "bin"), home=home)
    assert prefix / "bin" in found
    assert prefix / "lib/node_modules" in found


def test_a_chain_of_links_is_shown_step_by_step(home: Path) -> None:
    real = put_program(home / "tools/real/run")
    middle = home / "tools/middle/run"
    first = home / "tools/first/run"
    for link, target in ((middle, real), (first, middle)):
        link.parent.mkdir(parents=True)
        link.symlink_to(target)
    found = find_program_dirs(["run"], path=str(first.parent), home=home)
    assert set(found) == {first.parent, middle.parent, real.parent}


def test_programs_outside_the_home_and_absent_ones_need_no_folder(home: Path) -> None:
    assert find_program_dirs(["sh", "no-such"], path="/usr/bin:/bin", home=home) == ()


@pytest.mark.parametrize("where", [".", ".ssh"])
def test_neither_the_home_nor_a_hidden_folder_of_it_is_shown_for_a_program(
    home: Path, where: str
) -> None:
    program = put_program(home / where / "tool")
    assert find_program_dirs(["tool"], path=str(program.parent), home=home) == ()


def test_a_program_in_another_hidden_folder_is_shown(home: Path) -> None:
    """Only the home was looked at; an agent in `/tmp` or `/home` was missing."""
    program = put_program(home.parent / "elsewhere" / "tool")
    found = find_program_dirs(["tool"], path=str(program.parent), home=home)
    assert found == (program.parent,)


def test_a_linked_folder_of_the_path_is_named_by_its_real_one(home: Path) -> None:
    """With `~/bin` a link, the agent was not found inside: only its target is shown."""
    put_program(home / "dotfiles" / "bin" / "claude")
    (home / "bin").symlink_to(home / "dotfiles" / "bin")
    real = f"{home}/dotfiles/bin"
    assert through_real_folder(f"{home}/bin/claude") == f"{real}/claude"
    path = f"{home}/bin:/usr/bin::{real}:/usr/bin"
    assert real_folders(path) == f"{real}:{Path('/usr/bin').resolve()}"


def test_a_link_to_a_program_keeps_its_own_name(home: Path) -> None:
    real = put_program(home / "versions" / "tool-2")
    (home / "bin").mkdir()
    (home / "bin" / "tool").symlink_to(real)
    assert through_real_folder(f"{home}/bin/tool") == f"{home}/bin/tool"


def test_what_the_owner_lists_is_shown_if_it_is_there(home: Path) -> None:
    (home / ".cargo").mkdir()
    listed = [home / ".cargo", home / "absent"]
    assert find_program_dirs([], path="", home=home, listed=listed) == (
        home / ".cargo",
    )


def test_any_other_program_is_installed_where_it_lies() -> None:
    assert install_folder(Path("/opt/tool/bin/run")) == Path("/opt/tool/bin")


def test_name_and_email_come_from_the_owner_s_own_git(home: Path) -> None:
    (home / ".gitconfig").write_text(
        "[user]\n\tname = Ada\n[credential]\n\thelper = store\n"
    )
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
    assert read_git_config(environment) == '[user]\n\tname = "Ada"\n'


def test_without_git_there_is_no_configuration(
    monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    monkeypatch.setenv("PATH", str(home))
    assert read_git_config({"HOME": str(home), "PATH": str(home)}) == ""
