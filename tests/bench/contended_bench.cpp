// The speed of backends with contention on 1F1B pipelines:
// contended_bench simgrid|fluid [nodes] [replicas stages micro_batches]...
//
// Forward 1 ms, backward 2 ms (each +-5 %), 16 MB messages, a star of full-duplex links of 12.5 GB/s and 5 us, one
// message at a time out of each device, eager. With "nodes", eight devices share such a link: the same stage of eight
// replicas. An activity is a computation or a message. CPU time, as machines are shared; each workload has a process of
// its own, because SimGrid's clock is never set back.

#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string_view>
#include <vector>

#include "backends/des/routes.hpp"
#include "backends/fluid/simulate.hpp"
#include "backends/simgrid/simulate.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/program_builder.hpp"

using namespace stagecraft;

namespace {

constexpr double kForward = 1e-3, kBackward = 2e-3, kBandwidth = 12.5e9, kLatency = 5e-6;
constexpr std::uint64_t kBytes = 16'000'000;

struct TrafficPattern {
  std::uint32_t replicas, stages, micros;

  double seconds(std::uint32_t replica, std::uint32_t stage, std::uint32_t micro, bool backward) const {
    std::uint32_t h = stage * 2654435761U ^ (micro * 40503U + (backward ? 97U : 0U));
    h ^= h >> 15;
    h *= 2246822519U;
    h ^= h >> 13;
    const std::uint32_t g = (replica + 1) * 2654435761U;
    return (backward ? kBackward : kForward) * (1 + 0.1 * ((h & 0xffffU) / 65536.0 - 0.5)) *
           (1 + 1e-2 * ((g >> 8 & 0xffffU) / 65536.0));
  }
};

/// One replica, emitted so that every instruction comes after the ones that it waits for.
class Pipeline {
 public:
  Pipeline(const TrafficPattern& work, std::uint32_t replica, test::ProgramBuilder& builder)
      : work_(work),
        replica_(replica),
        builder_(builder),
        next_(work.stages, 0),
        last_send_(work.stages),
        forward_(static_cast<std::size_t>(work.stages) * work.micros),
        backward_(forward_.size()) {}

  /// One turn, in which each stage takes its next computation if the input came in an earlier turn.
  bool turn() {
    std::vector<std::uint32_t> able;
    for (std::uint32_t stage = 0; stage < work_.stages; ++stage)
      if (next_[stage] < 2 * work_.micros && ready(stage)) able.push_back(stage);
    for (const std::uint32_t stage : able) step(stage);
    return !able.empty();
  }

 private:
  struct Op {
    std::uint32_t micro;
    bool backward;
  };

  Op op(std::uint32_t stage) const {
    const std::uint32_t warm = std::min(work_.stages - stage - 1, work_.micros), i = next_[stage];
    if (i < warm) return {i, false};
    const std::uint32_t j = i - warm, steady = 2 * (work_.micros - warm);
    if (j >= steady) return {work_.micros - warm + j - steady, true};
    return j % 2 == 1 ? Op{j / 2, true} : Op{warm + j / 2, false};
  }

  InstructionId& input(std::uint32_t stage, const Op& todo) {
    return (todo.backward ? backward_ : forward_)[static_cast<std::size_t>(stage) * work_.micros + todo.micro];
  }

  bool ready(std::uint32_t stage) {
    const Op todo = op(stage);
    return (stage == 0 && !todo.backward) || input(stage, todo).valid();
  }

  void step(std::uint32_t stage) {
    const Op todo = op(stage);
    const InstructionId from = input(stage, todo);
    const InstructionId done =
        builder_.compute(device(stage), work_.seconds(replica_, stage, todo.micro, todo.backward),
                         from.valid() ? test::Ids{from} : test::Ids{});
    ++next_[stage];
    const bool last = stage + 1 == work_.stages;
    if (!todo.backward)
      input(last ? stage : stage + 1, {todo.micro, last}) = last ? done : send(stage, stage + 1, done);
    if (todo.backward && stage > 0) input(stage - 1, todo) = send(stage, stage - 1, done);
  }

