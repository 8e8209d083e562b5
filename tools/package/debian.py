"""Debian packages: the program, the library with its headers, and the Python module."""
import gzip
import os
import pathlib
import re
import shutil
import tempfile

from release import run

# Who publishes the packages sets DEBEMAIL to "NAME <ADDRESS>"; the project has no mailbox.
MAINTAINER = os.environ.get("DEBEMAIL", "Stagecraft developers <stagecraft@example.org>")
REVISION = "0stagecraft1"  # As Debian asks for packages that are not Debian's: its own -1 sorts after them.
LIBRARIES = "libfmt-dev, libyaml-cpp-dev, libsqlitecpp-dev, libsqlite3-dev"

PACKAGES = {
    "stagecraft": ("science", "any", "simulator of distributed training of neural networks", """\
 Stagecraft predicts how long an iteration of a training run takes on a cluster,
 and how much memory it needs, from one YAML file with model, cluster, plan and
 pipeline schedule. It compares schedules, searches for the best plan, checks
 schedules for deadlocks, and runs the same program on processors or GPUs."""),
    "libstagecraft-dev": ("libdevel", "any", "simulator of distributed training: library and headers", """\
 Stagecraft predicts how long an iteration of a training run takes on a cluster.
 .
 This package has the static library with its headers, for find_package() of
 CMake and for pkg-config."""),
    "python3-stagecraft": ("python", "all", "simulator of distributed training: Python module", """\
 Stagecraft predicts how long an iteration of a training run takes on a cluster.
 .
 This package has the Python module. Results are NumPy arrays, pandas tables and
 pictures in notebooks; schedules and planners may be Python functions."""),
}


