"""How a subcommand fails: with a sentence that says what to do."""


class CommandFailed(Exception):
    """The command cannot go on; `str()` of it is for the person at the terminal."""


class ServerGone(CommandFailed):
    """No server answers, or it went away: it may come back."""
