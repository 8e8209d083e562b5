#!/usr/bin/env python3
"""Executes every notebook: notebooks.py STAGECRAFT [NAME...]. They are stored without outputs."""
import os
import pathlib
import sys

import support

support.start(sys.argv[1], "numpy", "pandas", "matplotlib", "nbconvert", "nbformat", "ipykernel")
os.environ["PYTHONPATH"] = str(support.ROOT / "tools/python")
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
os.environ.pop("MPLBACKEND")  # The kernel has a backend that shows pictures in the notebook.
import nbformat
from nbconvert.preprocessors import CellExecutionError, ExecutePreprocessor

folder = support.ROOT / "tools/python/notebooks"
names = sys.argv[2:] or sorted(path.name for path in folder.glob("*.ipynb"))
assert len(names) >= 1
failed = 0
for name in names:
    notebook = nbformat.read(folder / name, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in code), f"{name} is stored with outputs"
    try:
        ExecutePreprocessor(timeout=600, kernel_name="python3").preprocess(notebook, {"metadata": {"path": str(support.ROOT)}})
    except CellExecutionError as error:
        print(f"{name}: FAILED: {error.ename}: {error.evalue}\n{str(error)[:500]}")
        failed += 1
        continue
    pictures = sum("image/png" in out.get("data", {}) or "<svg" in "".join(out.get("data", {}).get("text/html", "")) for cell in code for out in cell.outputs)
    print(f"{name}: {len(code)} cells, {pictures} pictures")
sys.exit(1 if failed else 0)
