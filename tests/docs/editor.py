#!/usr/bin/env python3
"""What an editor shows with the installed schemas: editor.py BUILD, from the root of the project.

yaml-language-server, which VS Code and others use, opens files of an installation. It finds the schema by the first line of
each file, completes and explains fields, marks what is wrong, and nothing else. $YAML_LANGUAGE_SERVER names the program
(npm install yaml-language-server)."""
import itertools
import json
import os
import pathlib
import queue
import shutil
import subprocess
import sys
import tempfile
import threading

PATIENCE = 1200 * int(os.environ.get("STAGECRAFT_TEST_PATIENCE", "1"))
SETTINGS = {"yaml": {"validate": True, "hover": True, "completion": True, "schemaStore": {"enable": False}}}
server = os.environ.get("YAML_LANGUAGE_SERVER") or shutil.which("yaml-language-server")
if not server:
    print("SKIPPED: there is no yaml-language-server; npm install yaml-language-server, and set YAML_LANGUAGE_SERVER to it")
    sys.exit(77)


class Editor:
    """Speaks the language server protocol: messages of JSON with their length before them."""

    def __init__(self, folder):
        self.process = subprocess.Popen([server, "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.numbers, self.answers, self.problems = itertools.count(1), {}, queue.Queue()
        self.arrived = threading.Condition()
        threading.Thread(target=self.listen, daemon=True).start()
        self.ask("initialize", {"processId": os.getpid(), "rootUri": folder.as_uri(), "capabilities": {"workspace": {"configuration": True}, "textDocument": {
            "hover": {"contentFormat": ["markdown"]}, "completion": {"completionItem": {"documentationFormat": ["markdown"]}}}}})
        self.tell("initialized", {})
        self.tell("workspace/didChangeConfiguration", {"settings": SETTINGS})

    def write(self, message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def listen(self):
        while True:
            length = 0
            while (line := self.process.stdout.readline().strip()):
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            if not length:
                return
            self.take(json.loads(self.process.stdout.read(length)))

    def take(self, message):
        if message.get("method") == "workspace/configuration":
            self.write({"id": message["id"], "result": [SETTINGS.get(item.get("section")) for item in message["params"]["items"]]})
        elif message.get("method") == "textDocument/publishDiagnostics":
            self.problems.put((message["params"]["uri"], message["params"]["diagnostics"]))
        elif "method" in message and "id" in message:
            self.write({"id": message["id"], "result": None})
        elif "id" in message:
            with self.arrived:
                self.answers[message["id"]] = message
                self.arrived.notify_all()

    def tell(self, method, params):
        self.write({"method": method, "params": params})

    def ask(self, method, params):
        number = next(self.numbers)
        self.write({"id": number, "method": method, "params": params})
        with self.arrived:
            assert self.arrived.wait_for(lambda: number in self.answers, PATIENCE), f"no answer to {method}"
        answer = self.answers.pop(number)
        assert "error" not in answer, answer
        return answer["result"]

    def open(self, path, text):
        """Shows a text as that file; what is wrong with it."""
        uri = path.as_uri()
        # The server keeps what it has read of a version, also when the file is opened again.
        self.tell("textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": "yaml", "version": next(self.numbers), "text": text}})
        while True:
            of, problems = self.problems.get(timeout=PATIENCE)
            if of == uri:
                return problems

    def close(self, path):
        self.tell("textDocument/didClose", {"textDocument": {"uri": path.as_uri()}})

    def at(self, method, path, line, column):
        return self.ask(f"textDocument/{method}", {"textDocument": {"uri": path.as_uri()}, "position": {"line": line, "character": column}})


def place_of(text, word):
    """Line and column after a word."""
    before = text[:text.index(word) + len(word)]
    return before.count("\n"), len(before) - before.rfind("\n") - 1


def labels(completions):
    items = completions["items"] if isinstance(completions, dict) else completions
    return {item["label"]: json.dumps(item.get("documentation", "")) for item in items}


def check_writing(editor, folder):
    """A scenario that a user writes next to the examples."""
    names = (folder / f"examples/mine-{number}.yaml" for number in itertools.count())
    file = next(names)
    head = "# yaml-language-server: $schema=../schema/scenario.json\nschema: scenario/2\nmodel: gpt2-small\ncluster: two-node-mixed\n"
    right = head + "plan: {planner: balanced, stages: 2}\nrun:\n  schedule: 1f1b\n  micro_batches: 4\n"
    assert editor.open(file, right) == []
    hover = json.dumps(editor.at("hover", file, *place_of(right, "micro_b")))
    assert "micro-batches" in hover.lower(), hover
    editor.close(file)

    file, text = next(names), head + "plan: {planner: balanced, stages: 2}\nrun:\n  \n"
    editor.open(file, text)
    fields = labels(editor.at("completion", file, *place_of(text, "run:\n  ")))
    assert {"schedule", "micro_batches", "iterations"} <= set(fields), fields
    assert len(fields["schedule"]) > 10, fields["schedule"]  # A sentence says what the field is.
    editor.close(file)

    file, text = next(names), head + "plan:\n  planner: \nrun: {schedule: 1f1b, micro_batches: 4}\n"
    editor.open(file, text)
    planners = labels(editor.at("completion", file, *place_of(text, "planner: ")))
    assert {"balanced", "pipedream"} <= set(planners), planners
    editor.close(file)

    file, wrong = next(names), right.replace("stages: 2", "stagse: 2")
    problems = editor.open(file, wrong)
    assert any(p["range"]["start"]["line"] == 4 and "stagse" in p["message"] for p in problems), problems
    editor.close(file)


def check_files(editor, folder):
    """No installed file has a problem, and each has found its schema."""
    count, bad = 0, []
    for path in sorted(folder.rglob("*.yaml")):
        text = path.read_text()
        if len(text) > 60_000:  # It says nothing about long files in useful time.
            continue
        problems = editor.open(path, text)
        editor.close(path)
        count += 1
        bad += [f"{path}:{p['range']['start']['line'] + 1}: {p['message']}" for p in problems]
    assert not bad, f"{len(bad)} problems\n" + "\n".join(bad[:30])
    return count


with tempfile.TemporaryDirectory() as name:
    prefix = pathlib.Path(name) / "an installation"
    subprocess.run(["cmake", "--install", sys.argv[1], "--prefix", str(prefix)], check=True, stdout=subprocess.DEVNULL)
    editor = Editor(prefix)
    check_writing(editor, prefix / "share/stagecraft/scenarios")
    count = check_files(editor, prefix / "share/stagecraft")
    editor.process.kill()
    print(f"fields are completed and explained; {count} installed files have no problem")
