#include <doctest/doctest.h>

#include "sim/core/diagnostic.hpp"
#include "toy.hpp"

namespace stagecraft::explain_test {

TEST_CASE("a field is explained with its type, default and sentence") {
  CHECK(config::explain(toy::root, "run.micro_batch_size") ==
        "run.micro_batch_size\n  Samples in one micro-batch.\n  whole number from 1 to 65536; default 1\n");
  CHECK(config::explain(toy::root, "run.seed") ==
        "run.seed\n  Of the random numbers.\n  whole number, at least 0; optional\n");
}

TEST_CASE("a map is explained with its fields") {
  CHECK(config::explain(toy::root, "report") ==
        "report\n  The outcome.\n  map; default {}\n\n  html  true or false; default false\n        A page.\n");
  const std::string explained = config::explain(toy::root, "");
  CHECK(explained.starts_with("A toy scenario.\n\n  title    text; optional\n           For people.\n"));
}

TEST_CASE("paths go through lists, tables and variants") {
  for (const char* path :
       {"cluster.links[0].latency", "cluster.links.nv.latency", "cluster.links.latency", "cluster.links[].latency"}) {
    CAPTURE(path);
    CHECK(config::explain(toy::root, path) ==
          std::string(path) + "\n  One way.\n  time in s, ms, us, ns, min, h, days; default 0\n");
  }
  CHECK(config::explain(toy::root, "cluster.links")
            .starts_with("cluster.links\n  The cables.\n  list of maps, or map by name; required\n"));
  CHECK(config::explain(toy::root, "cluster.speeds.cpu").find("number from 0 to 100") != std::string::npos);
  CHECK(config::explain(toy::root, "run.schedule.chunks").find("Parts of the model") != std::string::npos);
  CHECK(config::explain(toy::root, "run.schedule.interleaved") ==
        "run.schedule.interleaved\n  Several chunks on a device.\n\n"
        "  chunks  whole number from 1 to 64; required\n          Parts of the model on each device.\n");
  CHECK(
      config::explain(toy::root, "run.schedule.interleaved.chunks") ==
      "run.schedule.interleaved.chunks\n  Parts of the model on each device.\n  whole number from 1 to 64; required\n");
  CHECK(config::explain(toy::root, "run.schedule.name.interleaved").find("Parts of the model") != std::string::npos);
  CHECK(config::explain(toy::root, "run.schedule.name.interleaved.chunks").find("1 to 64") != std::string::npos);
  CHECK_THROWS_WITH_AS(
      config::explain(toy::root, "run.schedule.name.interleafed"),
      "error: 'run.schedule.name.interleafed' is not a field\n      = help: did you mean 'interleaved'?", InputError);
  CHECK_THROWS_AS(config::explain(toy::root, "run.schedule.interleaved.chumks"), InputError);
  CHECK_THROWS_AS(config::explain(toy::root, "run.schedule.gpipe.chunks"), InputError);
  CHECK(config::explain(toy::root, "run.schedule").find("name: gpipe: All forward, then all backward.") !=
        std::string::npos);
}

TEST_CASE("an unknown path gets a suggestion") {
  CHECK_THROWS_WITH_AS(config::explain(toy::root, "run.shcedule"),
                       "error: 'run.shcedule' is not a field\n      = help: did you mean 'schedule'?", InputError);
  CHECK_THROWS_WITH_AS(config::explain(toy::root, "micro_batches"),
                       "error: 'micro_batches' is not a field\n      = help: it may be run.micro_batches", InputError);
  for (const char* path : {"[0]", ".", "run.", "run.overlap.x", "cluster.links.nv.x.y", "cluster.speeds.a.b.c"}) {
    CAPTURE(path);
    CHECK_THROWS_AS(config::explain(toy::root, path), InputError);
  }
}

TEST_CASE("the reference has every table once") {
  const std::string text = config::reference(toy::root, "Scenario");
  CHECK(text.starts_with("# Scenario\n\nA toy scenario.\n"));
  for (const char* part : {"\n## `run`\n", "\n## `cluster.links`\n", "\n## The choices of `run.schedule`\n",
                           "\n## `run.schedule` with `name: interleaved`\n",
                           "| `latency` | time in s, ms, us, ns, min, h, days | `0` | One way. |\n"}) {
    CAPTURE(part);
    CHECK(text.find(part) != std::string::npos);
    CHECK(text.find(part) == text.rfind(part));
  }
}

}  // namespace stagecraft::explain_test
