#!/usr/bin/env python3
"""Builds every package from a build folder and uses it: packages.py BUILD, from the root of the project.

Debian packages are checked by lintian and unpacked in one root; the tarball runs with nothing but glibc, from a folder with
spaces; a release is refused when its version and its changes differ."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

build = pathlib.Path(sys.argv[1]).resolve()
root = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(root / "tools/package"))
import release  # noqa: E402

if subprocess.run([sys.executable, "-c", "import setuptools, wheel, pip, venv"], capture_output=True).returncode != 0:
    print("SKIPPED: this Python makes no wheels; apt install python3-pip python3-venv python3-setuptools python3-wheel")
    sys.exit(77)
for program, package in (("lintian", "lintian"), ("patchelf", "patchelf"), ("dpkg-shlibdeps", "dpkg-dev"), ("strip", "binutils")):
    if not shutil.which(program):
        print(f"SKIPPED: there is no program {program}; apt install {package}")
        sys.exit(77)

QUESTION = ["run", "examples/quickstart", "--backend", "ideal", "--format", "json"]


def out(*words, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **more)
    assert done.returncode == 0, f"{' '.join(map(str, words))}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def period(*program, **more):
    return json.loads(out(*program, *QUESTION, **more))["period_s"]


def check_lintian(debs):
    assert [deb.name.split("_")[0] for deb in debs] == ["libstagecraft-dev", "python3-stagecraft", "stagecraft"], debs
    done = subprocess.run(["lintian", "--allow-root", "--fail-on", "error,warning", "--tag-display-limit", "0", *debs],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def check_debian(debs, folder, expected):
    (folder / "control").mkdir()
    for deb in debs:
        out("dpkg-deb", "--extract", deb, folder / "root")
        out("dpkg-deb", "--control", deb, folder / "control" / deb.name)
        out("md5sum", "--check", "--quiet", folder / "control" / deb.name / "md5sums", cwd=folder / "root")
    needs = out("dpkg-deb", "--field", debs[2], "Depends")
    assert re.search(r"libc6 \(>= ", needs) and "libyaml-cpp" in needs, needs
    program = folder / "root/usr/bin/stagecraft"
    assert period(program) == expected
    environment = {"PYTHONPATH": str(folder / "root/usr/lib/python3/dist-packages"), "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
    words = "import stagecraft as s; print(s.run('examples/quickstart', backend='ideal').period)"
    assert float(out("/usr/bin/python3", "-c", words, env=environment, cwd=folder)) == expected


def check_tarball(packed, folder, expected):
    place = folder / "a place with spaces"
    place.mkdir()
    out("tar", "-xzf", packed, "-C", place)
    prefix = next(place.iterdir())
    program = prefix / "bin/stagecraft"
    libraries = out("ldd", program) + "".join(out("ldd", file) for file in (prefix / "lib/stagecraft").glob("*.so*"))
    foreign = {line.split()[0] for line in libraries.splitlines() if "=>" in line and str(prefix) not in line}
    assert all(re.match(r"lib(c|m|dl|rt|pthread|resolv|util)\.so", name) for name in foreign), foreign
    assert period(program, env={"PATH": ""}, cwd="/") == expected
    words = "import stagecraft as s; print(s.run('examples/quickstart', backend='ideal').period)"
    python = {"PYTHONPATH": str(prefix / "lib/stagecraft/python"), "PATH": "", "PYTHONDONTWRITEBYTECODE": "1"}
    assert float(out("/usr/bin/python3", "-c", words, env=python, cwd="/")) == expected
    for link in (folder / "link", folder / "bin"):  # Through a link it finds its files, too.
        link.symlink_to(program if link.name == "link" else program.parent)
    assert period(folder / "link", env={"PATH": ""}) == expected == period(folder / "bin/stagecraft", env={"PATH": ""})
    licenses = os.listdir(prefix / "share/doc/stagecraft/licenses")
    assert any(name.startswith("libyaml-cpp") for name in licenses), licenses
    if os.getuid() == 0:
        check_bare(prefix, folder / "bare", expected)


def check_wheel(packed, folder, expected):
    """In an empty environment, where nothing else has the program: as a command and for the module."""
    environment = folder / "environment"
    out(sys.executable, "-m", "venv", "--without-pip", environment)
    out(sys.executable, "-m", "pip", "--python", environment / "bin/python", "install", "--no-index", "--no-deps", packed)
    assert period(environment / "bin/stagecraft", env={"PATH": ""}, cwd="/") == expected
    words = "import stagecraft as s; print(s.run('examples/quickstart', backend='ideal').period)"
    assert float(out(environment / "bin/python", "-I", "-c", words, env={"PATH": ""}, cwd="/")) == expected
    licenses = {path.name for path in environment.glob("lib/python3*/site-packages/stagecraft-*.dist-info/licenses/*")}
    assert {"LICENSE", "nlohmann-json3-dev"} <= licenses and any(name.startswith("libyaml-cpp") for name in licenses), licenses


def check_bare(prefix, bare, expected):
    """In a root that has the tarball, glibc and nothing else, also with the backend that calls SimGrid."""
    for line in out("ldd", prefix / "bin/stagecraft").splitlines():
        found = re.search(r"(?:=> |^\s*)(/.*) \(0x", line)
        if found and str(prefix) not in found[1]:
            place = bare / found[1].lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(found[1], place)
    shutil.copytree(prefix, bare / "my tools", symlinks=True)
    (bare / "tmp").mkdir()
    (bare / "proc").mkdir()  # The loader asks it where the program lies, and $ORIGIN is that place.
    mounted = 'mount --bind /proc "$0/proc" && exec chroot "$0" "$@"'
    if subprocess.run(["unshare", "-m", "sh", "-c", 'mount --bind /proc "$0/proc"', bare]).returncode != 0:
        return print("SKIPPED the bare root: mounts are not allowed here")
    chroot = [shutil.which("unshare"), "-m", "/bin/sh", "-c", mounted, bare, "/my tools/bin/stagecraft"]
    path = {"PATH": os.environ["PATH"]}
    assert period(*chroot, env=path) == expected
    if any((prefix / "lib/stagecraft").glob("stagecraft_simgrid*")):
        facts = json.loads(out(*chroot, *QUESTION[:3], "simgrid", *QUESTION[4:], env=path))
        assert facts["period_s"] >= expected * (1 - 1e-9), facts["period_s"]


def check_release(folder):
    """Unreleased changes sort before the release; a release names its version and its day."""
    (folder / "CMakeLists.txt").write_text("project(stagecraft VERSION 1.2.3 LANGUAGES CXX)\n")
    changes = folder / "CHANGELOG.md"
    changes.write_text("# Changes\n\n## Unreleased: something\n")
    early = release.version(folder)
    changes.write_text("# Changes\n\n## 1.2.3, 2030-01-31\n\n## Unreleased: older\n")
    final = release.version(folder)
    assert (final.debian, final.python) == ("1.2.3", "1.2.3"), final
    assert subprocess.run(["dpkg", "--compare-versions", early.debian, "lt", final.debian]).returncode == 0, early
    changes.write_text("# Changes\n\n## 1.2.4, 2030-01-31\n")
    try:
        release.version(folder)
    except SystemExit as refused:
        assert "write '## 1.2.3, YYYY-MM-DD'" in str(refused)
    else:
        raise AssertionError("a release with the wrong version is built")


def check_numbers():
    """The project, its module and its citation have the same number."""
    number = release.version(root).number
    assert f'version = "{number}"' in (root / "tools/python/pyproject.toml").read_text()
    assert f"version: {number}\n" in (root / "CITATION.cff").read_text()


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    check_numbers()
    (folder / "release").mkdir()
    check_release(folder / "release")
    expected = period(build / "bin/stagecraft")
    print(out(sys.executable, root / "tools/package/build", folder / "out", "--build", build, "--fast", "--only", "deb,tarball,python,wheel,docker", env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}))
    check_tarball(next((folder / "out").glob("stagecraft-*-linux-*.tar.gz")), folder, expected)
    debs = sorted((folder / "out").glob("*.deb"))
    check_debian(debs, folder, expected)
    assert len(list((folder / "out").glob("*-none-any.whl"))) == 1
    check_wheel(next((folder / "out").glob("*manylinux*.whl")), folder, expected)
    check_lintian(debs)
print("packages, tarball and Dockerfile are built; lintian has nothing to say")
