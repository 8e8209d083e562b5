#!/usr/bin/env python3
"""`stagecraft play` over its socket: play.py STAGECRAFT, from the root of the project. What the page does with it, tests/playground tests."""
import http.client
import json
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import processes  # noqa: E402

program = str(pathlib.Path(sys.argv[1]).resolve())
TEXT = pathlib.Path("scenarios/examples/quickstart.yaml").read_text()
failed = []


def check(holds, what):
    print(f"{'ok' if holds else 'FAILED'}: {what}")
    if not holds:
        failed.append(what)


class Play:
    """A running `stagecraft play`."""

    def __init__(self, *words):
        self.process = subprocess.Popen([program, "play", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        preexec_fn=processes.never_signaled)
        self.address = self.process.stdout.readline().strip()
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\?token=([0-9a-f]{32})", self.address)
        self.port, self.token = int(found[1]), found[2]

    def ask(self, method, path, body=None, headers={}, token=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=processes.HUNG)
        connection.request(method, f"{path}?token={self.token if token is None else token}", body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()

    def json(self, path, asked):
        status, text = self.ask("POST", path, json.dumps(asked))
        assert status == 200, (status, text)
        return json.loads(text)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        self.process.wait()


def run_request(yaml, **more):
    return {"method": "run", "yaml": yaml, "runs": [{"backend": "ideal", **more}]}


with tempfile.TemporaryDirectory() as folder:
    file = pathlib.Path(folder, "mine.yaml")
    file.write_text(TEXT)
    with Play(str(file)) as play:
        status, page = play.ask("GET", "/")
        check(status == 200 and "Stagecraft" in page and play.token in page, "the address shows the page")
        check("connect-src 'self'" in page and "default-src 'none'" in page, "the page may ask its own server alone")
        for what, more in [("another token", {"token": "0" * 32}), ("no token", {"token": ""}), ("another name of this machine", {"headers": {"Host": f"localhost.evil.example:{play.port}"}}),
                           ("another page", {"headers": {"Origin": "http://evil.example"}})]:
            check(play.ask("POST", "/file", "{}", **more)[0] == 403, f"a request with {what} is refused")
        check(play.ask("GET", "/etc/passwd")[0] == 404 and play.ask("GET", "/../../etc/passwd")[0] == 404, "there are no other files")
        outer = [address[4][0] for address in socket.getaddrinfo(socket.gethostname(), play.port, socket.AF_INET, socket.SOCK_STREAM)]
        for address in {a for a in outer if not a.startswith("127.")}:
            with socket.socket() as other:
                other.settimeout(processes.HUNG)
                check(other.connect_ex((address, play.port)) != 0, "other machines cannot connect")

        native = json.loads(subprocess.run([program, "run", str(file), "-b", "ideal", "--format", "json"], capture_output=True, text=True, check=True).stdout)
        [run] = play.json("/answer", run_request(TEXT, diagnose=True))["runs"]
        for key in native:
            if key != "provenance":
                check(run["results"][key] == native[key], f"{key} is what stagecraft run prints")
        edited = play.json("/answer", run_request(TEXT.replace("micro_batches: 8", "micro_batches: 16"), timeline=True))
        results = edited["page"]["runs"][0]["results"]
        check(results["period_s"] > native["period_s"], "the text of the request counts, not the file's")
        check(any(p["path"] == "run.micro_batches" and p["text"] == "16" for p in edited["places"]), "places are of the text of the request")
        [wrong] = play.json("/answer", run_request(TEXT.replace("planner: balanced", "planer: balanced")))["runs"]
        [problem] = wrong["problems"]
        check(wrong["error"] == "input" and problem["line"] == 7 and problem["file"] == str(file) and "planner" in problem["help"], "a problem has its place and help")
        check(play.json("/answer", {"method": "lists"})["file"] == str(file), "the page knows the name of the file")
        check("error" in play.json("/answer", {"method": "dance"}), "an unknown request is refused")
        check("error" in json.loads(play.ask("POST", "/answer", "no JSON")[1]), "a request that is no JSON is refused")

        read = play.json("/file", {})
        check(read["text"] == TEXT, "the file's text is read")
        saved = play.json("/save", {"text": TEXT + "# mine\n", "hash": read["hash"]})
        check(file.read_text() == TEXT + "# mine\n" and saved["hash"] == play.json("/file", {"only_hash": True})["hash"], "it is saved when asked")
        file.write_text(TEXT + "# theirs\n")
        check(play.json("/save", {"text": TEXT, "hash": saved["hash"]}) == {"changed": True} and file.read_text().endswith("# theirs\n"), "a file that others have changed is kept")
        play.json("/save", {"text": TEXT, "hash": ""})
        check(file.read_text() == TEXT, "until the user insists")
        file.unlink()
        check("error" in play.json("/file", {}), "a file that is gone is an error, and the server goes on")
        file.write_text(TEXT)

        with socket.create_connection(("127.0.0.1", play.port)) as idle:  # It sends nothing; others are served meanwhile.
            check(play.json("/answer", {"method": "lists"})["version"] != "", "a silent connection holds no one up")
        endless = socket.create_connection(("127.0.0.1", play.port))
        body = json.dumps(run_request(TEXT) | {"sets": [word for word in processes.ENDLESS if word != "--set"]})
        endless.sendall(f"POST /answer?token={play.token} HTTP/1.1\r\nHost: 127.0.0.1:{play.port}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        children = lambda: pathlib.Path(f"/proc/{play.process.pid}/task/{play.process.pid}/children").read_text().split()
        check(processes.wait_until(lambda: len(children()) == 1, play.process), "a request has its own process")
        endless.close()
        check(processes.wait_until(lambda: not children(), play.process), "which ends when the page no longer waits for it")

        done = subprocess.run([program, "play", str(file), "--port", str(play.port)], capture_output=True, text=True)
        check(done.returncode == 2 and f"port {play.port} cannot be used" in done.stderr and "--port" in done.stderr, "a port in use is an error with help")
    check(play.process.returncode == -signal.SIGINT and play.process.stderr.read().count("\n") == 2, "Ctrl-C ends it with a line")
    with Play("examples/quickstart") as play:
        check("error" in play.json("/save", {"text": "x", "hash": ""}), "an example of the installation is not saved")
    done = subprocess.run([program, "play", str(pathlib.Path(folder, "absent.yaml"))], capture_output=True, text=True)
    check(done.returncode == 2 and "absent.yaml" in done.stderr, "a file that is not there is an error")
check(pathlib.Path("scenarios/examples/quickstart.yaml").read_text() == TEXT, "the example is as it was")
sys.exit(1 if failed else 0)
