#!/usr/bin/env python3
"""Writes a small corpus for schedule_fuzz: corpus.py FOLDER. The first byte of each file chooses the options."""
import pathlib
import sys

GPIPE = "0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n"
ONE_F_ONE_B = "0F0,0F1,,0B0,,0B1\n,1F0,1B0,1F1,1B1\n"
SPLIT = "0F0,0I0,0W0\n"
V_SHAPE = "0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0\n"
BOTH_WAYS = "0F0,3F1,3B1,0B0\n1F0,2F1,2B1,1B0\n"
OVERLAP = "0F0,(0F1;0B0)OVERLAP_F_B,0B1\n"
LOWERED = ("0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD,0RESHARD\n"
           "1UNSHARD,1RECV_F0,1F0,1B0,1SEND_B0,1REDUCE_GRAD,1RESHARD\n")
CYCLE = "0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n"

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
for number, text in enumerate((GPIPE, ONE_F_ONE_B, SPLIT, V_SHAPE, BOTH_WAYS, OVERLAP, LOWERED, CYCLE)):
    for choice in (0, 8, 6, 88):
        (folder / f"{number}-{choice}").write_bytes(bytes([choice]) + text.encode())