def compressed(path, text):
    """A page as Debian wants it: gzip -9n."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file, gzip.GzipFile("", "wb", 9, file, 0) as packed:
        packed.write(text)


def move(tree, to, *patterns):
    """Moves what matches from one tree to the same place in another."""
    for pattern in patterns:
        for path in sorted(tree.glob(pattern)):
            place = to / path.relative_to(tree)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(path, place)


def install(build, version, trees):
    """Installs the build and divides it among the packages."""
    main, library, python = (trees / name for name in PACKAGES)
    run("cmake", "--install", build, "--prefix", main / "usr")
    run("strip", "--remove-section=.comment", "--remove-section=.note", main / "usr/bin/stagecraft")
    for module in (main / "usr/lib").glob("stagecraft/*.so"):
        run("strip", "--strip-unneeded", "--remove-section=.comment", "--remove-section=.note", module)
        module.chmod(0o644)
    move(main, library, "usr/include", "usr/lib/*.a", "usr/lib/cmake")
    run("strip", "--strip-debug", "--remove-section=.comment", "--enable-deterministic-archives", library / "usr/lib/libstagecraft.a")
    # The flags name folders of one architecture, and so does the place where Debian wants such a file.
    found = main / "usr/lib/pkgconfig/stagecraft.pc"
    place = library / "usr/lib" / run("dpkg-architecture", "-qDEB_HOST_MULTIARCH").strip() / "pkgconfig/stagecraft.pc"
    place.parent.mkdir(parents=True)
    place.write_text(re.sub(r"^prefix=.*", "prefix=/usr", found.read_text(), flags=re.M))
    shutil.rmtree(found.parent)
    packages = python / "usr/lib/python3/dist-packages"
    packages.mkdir(parents=True)
    shutil.move(main / "usr/lib/stagecraft/python/stagecraft", packages)
    shutil.rmtree(main / "usr/lib/stagecraft/python")
    if not any((main / "usr/lib/stagecraft").iterdir()):
        (main / "usr/lib/stagecraft").rmdir()
    for page in (main / "usr/share/man").rglob("*.1"):
        compressed(page.with_suffix(".1.gz"), page.read_bytes())
        page.unlink()
    documents = main / "usr/share/doc/stagecraft"
    (documents / "LICENSE").unlink()  # The copyright file names the license, which every Debian system has.
    shutil.copy(version.root / "tools/python/README.md", documents / "python.md")


def documents(tree, name, version):
    """Copyright and changes, which every package has."""
    folder = tree / "usr/share/doc" / name
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(version.root / "tools/package/copyright", folder / "copyright")
    compressed(folder / "changelog.gz", (version.root / "CHANGELOG.md").read_bytes())
    compressed(folder / "changelog.Debian.gz", (
        f"stagecraft ({version.debian}-{REVISION}) unstable; urgency=medium\n\n  * See changelog.gz for what changed upstream.\n\n"
        f" -- {MAINTAINER}  {version.date}\n").encode())


def dependencies(tree, name, version):
    same = f"{version.debian}-{REVISION}"
    if name == "python3-stagecraft":
        return f"Depends: python3:any, stagecraft (>= {version.number}~)\nRecommends: python3-numpy\nSuggests: python3-pandas, python3-matplotlib\n"
    if name == "libstagecraft-dev":
        return f"Depends: stagecraft (= {same}), {LIBRARIES}\n"
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "debian").mkdir()
        (pathlib.Path(folder) / "debian/control").write_text("Source: stagecraft\n")  # dpkg-shlibdeps works only where one is.
        files = [tree / "usr/bin/stagecraft", *(tree / "usr/lib").glob("stagecraft/*.so")]
        needs = run("dpkg-shlibdeps", "-O", *files, cwd=folder)
    return f"Depends: {needs.removeprefix('shlibs:Depends=').strip()}\nSuggests: python3-stagecraft, iproute2\n"


PYTHON_SCRIPTS = {
    "postinst": "#!/bin/sh\nset -e\nif [ \"$1\" = configure ] && command -v py3compile >/dev/null 2>&1; then\n"
                "  py3compile -p python3-stagecraft\nfi\n",
    "prerm": "#!/bin/sh\nset -e\nif command -v py3clean >/dev/null 2>&1; then\n  py3clean -p python3-stagecraft\nelse\n"
             "  find /usr/lib/python3/dist-packages/stagecraft -name '*.pyc' -delete\nfi\n",
}


def control(tree, name, version):
    section, architecture, summary, description = PACKAGES[name]
    if architecture == "any":
        architecture = run("dpkg", "--print-architecture").strip()
    files = [path for path in tree.rglob("*") if path.is_file()]
    folder = tree / "DEBIAN"
    folder.mkdir()
    (folder / "control").write_text(
        f"Package: {name}\nSource: stagecraft\nVersion: {version.debian}-{REVISION}\nArchitecture: {architecture}\nMaintainer: {MAINTAINER}\n"
        f"Installed-Size: {sum(path.stat().st_size for path in files) // 1024}\n{dependencies(tree, name, version)}"
        f"Section: {section}\nPriority: optional\nDescription: {summary}\n{description}\n")
    sums = run("md5sum", *sorted(path.relative_to(tree) for path in files), cwd=tree)
    (folder / "md5sums").write_text(sums)
    if name == "python3-stagecraft":
        for script, text in PYTHON_SCRIPTS.items():
            (folder / script).write_text(text)
            (folder / script).chmod(0o755)
    return f"{name}_{version.debian}-{REVISION}_{architecture}.deb"


def tidy(tree):
    """No empty folders; folders 755, files 644, programs 755, whatever the umask of the builder."""
    for folder, _, _ in os.walk(tree, topdown=False):
        if not os.listdir(folder):
            os.rmdir(folder)
    for path in tree.rglob("*"):
        path.chmod(0o755 if path.is_dir() or "usr/bin" in str(path.relative_to(tree)) else 0o644)


def build(build_folder, version, out, fast):
    with tempfile.TemporaryDirectory() as name:
        trees = pathlib.Path(name)
        install(build_folder, version, trees)
        for package in PACKAGES:
            tree = trees / package
            documents(tree, package, version)
            tidy(tree)
            file = control(tree, package, version)
            compression = ["-Zgzip", "-z1"] if fast else ["-Zxz"]
            run("dpkg-deb", *compression, "--root-owner-group", "--build", tree, out / file,
                env={**os.environ, "SOURCE_DATE_EPOCH": str(version.seconds)})
