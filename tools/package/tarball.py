"""An installation for any folder: the libraries that it needs lie next to it."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from release import run

# Every Linux has these; a copy would have to match the kernel and the loader.
GLIBC = re.compile(r"(linux-vdso|ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util|anl|nsl))\.so.*")

README = """Stagecraft {version}

Unpack this folder anywhere and run bin/stagecraft. It needs Linux on x86-64 with glibc {glibc} or newer, and nothing else.

  bin/stagecraft run examples/quickstart
  export PYTHONPATH=FOLDER/lib/stagecraft/python   # import stagecraft, with Python 3.9 or newer

lib/stagecraft has the libraries that the program needs; share/doc/stagecraft/licenses has their licenses.
"""


def needed(file):
    """The libraries that the loader finds for a file, by name, without the libraries of glibc."""
    libraries = {}
    for line in run("ldd", file).splitlines():
        found = re.match(r"\s*(\S+) => (\S+) \(", line)
        if "not found" in line:
            raise SystemExit(f"{file}: {line.strip()}")
        if found and not GLIBC.fullmatch(found[1]):
            libraries[found[1]] = pathlib.Path(found[2])
    return libraries


def bundle(prefix):
    """Copies libraries next to the module that calls SimGrid. Each finds its own in its folder."""
    folder = prefix / "lib/stagecraft"
    folder.mkdir(exist_ok=True)
    ours = [prefix / "bin/stagecraft", *folder.glob("*.so")]
    libraries = {name: path for file in ours for name, path in needed(file).items() if not path.is_relative_to(prefix)}
    for name, path in libraries.items():
        shutil.copy(path, folder / name)
        (folder / name).chmod(0o644)
    for file in folder.glob("*.so*"):
        run("patchelf", "--set-rpath", "$ORIGIN", file)
    return libraries


# Debian packages of what is compiled into the program.
COMPILED_IN = ("libcli11-dev", "libeigen3-dev", "libprotozero-dev", "libtomlplusplus-dev", "nlohmann-json3-dev", "fonts-dejavu-core")


def copy_licenses(prefix, libraries):
    """The copyright file of the Debian package of each library."""
    folder = prefix / "share/doc/stagecraft/licenses"
    folder.mkdir()
    for package in COMPILED_IN:
        shutil.copy(f"/usr/share/doc/{package}/copyright", folder / package)
    for path in libraries.values():
        # /lib is a link to /usr/lib, and the package may have used either name.
        names = {str(path), str(path.resolve()), str(path.resolve()).removeprefix("/usr")}
        done = subprocess.run(["dpkg", "-S", *sorted(names)], capture_output=True, text=True)
        packages = re.findall(r"^([^:,\s]+)", done.stdout, re.M)
        if not packages:
            raise SystemExit(f"{path} is of no Debian package, so its license is not known")
        shutil.copy(f"/usr/share/doc/{packages[0]}/copyright", folder / packages[0])


def oldest_glibc(files):
    """The newest version of glibc that a symbol of these files asks for."""
    versions = set()
    for file in files:
        versions |= {tuple(map(int, v.split("."))) for v in re.findall(r"\bGLIBC_([0-9.]+)", run("objdump", "-T", file))}
    return ".".join(map(str, max(versions)))


def install(build_folder, prefix):
    """The program, its libraries, its files and their licenses in a folder that may be moved; gives the oldest glibc that it needs."""
    for tool in ("patchelf", "objdump"):
        if not shutil.which(tool):
            raise SystemExit(f"there is no program {tool}; apt install {'binutils' if tool == 'objdump' else tool}")
    run("cmake", "--install", build_folder, "--prefix", prefix, "--strip")
    for part in ("include", "lib/cmake", "lib/pkgconfig"):
        shutil.rmtree(prefix / part)
    (prefix / "lib/libstagecraft.a").unlink()  # It is in libstagecraft-dev.
    copy_licenses(prefix, bundle(prefix))
    return oldest_glibc([prefix / "bin/stagecraft", *(prefix / "lib/stagecraft").glob("*.so*")])


def build(build_folder, version, out, fast):
    name = f"stagecraft-{version.debian}-linux-{os.uname().machine}"
    with tempfile.TemporaryDirectory() as folder:
        prefix = pathlib.Path(folder) / name
        glibc = install(build_folder, prefix)
        (prefix / "README").write_text(README.format(version=version.debian, glibc=glibc))
        shutil.copy(version.root / "CHANGELOG.md", prefix / "share/doc/stagecraft")
        packed = out / f"{name}.tar.gz"
        tar = subprocess.Popen(["tar", "--sort=name", f"--mtime=@{version.seconds}", "--owner=0", "--group=0", "--numeric-owner",
                                "-C", folder, "-c", name], stdout=subprocess.PIPE)
        with open(packed, "wb") as file:
            subprocess.run(["gzip", "-n", "-1" if fast else "-9"], stdin=tar.stdout, stdout=file, check=True)
        if tar.wait() != 0:
            raise SystemExit("tar failed")
