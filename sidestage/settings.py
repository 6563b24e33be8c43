"""The settings: one frozen value, read once, in the command.

A value comes from the command line, else from the environment (`SIDESTAGE_<NAME>`),
else from `settings.toml` in the state folder, else from the default here.
`docs/settings.md` lists them; a test compares the two.
"""

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from sidestage.errors import SettingsInvalid

SETTINGS_FILE: Final = "settings.toml"
ENVIRONMENT_PREFIX: Final = "SIDESTAGE_"
DEFAULT_PORT: Final = 8787
PORT_LIMIT: Final = 65_535


def _setting(default: Any, about: str) -> Any:  # noqa: ANN401 a field of any type
    if isinstance(default, list | dict):
        message = "a default must be immutable"
        raise TypeError(message)
    return field(default=default, metadata={"about": about})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that can be set. Each field's meaning is its `about` text."""

    state_dir: Path
    home: Path
    path: str
    """The `PATH` on which agents and the sandbox are looked for."""
    environment: Mapping[str, str] = field(repr=False)
    """The environment `serve` was started with; children get an allow-list of it."""
    host: str = _setting(
        "127.0.0.1",
        "The address to listen on. Any but loopback needs `insecure_bind` or a "
        "public URL with https.",
    )
    port: int = _setting(DEFAULT_PORT, "The port to listen on; 0 lets the system pick.")
    insecure_bind: bool = _setting(
        False,  # noqa: FBT003 the default of a flag
        "Listen beyond loopback without TLS: anyone on the way can read tokens and run "
        "commands with them.",
    )
    public_urls: tuple[str, ...] = _setting(
        (), "The addresses under which clients reach the server through a proxy."
    )
    allowed_origins: tuple[str, ...] = _setting(
        (), "Web origins, besides the server's own, that may call the API."
    )
    trusted_proxies: tuple[str, ...] = _setting(
        (), "Addresses whose `X-Forwarded-For` names the caller."
    )
    claude_config_dirs: tuple[str, ...] = _setting(
        (),
        "Claude Code's state folders, one an account. Empty: `CLAUDE_CONFIG_DIR`, "
        "else `~/.claude`.",
    )
    sandbox: bool = _setting(
        True,  # noqa: FBT003 the default of a flag
        "Run terminals in a sandbox. Off runs agents with all your rights.",
    )
    allow_root: bool = _setting(
        False,  # noqa: FBT003 the default of a flag
        "Start sandboxed terminals also as root, where the sandbox is weaker.",
    )
    sandbox_path_dirs: tuple[str, ...] = _setting(
        (), "Folders in your home that programs in a sandbox may read and run."
    )
    pass_environment: tuple[str, ...] = _setting(
        (), "Names of further environment variables that agents need."
    )
    hold_headless: bool = _setting(
        False,  # noqa: FBT003 the default of a flag
        "Let permission requests of runs without a dialog (`claude -p`, the SDK) wait "
        "for a device too. Nobody at a keyboard can answer those.",
    )
    push_hosts: tuple[str, ...] = _setting(
        (),
        "Hosts that devices may have messages pushed to, besides the push services of "
        "Google, Mozilla, Apple and Microsoft: `name`, `*.name`, `name:port`.",
    )
    push_contact: str = _setting(
        "mailto:sidestage@example.org",
        "Whom push services write to if the server sends too much: a `mailto:` or "
        "`https:` address.",
    )
    push_allow_loopback: bool = _setting(
        False,  # noqa: FBT003 the default of a flag
        "Let push endpoints be on this machine, also without TLS: for a relay of your "
        "own. Its host must be in `push_hosts` too.",
    )
    terminals_limit: int = _setting(16, "How many terminals may run at once.")
    records_limit: int = _setting(
        64, "How many screens of terminals are kept for after a crash or reboot."
    )
    record_limit_bytes: int = _setting(
        4 << 20,
        "How large one kept screen may be; its oldest lines are left out first.",
    )
    demo: bool = _setting(
        False,  # noqa: FBT003 the default of a flag
        "Say to clients that this server is a demonstration (`sidestage demo`).",
    )
    log_level: str = _setting("info", "`debug`, `info`, `warning` or `error`.")
    log_format: str = _setting(
        "text", "`text`, or `json`: one object a line, for programs that collect logs."
    )

    @property
    def database(self) -> Path:
        """The SQLite file."""
        return self.state_dir / "sidestage.db"

    @property
    def admin_token_file(self) -> Path:
        """The file that holds the admin token."""
        return self.state_dir / "admin.token"

    @property
    def host_key_file(self) -> Path:
        """The file that holds the host's private key."""
        return self.state_dir / "host-key"

    @property
    def vapid_key_file(self) -> Path:
        """The file that holds the key that push services know the server by."""
        return self.state_dir / "vapid-key"

    @property
    def control_socket(self) -> Path:
        """The Unix socket on which the command line speaks to `serve`."""
        return self.state_dir / "control.sock"

    @property
    def hook_socket(self) -> Path:
        """The Unix socket on which agents' hooks speak to `serve`."""
        return self.state_dir / "hook.sock"

    @property
    def hook_spool(self) -> Path:
        """The folder in which hooks leave events while no server runs."""
        return self.state_dir / "spool"

    @property
    def claude_dirs(self) -> tuple[Path, ...]:
        """Claude Code's state folders, absolute."""
        named = self.claude_config_dirs
        if not named:
            own = self.environment.get("CLAUDE_CONFIG_DIR")
            named = (own,) if own else ("~/.claude",)
        return tuple(dict.fromkeys(_absolute(text, self.home) for text in named))


