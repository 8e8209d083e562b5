"""What the tests of the Python module share. Exit code 77 says that a package is missing."""
import importlib
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77


def start(program, *packages):
    """Makes `import stagecraft` find the module of the source tree and this program."""
    for package in packages:
        try:
            importlib.import_module(package)
        except ImportError:
            print(f"SKIPPED: there is no Python package {package}; apt install python3-{package}")
            sys.exit(SKIPPED)
    os.environ["STAGECRAFT"] = str(pathlib.Path(program).resolve())
    os.environ.setdefault("MPLBACKEND", "Agg")
    os.environ.setdefault("MPLCONFIGDIR", "/tmp")
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(ROOT / "tools/python"))
    os.chdir(ROOT)
