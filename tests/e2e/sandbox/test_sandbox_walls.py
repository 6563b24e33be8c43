"""What a hostile program inside cannot reach; security's list, one try each."""

import errno
import os
import platform
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from sidestage.errors import ProjectChanged
from terminal_host.host.seccomp import MACHINES, TIOCLINUX, TIOCSTI
from tests.e2e.sandbox.bench import (
    Bench,
    Try,
    claude_files,
    counting,
    listening,
    listening_in,
)

pytestmark = pytest.mark.sandbox

GONE = errno.ENOENT


@pytest.fixture
def bystander() -> Iterator[int]:
    """A process of the same user, outside of any sandbox."""
    with subprocess.Popen(["sleep", "60"], env={"SECRET": "x", "PATH": "/bin"}) as one:
        yield one.pid
        one.kill()


def test_secrets_of_the_home_and_of_sidestage_are_not_there(bench: Bench) -> None:
    tries: list[Try] = [
        ("read", str(bench.state / "admin.token")),
        ("read", str(bench.state / "sidestage.db")),
        ("read", str(bench.home / ".ssh/id_ed25519")),
    ]
    assert set(bench.try_outside(tries).values()) == {0}
    assert set(bench.try_inside(tries).values()) == {GONE}


def test_the_state_folder_stays_hidden_inside_a_writable_project(bench: Bench) -> None:
    profile = bench.profile(state_dir=bench.project / "state")
    token = bench.project / "state/admin.token"
    token.parent.mkdir()
    token.write_text("secret")
    assert bench.try_inside([("read", str(token))], profile) == {
        ("read", str(token)): GONE
    }


def test_sockets_in_tmp_the_home_and_the_state_folder_are_out_of_reach(
    bench: Bench,
) -> None:
    """A read-only bind does not stop connect(), so the sockets must not be there."""
    places = [
        bench.state / "host.sock",
        bench.state / "control.sock",
        bench.state / "hook.sock",
        bench.home / "agent.sock",
        Path("/tmp") / f"ssh-{uuid.uuid4().hex}",  # as ssh-agent does
        Path("/var/tmp") / f"x-{uuid.uuid4().hex}",
    ]
    tries: list[Try] = [("connect", str(place)) for place in places]
    with ExitStack() as stack:
        for place in places:
            stack.callback(place.unlink)
            stack.enter_context(listening(str(place)))
        assert set(bench.try_outside(tries).values()) == {0}
        assert set(bench.try_inside(tries).values()) == {GONE}


def test_where_system_sockets_lie_nothing_is_left(bench: Bench) -> None:
    """Where docker, podman, both D-Buses, Wayland and gpg-agent listen."""
    masked = ("/run", "/tmp", "/var/tmp", "/sys", "/mnt", "/media", "/root")
    done = bench.run(["find", *masked, "-mindepth", "1", "-not", "-type", "d"])
    allowed = ("/run/systemd/resolve", "/run/NetworkManager", "/run/resolvconf")
    left = [line for line in done.stdout.splitlines() if not line.startswith(allowed)]
    # The bench's own home lies below /tmp; of it only the project may show.
    assert [line for line in left if not line.startswith(str(bench.project))] == []


@pytest.mark.parametrize("place", ["runtime", "home/.runtime", "home/deep/runtime"])
def test_the_user_manager_and_the_user_bus_hear_nothing_from_inside(
    bench: Bench, place: str
) -> None:
    """Where no user manager runs the tries failed for want of one, and proved nothing.

    So both listen here, and are heard by the same commands from outside.
    """
    runtime = bench.root / place
    (runtime / "systemd").mkdir(parents=True)
    manager, bus = runtime / "systemd/private", runtime / "bus"
    named = {
        "XDG_RUNTIME_DIR": str(runtime),
        "DBUS_SESSION_BUS_ADDRESS": f"unix:path={bus}",
    }
    words = ["env", *(f"{name}={value}" for name, value in named.items())]
    asking = (
        [*words, "systemd-run", "--user", "touch", str(bench.home / "escaped")],
        [*words, "busctl", "--user", "list"],
    )
    tries: list[Try] = [("connect", str(manager)), ("connect", str(bus))]
    with counting(manager) as manager_calls, counting(bus) as bus_calls:
        for command in asking:
            outside = subprocess.run(
                command, capture_output=True, timeout=60, check=False
            )
            assert outside.returncode != 0  # both are hung up on
        assert set(bench.try_outside(tries).values()) == {0}
        assert {"private"} == set(manager_calls)
        assert {"bus"} == set(bus_calls)
        assert min(len(manager_calls), len(bus_calls)) >= 2  # a command, and a try

        manager_calls.clear()
        bus_calls.clear()
        for command in asking:
            assert bench.run(command).returncode != 0
        assert set(bench.try_inside(tries).values()) == {GONE}
        assert manager_calls == bus_calls == []
    assert not (bench.home / "escaped").exists()


