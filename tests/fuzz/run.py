#!/usr/bin/env python3
"""run.py CLANG ROOT FOLDER builds the fuzzers in FOLDER (the target fuzz does); with SECONDS and a NAME behind it runs
that one so long, and ends with 77 where it was never built or clang has no fuzzer."""
import os
import pathlib
import shutil
import subprocess
import sys

clang, root, folder = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
seconds, chosen = (sys.argv[4:] + ["", ""])[:2]
flags = ["-std=c++20", "-O1", "-g1", "-fsanitize=fuzzer,address", "-DFMT_SHARED", f"-I{root}"]
compiler = [ccache, clang] if (ccache := shutil.which("ccache")) else [clang]


def in_folder(place, *but):
    return [str(f.relative_to(root)) for f in sorted((root / place).glob("*.cpp")) if f.stem not in but]


def named(place, names):
    return [f"{place}/{name}.cpp" for name in names.split()]


def catalog(kind, kind_of_entry, header, place):
    """The list of a folder's definitions, as the build of the project makes it."""
    names = [pathlib.Path(source).stem for source in in_folder(place)]
    text = f'#include "{header}"\nnamespace stagecraft::{kind} {{\n'
    text += "".join(f"extern const {kind_of_entry} {name};\n" for name in names)
    text += f"Catalog<{kind_of_entry}> all() {{\n  static const {kind_of_entry}* const entries[] = {{"
    text += ", ".join(f"&{name}" for name in names) + "};\n  return entries;\n}\n}\n"
    target = folder / f"{kind}_catalog.cpp"
    if not target.exists() or target.read_text() != text:
        target.write_text(text)
    return [str(target), *in_folder(place)]


def sources_of(name):
    core = named("sim/core", "dag diagnostic quantity text")
    config = core + in_folder("sim/config")
    if name == "schedule":
        plan = named("sim/plan", "overlap check_plan plan gradient_groups")
        return core + ["sim/config/source.cpp"] + plan + named(
            "sim/schedule", "actions chains check_file comms comms_check csv csv_plan lint order rendezvous schedule "
            "sharding stash validate")
    if name == "onnx":
        onnx = in_folder("models/onnx", "import_yaml") + in_folder("models/onnx/operators")
        return core + onnx + ["sim/model/model_graph.cpp"]
    if name == "pipedream":
        return config + named("models", "pipedream_graph builders/timed graph_writer layer_names") + [
            "sim/model/model_graph.cpp"]
    if name == "piper":
        return config + ["sim/plan/msr/piper_file.cpp"]
    if name == "pipeedge":
        return config + ["sim/run/pipeedge.cpp", "sim/plan/edgepipe/problem.cpp"]
    if name == "kept_run":
        return config + named("sim/report", "html html_data")
    if name == "yaml":
        models = in_folder("sim/model") + in_folder("models") + catalog(
            "model_builders", "ModelBuilder", "sim/model/builder.hpp", "models/builders")
        return config + models + in_folder("sim/cluster", "conditions") + in_folder("topologies") + catalog(
            "topology_generators", "TopologyGenerator", "sim/cluster/generator.hpp", "topologies/generators")
    return config


def compiled(source, newest_header):
    target = folder / (source.replace("/", "_") + ".o")
    if not target.exists() or target.stat().st_mtime < max(newest_header, (root / source).stat().st_mtime):
        subprocess.run([*compiler, *flags, "-c", str(root / source), "-o", str(target)], check=True)
    return str(target)


def build():
    folder.mkdir(parents=True, exist_ok=True)
    probe = folder / "probe.cpp"
    probe.write_text("#include <cstddef>\n"
                     'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, std::size_t) { return 0; }\n')
    if subprocess.run([clang, *flags, str(probe), "-o", str(folder / "probe")], capture_output=True).returncode:
        print(f"SKIPPED: {clang} has no fuzzer; on Debian it is in libclang-rt-14-dev")
        sys.exit(77)
    newest_header = max(h.stat().st_mtime for place in ("sim", "models", "topologies", "tests/fuzz")
                        for h in (root / place).rglob("*.hpp"))
    for fuzzer in in_folder("tests/fuzz"):
        name = pathlib.Path(fuzzer).stem.removesuffix("_fuzz")
        if chosen not in ("", name):
            continue
        objects = [compiled(source, newest_header) for source in [fuzzer, *sources_of(name)]]
        subprocess.run([clang, *flags, *objects, "-lfmt", "-lyaml-cpp", "-o", str(folder / f"{name}_fuzz")], check=True)


def run(name):
    """Whether a fuzzer found nothing."""
    corpus = folder / f"{name}_corpus"
    writer = ["tests/support/onnx_files.py"] if name == "onnx" else ["tests/fuzz/seeds.py", name]
    subprocess.run([sys.executable, str(root / writer[0]), *writer[1:], str(corpus)], check=True)
    done = subprocess.run([str(folder / f"{name}_fuzz"), str(corpus), f"-dict={root}/tests/fuzz/{name}.dict",
                           f"-max_total_time={seconds}", "-max_len=2000", "-timeout=60", "-rss_limit_mb=2000",
                           "-print_final_stats=1", "-verbosity=1", f"-artifact_prefix={folder}/{name}-"],
                          stderr=subprocess.PIPE, text=True, errors="replace",
                          env={**os.environ, "ASAN_OPTIONS": "detect_leaks=1"})
    lines = done.stderr.splitlines()
    print("\n".join(lines[-40:] if done.returncode else [l for l in lines if l.startswith(("Done", "stat::"))]))
    return done.returncode == 0


if seconds and not (folder / f"{chosen}_fuzz").exists():
    print("SKIPPED: the fuzzer is not built; cmake --build . --target fuzz builds it")
    sys.exit(77)
build()
sys.exit(0 if not seconds or run(chosen) else 1)
