"""A model server for the real Claude Code: scripted answers, no network, no account.

`with StubModel() as model:` serves POST /v1/messages on a free port of the loopback;
point `ANTHROPIC_BASE_URL` at `model.url`. What a prompt makes it answer stands in
`stub_scenarios`. It keeps no conversation: each answer follows from its request alone.
"""

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final, Self

from tests.fakes.stub_scenarios import (
    TAG,
    Answer,
    Call,
    Hang,
    Json,
    Prompt,
    Refuse,
    Reply,
    Say,
    choose_reply,
)

MODEL: Final = "stub-model-1"
EVENTS_BEFORE_CUT: Final = 4

Event = tuple[Json, float]
"""A server-sent event, and the seconds of silence before it."""

_INJECTED: Final = re.compile(
    r"<(system-reminder|local-command-caveat|command-name|command-message"
    r"|local-command-stdout|session_context|task-notification)\b[^>]*>.*?</\1>",
    re.DOTALL,
)
"""What the CLI itself wraps into a person's message."""


def parse_prompt(body: Json) -> Prompt:
    """Return the last prompt a person wrote, and how many answers followed it."""
    text, step = "", 0
    messages: list[Json] = body.get("messages", [])
    for message in messages:
        if message["role"] == "assistant":
            step += 1
        elif message["role"] == "user" and (texts := _typed_texts(message["content"])):
            text, step = texts[-1], 0
    whole = "\n".join(_text_of(message.get("content")) for message in messages)
    context = _text_of(body.get("system")) + "\n" + whole
    directory = re.search(r"[Ww]orking directory[: ]*\s*(/[^\s<]+)", context)
    plans = re.findall(r"/[^\s\"`]+/plans/[\w.-]+?\.md", whole)
    return Prompt(
        text=text,
        step=step,
        directory=directory.group(1).rstrip(".") if directory else "",
        plan_file=plans[-1] if plans else "",
    )


def _typed_texts(content: Any) -> list[str]:
    blocks = (
        [{"type": "text", "text": content}] if isinstance(content, str) else content
    )
    texts = [
        _INJECTED.sub("", block.get("text", "")).strip()
        for block in blocks or []
        if block.get("type") == "text"
    ]
    if any(block.get("type") == "tool_result" for block in blocks or []):
        # Beside a tool's result only a queued prompt or a compaction is a person's.
        return [text for text in texts if TAG.search(text) or _wants_summary(text)]
    return [text for text in texts if text]


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        return str(content.get("text") or "")
    return "\n".join(_text_of(part) for part in content or [])


def _wants_summary(text: str) -> bool:
    lower = text.lower()
    return "summary" in lower and (
        "conversation so far" in lower or "<analysis>" in lower
    )


def answer_request(body: Json) -> Reply:
    """Return the reply to a request: a scenario, or what the CLI asks on its own."""
    prompt = parse_prompt(body)
    if _wants_summary(prompt.text):
        return Answer((Say("<summary>\n1. The stub looked.\n</summary>"),))
    if not body.get("tools") and "title" in _text_of(body.get("system")).lower():
        return Answer((Say(json.dumps({"title": f"Stub title {_key(body)[:6]}"})),))
    return choose_reply(prompt)


def _key(body: Json, *more: object) -> str:
    """Name a request, the same for the same messages."""
    raw = json.dumps([body.get("messages"), more], sort_keys=True)
    return hashlib.sha256(raw.encode()).hexdigest()