def test_abstract_sockets_are_refused(bench: Bench) -> None:
    name = f"sidestage-test-{uuid.uuid4().hex}"
    tries: list[Try] = [("abstract", name)]
    with listening("\0" + name):
        assert bench.try_outside(tries) == {("abstract", name): 0}
        assert bench.try_inside(tries) == {("abstract", name): errno.EPERM}


def test_processes_outside_can_neither_be_signalled_nor_looked_into(
    bench: Bench, bystander: int
) -> None:
    expected: dict[Try, int] = {
        ("signal", str(bystander)): errno.EPERM,
        ("signal0", str(bystander)): errno.EPERM,
        ("read", f"/proc/{bystander}/environ"): errno.EACCES,
        ("read", f"/proc/{bystander}/mem"): errno.EACCES,
        ("list", f"/proc/{bystander}/root"): errno.EACCES,
        ("read", f"/proc/{bystander}/fd/1"): errno.EACCES,
    }
    assert bench.try_inside(list(expected)) == expected
    os.kill(bystander, 0)


def test_the_sandbox_s_own_outer_process_cannot_be_looked_into(bench: Bench) -> None:
    done = bench.run(["sh", "-c", "cat /proc/$PPID/environ"])
    assert (done.returncode, done.stdout) == (1, "")


def test_typing_into_the_terminal_is_refused_whatever_the_high_bits(
    bench: Bench,
) -> None:
    tries: list[Try] = [
        ("ioctl", hex(command | high))
        for command in (TIOCSTI, TIOCLINUX)
        for high in (0, 1 << 32, 0xFFFFFFFF << 32)
    ]
    script = "python3 probe.py \"$0\"; echo 'end of it'"
    with bench.start(["sh", "-c", script, _as_json(tries)]) as terminal:
        terminal.wait_for("end of it")
        assert str([errno.EPERM] * len(tries)) in terminal.text.replace("\n", "")


def test_dangerous_system_calls_are_refused_by_the_kernel(bench: Bench) -> None:
    machine = MACHINES[platform.machine()]
    expected: dict[Try, int] = {
        **{("syscall", str(n)): errno.EPERM for n in machine.forbidden.values()},
        **{("syscall", str(n)): errno.ENOSYS for n in machine.absent.values()},
    }
    assert bench.try_inside(list(expected)) == expected


def test_what_later_sessions_run_cannot_be_written(bench: Bench) -> None:
    files = claude_files(bench)
    (bench.project / ".claude").mkdir()
    (bench.project / ".claude/settings.json").write_text("{}")
    hooks = bench.project / ".git/hooks"
    hooks.mkdir(parents=True)
    profile = bench.profile(agent=files)
    expected: dict[Try, int] = {
        ("write", str(files.config_dir / "settings.json")): errno.EROFS,
        ("make", str(files.config_dir / "commands/x.md")): errno.EROFS,
        ("make", str(bench.project / ".claude/settings.json")): errno.EROFS,
        ("make", str(bench.project / ".claude/settings.local.json")): errno.EROFS,
        ("make", str(hooks / "pre-commit")): errno.EROFS,
        # A read-only file in a writable tree is not protected by its name, so the
        # parents must not move either.
        ("rename", str(bench.project / ".claude")): errno.EBUSY,
        ("rename", str(bench.project / ".git")): errno.EBUSY,
        ("rename", str(hooks)): errno.EBUSY,
        ("rename", str(files.config_dir)): errno.EBUSY,
        ("rename", str(files.config_dir / "settings.json")): errno.EBUSY,
        ("unlink", str(files.config_dir / "settings.json")): errno.EBUSY,
        ("write", str(bench.project / ".git/index")): 0,
        ("write", str(files.transcripts / "x.jsonl")): 0,
    }
    assert bench.try_inside(list(expected), profile) == expected


def test_a_forgery_beside_the_settings_stays_inside(bench: Bench) -> None:
    """Commands, agents and skills that did not exist are made in a folder that ends."""
    files = claude_files(bench)
    forged = files.config_dir / "agents/forged.md"
    (bench.home / ".gitconfig").write_text("[user]\n")
    tries: list[Try] = [("make", str(forged)), ("make", str(bench.home / ".bashrc"))]
    assert set(bench.try_inside(tries, bench.profile(agent=files)).values()) == {0}
    assert not forged.exists()
    assert not (bench.home / ".bashrc").exists()