_NOT_SETTABLE: Final = frozenset({"state_dir", "home", "path", "environment"})
SETTABLE: Final = tuple(f for f in fields(Settings) if f.name not in _NOT_SETTABLE)
"""The fields a file, the environment or a flag may set."""

_TRUE: Final = frozenset({"1", "true", "yes", "on"})
_FALSE: Final = frozenset({"0", "false", "no", "off"})
_LOG_FORMATS: Final = ("text", "json")
_LOG_LEVELS: Final = ("debug", "info", "warning", "error")


def read_settings(
    flags: Mapping[str, object] | None = None,
    *,
    environment: Mapping[str, str] = os.environ,
) -> Settings:
    """Read the settings; raises `SettingsInvalid` naming the first that is wrong.

    *flags* are the values of the command line; None among them means "not given".
    """
    given = {k: v for k, v in (flags or {}).items() if v is not None}
    home = _home(environment)
    named = given.pop("state_dir", None)
    state_dir = _absolute(str(named), home) if named else default_state_dir(environment)
    values: dict[str, object] = {}
    values.update(_from_file(state_dir / SETTINGS_FILE))
    values.update(_from_environment(environment))
    values.update(given)
    checked = {name: _check(name, value) for name, value in values.items()}
    return Settings(
        state_dir=state_dir,
        home=home,
        path=environment.get("PATH", os.defpath),
        environment=dict(environment),
        **checked,
    )


def default_state_dir(environment: Mapping[str, str]) -> Path:
    """Return the state folder where `--state-dir` names none."""
    home = _home(environment)
    named = environment.get("SIDESTAGE_STATE_DIR")
    if named:
        return _absolute(named, home)
    base = environment.get("XDG_STATE_HOME")
    return (Path(base) if base else home / ".local" / "state") / "sidestage"


def _home(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("HOME") or Path.home())


def _absolute(text: str, home: Path) -> Path:
    if text == "~" or text.startswith("~/"):
        return home / text[2:]
    return Path(text).absolute()


