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
import re
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.fakes.scripted_agent.agent_files import (
    VERSION,
    NoConversation,
    Registry,
    Transcript,
    config_file,
    find_transcript,
)
from tests.fakes.scripted_agent.agent_terminal import DOWN, ENTER, ESCAPE, Terminal

QUESTION = (
    "Both approaches work. The first is simpler, the second is faster.\n\n"
    "Which one would you like me to implement?"
)
CHOICES = ("SQLite", "PostgreSQL")
COMMAND_LIMIT_SECONDS = 30
_TAG = re.compile(r"stub:([a-z]+)(?:\((.*)\))?", re.DOTALL)


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
        self._answers: dict[str, Callable[[str], None]] = {
            "bash": self._bash,
            "askuser": self._ask_user,
            "plan": self._plan,
            "dialog": self._dialog,
            "slow": self._slow,
        }

    def run(self) -> None:
        """Be the TUI until the person leaves."""
        self.terminal.open()
        try:
            self._ask_for_trust()
            self.registry.write()
            for role, text in self.transcript.turns():
                self.terminal.say(f"{'❯' if role == 'user' else '●'} {text}")
            self._become("idle")
            if self.arguments.prompt:
                self._turn(self.arguments.prompt)
            while True:
                self._take(self.terminal.read_line())
        finally:
            self.registry.remove()
            self.terminal.close()
            self._say_goodbye()

    def run_headless(self) -> None:
        """Answer one prompt and leave (`-p`)."""
        self.transcript.headless = True
        self.registry.write()
        try:
            self._become("busy", title=False)
            self._write_prompt(self.arguments.prompt)
            answer = _answer_text(self.arguments.prompt)
            self.transcript.answer({"type": "text", "text": answer})
            sys.stdout.write(answer + "\n")
        finally:
            self.registry.remove()

    def _become(self, status: str, *, title: bool = True, **more: Any) -> None:
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
            self.terminal.say(_run(text.strip()[1:]))
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
        self._become("busy")
        self._write_prompt(prompt)
        match = _TAG.search(prompt)
        answer = self._answers.get(match[1]) if match else None
        if answer is not None and match is not None:
            answer(match[2] or "")
        else:
            self._say(_answer_text(prompt))
        self.transcript.tree("system", subtype="turn_duration", durationMs=1)
        self.transcript.state("last-prompt", lastPrompt=prompt)
        self._become("idle")

    def _write_prompt(self, prompt: str) -> None:
        transcript = self.transcript
        if not self._said_hello:
            self._said_hello = True
            for call in transcript.open_calls():
                text = "[Tool call interrupted: the session ended]"
                transcript.result(call, text, toolDenialKind="interrupted")
            if self.name:
                transcript.state("custom-title", customTitle=self.name)
            transcript.state("permission-mode", permissionMode=_recorded(self.mode))
        source = "sdk" if transcript.headless else "typed"
        marks = {} if transcript.headless else {"origin": {"kind": "human"}}
        transcript.tree(
            "user",
            message={"role": "user", "content": prompt},
            promptSource=source,
            permissionMode=_recorded(self.mode),
            **marks,
        )

    def _say(self, text: str, **fields: Any) -> None:
        self.transcript.answer({"type": "text", "text": text}, **fields)
        self.terminal.say(f"● {text}")

    def _call(self, name: str, inputs: dict[str, Any]) -> str:
        call = f"toolu_{uuid.uuid4().hex[:20]}"
        block = {"type": "tool_use", "id": call, "name": name, "input": inputs}
        self.transcript.answer(block)
        return call

    def _ask(self, waiting_for: str, lines: list[str], keys: str) -> str:
        """Open a dialog; what it waits for stands in the registry."""
        self._become("waiting", waiting_for=waiting_for)
        key = self.terminal.ask(lines, keys)
        self._become("busy")
        return key

    def _refuse(self, call: str) -> None:
        self.transcript.result(call, "Rejected", toolDenialKind="user-rejected")
        self._note_interrupt("[Request interrupted by user for tool use]")

    def _note_interrupt(self, words: str, **fields: Any) -> None:
        block = {"type": "text", "text": words}
        self.transcript.tree(
            "user", message={"role": "user", "content": [block]}, **fields
        )
        self.terminal.say("  ⎿  Interrupted")

    def _bash(self, command: str) -> None:
        call = self._call("Bash", {"command": command})
        lines = ["Bash command", command, "Do you want to proceed?"]
        lines += ["❯ 1. Yes", "  4. No", "Esc to cancel"]
        if self._ask("permission prompt", lines, "1234" + ENTER + ESCAPE) in "4\x1b":
            self._refuse(call)
            return
        output = _run(command)
        self.terminal.say(output)
        self.transcript.result(call, output)
        self._say("The command has been handled. Done.")

    def _ask_user(self, _: str) -> None:
        question = "Which database should the service use?"
        options = [{"label": label, "description": ""} for label in CHOICES]
        call = self._call(
            "AskUserQuestion",
            {"questions": [{"question": question, "options": options}]},
        )
        numbered = [f"{number}. {it}" for number, it in enumerate(CHOICES, 1)]
        numbered.append("Enter to select · Esc to cancel")
        key = self._ask("input needed", [question, *numbered], "12" + ENTER + ESCAPE)
        if key == ESCAPE:
            self._refuse(call)
            return
        choice = CHOICES[1] if key == "2" else CHOICES[0]
        self.transcript.result(call, f'Answered: "{question}"="{choice}"')
        self._say("Thank you, I will use your answer. Done.")

    def _plan(self, _: str) -> None:
        call = self._call("ExitPlanMode", {"plan": "# Plan\n\n1. Do it."})
        lines = ["Ready to code?", "# Plan", "1. Do it.", "Would you like to proceed?"]
        lines += ["❯ 1. Yes, and use auto mode", "  2. Yes, manually approve edits"]
        if self._ask("permission prompt", lines, "123" + ENTER + ESCAPE) in "3\x1b":
            self._refuse(call)
            return
        self.transcript.result(call, "User has approved your plan.")
        self._say("The plan has been handled. Done.")

    def _dialog(self, _: str) -> None:
        self._ask("dialog open", ["Some dialog", "Enter to close"], ENTER + ESCAPE)
        self._say("The dialog is closed.")

    def _slow(self, seconds: str) -> None:
        words = [f"word{number}" for number in range(1, 4 * int(seconds or 1) + 1)]
        for number in range(len(words)):
            self.terminal.title("◑ Claude Code" if number % 2 else "◐ Claude Code")
            self.terminal.spinner = f"✻ Working… ({number // 4}s · ↓ {number} tokens)"
            self.terminal.paint()
            is_interrupted = not self.terminal.wait(0.25)
            self.terminal.spinner = ""
            if is_interrupted:
                self._say(" ".join(words[:number]), isAbortedMidStream=True)
                self._note_interrupt(
                    "[Request interrupted by user]", interruptedMessageId="msg_aborted"
                )
                return
        self._say(" ".join(words) + ".")

    def _say_goodbye(self) -> None:
        if self.transcript.records:
            sys.stdout.write(
                "\r\nResume this session with:\r\n"
                f"claude --resume {self.transcript.conversation}\r\n"
            )


def _answer_text(prompt: str) -> str:
    match = _TAG.search(prompt)
    if match is None:
        return f"Stub answer to: {prompt}"
    if match[1] == "text":
        return match[2] or ""
    return QUESTION if match[1] == "question" else "Done."


def _recorded(mode: str) -> str:
    return "default" if mode == "manual" else mode


def _run(command: str) -> str:
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=COMMAND_LIMIT_SECONDS,
        check=False,
    )
    return done.stdout.decode("utf-8", "replace").rstrip() or "(no output)"


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
