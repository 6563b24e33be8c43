"""What passes into a terminal's environment, and what never does."""

import configparser

import pytest

from sidestage.terminals.environment import (
    child_environment,
    passes,
    render_git_config,
    sandbox_environment,
)

LEAKS = [
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "GPG_AGENT_INFO",
    "GPG_TTY",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
    "KITTY_LISTEN_ON",
    "KITTY_WINDOW_ID",
    "TMUX",
    "STY",
    "TMUX_PANE",
    "WEZTERM_UNIX_SOCKET",
    "VSCODE_IPC_HOOK_CLI",
    "VSCODE_GIT_ASKPASS_NODE",
    "GITHUB_TOKEN",
    "GH_TOKEN",
    "GITLAB_TOKEN",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_PROFILE",
    "AWS_SESSION_TOKEN",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GOOGLE_CLOUD_PROJECT",
    "AZURE_CLIENT_SECRET",
    "KUBECONFIG",
    "DOCKER_HOST",
    "NPM_TOKEN",
    "OPENAI_API_KEY",
    "DATABASE_URL",
    "PGPASSWORD",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "PYTHONPATH",
    "NODE_OPTIONS",
    "BASH_ENV",
    "ENV",
    "PROMPT_COMMAND",
    "GIT_ASKPASS",
    "GIT_SSH_COMMAND",
    "GIT_CONFIG_COUNT",
    "NOTIFY_SOCKET",
    "LISTEN_FDS",
    "SIDESTAGE_STATE_DIR",
    "SIDESTAGE_TOKEN",
    "CLAUDE_CONFIG_DIR",
    "COLUMNS",
    "LINES",
]

NESTING = [
    "CLAUDECODE",
    "CLAUDE_PID",
    "CLAUDE_PROJECT_DIR",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_CODE_CHILD_SESSION",
    "CLAUDE_CODE_CHILD_NOTES_DIR",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_MESSAGING_TOKEN",
    "CLAUDE_CODE_MESSAGING_SOCKET",
    "CLAUDE_CODE_EXECPATH",
    "CLAUDE_CODE_SESSION_ATTENDED",
    "CLAUDE_CODE_SSE_PORT",
    "CLAUDE_CODE_BRIDGE_SESSION_ID",
]

NEEDED = [
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "PATH",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "HTTPS_PROXY",
    "https_proxy",
    "NO_PROXY",
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_FILE",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
    "CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS",
]


@pytest.mark.parametrize("name", LEAKS)
def test_what_opens_other_doors_does_not_pass(name: str) -> None:
    assert name not in child_environment({name: "secret"})


@pytest.mark.parametrize("name", NESTING)
def test_what_tells_a_child_that_it_is_nested_never_passes(name: str) -> None:
    assert not passes(name)
    assert name not in child_environment({name: "1"}, passed=[name])


@pytest.mark.parametrize("name", NEEDED)
def test_what_logins_and_networks_need_passes(name: str) -> None:
    assert child_environment({name: "value"})[name] == "value"


def test_the_owner_lets_a_variable_through_by_its_exact_name() -> None:
    parent = {"AWS_PROFILE": "work", "AWS_SECRET_ACCESS_KEY": "secret"}
    child = child_environment(parent, passed=["AWS_PROFILE", "ABSENT"])
    assert child == {
        "AWS_PROFILE": "work",
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
    }


def test_what_is_added_wins_over_the_server_s_own() -> None:
    parent = {"TERM": "dumb", "COLORTERM": "no", "HOME": "/h"}
    child = child_environment(parent, added={"SIDESTAGE_TERMINAL": "terminal:1"})
    assert child == {
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "HOME": "/h",
        "SIDESTAGE_TERMINAL": "terminal:1",
    }


def test_git_is_pointed_at_its_configuration_only_if_there_is_one() -> None:
    assert sandbox_environment(git_config="") == {}
    assert sandbox_environment(git_config="[user]\n") == {
        "GIT_CONFIG_GLOBAL": "/run/sidestage-gitconfig"
    }


def test_the_git_configuration_holds_name_and_email() -> None:
    parser = configparser.ConfigParser()
    parser.read_string(render_git_config("Ada", "ada@example.org"))
    assert dict(parser["user"]) == {"name": '"Ada"', "email": '"ada@example.org"'}
    assert render_git_config(None, None) == ""


def test_a_name_cannot_add_a_section() -> None:
    """A name is quoted: a newline in it could name a credential helper."""
    text = render_git_config('A"\n[credential]\n\thelper = "!evil', "\\")
    assert text.splitlines() == [
        "[user]",
        '\tname = "A\\"[credential]helper = \\"!evil"',
        '\temail = "\\\\"',
    ]
