"""How the scripted agent carries out the steps of an answer. Stdlib only."""

import subprocess
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol

from sidestage.demo.agent.agent_files import Transcript
from sidestage.demo.agent.agent_hooks import Hooks
from sidestage.demo.agent.agent_script import Step
from sidestage.demo.agent.agent_terminal import ENTER, ESCAPE, Terminal

COMMAND_LIMIT_SECONDS = 30
NEEDS_INPUT = frozenset({"AskUserQuestion", "ExitPlanMode"})


class Body(Protocol):
    """What the steps work with: the agent's files, screen and registry."""

    transcript: Transcript
    terminal: Terminal
    mode: str

    def become(self, status: str, *, title: bool = True, **more: object) -> None:
        """Tell the registry and the window's title what we do."""


class Steps:
    """Carries steps out, one after the other, until one is refused."""

    def __init__(self, agent: Body, hooks: Hooks) -> None:
        self._agent = agent
        self._hooks = hooks
        self.prompt_id = ""
        self.said = ""
        """The last text of the answer."""
        self._kinds: dict[str, Callable[[Any], bool]] = {
            "say": self._say,
            "bash": self._bash,
            "edit": self._edit,
            "ask": self._ask_user,
            "plan": self._plan,
            "dialog": self._dialog,
            "slow": self._slow,
            "work": self._work,
        }

    def perform(self, steps: Iterable[Step]) -> bool:
        """Carry *steps* out; False if the person interrupted."""
        return all(self._kinds[step.kind](step.value) for step in steps)

    def _say(self, text: str, **fields: object) -> bool:
        self._agent.transcript.answer({"type": "text", "text": text}, **fields)
        self._agent.terminal.say(f"● {text}")
        self.said = text
        return True

    def fire(self, event: str, **fields: object) -> None:
        """Run the hooks of *event*."""
        self._hooks.fire(event, {**self._common(), **fields})

    def _common(self) -> dict[str, Any]:
        return {
            "session_id": self._agent.transcript.conversation,
            "transcript_path": str(self._agent.transcript.path),
            "cwd": str(Path.cwd()),
            "permission_mode": recorded(self._agent.mode),
            "prompt_id": self.prompt_id,
        }

    def _call(self, name: str, inputs: dict[str, Any]) -> str:
        call = f"toolu_{uuid.uuid4().hex[:20]}"
        block = {"type": "tool_use", "id": call, "name": name, "input": inputs}
        self._agent.transcript.answer(block)
        self.fire("PreToolUse", tool_name=name, tool_input=inputs, tool_use_id=call)
        return call

    def _finish(self, call: str, name: str, inputs: dict[str, Any], text: str) -> None:
        self._agent.transcript.result(call, text)
        self.fire(
            "PostToolUse",
            tool_name=name,
            tool_input=inputs,
            tool_use_id=call,
            tool_response=text,
        )

    def _ask(self, waiting_for: str, lines: list[str], keys: str) -> str:
        """Open a dialog; what it waits for stands in the registry."""
        self._agent.become("waiting", waiting_for=waiting_for)
        key = self._agent.terminal.ask(lines, keys)
        self._agent.become("busy")
        return str(key)

    def _decide(
        self, waiting_for: str, tool: tuple[str, dict[str, Any]], lines: list[str]
    ) -> str | dict[str, Any]:
        """Ask the person, and the hooks beside: whoever is first decides.

        Return the key, or a hook's decision.
        """
        name, inputs = tool
        fields = {**self._common(), "tool_name": name, "tool_input": inputs}
        self._agent.become("waiting", waiting_for=waiting_for)
        hooks = self._hooks.begin("PermissionRequest", fields)
        while True:
            answer = self._agent.terminal.ask(lines, "1234" + ENTER + ESCAPE, hooks)
            if isinstance(answer, dict) and _says_nothing(answer, name):
                hooks = []
                continue
            self._agent.become("busy")
            return answer

    def _refuse(self, call: str, answer: str | dict[str, Any]) -> bool:
        if isinstance(answer, dict):
            note = answer.get("message") or "Denied."
            self._agent.transcript.result(call, note, toolDenialKind="user-rejected")
            return self._say(f"Understood: {note}")
        self._agent.transcript.result(call, "Rejected", toolDenialKind="user-rejected")
        self._note_interrupt("[Request interrupted by user for tool use]")
        return False

    def _note_interrupt(self, words: str, **fields: object) -> None:
        block = {"type": "text", "text": words}
        self._agent.transcript.tree(
            "user", message={"role": "user", "content": [block]}, **fields
        )
        self._agent.terminal.say("  ⎿  Interrupted")

    def _bash(self, command: str) -> bool:
        inputs = {"command": command, "description": "Run a command"}
        call = self._call("Bash", inputs)
        lines = ["Bash command", command, "Do you want to proceed?"]
        lines += ["❯ 1. Yes", "  4. No", "Esc to cancel"]
        answer = self._decide("permission prompt", ("Bash", inputs), lines)
        if _is_no(answer, "4"):
            return self._refuse(call, answer)
        output = run_command(command)
        self._agent.terminal.say(output)
        self._finish(call, "Bash", inputs, output)
        return True

    def _edit(self, inputs: dict[str, Any]) -> bool:
        call = self._call("Edit", inputs)
        self._agent.terminal.say(f"● Update({inputs['file_path']})")
        self._finish(call, "Edit", inputs, "The file has been updated.")
        return True

    def _ask_user(self, question: dict[str, Any]) -> bool:
        inputs = {"questions": [question]}
        call = self._call("AskUserQuestion", inputs)
        labels = [option["label"] for option in question["options"]]
        numbered = [f"{number}. {it}" for number, it in enumerate(labels, 1)]
        numbered.append("Enter to select · Esc to cancel")
        text = question["question"]
        answer = self._decide(
            "input needed", ("AskUserQuestion", inputs), [text, *numbered]
        )
        if _is_no(answer, ""):
            return self._refuse(call, answer)
        if isinstance(answer, dict):
            choice = answer["updatedInput"]["answers"][text]
        else:
            number = int(answer) if answer.isdecimal() else 1
            choice = labels[min(number, len(labels)) - 1]
        self._finish(call, "AskUserQuestion", inputs, f'Answered: "{text}"="{choice}"')
        return True

    def _plan(self, plan: str) -> bool:
        inputs = {"plan": plan}
        call = self._call("ExitPlanMode", inputs)
        lines = ["Ready to code?", *plan.splitlines(), "Would you like to proceed?"]
        lines += ["❯ 1. Yes, and use auto mode", "  2. Yes, manually approve edits"]
        answer = self._decide("permission prompt", ("ExitPlanMode", inputs), lines)
        if _is_no(answer, "3"):
            return self._refuse(call, answer)
        self._finish(call, "ExitPlanMode", inputs, "User has approved your plan.")
        return True

    def _dialog(self, _: object) -> bool:
        self._ask("dialog open", ["Some dialog", "Enter to close"], ENTER + ESCAPE)
        return True

    def _work(self, seconds: float) -> bool:
        self._agent.terminal.spinner = "✻ Working…"
        self._agent.terminal.paint()
        is_interrupted = not self._agent.terminal.wait(seconds)
        self._agent.terminal.spinner = ""
        if is_interrupted:
            self._note_interrupt("[Request interrupted by user]")
        return not is_interrupted

    def _slow(self, seconds: int) -> bool:
        words = [f"word{number}" for number in range(1, 4 * seconds + 1)]
        for number in range(len(words)):
            self._agent.terminal.title(
                "◑ Claude Code" if number % 2 else "◐ Claude Code"
            )
            self._agent.terminal.spinner = (
                f"✻ Working… ({number // 4}s · ↓ {number} tokens)"
            )
            self._agent.terminal.paint()
            is_interrupted = not self._agent.terminal.wait(0.25)
            self._agent.terminal.spinner = ""
            if is_interrupted:
                self._say(" ".join(words[:number]), isAbortedMidStream=True)
                self._note_interrupt(
                    "[Request interrupted by user]", interruptedMessageId="msg_aborted"
                )
                return False
        return self._say(" ".join(words) + ".")


def _says_nothing(decision: dict[str, Any], tool: str) -> bool:
    """Tell of a plain "allow" of what needs the person: the real one ignores it."""
    is_plain = decision.get("behavior") == "allow" and "updatedInput" not in decision
    return is_plain and tool in NEEDS_INPUT


def _is_no(answer: str | dict[str, Any], key: str) -> bool:
    """Tell whether a decision, or a key other than those for "yes", refuses."""
    if isinstance(answer, dict):
        return answer.get("behavior") == "deny"
    return answer == ESCAPE or (answer == key and key != "")


def recorded(mode: str) -> str:
    """Return the mode as transcripts name it."""
    return "default" if mode == "manual" else mode


def run_command(command: str) -> str:
    """Run a shell command and return what it says."""
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=COMMAND_LIMIT_SECONDS,
        check=False,
    )
    return done.stdout.decode("utf-8", "replace").rstrip() or "(no output)"
