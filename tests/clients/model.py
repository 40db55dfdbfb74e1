# SPDX-License-Identifier: Apache-2.0
"""A stand-in for the models behind four clients: it speaks their APIs, asks for tool calls one by one, and remembers every request.

It keeps no state of a conversation: which deed comes next follows from the answers to tool calls that a request has after the
latest prompt, as it would with a real model. A request without tools (a title, a summary) gets a short text.
"""
import http.server
import itertools
import json
import threading
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Deed:
    """What the model asks for: a file with content, the content of a file, a command, or (of Claude Code) a tool by its name, with arguments in JSON."""

    name: str
    kind: str  # write, read, shell or tool
    path: str = ""
    text: str = ""


@dataclass
class Talk:
    """What a request says, in no dialect: the latest prompt, answers to tool calls since then, and the names of tools."""

    prompt: str = ""
    answers: list = field(default_factory=list)
    tools: set = field(default_factory=set)


def words(content):
    """The text of a message's content, which is text or a list of parts."""
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content or [] if isinstance(part, dict))


def example(schema):
    """The smallest value that a JSON schema of a side question allows."""
    kind = schema.get("type", "").lower()
    if kind == "object":
        return {name: example(part) for name, part in schema.get("properties", {}).items()}
    return {"array": [], "boolean": False, "integer": 1, "number": 1}.get(kind, schema.get("enum", ["nothing"])[0])


def server_sent(event):
    """An event of a stream; only those of some APIs have a name of their own."""
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {json.dumps(event)}\n\n"


# ---- dialects: how each API says a talk, a tool call and a last word ----


class Dialect:
    """What most of them have in common."""

    @staticmethod
    def aside(body):
        """The answer to a request that is no part of the work."""
        return "A short title"


