"""A program that behaves like Claude Code, without a model. Stdlib only.

A prompt is answered with its echo, or as `stub:…` in it says:

    stub:text(T)      answers T              stub:question   a free-form question
    stub:bash(CMD)    asks, then runs CMD    stub:askuser    a question with choices
    stub:plan         a plan for approval    stub:dialog     some other dialog
    stub:slow(S)      S seconds, a word at a time

`/clear`, `/branch`, `/rename NAME`, `/exit` and `!COMMAND` do what they do there.
"""

import argparse
import contextlib
import json
import signal
import sys
import uuid
from pathlib import Path

from sidestage.demo.agent.agent_files import (
    VERSION,
    NoConversation,
    Registry,
    Transcript,
    config_dir,
    config_file,
    find_transcript,
)
from sidestage.demo.agent.agent_hooks import Hooks
from sidestage.demo.agent.agent_script import steps_of
from sidestage.demo.agent.agent_steps import Steps, recorded, run_command
from sidestage.demo.agent.agent_terminal import DOWN, ENTER, ESCAPE, Terminal


class Agent:
    """One process of the CLI on one conversation (until `/clear` or `/branch`)."""

    def __init__(self, arguments: argparse.Namespace, transcript: Transcript) -> None:
        self.arguments = arguments
        self.transcript = transcript
        self.name: str | None = arguments.name
        self.mode: str = arguments.permission_mode or "manual"
        self.terminal = Terminal()
        self.registry = Registry(
            transcript.conversation, arguments.name, headless=arguments.print
        )
        self._said_hello = False
        settings = [config_dir() / "settings.json"]
        if arguments.settings:
            settings.append(Path(arguments.settings))
        self.steps = Steps(self, Hooks(*settings))

    def run(self) -> None:
        """Be the TUI until the person leaves."""
        self.terminal.open()
        try:
            self._ask_for_trust()
            self.registry.write()
            source = "resume" if self.arguments.resume else "startup"
            self._fire("SessionStart", source=source)
            for role, text in self.transcript.turns():
                self.terminal.say(f"{'❯' if role == 'user' else '●'} {text}")
            self.become("idle")
            if self.arguments.prompt:
                self._turn(self.arguments.prompt)
            while True:
                self._take(self.terminal.read_line())
        finally:
            self._fire("SessionEnd", reason="prompt_input_exit")
            self.registry.remove()
            self.terminal.close()
            self._say_goodbye()

    def run_headless(self) -> None:
        """Answer one prompt and leave (`-p`)."""
        self.transcript.headless = True
        self.registry.write()
        try:
            self.become("busy", title=False)
            self._write_prompt(self.arguments.prompt)
            steps = steps_of(self.arguments.prompt)
            answer = next((it.value for it in steps if it.kind == "say"), "Done.")
            self.transcript.answer({"type": "text", "text": answer})
            sys.stdout.write(answer + "\n")
        finally:
            self.registry.remove()

    def become(self, status: str, *, title: bool = True, **more: object) -> None:
        """Tell the registry and the window's title what we do."""
        self.registry.write(status=status, waitingFor=more.get("waiting_for"))
        if title:
            self.terminal.title(f"{'◐' if status == 'busy' else '✳'} Claude Code")

    def _ask_for_trust(self) -> None:
        """Ask before the registry knows us, as the real one does."""
        try:
            config = json.loads(config_file().read_text())
        except (OSError, ValueError):
            return  # no such file: nothing asks
        folder = config.get("projects", {}).get(str(Path.cwd()), {})
        if folder.get("hasTrustDialogAccepted") is True:
            return
        lines = ["Quick safety check", "❯ No, exit", "  Yes, I trust this folder"]
        if self.terminal.ask(lines, ENTER + ESCAPE + DOWN) != DOWN:
            raise SystemExit(1)
        lines = ["Quick safety check", "  No, exit", "❯ Yes, I trust this folder"]
        if self.terminal.ask(lines, ENTER + ESCAPE) != ENTER:
            raise SystemExit(1)

    def _take(self, text: str) -> None:
        command, _, argument = text.strip().partition(" ")
        if command == "/exit":
            raise SystemExit(0)
        if command == "/clear":
            self._move_to(Transcript(str(uuid.uuid4())))
            self.terminal.lines = []
        elif command == "/branch":
            branch = self.transcript.fork(str(uuid.uuid4()), marks=True)
            self._move_to(branch)
            branch.state("custom-title", customTitle=argument or "(Branch)")
        elif command == "/rename":
            self._rename(argument)
        elif command.startswith("!"):
            self.terminal.say(run_command(text.strip()[1:]))
        elif command:
            self._turn(text)

    def _move_to(self, transcript: Transcript) -> None:
        """Go on with another conversation in the same process."""
        self.transcript = transcript
        self._said_hello = False
        self.registry.write(sessionId=transcript.conversation)

    def _rename(self, name: str) -> None:
        self.name = name
        self.registry.write(name=name, nameSource="user")
        self.transcript.state("custom-title", customTitle=name)

    def _turn(self, prompt: str) -> None:
        """Take a prompt and answer it."""
        self.terminal.say(f"❯ {prompt}")
        self.become("busy")
        self.steps.prompt_id = str(uuid.uuid4())
        self._fire("UserPromptSubmit", prompt=prompt)
        self._write_prompt(prompt)
        finished = self.steps.perform(steps_of(prompt))
        self.transcript.tree("system", subtype="turn_duration", durationMs=1)
        self.transcript.state("last-prompt", lastPrompt=prompt)
        if finished:
            self._fire(
                "Stop", stop_hook_active=False, last_assistant_message=self.steps.said
            )
        self.become("idle")

    def _write_prompt(self, prompt: str) -> None:
        transcript = self.transcript
        if not self._said_hello:
            self._said_hello = True
            for call in transcript.open_calls():
                text = "[Tool call interrupted: the session ended]"
                transcript.result(call, text, toolDenialKind="interrupted")
            if self.name:
                transcript.state("custom-title", customTitle=self.name)
            transcript.state("permission-mode", permissionMode=recorded(self.mode))
        source = "sdk" if transcript.headless else "typed"
        marks = {} if transcript.headless else {"origin": {"kind": "human"}}
        transcript.tree(
            "user",
            message={"role": "user", "content": prompt},
            promptSource=source,
            permissionMode=recorded(self.mode),
            **marks,
        )

    def _fire(self, event: str, **fields: object) -> None:
        self.steps.fire(event, **fields)

    def _say_goodbye(self) -> None:
        if self.transcript.records:
            sys.stdout.write(
                "\r\nResume this session with:\r\n"
                f"claude --resume {self.transcript.conversation}\r\n"
            )


