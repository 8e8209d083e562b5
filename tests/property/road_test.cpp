// Every random plan gives a valid schedule, a sound program, and numbers that agree with each other.

#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "sim/cluster/conditions.hpp"
#include "sim/result/memory.hpp"
#include "sim/result/report.hpp"
#include "tests/support/properties.hpp"
#include "tests/support/random_changes.hpp"

namespace stagecraft::road_test {
namespace {

struct Run {
  test::RandomCase c;
  Program program;
  Cluster cluster;
  Timeline timeline;
  Report report;
};

Run any_run(const BackendDef& backend) {
  Run run;
  run.c = test::any_case();
  RC_LOG() << to_text(run.c);
  run.program = test::program_or_discard(run.c);
  run.cluster = test::any_star(run.program.devices);
  const BackendDef& rated = get_from(backends::catalog(), "backend", "ideal");
  test::random_changes(run.cluster, rated.run(run.program, run.cluster, {}).last_end().value, test::pick);
  run.timeline = backend.run(run.program, run.cluster, {});
  run.report = measure(run.program, run.timeline, run.cluster);
  return run;
}

bool same(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b)) + 1e-15; }

/// Spans of the instructions that `wanted` selects, by device, in order of start.
template <class Wanted>
std::map<int, std::vector<std::pair<double, double>>> spans(const Run& run, Wanted&& wanted) {
  std::map<int, std::vector<std::pair<double, double>>> by_device;
  for (const InstructionId n : run.program.instructions.ids())
    if (wanted(run.program.instructions[n]))
      by_device[run.program.instructions[n].device.value].emplace_back(run.timeline.start[n], run.timeline.end[n]);
  for (auto& device : by_device) std::sort(device.second.begin(), device.second.end());
  return by_device;
}

void check_apart(const std::map<int, std::vector<std::pair<double, double>>>& by_device) {
  for (const auto& device : by_device)
    for (std::size_t i = 1; i < device.second.size(); ++i)
      RC_ASSERT(device.second[i - 1].second <= device.second[i].first * (1 + 1e-12));
}

bool as_rated(const Run& run) { return Conditions(run.cluster).as_rated(); }

/// Whether a computation takes its stated time, or longer if machines change.
void check_length(const Run& run, std::size_t n) {
  const double rated = run.timeline.start[InstructionId{n}] + run.program.instructions[InstructionId{n}].duration.value;
  RC_ASSERT(run.timeline.end[InstructionId{n}] >= rated * (1 - 1e-9));
  if (as_rated(run)) RC_ASSERT(same(run.timeline.end[InstructionId{n}], rated));
}

}  // namespace

TEST_CASE("everything an instruction waits for is over when it starts, and a computation takes its time or more") {
  for (const BackendDef* backend : test::simulators())
    CHECK(test::holds("waits", [&] {
      const Run run = any_run(*backend);
      for (std::size_t n = 0; n < run.program.size(); ++n) {
        const Instruction& i = run.program.instructions[InstructionId{n}];
        for (const InstructionId w : run.program.waits_for(InstructionId{n}))
          RC_ASSERT(run.timeline.start[InstructionId{n}] >= run.timeline.end_of(w).value * (1 - 1e-12));
        RC_ASSERT(run.timeline.end[InstructionId{n}] >= run.timeline.start[InstructionId{n}]);
        if (i.is_compute()) check_length(run, n);
      }
      for (const Transfer& t : run.program.transfers) {
        RC_ASSERT(run.timeline.end_of(t.receive) >= run.timeline.end_of(t.send));
        if (run.program.rendezvous) RC_ASSERT(run.timeline.start_of(t.send) == run.timeline.start_of(t.receive));
      }
    }));
}

TEST_CASE("a device computes one op at a time, and sends one message at a time when asked to") {
  for (const BackendDef* backend : test::simulators())
    CHECK(test::holds("exclusive", [&] {
      const Run run = any_run(*backend);
      check_apart(spans(run, [](const Instruction& i) { return i.is_compute(); }));
      if (run.c.options.fifo_sends)
        check_apart(spans(run, [](const Instruction& i) { return i.kind == InstructionKind::Send; }));
    }));
}

TEST_CASE("busy and idle are the length of the run on every device, and waiting for links is part of idle") {
  for (const BackendDef* backend : test::simulators())
    CHECK(test::holds("busy", [&] {
      const Run run = any_run(*backend);
      double total = 0;
      int used = 0;
      for (const DeviceId d : run.report.devices.ids()) {
        double busy = 0, idle = 0, at = 0;
        const auto device_spans = spans(run, [&](const Instruction& i) { return i.is_compute() && i.device == d; });
        const auto it = device_spans.find(d.value);
        if (it != device_spans.end())
          for (const auto& span : it->second)
            busy += span.second - span.first, idle += span.first - at, at = span.second;
        idle += run.report.length.value - at;
        const DeviceReport& r = run.report.devices[d];
        RC_ASSERT(same(busy + idle, run.report.length.value));
        RC_ASSERT(same(busy, r.utilisation * run.report.length.value));
        if (as_rated(run))
          RC_ASSERT(run.report.period >= r.busy * (1 - 1e-12));  // else the first iteration is not as others
        RC_ASSERT(r.idle.exposed.total().value <= idle * (1 + 1e-9) + 1e-15);
        if (r.used) RC_ASSERT(same(r.time.total().value, run.report.period.value));
        RC_ASSERT(r.used == (it != device_spans.end()));
        if (r.used) total += busy + r.idle.total().value, ++used;
      }
      RC_ASSERT(same(total, run.report.length.value * used));
      RC_ASSERT(run.report.bubble >= -1e-12);
      RC_ASSERT(run.report.bubble < 1);
      RC_ASSERT(run.report.makespan <= run.report.length);
      if (run.program.iterations == 1) RC_ASSERT(run.report.period == run.report.makespan);
    }));
}

