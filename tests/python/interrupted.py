#!/usr/bin/env python3
"""The Python module where it, or its simulator, is interrupted or killed: interrupted.py STAGECRAFT."""
import os
import pathlib
import signal
import subprocess
import sys
import threading
import unittest

import support

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from processes import stat, wait_until  # noqa: E402

support.start(sys.argv.pop(1), "numpy")

import stagecraft as sc
from stagecraft import _process

SCENARIO = "scenarios/examples/quickstart.yaml"
LONG = {"scenario": "examples/search-mixed-gpus", "seconds": 3600.0, "schedules": ["synthesised"]}  # Until it is stopped.


class Interrupted(unittest.TestCase):
    def test_a_process_that_dies_is_a_backend_error_and_the_next_request_works(self):
        run = sc.run(SCENARIO, backend="ideal")
        _process.server._process.kill()
        _process.server._process.wait()
        with self.assertRaisesRegex(sc.InputError, "no longer there"):
            run.svg()
        self.assertEqual(sc.run(SCENARIO, backend="ideal").makespan, run.makespan)

    def test_a_process_that_dies_amid_a_request_is_a_backend_error(self):
        with self.assertRaisesRegex(sc.BackendError, "ended with -9"):
            sc.search(**LONG, progress=lambda news: _process.server._process.kill())
        self.assertEqual(sc.schedule("gpipe", ranks=1, micro_batches=1).makespan, 3)

    def test_an_interrupt_stops_a_search_at_once(self):
        def interrupt(number, frame):
            raise KeyboardInterrupt

        def press_when_it_searches():
            searches.wait()
            os.kill(os.getpid(), signal.SIGALRM)  # The main thread waits for the search then, or is about to.
        searches = threading.Event()
        presses = threading.Thread(target=press_when_it_searches)
        before = signal.signal(signal.SIGALRM, interrupt)
        presses.start()
        try:
            with self.assertRaises(KeyboardInterrupt):
                sc.search(**LONG, progress=lambda news: searches.set())
        finally:
            presses.join()
            signal.signal(signal.SIGALRM, before)
        self.assertEqual(sc.schedule("gpipe", ranks=1, micro_batches=1).makespan, 3)

    def test_other_threads_run_while_the_simulator_computes(self):
        searches, ends = threading.Event(), []

        def search():
            try:
                sc.search(**LONG, progress=lambda news: searches.set())
            except sc.BackendError as error:
                ends.append(error)
        thread = threading.Thread(target=search)
        thread.start()
        searches.wait()  # This thread goes on although the other one waits for an hour of simulations.
        _process.server._process.kill()
        thread.join()
        self.assertIn("ended with -9", str(ends[0]))

    def test_the_process_ends_with_a_program_that_is_killed(self):
        code = ("import sys; sys.path.insert(0, 'tools/python'); import stagecraft as sc; from stagecraft import _process\n"
                f"sc.search(**{LONG}, progress=lambda news: print(_process.server._process.pid, flush=True))")
        asker = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        answerer = int(asker.stdout.readline())
        asker.kill()
        asker.communicate()
        try:
            wait_until(lambda: stat(answerer) is None)
        except TimeoutError:
            os.kill(answerer, signal.SIGKILL)
            self.fail("the process computes on")


if __name__ == "__main__":
    unittest.main()
