// What the `cpu` backend calls: runs a Program on threads and processes, or emulates it, and returns its Timeline.

#include "backends/real/execute.hpp"

#include <algorithm>

#include "backends/real/byte_text.hpp"
#include "backends/real/emulation.hpp"
#include "backends/real/multi_process_run.hpp"
#include "backends/real/remote_members.hpp"
#include "backends/real/session.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft::real {
namespace {

/// Time begins with the first instruction: threads take their time to start.
Timeline timeline_of(Times times) {
  if (!times.start.empty()) {
    const double first = *std::min_element(times.start.begin(), times.start.end());
    for (double& t : times.start) t -= first;
    for (double& t : times.end) t -= first;
  }
  Timeline timeline;
  timeline.clock = Clock::Host;
  timeline.start = std::move(times.start);
  timeline.end = std::move(times.end);
  timeline.core_waits = std::move(times.core_waits);
  return timeline;
}

Timeline timeline_of(CollectedRun joint) {
  Timeline timeline = timeline_of(std::move(joint.times));
  timeline.processes = world().size;
  timeline.elsewhere = world().rank > 0;
  timeline.clock_uncertainty = {joint.uncertainty};
  return timeline;
}

}  // namespace

Timeline execute(const Program& program, const KernelFactory& factory, const ExecutorOptions& options) {
  const DevicePlacement placement(program, world());
  const auto remote = [&](int group, const std::vector<DeviceId>& devices) {
    std::vector<int> owners;
    for (const DeviceId d : devices) owners.push_back(placement.owner(d));
    return remote_members(group * program.devices, std::move(owners));
  };
  Session session(
      program, factory, [&](DeviceId d) { return placement.here(d); }, false, remote);
  if (world().size == 1) {
    bool diverged = false;
    Times times;
    try {
      ExecutorOptions threads = options;
      threads.one_thread = options.one_thread && !session.has_groups();
      times = run_program(program, session, nullptr, threads);
    } catch (const Infeasible& e) {
      // Runs for their losses alone, on one thread, end there.
      diverged = options.one_thread && e.problem().code == "diverged";
      if (!diverged) throw;
    }
    Timeline timeline = timeline_of(std::move(times));
    timeline.learnt = session.learnt(session.records());
    timeline.learnt->diverged = diverged;
    return timeline;
  }
  CollectedRun joint =
      run_program_together(program, placement, session, session, options, [&] { return to_bytes(session.records()); });
  std::vector<Records> records;
  for (const std::string& bytes : joint.reports) records.push_back(records_from(bytes));
  Timeline timeline = timeline_of(std::move(joint));
  if (!timeline.elsewhere) timeline.learnt = session.learnt(merged(std::move(records)));
  return timeline;
}

Timeline emulate(const Program& program, const Cluster& cluster, double dilation, const ExecutorOptions& options) {
  Emulation emulation(program, cluster, dilation);
  std::vector<double> lateness;
  Timeline timeline;
  if (world().size == 1) {
    timeline = timeline_of(run_program(program, emulation, nullptr, options));
    lateness = emulation.lateness();
  } else {
    const DevicePlacement placement(program, world());
    const auto report = [&] {
      ByteWriter out;
      out.put(emulation.lateness());
      return out.take();
    };
    CollectedRun joint = run_program_together(program, placement, emulation, emulation, options, report);
    for (const std::string& text : joint.reports) {
      const std::vector<double> more = ByteReader(text).get_list<double>();
      lateness.insert(lateness.end(), more.begin(), more.end());
    }
    timeline = timeline_of(std::move(joint));
  }
  std::sort(lateness.begin(), lateness.end());
  timeline.lateness = std::move(lateness);
  return timeline;
}

}  // namespace stagecraft::real
