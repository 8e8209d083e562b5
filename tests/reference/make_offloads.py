#!/usr/bin/env python3
"""Writes tests/reference/data/offloads.csv: random pipelines that offload stashes, by a separate event simulation.

    make_offloads.py          # writes the file
    make_offloads.py --check  # compares it with what it would write

A task is key -> (resource, seconds, needs). A resource with an order runs its tasks in that order; another one runs them
as they become ready. A need is the key of a task (its end) or ("start", key). An op is (kind, (micro-batch, chunk), rank);
chunk c of rank r is stage c * ranks + r.
"""
import heapq
import os
import random
import sys
from collections import defaultdict

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "offloads.csv")
CASES = 120
HEAD = ("# Makespan, and peaks of each rank in stashes on the device and on its host, of random pipelines with equal stages.\n"
        "# as_ready_s: the makespan where a copy engine runs what is ready first, not what is issued first.\n"
        "# Written by make_offloads.py.\n"
        "order,ranks,micro_batches,forward_s,backward_s,share,share_of_later,copy_s,full_duplex,ahead,late,"
        "makespan_s,device_peaks,host_peaks,as_ready_s\n")


class Events:
    """Runs tasks; span[key] = (start, end)."""

    def __init__(self, tasks, orders):
        self.tasks, self.orders, self.span = tasks, orders, {}
        self.left, self.users = {}, defaultdict(list)
        self.queue, self.place, self.busy = defaultdict(list), defaultdict(int), set()
        self.ends, self.count = [], 0
        for key, (_, _, needs) in tasks.items():
            self.left[key] = len(needs)
            for need in needs:
                self.users[need].append(key)

    def run(self):
        for key in [k for k in self.tasks if not self.left[k]]:
            self.ready(key, 0.0)
        while self.ends:
            now, _, key = heapq.heappop(self.ends)
            self.busy.discard(self.tasks[key][0])
            self.settle(key, now)
            self.start(self.tasks[key][0], now)
        assert len(self.span) == len(self.tasks), "a deadlock"
        return self.span

    def start(self, resource, now):
        if resource in self.busy:
            return
        if resource in self.orders:
            at = self.place[resource]
            if at == len(self.orders[resource]) or self.left[self.orders[resource][at]]:
                return
            key, self.place[resource] = self.orders[resource][at], at + 1
        elif self.queue[resource]:
            key = heapq.heappop(self.queue[resource])[2]
        else:
            return
        self.busy.add(resource)
        self.span[key] = (now, now + self.tasks[key][1])
        self.count += 1
        heapq.heappush(self.ends, (self.span[key][1], self.count, key))
        self.settle(("start", key), now)

    def ready(self, key, now):
        resource = self.tasks[key][0]
        if resource not in self.orders:
            self.count += 1
            heapq.heappush(self.queue[resource], (now, self.count, key))
        self.start(resource, now)

    def settle(self, need, now):
        for key in self.users.pop(need, ()):
            self.left[key] -= 1
            if not self.left[key]:
                self.ready(key, now)


def most(changes):
    """Most of a quantity that changes by d at t; at one time, what is freed makes room."""
    now = top = 0.0
    for _, d in sorted((round(t, 9), d) for t, d in changes):
        now += d
        top = max(top, now)
    return top


def rows_of(ranks, forward, backward, ahead):
    """ahead(r) forwards, then a forward and a backward in turn."""
    rows = {}
    for r in range(ranks):
        w, ops = min(ahead(r), len(forward)), []
        for i in range(len(forward) + w):
            ops += [("F", forward[i], r)] if i < len(forward) else []
            ops += [("B", backward[i - w], r)] if i >= w else []
        rows[r] = ops
    return rows


def one_f_one_b(ranks, micro_batches):
    ops = [(j, 0) for j in range(micro_batches)]
    return rows_of(ranks, ops, ops, lambda r: ranks - 1 - r)


def interleaved(p, chunks, m):
    table = [(j, c) for a in range(0, m, p) for c in range(chunks) for j in range(a, min(a + p, m))]
    return rows_of(p, table, [(j, chunks - 1 - c) for j, c in table], lambda r: 2 * (p - 1 - r) + (chunks - 1) * p)