class Messages(Dialect):
    """Anthropic's messages, of Claude Code."""

    @staticmethod
    def path(path):
        return path.endswith("/v1/messages")

    @staticmethod
    def streams(path, body):
        return body.get("stream")

    @staticmethod
    def talk(body):
        talk = Talk(tools={tool["name"] for tool in body.get("tools", [])})
        for message in body["messages"]:
            parts = message["content"] if isinstance(message["content"], list) else [{"type": "text", "text": message["content"]}]
            answers = [words(part.get("content")) for part in parts if part["type"] == "tool_result"]
            if answers:
                talk.answers += answers
            elif message["role"] == "user" and (said := words(parts)).strip():
                talk.prompt, talk.answers = said, []
        return talk

    @staticmethod
    def call(deed, tools):
        if deed.kind == "tool":
            return deed.path, json.loads(deed.text)
        return {
            "write": ("Write", {"file_path": deed.path, "content": deed.text}),
            "read": ("Read", {"file_path": deed.path}),
            "shell": ("Bash", {"command": deed.text, "description": deed.name}),
        }[deed.kind]

    @staticmethod
    def message(number, blocks, reason):
        return {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "stand-in", "content": blocks,
                "stop_reason": reason, "stop_sequence": None, "usage": {"input_tokens": 10, "output_tokens": 10}}

    @classmethod
    def events(cls, number, call, text):
        if call:
            start = {"type": "tool_use", "id": f"toolu_{number}", "name": call[0], "input": {}}
            delta, reason = {"type": "input_json_delta", "partial_json": json.dumps(call[1])}, "tool_use"
        else:
            start, delta, reason = {"type": "text", "text": ""}, {"type": "text_delta", "text": text}, "end_turn"
        yield {"type": "message_start", "message": cls.message(number, [], None)}
        yield {"type": "content_block_start", "index": 0, "content_block": start}
        yield {"type": "content_block_delta", "index": 0, "delta": delta}
        yield {"type": "content_block_stop", "index": 0}
        yield {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": {"output_tokens": 10}}
        yield {"type": "message_stop"}

    @classmethod
    def whole(cls, number, call, text):
        return cls.message(number, [{"type": "text", "text": text}], "end_turn")


class Responses(Dialect):
    """OpenAI's responses, of Codex."""

    @staticmethod
    def path(path):
        return path.endswith("/responses")

    @staticmethod
    def streams(path, body):
        return True

    @staticmethod
    def talk(body):
        talk = Talk(tools={tool.get("name", tool["type"]) for tool in body.get("tools", [])})
        for item in body["input"]:
            if item["type"] in ("function_call_output", "custom_tool_call_output"):
                output = item["output"]
                talk.answers.append(output if isinstance(output, str) else json.dumps(output))
            elif item["type"] == "message" and item["role"] == "user":
                talk.prompt, talk.answers = words(item["content"]), []
        return talk

    @staticmethod
    def call(deed, tools):
        command = {
            "write": f"printf %s '{deed.text}' > '{deed.path}'",
            "read": f"cat '{deed.path}'",
            "shell": deed.text,
        }[deed.kind]
        if "exec_command" in tools:
            return "exec_command", {"cmd": command}
        if "shell_command" in tools:
            return "shell_command", {"command": command}
        return "shell", {"command": ["sh", "-c", command]}

    @staticmethod
    def events(number, call, text):
        if call:
            item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": call[0], "arguments": json.dumps(call[1])}
        else:
            item = {"type": "message", "id": f"msg_{number}", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
        usage = {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 10,
                 "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 20}
        yield {"type": "response.created", "response": {"id": f"resp_{number}"}}
        yield {"type": "response.output_item.done", "output_index": 0, "item": item}
        yield {"type": "response.completed", "response": {"id": f"resp_{number}", "usage": usage}}


class Completions(Dialect):
    """OpenAI's chat completions, which opencode speaks with a provider of one's own."""

    @staticmethod
    def path(path):
        return path.endswith("/chat/completions")

    @staticmethod
    def streams(path, body):
        return body.get("stream")

    @staticmethod
    def talk(body):
        talk = Talk(tools={tool["function"]["name"] for tool in body.get("tools", [])})
        for message in body["messages"]:
            if message["role"] == "tool":
                talk.answers.append(words(message["content"]))
            elif message["role"] == "user":
                talk.prompt, talk.answers = words(message["content"]), []
        return talk

    @staticmethod
    def call(deed, tools):
        return {
            "write": ("write", {"filePath": deed.path, "content": deed.text}),
            "read": ("read", {"filePath": deed.path}),
            "shell": ("bash", {"command": deed.text, "description": deed.name}),
        }[deed.kind]

    @staticmethod
    def events(number, call, text):
        if call:
            function = {"name": call[0], "arguments": json.dumps(call[1])}
            delta, reason = {"tool_calls": [{"index": 0, "id": f"call_{number}", "type": "function", "function": function}]}, "tool_calls"
        else:
            delta, reason = {"content": text}, "stop"
        chunk = {"id": f"chat_{number}", "object": "chat.completion.chunk", "created": 1, "model": "stand-in"}
        yield chunk | {"choices": [{"index": 0, "delta": {"role": "assistant"} | delta, "finish_reason": None}]}
        usage = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
        yield chunk | {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": usage}

    @staticmethod
    def whole(number, call, text):
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        return {"id": f"chat_{number}", "object": "chat.completion", "created": 1, "model": "stand-in", "choices": [choice]}


class Generate(Dialect):
    """Gemini's generateContent."""

    @staticmethod
    def path(path):
        return "enerateContent" in path

    @staticmethod
    def streams(path, body):
        return ":streamGenerateContent" in path

    @staticmethod
    def talk(body):
        talk = Talk(tools={f["name"] for tool in body.get("tools", []) for f in tool.get("functionDeclarations", [])})
        for content in body["contents"]:
            answers = [json.dumps(part["functionResponse"]["response"]) for part in content["parts"] if "functionResponse" in part]
            if answers:
                talk.answers += answers
            elif content["role"] == "user" and (said := words(content["parts"])).strip():
                talk.prompt, talk.answers = said, []
        return talk

    @staticmethod
    def call(deed, tools):
        return {
            "write": ("write_file", {"file_path": deed.path, "content": deed.text}),
            "read": ("read_file", {"file_path": deed.path}),
            "shell": ("run_shell_command", {"command": deed.text, "description": deed.name}),
        }[deed.kind]

    @staticmethod
    def aside(body):
        schema = body.get("generationConfig", {}).get("responseJsonSchema")
        return json.dumps(example(schema)) if schema else "A short title"

    @classmethod
    def events(cls, number, call, text):
        yield cls.whole(number, call, text)

    @staticmethod
    def whole(number, call, text):
        part = {"functionCall": {"name": call[0], "args": call[1]}} if call else {"text": text}
        return {"candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}],
                "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 10, "totalTokenCount": 20}}


DIALECTS = (Messages, Responses, Completions, Generate)


class Model:
    """The server. `deeds[word]` is the list of deeds for a prompt that has this word in it; the last word after them is `farewell`."""

    def __init__(self, deeds, farewell="Everything-is-said.", listener=None):
        """`listener` is a socket to serve instead of one on the loopback."""
        self.deeds = deeds
        self.farewell = farewell
        self.words = {}  # word in a prompt: a function from the prompt to the last word, instead of the farewell
        self.requests = []  # (path, body as text)
        self.keys = []  # what each request to the model had in x-api-key
        self.answers = {}  # name of a deed: what the client answered to the model
        self.said_farewell = threading.Semaphore(0)
        self.numbers = itertools.count(1)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.handler(), bind_and_activate=listener is None)
        if listener:
            self.server.socket.close()
            self.server.socket = listener
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.socket.getsockname()[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def heard(self, text):
        """Whether any request had this text in it."""
        return any(text in body for _, body in self.requests)

    def next(self, dialect, body):
        """(tool call or None, text or None) that answers a request."""
        talk = dialect.talk(body)
        deeds = next((deeds for word, deeds in self.deeds.items() if word in talk.prompt), None)
        if deeds is None or not talk.tools:
            return None, dialect.aside(body)
        for deed, answer in zip(deeds, talk.answers):
            self.answers[deed.name] = answer
        if len(talk.answers) < len(deeds):
            return dialect.call(deeds[len(talk.answers)], talk.tools), None
        return None, next((say(talk.prompt) for word, say in self.words.items() if word in talk.prompt), self.farewell)

    def handler(model):  # the inner class needs the name self
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def reply(self, status, kind, data):
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def do_GET(self):
                model.requests.append((self.path, ""))
                self.reply(404, "application/json", b'{"error": {"message": "not here"}}')

            def do_POST(self):
                text = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                path = self.path.partition("?")[0]
                model.requests.append((path, text.decode(errors="replace")))
                model.keys.append(self.headers.get("x-api-key"))
                dialect = next((d for d in DIALECTS if d.path(path)), None)
                if not dialect:
                    return self.reply(404, "application/json", b'{"error": {"message": "not here"}}')
                body = json.loads(text)
                call, said = model.next(dialect, body)
                number = next(model.numbers)
                if dialect.streams(path, body):
                    stream = "".join(map(server_sent, dialect.events(number, call, said)))
                    self.reply(200, "text/event-stream", stream.encode())
                else:
                    self.reply(200, "application/json", json.dumps(dialect.whole(number, call, said)).encode())
                if said == model.farewell:
                    model.said_farewell.release()

        return Handler