  InstructionId send(std::uint32_t from, std::uint32_t to, InstructionId done) {
    test::Ids after{done};
    if (last_send_[from].valid()) after.push_back(last_send_[from]);
    const test::Message message = builder_.send(device(from), device(to), kBytes, after);
    last_send_[from] = message.send;
    return message.receive;
  }

  int device(std::uint32_t stage) const { return static_cast<int>(replica_ * work_.stages + stage); }

  const TrafficPattern& work_;
  std::uint32_t replica_;
  test::ProgramBuilder& builder_;
  std::vector<std::uint32_t> next_;
  std::vector<InstructionId> last_send_, forward_, backward_;
};

Program make_program(const TrafficPattern& work) {
  test::ProgramBuilder builder(static_cast<int>(work.replicas * work.stages), false);
  std::vector<Pipeline> pipelines;
  for (std::uint32_t r = 0; r < work.replicas; ++r) pipelines.emplace_back(work, r, builder);
  for (bool any = true; any;) {
    any = false;
    for (Pipeline& pipeline : pipelines) any = pipeline.turn() || any;
  }
  return builder.build();
}

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// Memory in use now, from the system's account of this process: size, resident pages.
double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  double size = 0, resident = 0;
  file >> size >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

Cluster nodes(const TrafficPattern& work) {
  constexpr std::uint32_t kShare = 8;
  const int devices = static_cast<int>(work.replicas * work.stages);
  const auto groups = (work.replicas + kShare - 1) / kShare;
  const int switches = static_cast<int>(groups * work.stages);
  Cluster cluster = test::bare_cluster(devices, switches + 1);
  for (std::uint32_t r = 0; r < work.replicas; ++r)
    for (std::uint32_t s = 0; s < work.stages; ++s)
      test::connect(cluster,
                    {static_cast<int>(r * work.stages + s), devices + static_cast<int>(r / kShare * work.stages + s)},
                    4 * kBandwidth, 0);
  for (int n = 0; n < switches; ++n)
    test::connect(cluster, {devices + n, devices + switches}, kBandwidth, kLatency / 2);
  return cluster;
}

void measure(bool on_fluid, const TrafficPattern& work, const Program& program, const Cluster& cluster) {
  const double transfers = static_cast<double>(program.transfers.size());
  const double activities = static_cast<double>(program.size()) - transfers;
  std::vector<double> start(program.size()), end(program.size());
  const double before = resident_bytes(), begin = cpu_seconds();
  const std::vector<Route> routes = des::routes_of(program, cluster);
  const double routed = cpu_seconds();
  if (on_fluid)
    fluid::simulate(program, cluster, routes, start, end);
  else
    sg::simulate(program, cluster, routes, start, end);
  const double seconds = cpu_seconds() - routed;
  fmt::print(
      "{}x{}x{}: {} activities, routes {:.3f} s, simulation {:.3f} s CPU, {:.3g} activities/s, {:.3f} us each, "
      "{:.0f} bytes each, makespan {:.9f} s\n",
      work.replicas, work.stages, work.micros, activities, routed - begin, seconds, activities / seconds,
      1e6 * seconds / activities, (resident_bytes() - before) / activities, *std::max_element(end.begin(), end.end()));
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view engine = argc > 1 ? argv[1] : "";
  if (engine != "simgrid" && engine != "fluid") return 2;
  const bool shared = argc > 2 && std::string_view(argv[2]) == "nodes";
  std::vector<TrafficPattern> workloads;
  const auto number = [&](int i) { return static_cast<std::uint32_t>(std::strtoul(argv[i], nullptr, 10)); };
  for (int i = shared ? 3 : 2; i + 2 < argc; i += 3) workloads.push_back({number(i), number(i + 1), number(i + 2)});
  if (workloads.empty()) workloads = {{1, 64, 1024}, {1, 4096, 32}, {16, 64, 64}};
  for (const TrafficPattern& work : workloads) {
    const pid_t child = fork();
    if (child == 0) {
      const Program program = make_program(work);
      measure(engine == "fluid", work, program,
              shared ? nodes(work) : test::star(program.devices, kBandwidth, kLatency / 2));
      _exit(0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0) return 1;
  }
  return 0;
}