def _parse(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="claude", allow_abbrev=False)
    parser.add_argument("--resume")
    parser.add_argument("--session-id")
    parser.add_argument("--fork-session", action="store_true")
    parser.add_argument("-n", "--name")
    parser.add_argument("--permission-mode")
    parser.add_argument("--settings")
    parser.add_argument("-p", "--print", action="store_true")
    parser.add_argument("--version", action="version", version=f"{VERSION} (scripted)")
    parser.add_argument("prompt", nargs="?")
    return parser.parse_args(words)


def _open_transcript(arguments: argparse.Namespace) -> Transcript:
    """Return the conversation the arguments ask for; leaves with the real words."""
    new_id = arguments.session_id
    if new_id and arguments.resume and not arguments.fork_session:
        sys.exit("Error: --session-id with --resume needs --fork-session.")
    if new_id and _exists(new_id):
        sys.exit(f"Error: Session ID {new_id} is already in use.")
    new_id = new_id or str(uuid.uuid4())
    if not arguments.resume:
        return Transcript(new_id)
    try:
        resumed = Transcript.load(arguments.resume)
    except NoConversation:
        sys.exit(f"No conversation found with session ID: {arguments.resume}")
    return resumed.fork(new_id, marks=False) if arguments.fork_session else resumed


def _exists(conversation: str) -> bool:
    with contextlib.suppress(NoConversation):
        find_transcript(conversation)
        return True
    return False


def _leave(number: int, _: object) -> None:
    raise SystemExit(128 + number)


def main() -> None:
    """Run the program."""
    arguments = _parse(sys.argv[1:])
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)
    agent = Agent(arguments, _open_transcript(arguments))
    if arguments.print:
        agent.run_headless()
    else:
        agent.run()
