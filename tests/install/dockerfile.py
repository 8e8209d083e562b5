#!/usr/bin/env python3
"""Follows the Dockerfile without Docker, in a root that mmdebstrap makes: dockerfile.py BUILD, from the root of the project.

FROM debian:12-slim is a minimal Debian 12; COPY, RUN, WORKDIR, ENTRYPOINT and CMD are done as Docker does them."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

build = pathlib.Path(sys.argv[1]).resolve()
root = pathlib.Path(__file__).resolve().parents[2]
if os.getuid() != 0 or not shutil.which("mmdebstrap"):
    print("SKIPPED: it needs root and mmdebstrap; apt install mmdebstrap")
    sys.exit(77)


def out(*words, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **more)
    assert done.returncode == 0, f"{' '.join(map(str, words))}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def steps(file):
    """Instructions with their arguments."""
    lines = [line for line in file.read_text().splitlines() if line and not line.startswith("#")]
    return [line.split(" ", 1) for line in lines]


def debian(image):
    """A minimal Debian with the package sources and the proxy of this machine."""
    sources = next((f for f in sorted(pathlib.Path("/etc/apt/sources.list.d").glob("*.sources")) if f.stat().st_size), "/etc/apt/sources.list")
    configured = [f for f in pathlib.Path("/etc/apt/apt.conf.d").iterdir() if "registry" in f.name or "proxy" in f.name]
    done = subprocess.run(["mmdebstrap", "--quiet", "--variant=minbase", "--include=ca-certificates",
                           *[f"--aptopt={f}" for f in configured], "bookworm", str(image), str(sources)], capture_output=True, text=True)
    if done.returncode != 0:
        print(f"SKIPPED: mmdebstrap cannot make a Debian here: {done.stderr[-300:]}")
        sys.exit(77)
    for file in configured:
        shutil.copy(file, image / "etc/apt/apt.conf.d")
    for file in ("/etc/hosts", "/etc/resolv.conf"):
        shutil.copy(file, image / "etc")


class Container:
    def __init__(self, image):
        self.image, self.folder, self.entry, self.default = image, "/", [], []

    def do(self, word, rest, context):
        if word == "COPY":
            *patterns, to = rest.split()
            files = [file for pattern in patterns for file in context.glob(pattern)]
            assert len(files) >= len(patterns), f"COPY {rest}: {files}"
            for file in files:
                shutil.copy(file, self.image / to.lstrip("/"))
        elif word == "RUN":
            self.call(["/bin/sh", "-c", rest])
        elif word == "WORKDIR":
            self.folder = rest
            (self.image / rest.lstrip("/")).mkdir(parents=True, exist_ok=True)
        elif word == "ENTRYPOINT":
            self.entry = json.loads(rest)
        elif word == "CMD":
            self.default = json.loads(rest)
        else:
            assert word == "FROM" and rest == "debian:12-slim", (word, rest)

    def call(self, words):
        environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "DEBIAN_FRONTEND": "noninteractive"}
        # Docker mounts /proc, which programs ask where they lie.
        enter = 'mount --bind /proc "$0/proc" && exec chroot "$0" /bin/sh -c \'cd "$0" && exec "$@"\' "$@"'
        return out("unshare", "-m", "/bin/sh", "-c", enter, self.image, self.folder, *words, env=environment)

    def run(self, *words):
        return self.call([*self.entry, *(words or self.default)])


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    out(sys.executable, root / "tools/package/build", folder / "out", "--build", build, "--only", "deb,docker", "--fast",
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
    file = folder / "out/Dockerfile"
    assert len(file.read_text().splitlines()) <= 10
    container = Container(folder / "image")
    debian(container.image)
    for word, rest in steps(file):
        container.do(word, rest, folder / "out")
    assert "Usage" in container.run() or "COMMAND" in container.run()
    question = ["run", "examples/quickstart", "--backend", "ideal", "--format", "json"]
    expected = json.loads(out(build / "bin/stagecraft", *question))["period_s"]
    assert json.loads(container.run(*question))["period_s"] == expected
    # What `docker run -v "$PWD:/work"` shows to it.
    shutil.copy(root / "scenarios/examples/quickstart.yaml", container.image / "work/mine.yaml")
    assert json.loads(container.run("run", "mine.yaml", *question[2:]))["period_s"] == expected
    words = "import stagecraft as s; r = s.run('mine.yaml', backend='ideal'); print(r.period, r.spans['end'].max() > 0)"
    assert container.call(["python3", "-c", words]).split() == [str(expected), "True"]
    print("the Dockerfile makes an image that runs a scenario and the Python module")
