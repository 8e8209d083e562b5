#include <doctest/doctest.h>

#include "sim/core/diagnostic.hpp"
#include "toy.hpp"

namespace stagecraft::check_test {
using config::Problems;
using config::Value;

namespace {

const std::string kRun = "run: {schedule: gpipe, micro_batches: 8}\n";
const std::string kCluster = "cluster: {links: {nv: {bandwidth: 25 GB/s}}}\n";

Value check(const std::string& text, Problems& problems) {
  return config::check(config::parse_yaml(text, "t.yaml", problems), toy::root, "", problems);
}

Value good(const std::string& text) {
  Problems problems;
  Value value = check(text, problems);
  REQUIRE_MESSAGE(problems.empty(), render(problems.list()));
  return value;
}

/// Each problem as "line:column path: message (help)".
std::string complaints(const std::string& text) {
  Problems problems;
  check(text, problems);
  std::string joined;
  for (const Diagnostic& d : problems.list()) {
    joined += joined.empty() ? "" : "\n";
    joined += std::to_string(d.where.line) + ":" + std::to_string(d.where.column) + " " + d.path + ": " + d.message;
    if (!d.help.empty()) joined += " (" + d.help + ")";
  }
  return joined;
}

struct Case {
  const char* field;  ///< The text of one field under `run`.
  const char* complaint;
};

}  // namespace

TEST_CASE("a checked tree has its defaults, in the order of the table") {
  const Value root = good(kCluster + kRun + "x-note: {a: 1}\n");
  CHECK(config::to_yaml(root, true) ==
        "run:\n"
        "  schedule:\n"
        "    name: gpipe\n"
        "  micro_batches: 8\n"
        "  micro_batch_size: 1  # default\n"
        "  overlap: true  # default\n"
        "  timeout: 10 s  # default\n"
        "cluster:\n"
        "  links:\n"
        "    - name: nv\n"
        "      bandwidth: 25 GB/s\n"
        "      latency: 0  # default\n"
        "      duplex: full  # default\n"
        "  speeds:  # default\n"
        "    a100: 1  # default\n"
        "    cpu: 0.1  # default\n"
        "  hosts: [h0]  # default\n"
        "report:  # default\n"
        "  html: false  # default\n");
  CHECK(config::to_yaml(good(config::to_yaml(root, false)), false) == config::to_yaml(root, false));
  CHECK(root.at("report").at("html").where == root.where);
}

TEST_CASE("checked values are read in base units") {
  const Value run =
      good("run: {schedule: {csv: a.csv}, micro_batches: 1e3, ratio: .5, overlap: false}\n" + kCluster).at("run");
  CHECK(config::as_int(run.at("micro_batches")) == 1000);
  CHECK(config::as_real(run.at("ratio")) == 0.5);
  CHECK_FALSE(config::as_bool(run.at("overlap")));
  CHECK(config::as_seconds(run.at("timeout")) == Seconds{10});
  CHECK(run.at("schedule").at("name").text == "csv");
  CHECK(run.at("schedule").at("csv").text == "a.csv");
  CHECK_THROWS_AS(config::as_int(run.at("ratio")), InternalError);
  CHECK_THROWS_AS(config::as_bytes(run.at("timeout")), InternalError);
}

TEST_CASE("each wrong field has one message that says what to write") {
  const Case cases[] = {
      {"micro_batches: 0", "2:18 run.micro_batches: 0 is outside 1 to 65536"},
      {"micro_batches: 010",
       "2:18 run.micro_batches: '010' starts with a zero; write 10 (write a whole number from 1 to 65536)"},
      {"micro_batches: '8'", "2:18 run.micro_batches: '8' is in quotes, so it is a text (write 8 without quotes)"},
      {"micro_batches: 1.5",
       "2:18 run.micro_batches: '1.5' is not a whole number (write a whole number from 1 to 65536)"},
      {"micro_batches: 1e3", ""},
      {"micro_batches: 8.0", ""},
      {"micro_batches: yes", "2:18 run.micro_batches: 'yes' is not a number (write a whole number from 1 to 65536)"},
      {"micro_batches:", "2:3 run.micro_batches: this is empty (give it a value or take the line out)"},
      {"micro_batches: [1]", "2:18 run.micro_batches: a list cannot stand here (write a whole number from 1 to 65536)"},
      {"seed: -1", "2:9 run.seed: -1 is below 0"},
      {"ratio: 85%", "2:10 run.ratio: '85%' is a percentage; write the ratio 0.85 (write a number from 0 to 1)"},
      {"ratio: .inf", "2:10 run.ratio: '.inf' is not a finite number (write a number from 0 to 1)"},
      {"overlap: yes", "2:12 run.overlap: 'yes' is neither true nor false (write true)"},
      {"overlap: Off", "2:12 run.overlap: 'Off' is neither true nor false (write false)"},
      {"overlap: 'true'", "2:12 run.overlap: 'true' is in quotes, so it is a text (write true without quotes)"},
      {"timeout: 10", "2:12 run.timeout: '10' has no unit; write one of s, ms, us, ns, min, h, days"},
      {"timeout: 0", ""},
      {"timeout: '10 s'", ""},
      {"timeout: '0'", "2:12 run.timeout: '0' is in quotes, so it is a text (write 0 without quotes)"},
      {"schedule: 1f1d", "2:13 run.schedule: '1f1d' is not known (did you mean '1f1b'?)"},
      {"schedule: zzz", "2:13 run.schedule: 'zzz' is not known (write one of gpipe, 1f1b, interleaved, csv)"},
      {"schedule: interleaved", "2:13 run.schedule.chunks: this field is missing (Parts of the model on each device.)"},
      {"schedule: {name: interleaved, chnks: 2}", "2:33 run.schedule.chnks: no such field (did you mean 'chunks'?)"},
      {"schedule: {name: 1f1b, chunks: 2}",
       "2:26 run.schedule.chunks: no such field ('chunks' is a field of interleaved, not of 1f1b)"},
      {"schedule: {nmae: 1f1b}", "2:14 run.schedule.nmae: no such field (did you mean 'name'?)"},
      {"schedule: {}",
       "2:13 run.schedule.name: this field is missing (Which one it is: gpipe, 1f1b, interleaved, csv.)"},
      {"schedule: {chunks: 2}",
       "2:13 run.schedule.name: this field is missing (write name: interleaved, which has 'chunks')"},
      {"schedule: {chnks: 2}",
       "2:13 run.schedule.name: this field is missing (Which one it is: gpipe, 1f1b, interleaved, csv.)\n"
       "2:14 run.schedule.chnks: no such field (did you mean 'chunks'?)"},
      {"schedule: {name: interleavd, chnks: 2}",
       "2:20 run.schedule.name: 'interleavd' is not known (did you mean 'interleaved'?)\n"
       "2:32 run.schedule.chnks: no such field (did you mean 'chunks'?)"},
      {"schedule: [gpipe]", "2:13 run.schedule: a word or a map is needed here, not a list"},
      {"stagse: 4",
       "2:3 run.stagse: no such field (write one of schedule, micro_batches, micro_batch_size, overlap, ratio, seed, "
       "timeout)"},
      {"html: true", "2:3 run.html: no such field ('html' belongs under report)"},
      {"x-any: {thing: 1}", ""},
  };
  for (const Case& c : cases) {
    CAPTURE(c.field);
    const std::string field = c.field;
    std::string text = "run:\n  " + field + "\n";
    if (!field.starts_with("schedule")) text += "  schedule: gpipe\n";
    if (!field.starts_with("micro_batches")) text += "  micro_batches: 8\n";
    CHECK(complaints(text + kCluster) == c.complaint);
  }
}

TEST_CASE("a misspelled or misplaced required field is reported once") {
  CHECK(complaints("run: {shcedule: gpipe, micro_batches: 8}\n" + kCluster) ==
        "1:7 run.shcedule: no such field (did you mean 'schedule'?)");
  CHECK(complaints("rnu: {schedule: gpipe, micro_batches: 8}\n" + kCluster) ==
        "1:1 rnu: no such field (did you mean 'run'?)");
  CHECK(complaints("micro_batches: 8\nrun: {schedule: gpipe}\n" + kCluster) ==
        "1:1 micro_batches: no such field ('micro_batches' belongs under run)");
  CHECK(complaints(kRun + "cluster: {links: [], title: x}\n") ==
        "2:22 cluster.title: no such field ('title' belongs at the top of the file)");
}

TEST_CASE("all problems are found in one pass") {
  CHECK(complaints("run: {schedule: x, micro_batches: 0}\ncluster: {links: 3}\n") ==
        "1:17 run.schedule: 'x' is not known (write one of gpipe, 1f1b, interleaved, csv)\n"
        "1:35 run.micro_batches: 0 is outside 1 to 65536\n"
        "2:18 cluster.links: a list is needed here, not '3' (write a list of maps, such as [{name: ..., bandwidth: "
        "...}])");
  CHECK(complaints("title: t\n") ==
        "1:1 run: this field is missing (How to run.)\n1:1 cluster: this field is missing (On what.)");
}

TEST_CASE("of many unknown keys all are reported, and the first thousand with advice") {
  std::string text = kRun;
  for (int i = 0; i < 3000; ++i) text += "titel" + std::to_string(i) + ": x\n";
  Problems problems;
  check(text, problems);
  std::size_t unknown = 0, advised = 0;
  for (const Diagnostic& d : problems.list()) {
    unknown += d.code == "unknown-field";
    advised += d.code == "unknown-field" && !d.help.empty();
  }
  CHECK(unknown == 3000);
  CHECK(advised == 1000);
}

TEST_CASE("lists of named items are lists or maps") {
  const auto links = [](const std::string& text) { return kRun + "cluster: {links: " + text + "}\n"; };
  CHECK(complaints(links("[{name: a, bandwidth: 1 GB/s}, {name: b, bandwidth: 1 GB/s}]")).empty());
  CHECK(complaints(links("[{name: a, bandwidth: 1 GB/s}, {name: a, bandwidth: 1 GB/s}]")) ==
        "2:56 cluster.links[1].name: the name 'a' is taken (it is already on line 2)");
  CHECK(complaints(links("[{bandwidth: 1 GB/s}]")) == "2:19 cluster.links[0].name: this field is missing (Its name.)");
  CHECK(complaints(links("{a: {bandwidth: 1 GBps}}")) ==
        "2:34 cluster.links.a.bandwidth: 'GBps' can be read in two ways; write '1 GB/s' for bytes or '1 Gbit/s' for "
        "bits");
  CHECK(complaints(links("{a: {name: b, bandwidth: 1 GB/s}}")) ==
        "2:29 cluster.links.a.name: the key already names it 'a' (take this line out)");
  CHECK(complaints(links("{a: }")) == "2:19 cluster.links.a: this is empty (give it a value or take the line out)");
  CHECK(complaints(links("{x-1: {bandwidth: 1 GB/s}}")).empty());
}

TEST_CASE("keys of a table may have any name") {
  CHECK(complaints(kRun + "cluster: {links: [], speeds: {x-any: 1, b: fast}}\n") ==
        "2:44 cluster.speeds.b: 'fast' is not a number (write a number from 0 to 100)");
}

TEST_CASE("a file that is no map, or could not be read, is one problem") {
  CHECK(complaints("title:x\n") ==
        "1:1 : a map is needed here, not 'title:x' (put a space after the colon: 'title: x')");
  CHECK(complaints("- 1\n") == "1:1 : a map is needed here, not a list");
  CHECK(complaints("").find("the file is empty") != std::string::npos);
  CHECK(complaints("run: *x\n" + kCluster).find("\n") == std::string::npos);
  CHECK(complaints("run: {a: 'x\n") == "1:10 run.a: this quote is never closed (end the text with ')");
}

TEST_CASE("a default that does not fit its own field is a bug of ours") {
  static const config::MapSpec wrong{"", {config::integer("n", 1, 2).fallback("3")}};
  Problems problems;
  CHECK_THROWS_AS(config::check(config::parse_yaml("{}", "t.yaml", problems), wrong, "", problems), InternalError);
}

}  // namespace stagecraft::check_test
