#!/usr/bin/env python3
"""run.py PROGRAM READER COUNT writes the seeds of a reader and runs fuzz_replay on COUNT changes of them;
run.py FOLDER READER SECONDS runs the libFuzzer READER_fuzz of a folder for SECONDS. The READER `all` is each in turn;
then the exit code is 1 if one has failed. No input may take 20 s or 2 GiB."""
import os
import pathlib
import subprocess
import sys

given, wanted, amount = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3]
here = pathlib.Path(__file__).parent.resolve()


def run(reader):
    corpus = pathlib.Path.cwd() / f"{reader}_corpus"
    writer = [here.parent / "support/onnx_files.py"] if reader == "onnx" else [here / "seeds.py", reader]
    subprocess.run([sys.executable, *writer, corpus], check=True)
    if given.is_file():
        return subprocess.run([given, pathlib.Path.cwd(), here, amount, reader]).returncode
    longest = max([4000, *(file.stat().st_size for file in corpus.iterdir())])  # A database that is cut is none.
    memory = 0 if reader == "platform" else 2048  # The thread that watches it must not run while a process forks.
    return subprocess.run([given / f"{reader}_fuzz", corpus, f"-dict={here}/{reader}.dict", f"-max_total_time={amount}",
                           f"-max_len={longest}", "-timeout=20", f"-rss_limit_mb={memory}", "-print_final_stats=1",
                           f"-artifact_prefix={reader}-"], env={"ASAN_OPTIONS": "detect_leaks=1", **os.environ}).returncode


readers = sorted(file.stem.removesuffix("_fuzz") for file in here.glob("*_fuzz.cpp")) if wanted == "all" else [wanted]
failed = [reader for reader in readers if run(reader) != 0]
if len(readers) > 1:
    print(f"{len(readers)} readers, failed: {', '.join(failed) or 'none'}")
sys.exit(1 if failed else 0)