TEST_CASE("memory never falls below the resident part, returns to it, and peaks at the top of the curve") {
  for (const BackendDef* backend : test::simulators())
    CHECK(test::holds("memory", [&] {
      const Run run = any_run(*backend);
      const MemoryHistory history(run.program, run.timeline);
      for (int d = 0; d < run.program.devices; ++d) {
        const MemoryCurve curve = history.curve(DeviceId{d});
        double highest = 0;
        int activations = 0;
        for (const MemorySample& s : curve) {
          for (const Bytes part : {s.stash, s.received, s.outgoing}) RC_ASSERT(part.value >= -1e-3);
          RC_ASSERT(s.activations >= 0);
          highest = std::max(highest, s.total().value);
          activations = std::max(activations, s.activations);
        }
        if (!curve.empty()) RC_ASSERT(std::abs(curve.back().total().value) <= 1e-3);
        if (!curve.empty()) RC_ASSERT(curve.back().activations == 0);
        const MemoryPeak& peak = run.report.devices[DeviceId{d}].memory;
        RC_ASSERT(same(peak.total.value, peak.resident.value + highest));
        RC_ASSERT(same(peak.total.value, (peak.resident + peak.stash + peak.received + peak.outgoing).value));
        RC_ASSERT(peak.activations == activations);
      }
    }));
}

TEST_CASE("the critical path is a path, and its parts sum to the length") {
  for (const BackendDef* backend : test::simulators())
    CHECK(test::holds("critical path", [&] {
      const Run run = any_run(*backend);
      const Report& r = run.report;
      RC_ASSERT(same((r.critical_compute + r.critical_transfer + r.critical_wait).value, r.length.value));
      RC_ASSERT(!r.critical_path.empty());
      RC_ASSERT(run.timeline.end_of(r.critical_path.back()) == run.timeline.last_end());
      for (std::size_t i = 1; i < r.critical_path.size(); ++i)
        RC_ASSERT(run.timeline.end_of(r.critical_path[i - 1]) <= run.timeline.end_of(r.critical_path[i]));
      // The longest path explains every moment: on the ideal network nothing waits without a reason, such as a device
      // that is down.
      if (backend->name == "ideal" && as_rated(run))
        RC_ASSERT(std::abs(r.critical_wait.value) <= 1e-9 * r.length.value);
    }));
}

TEST_CASE("sharing links never makes a run on exclusive links faster") {
  const BackendDef* simgrid = find_in(backends::catalog(), "simgrid");
  if (simgrid == nullptr || !simgrid->why_not().empty()) return;
  CHECK(test::holds("contention", [&] {
    const Run run = any_run(*simgrid);
    // Each message alone: latency and bytes over the slowest link. It never takes less.
    for (const Transfer& t : run.program.transfers) {
      const RouteEnds& ends = run.program.ends(t);
      const Route route = Router(run.cluster).require(ends.from, ends.to);
      const double alone = route.latency.value + static_cast<double>(run.program.bytes(t)) / route.bandwidth.value;
      RC_ASSERT(run.timeline.end_of(t.send).value - run.timeline.start_of(t.send).value >= alone * (1 - 1e-9));
    }
    // Nor does any link carry more than it can.
    for (const LinkReport& l : run.report.links) RC_ASSERT(l.utilisation <= 1 + 1e-9);
  }));
}

TEST_CASE("weights: a version is read only when it is there and still kept") {
  CHECK(test::holds("versions", [] {
    const test::RandomCase c = test::any_case();
    RC_LOG() << to_text(c);
    const Program program = test::program_or_discard(c);
    const bool same_version = test::policy(c.weights).backward == BackwardWeights::SameAsForward;
    std::map<std::pair<StageId, DeviceId>, int> newest;
    std::map<std::tuple<StageId, DeviceId, int>, int> forward;
    for (const Instruction& i : program.instructions) {
      if (!i.is_compute()) continue;
      int& version = newest[{i.stage, i.device}];
      if (i.kind == InstructionKind::Update) {
        RC_ASSERT(i.version() == version + 1);
        version = i.version();
        continue;
      }
      RC_ASSERT(i.version() <= version);
      RC_ASSERT(i.version() > version - program.memory[i.device].weight_buffers);
      RC_ASSERT(version - i.version() <= program.delays[i.stage] || c.weights == "vertical-sync" || c.weights == "2bw");
      if (i.kind == InstructionKind::Predict || !same_version) continue;
      const auto [place, first] = forward.try_emplace({i.stage, i.device, i.micro_batch()}, i.version());
      if (!first) RC_ASSERT(place->second == i.version());  // forward and backward agree
    }
  }));
}

}  // namespace stagecraft::road_test