def test_the_terminal_s_own_hook_socket_answers_also_when_it_is_made_anew(
    bench: Bench,
) -> None:
    """Bound as a file, the socket was dead after the first restart of the server."""
    files = claude_files(bench)
    inside = "/run/sidestage/hook.sock"
    script = (
        "import socket, sys\n"
        "for line in sys.stdin:\n"
        f"    socket.socket(socket.AF_UNIX).connect({inside!r})\n"
        "    print('reached', line, flush=True)\n"
    )
    profile = bench.profile(agent=files)
    with bench.start(["python3", "-c", script], profile) as terminal:
        for number in ("1st", "2nd"):
            with listening_in(files.private_dir / "hook", "hook.sock"):
                terminal.send(f"{number}\r")
                terminal.wait_for(f"reached {number}")
    tries: list[Try] = [("make", "/run/sidestage/forged"), ("connect", inside)]
    done = bench.try_inside(tries, profile)
    assert list(done.values()) == [errno.EROFS, GONE]


def test_other_folders_transcripts_are_not_there(bench: Bench) -> None:
    files = claude_files(bench)
    other = files.config_dir / "projects/-other/a.jsonl"
    other.parent.mkdir()
    other.write_text("{}")
    key = files.config_dir / "sessions/1.abc.key"
    key.parent.mkdir()
    key.write_text("token")
    tries: list[Try] = [("read", str(other)), ("read", str(key))]
    done = bench.try_inside(tries, bench.profile(agent=files))
    assert set(done.values()) == {GONE}


def test_links_in_the_project_lead_nowhere(bench: Bench) -> None:
    """A repository whose `.git` or `.claude` is a link to ~/.ssh gets no bind of it."""
    for name in (".git", ".claude"):
        (bench.project / name).symlink_to(bench.home / ".ssh")
    tries: list[Try] = [
        ("read", str(bench.project / name / "id_ed25519"))
        for name in (".git", ".claude")
    ]
    assert set(bench.try_inside(tries).values()) == {GONE}


def test_a_read_only_project_takes_no_write(bench: Bench) -> None:
    profile = bench.profile(project_read_only=True)
    tries: list[Try] = [
        ("make", str(bench.project / "x")),
        ("write", str(bench.project / "probe.py")),
        ("read", str(bench.project / "probe.py")),
    ]
    done = bench.try_inside(tries, profile)
    assert list(done.values()) == [errno.EROFS, errno.EROFS, 0]


def test_without_network_not_even_loopback_answers(bench: Bench) -> None:
    done = bench.run(["cat", "/proc/net/dev"], bench.profile(network=False))
    names = [line.split(":")[0].strip() for line in done.stdout.splitlines()[2:]]
    assert names == ["lo"]


def test_a_nested_namespace_does_not_undo_a_mask(bench: Bench) -> None:
    token = bench.state / "admin.token"
    undo = f"id -u; umount -l {bench.home}; umount -l {bench.state}; cat {token}"
    nested = ["unshare", "--user", "--map-root-user", "--mount"]
    done = bench.run([*nested, "sh", "-c", undo])
    assert done.stdout == "0\n"  # root of its own namespace, and still no token
    assert done.returncode != 0


def test_an_agent_s_own_sandbox_works_inside(bench: Bench) -> None:
    done = bench.run(["bwrap", "--ro-bind", "/", "/", "--unshare-all", "echo", "fine"])
    assert done.stdout == "fine\n", done.stderr


def test_a_link_put_in_the_place_of_the_project_starts_nothing(bench: Bench) -> None:
    bench.project.rename(bench.project.with_name("moved"))
    bench.project.symlink_to(bench.home / ".ssh")
    with pytest.raises(ProjectChanged):
        bench.run(["ls"])


def test_only_the_standard_descriptors_reach_the_program(bench: Bench) -> None:
    done = bench.run(["ls", "/proc/self/fd"])
    assert done.stdout.split() == ["0", "1", "2", "3"]  # 3 is the listing's own


def test_arguments_of_the_sandbox_show_no_folder(bench: Bench) -> None:
    """Every local user can read argument lists."""
    done = bench.run(["sh", "-c", "tr '\\0' ' ' < /proc/$PPID/cmdline"])
    assert done.stdout.startswith("/usr/bin/bwrap --args ")
    assert str(bench.state) not in done.stdout


def _as_json(tries: list[Try]) -> str:
    return str([list(one) for one in tries]).replace("'", '"')
