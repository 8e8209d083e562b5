#!/usr/bin/env python3
"""Registers and local memory of each kernel, as ptxas has noted them in the object files of a build.

registers.py OBJECT...

A multiprocessor of 65,536 registers holds 1,024 threads of 64 registers, half of its threads, which is enough for kernels that
stream their numbers. A kernel without local memory has spilled nothing. Exits with 77 where no object is given, because the build has no nvcc.
"""
import pathlib
import struct
import sys

MOST_REGISTERS = 64
# Kernels that need more registers, or local memory, by what is in their name; each with its bytes of local memory and the reason.
# ptxas -v says "40 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" of the rotation.
EXCEPTIONS = {
    ("rotary", "each_in_rows_kernel"): (MOST_REGISTERS, 40, "CUDA's sine and cosine of large angles reduce them in an array"),
    ("optimizer", "CountedStepId"): (66, 0, "Adam in doubles, two weights at once, with corrections from memory"),
}
# Attributes of .nv.info with a value for each function, and the machine of an ELF file (elf.h: EM_CUDA).
FRAME_SIZE, REGISTERS, WITH_SIZE, EM_CUDA = 0x11, 0x2F, 4, 190


def cubins(data):
    """Machine code for GPUs inside of an object file: ELF files in an ELF file, one for each architecture."""
    at = data.find(b"\x7fELF", 1)
    while at >= 0:
        if struct.unpack_from("<H", data, at + 18)[0] == EM_CUDA:
            yield data[at:]
        at = data.find(b"\x7fELF", at + 1)


def attributes(elf):
    """{attribute: {function: value}} of a cubin."""
    offset, = struct.unpack_from("<Q", elf, 40)
    size, count, names = struct.unpack_from("<HHH", elf, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", elf, offset + i * size) for i in range(count)]

    def text(section, at):
        begin = sections[section][4] + at
        return elf[begin:elf.index(b"\0", begin)].decode()

    symbols = next(s for s in sections if s[1] == 2)
    found = {}
    for section in sections:
        if text(names, section[0]) != ".nv.info":
            continue
        info, at = elf[section[4]:section[4] + section[5]], 0
        while at < len(info):
            form, attribute, length = struct.unpack_from("<BBH", info, at)
            at += 4
            if form == WITH_SIZE:
                if length == 8:
                    symbol, value = struct.unpack_from("<II", info, at)
                    name = text(symbols[6], struct.unpack_from("<I", elf, symbols[4] + 24 * symbol)[0])
                    found.setdefault(attribute, {})[name] = value
                at += length
    return found


def main(objects):
    if not objects:
        print("this build has no nvcc, so there are no kernels whose registers could be counted")
        return 77
    problems, kernels, highest = [], 0, (0, "")
    for path in map(pathlib.Path, objects):
        file = path.name.split(".")[0]
        codes = [attributes(elf) for elf in cubins(path.read_bytes())]
        if not codes or not all(code.get(REGISTERS) for code in codes):
            problems.append(f"{path} has no machine code with notes of registers, or in a form that this test cannot read")
        for code in codes:
            for name, registers in code.get(REGISTERS, {}).items():
                most, frame, _ = next((e for (of, part), e in EXCEPTIONS.items() if of == file and part in name), (MOST_REGISTERS, 0, ""))
                kernels += 1
                highest = max(highest, (registers, f"{file}: {name}"))
                if registers > most:
                    problems.append(f"{file}: {name} takes {registers} registers, and {most} are allowed")
                if code.get(FRAME_SIZE, {}).get(name, 0) > frame:
                    problems.append(f"{file}: {name} has {code[FRAME_SIZE][name]} bytes of local memory, and {frame} are allowed: "
                                    "registers are spilled, or an array is indexed by a variable")
    print("\n".join(problems) or f"{kernels} kernels of {len(objects)} files, without spills; at most {highest[0]} registers, in {highest[1]}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