def list_events(body: Json, answer: Answer) -> Iterator[Event]:
    """Yield the events of a streamed answer (the Messages API's order)."""
    tokens = answer.input_tokens or max(1, len(json.dumps(body)) // 4)
    usage = {
        "input_tokens": tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": 1,
    }
    message = {
        "id": "msg_stub" + _key(body)[:18],
        "type": "message",
        "role": "assistant",
        "model": body.get("model", MODEL),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    yield {"type": "message_start", "message": message}, answer.wait_seconds
    for index, block in enumerate(answer.blocks):
        yield from _block_events(index, block, _key(body, index))
    calls = any(isinstance(block, Call) for block in answer.blocks)
    delta = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
    usage = {**usage, "output_tokens": 20}
    yield {"type": "message_delta", "delta": delta, "usage": usage}, 0
    yield {"type": "message_stop"}, 0


def _block_events(index: int, block: Say | Call, key: str) -> Iterator[Event]:
    start, deltas = (
        _call_parts(block, key) if isinstance(block, Call) else _say_parts(block)
    )
    head = {"type": "content_block_start", "index": index, "content_block": start}
    yield head, 0
    for delta, wait in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}, wait
    yield {"type": "content_block_stop", "index": index}, 0


def _call_parts(call: Call, key: str) -> tuple[Json, list[Event]]:
    identity = "toolu_stub" + key[:20]
    start = {"type": "tool_use", "id": identity, "name": call.name, "input": {}}
    raw = json.dumps(call.arguments)
    return start, [({"type": "input_json_delta", "partial_json": raw}, 0)]


def _say_parts(say: Say) -> tuple[Json, list[Event]]:
    kind = "thinking" if say.thinking else "text"
    words = re.findall(r"\S+\s*|\s+", say.text) or [""]
    wait = say.over_seconds / len(words)
    deltas: list[Event] = [({"type": f"{kind}_delta", kind: w}, wait) for w in words]
    if say.thinking:
        deltas.append(({"type": "signature_delta", "signature": "c3R1Yg=="}, 0))
        return {"type": "thinking", "thinking": "", "signature": ""}, deltas
    return {"type": "text", "text": ""}, deltas


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.stopping = threading.Event()
        self.prompts: list[Prompt] = []

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is no error; anything else fails its answer."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
        """Keep the tests' output clean."""

    def do_HEAD(self) -> None:
        self._send_json({})

    def do_GET(self) -> None:
        self._send_json({"data": [{"id": MODEL, "type": "model"}], "has_more": False})

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        body: Json = json.loads(self.rfile.read(length) or b"{}")
        if self.path.split("?")[0].endswith("/count_tokens"):
            self._send_json({"input_tokens": 100})
            return
        self.server.prompts.append(parse_prompt(body))
        reply = answer_request(body)
        if isinstance(reply, Refuse):
            error = {"type": "api_error", "message": f"stub error {reply.status}"}
            self._send_json({"type": "error", "error": error}, reply.status)
        elif isinstance(reply, Hang):
            self.server.stopping.wait()
            self.close_connection = True
        elif body.get("stream"):
            self._stream(body, reply)
        else:
            self._send_json(fold_events(list_events(body, reply)))

    def _send_json(self, value: Json, status: int = HTTPStatus.OK) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _stream(self, body: Json, answer: Answer) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for count, (event, wait) in enumerate(list_events(body, answer)):
            stopped = wait and self.server.stopping.wait(wait)
            if stopped or (answer.cut and count == EVENTS_BEFORE_CUT):
                self.close_connection = True
                return
            text = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")


def fold_events(events: Iterator[Event]) -> Json:
    """Return the message that *events* stream."""
    message: Json = {}
    for event, _ in events:
        if event["type"] == "message_start":
            message = event["message"]
        elif event["type"] == "content_block_start":
            message["content"].append(dict(event["content_block"]))
        elif event["type"] == "content_block_delta":
            _fold_delta(message["content"][-1], event["delta"])
        elif event["type"] == "message_delta":
            message |= {**event["delta"], "usage": event["usage"]}
    return message


def _fold_delta(block: Json, delta: Json) -> None:
    if delta["type"] == "input_json_delta":
        block["input"] = json.loads(delta["partial_json"])
        return
    name = delta["type"].removesuffix("_delta")
    block[name] = block[name] + delta[name]


class StubModel:
    """The server, for the time of a `with` block."""

    def __init__(self) -> None:
        self._server = _Server()
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """What `ANTHROPIC_BASE_URL` must be."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def prompts(self) -> list[Prompt]:
        """Every prompt that reached the model, in order."""
        return list(self._server.prompts)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
