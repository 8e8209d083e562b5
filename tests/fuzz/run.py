#!/usr/bin/env python3
"""run.py CLANG ROOT FOLDER builds the fuzzers in FOLDER (the target fuzz does); with SECONDS behind it fuzzes so long with
each, and ends with 77 where they were never built or clang has no fuzzer."""
import os
import pathlib
import shutil
import subprocess
import sys

clang, root, folder, seconds = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]), (sys.argv[4:] or [""])[0]
core = [f"sim/core/{name}.cpp" for name in ("dag", "diagnostic", "quantity", "text")]
schedule = ["sim/config/source.cpp", "sim/plan/overlap.cpp", "sim/plan/check_plan.cpp", "sim/plan/plan.cpp",
            "sim/plan/gradient_groups.cpp"]
schedule += [f"sim/schedule/{name}.cpp" for name in (
    "actions", "chains", "check_file", "comms", "comms_check", "csv", "csv_plan", "lint", "order", "rendezvous",
    "schedule", "sharding", "stash", "validate")]
onnx = [str(f.relative_to(root)) for f in sorted((root / "models/onnx").rglob("*.cpp")) if f.stem != "import_yaml"]
onnx.append("sim/model/model_graph.cpp")
programs = {"schedule": schedule + core, "onnx": onnx + core}
flags = ["-std=c++20", "-O1", "-g1", "-fsanitize=fuzzer,address", "-DFMT_SHARED", f"-I{root}"]
compiler = [ccache, clang] if (ccache := shutil.which("ccache")) else [clang]
if seconds and not all((folder / f"{name}_fuzz").exists() for name in programs):
    print("SKIPPED: the fuzzer is not built; cmake --build . --target fuzz builds it")
    sys.exit(77)
folder.mkdir(parents=True, exist_ok=True)

probe = folder / "probe.cpp"
probe.write_text("#include <cstddef>\n"
                 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, std::size_t) { return 0; }\n')
if subprocess.run([clang, *flags, str(probe), "-o", str(folder / "probe")], capture_output=True).returncode:
    print(f"SKIPPED: {clang} has no fuzzer; on Debian it is in libclang-rt-14-dev")
    sys.exit(77)


def compiled(source):
    target = folder / (source.replace("/", "_") + ".o")
    newest = max(f.stat().st_mtime for f in [root / source, *(root / "sim").rglob("*.hpp"), *(root / "models").rglob("*.hpp")])
    if not target.exists() or target.stat().st_mtime < newest:
        subprocess.run([*compiler, *flags, "-c", str(root / source), "-o", str(target)], check=True)
    return str(target)


def run(name):
    """Whether a fuzzer found nothing."""
    corpus = folder / f"{name}_corpus"
    done = subprocess.run([str(folder / f"{name}_fuzz"), str(corpus), f"-dict={root}/tests/fuzz/{name}.dict",
                           f"-max_total_time={seconds}", "-max_len=2000", "-timeout=60", "-rss_limit_mb=2000",
                           "-print_final_stats=1", "-verbosity=1", f"-artifact_prefix={folder}/{name}-"],
                          stderr=subprocess.PIPE, text=True, errors="replace",
                          env={**os.environ, "ASAN_OPTIONS": "detect_leaks=1"})
    lines = done.stderr.splitlines()
    print("\n".join(lines[-40:] if done.returncode else [l for l in lines if l.startswith(("Done", "stat::"))]))
    return done.returncode == 0


for name, sources in programs.items():
    objects = [compiled(source) for source in [f"tests/fuzz/{name}_fuzz.cpp", *sources]]
    subprocess.run([clang, *flags, *objects, "-lfmt", "-o", str(folder / f"{name}_fuzz")], check=True)
if not seconds:
    sys.exit(0)
for name, writer in (("schedule", "tests/fuzz/corpus.py"), ("onnx", "tests/support/onnx_files.py")):
    subprocess.run([sys.executable, str(root / writer), str(folder / f"{name}_corpus")], check=True)
sys.exit(0 if all([run(name) for name in programs]) else 1)
