#include "sim/config/override.hpp"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include "toy.hpp"

namespace stagecraft::override_test {
using config::Problems;
using config::Value;

namespace {

const char* const kBase =
    "run: {schedule: 1f1b, micro_batches: 8}\n"
    "links: [{name: nv, latency: 1 us}, {name: eth.1, latency: 9 us}]\n"
    "models: {gpt-1.3b: {layers: 24}}\n"
    "sizes: [1, 2]\n";

Value parse(const std::string& text, Problems& problems) { return config::parse_yaml(text, "t.yaml", problems); }

struct Case {
  const char* set;
  const char* path;   ///< Read back after the change.
  const char* value;  ///< What is there, as YAML.
};

struct Bad {
  const char* set;
  int column;
  const char* path;
  const char* message;
  const char* help;
};

}  // namespace

TEST_CASE("paths go through maps, names and indices") {
  const Case cases[] = {
      {"run.micro_batches=16", "run.micro_batches", "16\n"},
      {"run.overlap=false", "run.overlap", "false\n"},
      {"links.nv.latency=2 us", "links[0].latency", "2 us\n"},
      {"links.eth.1.latency=3 us", "links[1].latency", "3 us\n"},
      {"links[1].latency=4 us", "links.eth.1.latency", "4 us\n"},
      {"models.gpt-1.3b.layers=48", "models.gpt-1.3b.layers", "48\n"},
      {"sizes[1]=7", "sizes", "[1, 7]\n"},
      {"sizes=[3]", "sizes", "[3]\n"},
      {"run.schedule={name: interleaved, chunks: 2}", "run.schedule.chunks", "2\n"},
      {"links.nv={latency: 0}", "links.nv", "name: nv\nlatency: 0\n"},
      {"links[1]={latency: 0}", "links.eth.1", "name: eth.1\nlatency: 0\n"},
      {"links[1]={name: ib, latency: 0}", "links.ib", "name: ib\nlatency: 0\n"},
      {"title=a=b", "title", "a=b\n"},
      {"plan.group.tensor=2", "plan", "group:\n  tensor: 2\n"},
      {"run.group.tensor=2", "run.group.tensor", "2\n"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.set);
    Problems problems;
    Value root = parse(kBase, problems);
    config::apply_set(root, c.set, problems);
    REQUIRE_MESSAGE(problems.empty(), render(problems.list()));
    const Value* node = config::get_path(root, c.path);
    REQUIRE(node);
    CHECK(config::to_yaml(*node, false) == c.value);
  }
}

TEST_CASE("a wrong path points at the wrong step") {
  const Bad cases[] = {
      {"rnu.micro_batches=1", 1, "rnu", "no such field", "did you mean 'run'?"},
      {"links.nw.latency=1", 7, "links.nw", "no such field", "did you mean 'nv'?"},
      {"links.nw={}", 7, "links.nw", "no such field", "did you mean 'nv'?"},
      {"sizes[2]=1", 6, "sizes[2]", "there is no item [2]", "the list has 2, counted from 0"},
      {"sizes[x]=1", 6, "sizes[x]", "'[x]' is not an index", "write a whole number in brackets, such as [0]"},
      {"sizes[1=1", 6, "sizes[1", "'[1' is not an index", "write a whole number in brackets, such as [0]"},
      {"other[0]=1", 1, "other", "there is no such list in the file",
       "if it is a field, set all of it, such as other=[...]"},
      {"run[0]=1", 4, "run[0]", "'run' is not a list", "write one of schedule, micro_batches"},
      {"run.schedule.chunks=1", 14, "run.schedule.chunks", "'run.schedule' is '1f1b', so nothing lies below it",
       "set 'run.schedule' to a map, such as {chunks: ...}"},
      {"run..x=1", 5, "run.", "a step of this path is empty", ""},
      {"run.=1", 5, "run.", "a step of this path is empty", ""},
      {"=1", 1, "", "a step of this path is empty", ""},
      {"run.x", 6, "run.x", "a value is missing", "write path=value"},
      {"run.x= ", 8, "run.x", "a value is missing", "write path=value"},
      {"run.x=*a", 7, "", "aliases are not allowed", "use base and override"},
  };
  for (const Bad& bad : cases) {
    CAPTURE(bad.set);
    Problems problems;
    Value root = parse(kBase, problems);
    config::apply_set(root, bad.set, problems);
    REQUIRE(problems.list().size() == 1);
    const Diagnostic& problem = problems.list().front();
    CHECK(problem.where.file == "<--set " + std::string(bad.set) + ">");
    CHECK(problem.where.line == 1);
    CHECK(problem.where.column == bad.column);
    CHECK(problem.path == bad.path);
    CHECK(problem.message == bad.message);
    if (problem.message.find("step") == std::string::npos) CHECK(problem.help == bad.help);
  }
}

TEST_CASE("a problem in a set value points into the command line") {
  Problems problems;
  Value root = parse("run: {schedule: gpipe, micro_batches: 8}\ncluster: {links: []}\n", problems);
  config::apply_set(root, "run.micro_batches=0", problems);
  config::apply_set(root, "run.micro_batchsize=0", problems);
  config::check(root, toy::root, "", problems);
  REQUIRE(problems.list().size() == 2);
  CHECK(problems.list()[0].where == Where{"<--set run.micro_batchsize=0>", 1, 5});
  CHECK(problems.list()[1].where == Where{"<--set run.micro_batches=0>", 1, 19});
}

TEST_CASE("values of a very long assignment keep a part of its text as their source") {
  std::string names;
  for (int i = 0; i < 2000; ++i) names += fmt::format("device{:04}, ", i);
  const std::string assignment = "plan.devices=[" + names + "last]";
  Problems problems;
  const auto set = config::read_assignment("--set", assignment, problems);
  REQUIRE(set);
  const Where& last = set->value.items.back().where;
  CHECK(last.file.size() < 4100);
  CHECK(last.file.ends_with("...>"));
  CHECK(last.column == static_cast<int>(assignment.find("last")) + 1);
  Problems wrong;
  wrong.add(set->value.items.front().where, "plan.devices[0]", "there is no such device", "");
  CHECK(render(wrong.list().front()).find('^') != std::string::npos);
  wrong.add(last, "plan.devices[2000]", "there is no such device", "");
  CHECK(render(wrong.list().back()).find('^') == std::string::npos);  // Its part of the text was cut.
}

TEST_CASE("overrides are a flat map of paths") {
  Problems problems;
  Value root = parse(kBase, problems);
  const Value overrides = parse("links.nv.latency: 5 us\nx-note: 1\nsizes[0]: 4\nlinks.nw.latency: 1\n", problems);
  config::apply_overrides(root, config::any("cluster"), overrides, "cluster.override", problems);
  CHECK(config::get_path(root, "links.nv.latency")->text == "5 us");
  CHECK(config::get_path(root, "sizes[0]")->text == "4");
  CHECK(config::get_path(root, "x-note") == nullptr);
  REQUIRE(problems.list().size() == 1);
  CHECK(problems.list()[0].where == Where{"t.yaml", 4, 7});
  CHECK(problems.list()[0].path == "cluster.override.links.nw");
}

TEST_CASE("get_path returns nullptr for a path that does not exist") {
  Problems problems;
  const Value root = parse(kBase, problems);
  for (const char* path : {"x", "run.x", "sizes[9]", "sizes[", "run.", "links.eth", "[0]"}) {
    CAPTURE(path);
    CHECK(config::get_path(root, path) == nullptr);
  }
  CHECK(config::get_path(root, "") == &root);
}

TEST_CASE("a path leads to its field through maps, items and the variant that is chosen") {
  Problems problems;
  const Value root =
      parse("run: {schedule: {name: interleaved}}\ncluster: {links: {nv: {bandwidth: 1 GB/s}}}\n", problems);
  const auto name_at = [&](const char* path) {
    const config::Field* field = config::field_at(toy::root, root, path);
    return field ? field->name : "none";
  };
  CHECK(name_at("run.micro_batches") == "micro_batches");  // Absent, but the table has it.
  CHECK(name_at("cluster.links") == "links");
  CHECK(name_at("cluster.links.nv.latency") == "latency");
  CHECK(name_at("cluster.links[0].duplex") == "duplex");
  CHECK(name_at("run.schedule.chunks") == "chunks");
  for (const char* path : {"", "run.schedule.csv", "run.seeds", "run.seed.x", "notes.x", "run."}) {
    CAPTURE(path);
    CHECK(config::field_at(toy::root, root, path) == nullptr);
  }
  const Value by_key = parse("run: {schedule: {csv: order.csv}}\n", problems);
  CHECK(config::field_at(toy::root, by_key, "run.schedule.csv")->name == "csv");
  const Value by_word = parse("run: {schedule: interleaved}\n", problems);
  CHECK(config::field_at(toy::root, by_word, "run.schedule.chunks")->name == "chunks");
}

TEST_CASE("a bare value becomes a list of one only where the items of a list are scalars") {
  Problems problems;
  const Value root = parse("cluster: {}\n", problems);
  const auto set = [&](const char* path, const char* value) {
    return config::list_if_needed(parse(value, problems), config::field_at(toy::root, root, path), root, path,
                                  problems);
  };
  const Value one = set("cluster.hosts", "h7");
  REQUIRE(one.is_list());
  REQUIRE(one.items.size() == 1);
  CHECK(one.items[0].text == "h7");
  CHECK(one.items[0].where == Where{"t.yaml", 1, 1});
  CHECK(set("cluster.hosts", "[h7, h8]").items.size() == 2);
  CHECK(set("cluster.links", "nv").is_scalar());  // An item is a map, so check() refuses the scalar.
  CHECK(set("run.seed", "3").is_scalar());
  CHECK(set("no.such", "3").is_scalar());
}

}  // namespace stagecraft::override_test
