#include "sim/core/diagnostic.hpp"

#include <doctest/doctest.h>

#include "sim/core/catalog.hpp"
#include "sim/core/text.hpp"
#include "tests/support/files.hpp"

namespace stagecraft::diagnostic_test {
namespace {

Diagnostic problem(Where where, std::string message = "wrong", std::string help = {}) {
  return {std::move(where), "run.x", std::move(message), std::move(help), "code"};
}

struct Entry {
  std::string_view name;
};

}  // namespace

TEST_CASE("a problem shows its line, a caret below it and the help") {
  const std::string file = test::own_file("diagnostic_test.yaml", "run:\n\té: x\r\n");
  CHECK(render(problem({file, 2, 5}, "'x' is not known", "did you mean 'y'?")) ==
        file + ":2:5: error: run.x: 'x' is not known\n    2 | \té: x\n      | \t   ^\n      = help: did you mean 'y'?");
  CHECK(render(problem({file, 9, 1})) == file + ":9:1: error: run.x: wrong");
  CHECK(render(problem({file, 1, 99})).find("run:\n") != std::string::npos);
  CHECK(render(problem({file, 0, 0})) == file + ": error: run.x: wrong");
}

TEST_CASE("the command line is a separate source, with columns counted from the end of the option") {
  CHECK(render(problem({"<--set run.micro_batches=0>", 1, 19}, "0 is outside 1 to 65536")) ==
        "<--set run.micro_batches=0>:1:19: error: run.x: 0 is outside 1 to 65536\n"
        "    1 | --set run.micro_batches=0\n"
        "      |                         ^");
  CHECK(render(problem({"<text>", 1, 2})) == "<text>:1:2: error: run.x: wrong\n    1 | text\n      |  ^");
}

TEST_CASE("problems are sorted by place, cut at twenty and counted") {
  const std::string two = render({problem({"b", 1, 1}), problem({"a", 10, 1}), problem({"a", 9, 2})});
  CHECK(two == "a:9:2: error: run.x: wrong\na:10:1: error: run.x: wrong\nb:1:1: error: run.x: wrong\n3 problems found");
  const std::string many = render(std::vector<Diagnostic>(25, problem({"a", 1, 1})));
  CHECK(many.ends_with("25 problems found, the first 20 are shown"));
  CHECK(split(many, '\n').size() == 21);
  Diagnostic folded = problem({"a", 2, 1});
  folded.more = 22;
  CHECK(render({problem({"a", 1, 1}), folded}).ends_with("wrong; and 22 more like these\n24 problems found"));
}

TEST_CASE("a message with a word of megabytes is cut to its begin and its end") {
  const std::string text = render(Diagnostic{{}, {}, "begin " + std::string(5'000'000, 'x') + " end", {}, {}});
  CHECK(text.size() < 4000);
  CHECK(text.starts_with("error: begin xxx"));
  CHECK(text.ends_with("xxx end"));
  CHECK(text.find("[4996510 bytes are not shown]") != std::string::npos);
}

TEST_CASE("the text of an error has its help and the number of its problems") {
  CHECK(std::string(InputError("no such thing", "did you mean 'that'?").what()) ==
        "error: no such thing\n      = help: did you mean 'that'?");
  const InputError several({problem({"a", 1, 1}), problem({"a", 2, 1})});
  CHECK(several.problems().size() == 2);
  CHECK(std::string(several.what()).ends_with("2 problems found"));
  const Infeasible tight("memory", "gpu1 needs 91.2 GiB and has 80 GiB", "recompute would fit");
  CHECK(tight.code() == "memory");
  CHECK(std::string(tight.what()).ends_with("\n      = help: recompute would fit"));
  CHECK_THROWS_WITH_AS(STAGECRAFT_CHECK(1 > 2), doctest::Contains("1 > 2"), InternalError);
}

TEST_CASE("a catalog suggests the entry that was meant") {
  static const Entry gpipe{"gpipe"}, serial{"serial"};
  static const Entry* const entries[] = {&gpipe, &serial};
  CHECK(&get_from<Entry>(entries, "schedule", "serial") == &serial);
  CHECK_THROWS_WITH_AS(get_from<Entry>(entries, "schedule", "gpip"),
                       "error: 'gpip' is not a known schedule\n      = help: did you mean 'gpipe'?", InputError);
}

}  // namespace stagecraft::diagnostic_test