def _from_file(path: Path) -> dict[str, object]:
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SettingsInvalid(
            f"The state folder {path.parent} cannot be used: {error.strerror}, reading "
            f"{path.name}. Name another folder with --state-dir."
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsInvalid(f"{path} cannot be read: {error}") from error
    known = {f.name for f in SETTABLE}
    for name in values:
        if name not in known:
            raise SettingsInvalid(f"{path}: there is no setting named {name!r}.")
    return values


def _from_environment(environment: Mapping[str, str]) -> dict[str, object]:
    values: dict[str, object] = {}
    for each in SETTABLE:
        text = environment.get(ENVIRONMENT_PREFIX + each.name.upper())
        if text is not None:
            values[each.name] = _from_text(each.name, text)
    return values


def _from_text(name: str, text: str) -> object:
    kind = type(_default(name))
    if kind is bool:
        if text.lower() in _TRUE | _FALSE:
            return text.lower() in _TRUE
        raise SettingsInvalid(f"{name} must be true or false, not {text!r}.")
    if kind is int:
        try:
            return int(text)
        except ValueError:
            raise SettingsInvalid(
                f"{name} must be a whole number, not {text!r}."
            ) from None
    if kind is tuple:
        return tuple(part.strip() for part in text.split(",") if part.strip())
    return text


def _default(name: str) -> object:
    return next(f.default for f in SETTABLE if f.name == name)


def _check(name: str, value: object) -> Any:  # noqa: ANN401 as many types as fields
    kind = type(_default(name))
    if kind is tuple and isinstance(value, list | tuple):
        if all(isinstance(part, str) for part in value):
            return tuple(value)
        raise SettingsInvalid(f"{name} must be a list of texts.")
    if type(value) is not kind:
        raise SettingsInvalid(f"{name} must be {_KINDS[kind]}, not {value!r}.")
    check = _CHECKS.get(name)
    if check is not None:
        check(value)
    return value


_KINDS: Final[Mapping[type, str]] = {
    bool: "true or false",
    int: "a whole number",
    str: "a text",
    tuple: "a list of texts",
}


def _check_port(value: Any) -> None:  # noqa: ANN401 checked to be an int before
    if not 0 <= value <= PORT_LIMIT:
        raise SettingsInvalid(f"port must be from 0 to {PORT_LIMIT}, not {value}.")


def _check_log_level(value: Any) -> None:  # noqa: ANN401 checked to be a str before
    if value not in _LOG_LEVELS:
        raise SettingsInvalid(f"log_level must be one of {', '.join(_LOG_LEVELS)}.")


def _check_log_format(value: Any) -> None:  # noqa: ANN401 checked to be a str before
    if value not in _LOG_FORMATS:
        raise SettingsInvalid(f"log_format must be one of {', '.join(_LOG_FORMATS)}.")


def _check_push_contact(value: Any) -> None:  # noqa: ANN401 checked to be a str before
    if not value.startswith(("mailto:", "https://")):
        raise SettingsInvalid("push_contact must begin with mailto: or https://.")


def _check_terminals_limit(value: Any) -> None:  # noqa: ANN401 an int
    if not 1 <= value <= TERMINALS_LIMIT_MOST:
        raise SettingsInvalid(
            f"terminals_limit must be from 1 to {TERMINALS_LIMIT_MOST}, not {value}."
        )


def _check_records_limit(value: Any) -> None:  # noqa: ANN401 an int
    if not 1 <= value <= RECORDS_LIMIT_MOST:
        raise SettingsInvalid(
            f"records_limit must be from 1 to {RECORDS_LIMIT_MOST}, not {value}."
        )


def _check_record_limit_bytes(value: Any) -> None:  # noqa: ANN401 an int
    if not RECORD_BYTES_LEAST <= value <= RECORD_BYTES_MOST:
        raise SettingsInvalid(
            f"record_limit_bytes must be from {RECORD_BYTES_LEAST} to "
            f"{RECORD_BYTES_MOST}, not {value}."
        )


RECORDS_LIMIT_MOST: Final = 1024
"""With the largest records they fill 64 GiB, which nobody wants by accident."""
RECORD_BYTES_LEAST: Final = 64 * 1024
"""A full screen in many colours fits."""
RECORD_BYTES_MOST: Final = 64 << 20
TERMINALS_LIMIT_MOST: Final = 256
"""More PTYs than any machine's owner watches; each may hold an agent of 500 MB."""

_CHECKS: Final[Mapping[str, Callable[[Any], None]]] = {
    "port": _check_port,
    "log_level": _check_log_level,
    "log_format": _check_log_format,
    "push_contact": _check_push_contact,
    "terminals_limit": _check_terminals_limit,
    "records_limit": _check_records_limit,
    "record_limit_bytes": _check_record_limit_bytes,
}
