#!/usr/bin/env python3
"""backends/cuda uses nothing of CUDA that came after the toolkit 12.4.

oldest_toolkit.py names               every name of CUDA, cuBLASLt and NCCL in the sources is in names_of_12_4.txt
oldest_toolkit.py compile NCCL_DIR    compiles the sources with a toolkit 12.x: STAGECRAFT_CUDA_12, or /usr/local/cuda-12*;
                                      exits with 77 where there is none
"""
import glob
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
NAMES = pathlib.Path(__file__).with_name("names_of_12_4.txt")
LATER = {  # Names that sources mention for newer toolkits, and where: an #if leaves them out before.
    "cudaGetDriverEntryPointByVersion": "driver.hpp",
}
NAME = re.compile(r"\b(?:cu[A-Z]\w*|CU[a-z]\w*|CU_\w+|CUDA_\w+|CUDART_\w+|cuda[A-Z]\w*|cublas\w+|CUBLAS\w+|nccl[A-Z]\w*|NCCL_\w+)\b")
OWN = {"cublas_version"}  # Names of this project that look alike.


def sources():
    return [p for p in sorted((ROOT / "backends/cuda").rglob("*")) if p.suffix in (".cpp", ".hpp", ".cu") and "absent" not in p.parts]


def used_names(path):
    text = re.sub(r'//[^\n]*|"(?:\\.|[^"\\])*"|#include[^\n]*', "", path.read_text())
    return set(NAME.findall(text)) - OWN


def check_names():
    known = {line.split("#")[0].strip() for line in NAMES.read_text().splitlines()} - {""}
    used = {}
    for path in sources():
        for name in used_names(path):
            used.setdefault(name, []).append(path)
    problems = [f"{name} of {', '.join(str(file.relative_to(ROOT)) for file in files)} is not in {NAMES.name}: look it up in the headers of "
                "CUDA 12.4" for name, files in sorted(used.items())
                if name not in known and {file.relative_to(ROOT / "backends/cuda").as_posix() for file in files} != {LATER.get(name)}]
    problems += [f"{NAMES.name} has {name}, which no source uses" for name in sorted(known - set(used))]
    print("\n".join(problems) or f"{len(used)} names of CUDA, all of them in the toolkit 12.4")
    return bool(problems)


def command_for(path, toolkit, nccl, out):
    shared = ["-std=c++20", f"-I{ROOT}", "-isystem", f"{toolkit}/include"]
    if path.suffix == ".cpp":
        return ["c++", *shared, "-idirafter", nccl, "-fsyntax-only", str(path)]
    return [f"{toolkit}/bin/nvcc", *shared, "-arch=sm_90", "-fmad=false", "--expt-relaxed-constexpr", "-cubin", "-o", f"{out}/code", str(path)]


def compile_all(nccl):
    toolkit = os.environ.get("STAGECRAFT_CUDA_12") or next(iter(sorted(glob.glob("/usr/local/cuda-12*"))), None)
    if not toolkit or not pathlib.Path(toolkit, "include/cuda_runtime_api.h").exists():
        print("no CUDA toolkit 12.x is here: neither STAGECRAFT_CUDA_12 nor /usr/local/cuda-12* has include/cuda_runtime_api.h")
        return 77
    has_nvcc = pathlib.Path(toolkit, "bin/nvcc").exists()
    files = [p for p in sources() if p.suffix == ".cpp" or (p.suffix == ".cu" and has_nvcc)]
    failed = []
    with tempfile.TemporaryDirectory() as out:
        for path in files:
            done = subprocess.run(command_for(path, toolkit, nccl, out), capture_output=True, text=True)
            if done.returncode != 0:
                failed.append(f"{path.relative_to(ROOT)}:\n{done.stderr[:2000]}")
    print("\n".join(failed) or f"{len(files)} files compile with {toolkit}" + ("" if has_nvcc else ", which has no nvcc for kernels"))
    return bool(failed)


if __name__ == "__main__":
    sys.exit(check_names() if sys.argv[1] == "names" else compile_all(sys.argv[2]))
