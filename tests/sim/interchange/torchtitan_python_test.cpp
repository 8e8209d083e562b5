// Python files that make configurations of torchtitan are read without running them, and what is computed is refused at
// its place.

#include <doctest/doctest.h>

#include <algorithm>

#include "sim/core/diagnostic.hpp"
#include "sim/core/file.hpp"
#include "sim/interchange/imports/python_values.hpp"
#include "sim/interchange/imports/training_setup.hpp"
#include "tests/support/readers.hpp"

namespace stagecraft::torchtitan_python_test {
namespace {

TrainingSetup read(const std::string& text, const std::string& function = {}, int devices = 64) {
  return read_torchtitan(text, "llama3.py", {.devices = devices, .config = function});
}

/// The first problem of a file.
Diagnostic problem(const std::string& text, const std::string& function = {}) {
  try {
    read(text, function);
  } catch (const InputError& error) {
    return error.problems().front();
  }
  return {};
}

/// A function that changes a published configuration by these lines.
std::string changed(const std::string& lines) {
  return "def planned():\n    config = llama3_8b()\n" + lines + "    return config\n";
}

/// The value of an expression, as JSON; "computed" where only running the file tells.
std::string value(const std::string& expression) {
  const PythonFile file = read_python("def f():\n    return " + expression + "\n", "f.py", "f");
  return file.returned->is_computed ? "computed" : file.returned->plain.dump();
}

}  // namespace

TEST_CASE("a published configuration that a file changes keeps the values that the file does not give") {
  const TrainingSetup setup = read(
      "from torchtitan.models.llama3.config_registry import llama3_70b\n\n"
      "def planned() -> Trainer.Config:\n"
      "    config = llama3_70b()\n"
      "    config.parallelism.pipeline_parallel_degree = 2\n"
      "    config.parallelism.num_pp_microbatches = 4\n"
      "    config.training.disable_cuda_graphs = True\n"
      "    return config\n");
  CHECK(setup.model_name == "llama-3-70b");
  CHECK(setup.tensor == 8);  // The published configuration has this degree, 8 sequences of 8,192 tokens and FullAC.
  CHECK(setup.sequence == 8192);
  CHECK(setup.micro_batch_size == 8);
  CHECK(setup.global_batch == 8 * 4 * 4);  // 64 GPUs are 4 replicas of 16.
  CHECK(setup.recompute == "layers");
}

TEST_CASE("an object takes the place of a section, and what it does not give is as main has it") {
  const std::string text = changed(
      "    config.parallelism = ParallelismConfig(tensor_parallel_degree=2)\n"
      "    config.training = TrainingConfig()\n");
  const TrainingSetup setup = read(text);
  CHECK(setup.tensor == 2);
  CHECK(setup.sequence == 2048);
  CHECK(setup.micro_batch_size == 8);
  CHECK(setup.recompute == "half");
}

TEST_CASE("functions of a file call each other, with arguments and defaults, and objects are shared as in Python") {
  const std::string text =
      "DEGREE = 2 * 2\n"
      "def base(tensor: int = DEGREE, *, steps=1):\n"
      "    config = llama3_8b()\n"
      "    config.parallelism.tensor_parallel_degree = tensor\n"
      "    return config\n"
      "def four():\n"
      "    return base()\n"
      "def eight():\n"
      "    return base(tensor=8)\n"
      "def shared():\n"
      "    config = four()\n"
      "    parallelism = config.parallelism\n"
      "    parallelism.tensor_parallel_degree = 1\n"
      "    return config\n";
  CHECK(read(text, "four").tensor == 4);
  CHECK(read(text, "eight").tensor == 8);
  CHECK(read(text, "shared").tensor == 1);
  CHECK(problem(text).help ==
        "stagecraft import torchtitan reads one of them with --config: base, four, eight, shared");
  CHECK(problem(text, "fuor").help == "did you mean 'four'?");
}

TEST_CASE("literals and arithmetic have values, and everything else is computed") {
  CHECK(value("2 * 8_192 + -1") == "16383");
  CHECK(value("-2 ** 2 * (3 - 1) // 3") == "-3");
  CHECK(value("7 / 2") == "3.5");
  CHECK(value("2 ** -1") == "0.5");
  CHECK(value("'a' \"b\"") == "\"ab\"");
  CHECK(value("[1, [True, None],]") == "[1,[true,null]]");
  CHECK(value("(1,)") == "[1]");
  for (const char* expression : {"len(x)[0]", "a if b else c", "[i for i in range(3)]", "f\"{x}\"", "x and y",
                                 "lambda a, b: a", "{'a': 1}", "1 // 0", "os.environ['N']", "not x", "3 > 2"})
    CHECK(value(expression) == "computed");
}

TEST_CASE("what a function that is not in the file gets is refused at its place, because it may change it") {
  for (const char* statement :
       {"y = tweak(config)", "y = tweak(config.training)", "y = tweak(3, config=config)",
        "y = [tweak(c) for c in [config]]", "y = 1 if tweak(config) else 2", "y = tweak(*[config])",
        "y = config.tweak()", "y = tweak([config])", "y = tweak({'a': config})",
        "config.training.steps = tweak(config)", "y = helpers.tweak(config)"}) {
    const std::string text = statement;  // clang 14 captures no pointer of a list.
    CAPTURE(text);
    const Diagnostic d = problem(changed("    " + text + "\n"));
    CHECK(d.message.find("may change this object") != std::string::npos);
    CHECK(d.where.line == 3);
  }
  for (const char* statement :
       {"y = tweak(3)", "y = len(config.training)", "y = tweak(config.training.steps)", "y = Wrapped(config)",
        "y = _Wrapped(config)", "n = len(config.training)\n    y = tweak(n)", "y = dataclasses.asdict(config)"})
    CHECK(problem(changed("    " + std::string(statement) + "\n")).message.empty());
  // A function of the file is followed.
  const std::string helper = "def tweak(c):\n    c.parallelism.tensor_parallel_degree = 2\n    return c\n";
  CHECK(read(helper + changed("    y = tweak(config)\n"), "planned").tensor == 2);
}

TEST_CASE("what takes the place of a section is its class, with a name for each value; None leaves a value out") {
  for (const char* section :
       {"training = dataclasses.replace(config.training, steps=100)", "parallelism = copy.deepcopy(config.parallelism)",
        "training = MyTrainingConfig()", "training = TrainingConfig(65536, 65536)", "compile = None",
        "training = other.training", "activation_checkpoint = ActivationCheckpointConfig('full')",
        "model_spec = model_registry('8B', 'flex')"})
    CHECK(problem(changed("    other = llama3_70b()\n    config." + std::string(section) + "\n")).where.line == 4);
  const std::string seventy = "def f():\n    config = llama3_70b()\n";
  CHECK(read(seventy + "    config.parallelism.tensor_parallel_degree = None\n    return config\n").tensor == 1);
  CHECK(read(seventy + "    config.parallelism = configs.ParallelismConfig()\n    return config\n").tensor == 1);
  CHECK(problem("def f():\n    return llama3_70b(4096)\n").message == "values without names are not read here");
}

TEST_CASE("keys of an older release change a published configuration, whose other values stay") {
  const std::string text = "def f():\n    config = llama3_70b()\n";
  const TrainingSetup setup = read(text + "    config.training.local_batch_size = 4\n    return config\n");
  CHECK(setup.sequence == 8192);
  CHECK(setup.micro_batch_size == 4);
  CHECK(setup.tensor == 8);
  CHECK(setup.recompute == "layers");
  CHECK(setup.unmodeled.empty());
}

TEST_CASE("an attribute that has a second name is the same attribute") {
  const std::string text = changed(
      "    training = config.training\n"
      "    length = training.max_context_length\n"
      "    training.max_context_length = 4096\n");
  CHECK(read(text).sequence == 4096);
  CHECK(read(changed("    print_it = config.training.steps\n    unused = config.compile\n")).sequence == 8192);
  CHECK(problem(changed("    config.training.max_context_length = config.training.other\n")).where.line == 3);
  CHECK(problem(changed("    known = registry['x']\n    known.training.steps = 1\n")).where ==
        Where{"llama3.py", 4, 5});
  CHECK(problem(changed("    elsewhere.training.steps = 1\n")).where == Where{"llama3.py", 3, 5});
}

TEST_CASE("what statements at the top of a file may change is computed") {
  const std::string function =
      "def f():\n    config = llama3_8b()\n    config.parallelism.tensor_parallel_degree = T\n"
      "    return config\n";
  const auto line_of = [&](const std::string& top) { return problem("T = 2\n" + top + function).where.line; };
  CHECK(read("T = 2\n" + function).tensor == 2);
  CHECK(read("T = 2\nT = T * 2\nprint(T)\nif T > 1:\n    main(T)\n" + function).tensor == 4);
  for (const char* top : {"T *= 2\n", "if True: T = 4\n", "if True: S = 4; T = 4\n", "T, S = 8, 2\n", "S = T = 4\n",
                          "if fast:\n    T = 4\n", "for T in [1, 2]: pass\n", "with one() as T:\n    pass\n", "del T\n",
                          "from sizes import T\n", "import sizes as S, T\n", "class T:\n    pass\n"})
    CHECK(line_of(top) > 1);
  CHECK(read("T = 2\nclass Other:\n    T = 4\n" + function).tensor == 2);
  CHECK(problem("def base():\n    return llama3_8b()\nif fast:\n    def base():\n        return llama3_70b()\n"
                "def f():\n    return base()\n",
                "f")
            .message == "its result is computed, or no configuration");
  CHECK(problem("T = TrainingConfig()\nif fast:\n    T.max_context_length = 4096\n" +
                changed("    config.training = T\n"))
            .path == "training");
  CHECK(problem("T = 2\ndef change():\n    global T\n    T = 8\n" + changed("    x = change()\n"), "planned").message ==
        "the configuration is computed here, by 'global'");
}

TEST_CASE("the values of a call fit the parameters of its function") {
  const auto calls = [](const std::string& parameters, const std::string& values) {
    return "tensor = 4\ndef base(" + parameters + "):\n    config = llama3_8b()\n" +
           "    config.parallelism.tensor_parallel_degree = tensor\n    return config\ndef f():\n    return base(" +
           values + ")\n";
  };
  CHECK(read(calls("*, tensor=2", ""), "f").tensor == 2);
  CHECK(read(calls("a, /, tensor, *rest, **more", "1, 8, 3, other=4"), "f").tensor == 8);
  CHECK(problem(calls("tensor=2", "degree=8"), "f").message == "'base' does not take these values");
  CHECK(problem(calls("tensor=2", "8, 1"), "f").message == "'base' does not take these values");
  CHECK(problem(calls("tensor=2", "8, tensor=1"), "f").message == "'base' does not take these values");
  CHECK(problem(calls("*, tensor=2", "8"), "f").message == "'base' does not take these values");
  CHECK(problem(calls("tensor", ""), "f").message == "'base' needs a value for 'tensor'");
  CHECK(problem(calls("tensor", "tensor=1, tensor=2"), "f").message == "this is no Python: 'tensor' is given twice");
}

TEST_CASE("lists of lists and objects of objects have an end") {
  std::string lines = "    a = [1, 1]\n";
  for (int i = 0; i < 40; ++i) lines += "    a = [a, a]\n";
  CHECK(problem(changed(lines)).message == "the lists of the file have more than 100000 elements");
  lines = "    a = F()\n";
  for (int i = 0; i < 100'000; ++i) lines += "    a = F(x=a)\n";
  CHECK(problem(changed(lines)).message == "the file makes more than 2000 objects");
  lines = "    a = config";
  for (int i = 0; i < 100'000; ++i) lines += ".b";
  CHECK(problem(changed(lines + "\n")).message == "the file makes more than 2000 objects");
}

TEST_CASE("options of a command line are tyro's") {
  const auto command = [](const std::string& more) { return "--module llama3 --config llama3_70b " + more; };
  CHECK(read(command("--compile.enable activation-checkpoint:selective")).recompute == "half");
  CHECK(read(command("--compile.enable activation-checkpoint:full")).recompute == "layers");
  CHECK(read(command("--parallelism.tensor-parallel-degree 4")).tensor == 4);
  CHECK(read(command("--parallelism.no-enable_sequence_parallel")).sequence_parallel == false);
  CHECK(read(command("--parallelism.no-enable-sequence-parallel --parallelism.tensor-parallel-degree=4")).tensor == 4);
  CHECK(read(command("--parallelism.enable-sequence-parallel")).sequence_parallel == true);
  const std::string launched =
      "NCCL_DEBUG=INFO torchrun --nproc_per_node=8 --nnodes 16 --rdzv-endpoint=a.b:1 -m torchtitan.train ";
  CHECK(read(launched + command("--parallelism.tensor_parallel_degree 4"), {}, 0).replicas == 32);
  CHECK(read(launched + command("--parallelism.tensor_parallel_degree 8"), {}, 0).replicas == 16);
  CHECK(read(command("--parallelism.tensor_parallel_degree 8 --checkpoint.folder run.sh")).tensor == 8);
  const TrainingSetup of_script = read("if a; then T=4; else T=8; fi\npython -m torchtitan.train " +
                                       command("--parallelism.tensor_parallel_degree $T"));
  CHECK(of_script.tensor == 8);
  CHECK(test::mentions(of_script.assumed, "so T is '8', the last of '4', '8'"));
  CHECK(problem(command(""), "planned").help == "leave --config out");
}

TEST_CASE("errors name the keys that the configuration has") {
  const std::string pipeline = "    config.parallelism.pipeline_parallel_degree = 2\n";
  CHECK(problem(changed(pipeline + "    config.parallelism.num_pp_microbatches = -1\n")).path ==
        "parallelism.num_pp_microbatches");
  CHECK(problem(changed("    config.training.max_context_length = -5\n")).path == "training.max_context_length");
  CHECK(problem(changed("    config.training.num_tokens_per_microbatch_per_dp_rank = -1\n")).path ==
        "training.num_tokens_per_microbatch_per_dp_rank");
  CHECK(read(changed("    config.training.num_tokens_per_train_step = -1\n")).micro_batch_size == 1);
  const Diagnostic large = problem(changed("    config.training.num_tokens_per_train_step = 8192 * 2_000_000\n"));
  CHECK(large.path == "training.num_tokens_per_train_step");
}

TEST_CASE("lines are Python's, with any line ends") {
  CHECK(read(";\n" + changed("    config.parallelism.tensor_parallel_degree = 2;\n    ;\n")).tensor == 2);
  std::string text = changed("    config.parallelism.tensor_parallel_degree = 2 \\\n        * 2\n");
  CHECK(read(text).tensor == 4);
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 2) text.replace(at, 1, "\r\n");
  CHECK(read(text).tensor == 4);
}

TEST_CASE("what decides the plan and is computed is refused where it stands; what does not is passed over") {
  const Diagnostic computed =
      problem(changed("    config.parallelism.tensor_parallel_degree = int(os.environ['T'])\n"));
  CHECK(computed.where == Where{"llama3.py", 3, 49});
  CHECK(computed.path == "parallelism.tensor_parallel_degree");
  CHECK(read(changed("    config.optimizer = default_adamw(lr=rate * 2)\n")).tensor == 1);
  const Diagnostic branch = problem(changed("    if fast:\n        config.compile.enable = True\n"));
  CHECK(branch.where == Where{"llama3.py", 3, 5});
  CHECK(branch.message == "the configuration is computed here, by 'if'");
  CHECK(problem(changed("    enable_fused_swiglu(config)\n")).where.line == 3);
  CHECK(problem("def f():\n    return load('x')\n").message == "what 'load' makes is not known here");
  CHECK(problem("def f():\n    return Trainer.Config(**kwargs)\n").message ==
        "its result is computed, or no configuration");
  CHECK(problem("def f():\n    return f()\n").message.find("call each other too often") != std::string::npos);
  CHECK(problem("def f(x=f()):\n    return f()\n").message.find("call each other too often") != std::string::npos);
  CHECK(problem("def f():\n    return [1\n").message == "'[' is not closed");
}

TEST_CASE("attention that has no context parallelism is refused with it, and numbers are whole") {
  const std::string varlen = "    config.model_spec = model_registry(\"8B\", attn_backend=\"varlen\")\n";
  CHECK(problem(changed(varlen + "    config.parallelism.context_parallel_degree = 2\n")).code == "context-attention");
  CHECK(read(changed(varlen)).context == 1);
  CHECK(problem(changed("    config.parallelism.num_pp_microbatches = \"x\"\n")).path ==
        "parallelism.num_pp_microbatches");
  CHECK(problem(changed("    config.training.num_tokens_per_train_step = 10000\n")).message ==
        "10000 tokens are no whole sequences of 8192");
}

TEST_CASE("keys of other releases are refused with the key that main has, unless all are of one older release") {
  const Diagnostic mixed =
      problem(changed("    config.training.local_batch_size = 8\n    config.training.max_context_length = 8192\n"));
  CHECK(mixed.code == "keys");
  CHECK(mixed.where.line == 3);
  const TrainingSetup older = read(
      "def llama3_8b():\n"
      "    return Trainer.Config(\n"
      "        model_spec=model_registry('8B'),\n"
      "        training=TrainingConfig(local_batch_size=2, seq_len=8192),\n"
      "        activation_checkpoint=ActivationCheckpointConfig(mode='selective', selective_ac_option='op'))\n");
  CHECK(older.model_name == "llama-3-8b");
  CHECK(older.micro_batch_size == 2);
  CHECK(older.recompute == "half");
  CHECK(std::any_of(older.assumed.begin(), older.assumed.end(),
                    [](const std::string& note) { return note.find("before 2026-08-20") != std::string::npos; }));
  CHECK(problem(changed("    config.parallelism.tensor_parallel_size = 2\n")).help ==
        "did you mean 'parallelism.tensor_parallel_degree'?");
}

}  // namespace stagecraft::torchtitan_python_test
