#!/usr/bin/env python3
"""Types of the Python module, which py.typed promises: annotations.py STAGECRAFT.

Every public name is compared with its annotations; mypy, where it is installed, reads the module and a program that uses it."""
import dataclasses
import inspect
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import typing
import unittest

import support

support.start(sys.argv.pop(1), "numpy", "pandas")

import stagecraft as sc
from stagecraft import _errors, _executors, _orders, _process, _results

USER = '''
import stagecraft as sc

@sc.schedule_function
def forwards_first(rank: int, pipeline: sc.Pipeline) -> list[sc.Op]:
    return [sc.F(m) for m in range(pipeline.micro_batches)] + [sc.B(m) for m in range(pipeline.micro_batches)]

looped = sc.schedule_function(placement="loop", chunks=2)
reveal_type(forwards_first)
reveal_type(looped)
reveal_type(sc.run("examples/quickstart", schedule=forwards_first).period)
reveal_type(sc.check("a.yaml").diagnostics)
sc.run("examples/quickstart", backends="ideal")
sc.schedule("1f1b", ranks="four", micro_batches=8)
'''


def callables(owner):
    """Public functions and methods that a class or module defines itself."""
    for name, value in vars(owner).items():
        function = value.fget if isinstance(value, property) else value
        if inspect.isfunction(function) and function.__module__.startswith("stagecraft") and (name == "__init__" or not name.startswith("__")):
            yield f"{owner.__name__}.{name}", function


class Annotations(unittest.TestCase):
    def test_the_module_says_that_it_has_types(self):
        self.assertTrue((pathlib.Path(sc.__file__).parent / "py.typed").is_file())
        self.assertIn("py.typed", (support.ROOT / "tools/python/pyproject.toml").read_text())

    def test_every_parameter_and_result_has_a_type_that_exists(self):
        owners = [sc, _errors, _executors, _orders, _process, _results]
        owners += [value for value in map(sc.__dict__.get, sc.__all__) if inspect.isclass(value)]
        import numpy.typing
        import pandas
        names = {"pandas": pandas, "Array": numpy.typing.NDArray[typing.Any]}
        count = 0
        for owner in owners:
            for name, function in callables(owner):
                hints = typing.get_type_hints(function, {**function.__globals__, **names})
                parameters = [p for p in inspect.signature(function).parameters if p not in ("self", "cls")]
                self.assertEqual([p for p in [*parameters, "return"] if p not in hints], [], name)
                count += 1
        self.assertGreater(count, 60)

    def test_every_exported_name_exists_and_every_attribute_of_a_value_has_a_type(self):
        for name in sc.__all__:
            value = getattr(sc, name)
            if dataclasses.is_dataclass(value):
                self.assertEqual({f.name for f in dataclasses.fields(value)}, set(typing.get_type_hints(value)), name)
        self.assertEqual(sorted(sc.__all__), sc.__all__)


@unittest.skipUnless(os.environ.get("STAGECRAFT_TRIALS") == "full", "ten seconds; STAGECRAFT_TRIALS=full runs it")
@unittest.skipUnless(shutil.which("mypy"), "there is no mypy; apt install mypy")
class Mypy(unittest.TestCase):
    def mypy(self, *words):
        options = ["--strict", "--ignore-missing-imports", "--cache-dir", self.folder.name]
        return subprocess.run(["mypy", *options, *words], capture_output=True, text=True, cwd=support.ROOT / "tools/python").stdout

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def test_the_module_agrees_with_its_types(self):
        self.assertIn("Success", self.mypy("stagecraft"))

    def test_a_program_gets_types_and_its_mistakes_are_found(self):
        file = pathlib.Path(self.folder.name) / "user.py"
        file.write_text(USER)
        said = self.mypy(str(file))
        for sentence in ('type is "stagecraft._orders.Schedule"', 'type is "builtins.float"',
                         'Unexpected keyword argument "backends" for "run"',
                         'Argument "ranks" to "schedule" has incompatible type "str"; expected "int"'):
            self.assertIn(sentence, said)
        self.assertRegex(said, r'type is "builtins.tuple\[stagecraft._errors.Diagnostic')
        self.assertRegex(said, r'type is "def \(def .*\) -> stagecraft._orders.Schedule"')
        self.assertEqual(said.count(": error:"), 2, said)


if __name__ == "__main__":
    unittest.main()
