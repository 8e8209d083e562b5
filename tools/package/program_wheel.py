"""A wheel with the program in it: what the tarball has, in the folders of an environment of Python, whose prefix it then has."""
import os
import pathlib
import re
import shutil
import tempfile

import tarball
from release import run


def build(build_folder, python, pure, out):
    """`pure` is the wheel of the module alone, and `python` has what packs wheels."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        prefix = folder / "prefix"
        glibc = tarball.install(build_folder, prefix)
        run(python, "-m", "wheel", "unpack", "-d", folder / "unpacked", pure)
        wheel = next((folder / "unpacked").iterdir())
        [information] = wheel.glob("*.dist-info")
        data = wheel / information.name.replace(".dist-info", ".data")
        (data / "scripts").mkdir(parents=True)
        shutil.move(prefix / "bin/stagecraft", data / "scripts")
        (data / "data/lib/stagecraft").mkdir(parents=True)
        for library in (prefix / "lib/stagecraft").glob("*.so*"):
            shutil.move(library, data / "data/lib/stagecraft")
        shutil.copytree(prefix / "share/stagecraft", data / "data/share/stagecraft")
        shutil.move(prefix / "share/doc/stagecraft/licenses", information / "licenses")
        shutil.copy(prefix / "share/doc/stagecraft/LICENSE", information / "licenses/LICENSE")
        tags = information / "WHEEL"
        platform = f"manylinux_{glibc.replace('.', '_')}_{os.uname().machine}"
        text = re.sub(r"^Tag: .*$", f"Tag: py3-none-{platform}", tags.read_text(), flags=re.M)
        tags.write_text(text.replace("Root-Is-Purelib: true", "Root-Is-Purelib: false"))
        run(python, "-m", "wheel", "pack", "-d", out, wheel)