def chain(rows, forward, backward):
    p, tasks = len(rows), {}
    last = max(x[1] for row in rows.values() for _, x, _ in row) * p + p - 1
    for r, row in rows.items():
        for kind, (j, c), _ in row:
            s = c * p + r
            near = lambda k, s: (k, (j, s // p), s % p)
            if kind == "F":
                tasks[near(kind, s)] = (r, forward, [near("F", s - 1)] if s else [])
            else:
                tasks[near(kind, s)] = (r, backward, [near("F", s)] + ([near("B", s + 1)] if s < last else []))
    return tasks


def be_late(tasks, rows, base, forward):
    """Forwards before the first backward of a rank, but the first, wait until just before they are needed."""
    latest, users = {}, defaultdict(list)
    for key, (_, _, needs) in tasks.items():
        for need in needs:
            users[need].append(key)
    for r in sorted(rows, reverse=True):
        first = next(i for i, op in enumerate(rows[r]) if op[0] == "B")
        for i in range(first - 1, 0, -1):
            op, after = rows[r][i], rows[r][i + 1]
            limits = [latest.get(o, base[o][0]) for o in users[op] + [after]]
            latest[op] = max(base[op][0], min(limits) - forward)
            tasks["wait", op] = (("clock", op), latest[op], [])
            tasks[op][2].append(("wait", op))


def issued(row, moved, asks, full, r):
    """The copies of a rank as its program issues them: fetches at the start of an op, what goes down at its end."""
    place = {op: i for i, op in enumerate(row)}
    fetches = sorted((place["B", x, r], x) for x, rank in moved if rank == r)
    down, up = [], []
    lists = (down, up) if full else (down, down)
    for i, (kind, x, _) in enumerate(row):
        mine = [y for _, y in fetches if max(place[asks[y, r]], place["F", y, r]) == i]
        lists[1].extend(("in", y, r) for y in mine if y != x or kind != "F")
        if kind == "F" and (x, r) in moved:
            lists[0].append(("out", x, r))
        lists[1].extend(("in", y, r) for y in mine if y == x and kind == "F")
    return {("down", r): down, ("up", r): up} if full else {("host", r): down}


def offload(rows, share, copy, forward, backward, full, ahead, late):
    """copy: seconds of a whole stash, one way. (makespan, peaks on devices, peaks on hosts) where engines run copies as
    they are issued, and the makespan where they run them as they become ready."""
    tasks, moved, asks = chain(rows, forward, backward), {}, {}
    base = Events(chain(rows, forward, backward), rows).run()
    if late:
        be_late(tasks, rows, base, forward)
        base = Events(tasks, rows).run()
    for r, row in rows.items():
        for i, op in enumerate(row):
            part, f = share(op[1]), ("F", op[1], r)
            if op[0] == "F" or not part or base[op][0] - base[f][1] < 2 * part * copy - 1e-9:
                continue
            moved[op[1], r], asks[op[1], r] = part, row[max(i - ahead, 0)]
            down, up = (("down", r), ("up", r)) if full else (("host", r),) * 2
            tasks["out", op[1], r] = (down, copy * part, [f])
            tasks["in", op[1], r] = (up, copy * part, [("out", op[1], r), ("start", asks[op[1], r])])
            tasks[op][2].append(("in", op[1], r))
    engines = {}
    for r, row in rows.items():
        engines.update(issued(row, moved, asks, full, r))
    span, device, host = Events(tasks, {**rows, **engines}).run(), [], []
    for r, row in rows.items():
        d, h = [], []
        for x in {op[1] for op in row}:
            d += [(span["F", x, r][0], 1.0), (span["B", x, r][1], -1.0)]
            if part := moved.get((x, r)):
                d += [(span["out", x, r][1], -part), (span["in", x, r][0], part)]
                h += [(span["out", x, r][0], part), (span["in", x, r][1], -part)]
        device.append(most(d))
        host.append(most(h))
    makespan = lambda times: max(end for key, (_, end) in times.items() if key[0] in "FB")
    return makespan(span), device, host, makespan(Events(tasks, rows).run())


def case(draw):
    chunks, p = 2 if draw.random() < .3 else 1, draw.randint(2, 8)
    forward, backward = round(draw.uniform(.5, 1.5), 3), round(draw.uniform(.5, 3.5), 3)
    share, full, ahead = draw.choice([.25, .5, .75, 1.0]), draw.random() < .6, draw.choice([1, 1, 2, 3])
    late = chunks == 1 and draw.random() < .5
    later = draw.choice([0.0, share]) if chunks == 2 else share
    m = p * draw.randint(1, 3) if chunks == 2 else draw.randint(1, 3 * p)
    rows = interleaved(p, 2, m) if chunks == 2 else one_f_one_b(p, m)
    copy = round((forward + backward) / share / (1 if full else 2) * draw.uniform(.1, 1.4), 3)
    time, device, host, ready = offload(rows, lambda x: share if x[1] == 0 else later, copy, forward, backward, full, ahead, late)
    stashes = lambda peaks: " ".join(f"{x:.12g}" for x in peaks)
    return (f"{'interleaved' if chunks == 2 else '1f1b'},{p},{m},{forward},{backward},{share},{later},{copy},{int(full)},"
            f"{ahead},{int(late)},{time!r},{stashes(device)},{stashes(host)},{ready!r}\n")


def main():
    draw = random.Random(1752)
    text = HEAD + "".join(case(draw) for _ in range(CASES))
    if "--check" not in sys.argv:
        with open(FILE, "w", encoding="utf-8") as file:
            file.write(text)
        return 0
    with open(FILE, encoding="utf-8") as file:
        same = file.read() == text
    print("the same" if same else f"{FILE} differs from what this program writes")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
