// Processes of mpirun, or those that STAGECRAFT_HOSTS and STAGECRAFT_RANK name.
// Two processes and a program that goes wrong: mpirun -n 2 together stuck|broken TIMEOUT. Or two to five processes and
// collectives of all kinds on numbers: mpirun -n 3 together collectives SEED.
// traffic: over TCP, each process reads no more data for an all-reduce than in a ring.
// stuck: each waits for the other's message before it sends its own, which no checked program does.
// broken: the second fails in the middle of computing.
// silent: mpirun -n 3 together silent WHERE TIMEOUT. The second prints "the second stops here" and stops in its run, or
// in what it reports after it, or has no memory there (memory-run, memory-report).
// Or three processes, mpirun --enable-recovery -n 3 together cut FILE: the second is killed in the middle of a large
// word, and the first has to hear the third nevertheless. FILE is for the number of the second process.

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <new>
#include <numeric>
#include <string>
#include <thread>

#include <fmt/core.h>

#include "backends/real/multi_process_run.hpp"
#include "backends/real/tcp/wire.hpp"
#include "backends/world.hpp"
#include "sim/core/diagnostic.hpp"
#include "tests/backends/real/collective_numbers.hpp"

using namespace stagecraft;

namespace {

class Nothing : public real::Actions, public real::RemoteBuffers {
 public:
  explicit Nothing(bool breaks) : breaks_(breaks) {}
  void compute(InstructionId i) override {
    if (breaks_ && i.value == 1) throw BackendError("the second computation is broken");
  }
  void carry(int) override {}
  void collective(int) override {}
  std::size_t bytes(int) const override { return 8; }
  void pack(int, void*) override {}
  void unpack(int, const void*) override {}
  std::size_t share_bytes(InstructionId) override { return 0; }
  void pack_share(InstructionId, void*) override {}
  void finish(int, std::span<const void* const>) override {}
  std::size_t number_bytes(int) const override { return 1; }
  void add_up(int, std::span<const void* const>, std::size_t, void*) override {}
  void finish_sum(int, const void*) override {}

 private:
  bool breaks_;
};

/// A program with a computation, a receive, and then a send on each of two devices; on others with a computation.
Program crossed(int devices = 2) {
  Program p;
  p.devices = devices;
  p.micro_batches.assign(devices, 1);
  p.updates.assign(devices, 1);
  p.first_wait.push_back(0);
  const auto add = [&](InstructionKind kind, int device, int stage, int link, std::vector<InstructionId> waits) {
    Instruction& i = p.instructions.emplace_back();
    i.kind = kind;
    i.device = DeviceId{device};
    i.stage = StageId{stage};
    i.payload = link;
    p.waits.insert(p.waits.end(), waits.begin(), waits.end());
    p.first_wait.push_back(static_cast<std::uint32_t>(p.waits.size()));
    return InstructionId{static_cast<std::int64_t>(p.size()) - 1};
  };
  p.routes = {{DeviceId{0}, DeviceId{1}}, {DeviceId{1}, DeviceId{0}}};
  p.transfers.resize(2);
  p.transfer_shapes = {{.route = 0}, {.route = 1, .role = TensorRole::Gradient}};
  for (const int d : {0, 1}) add(InstructionKind::Forward, d, d, -1, {});
  for (const int d : {0, 1}) p.transfers[1 - d].receive = add(InstructionKind::Receive, d, 1 - d, 1 - d, {});
  for (const int d : {0, 1}) {
    Transfer& t = p.transfers[d];
    t.shape = d;
    t.send = add(InstructionKind::Send, d, d, d, {InstructionId{d}, p.transfers[1 - d].receive});
  }
  for (int d = 2; d < devices; ++d) add(InstructionKind::Forward, d, d, -1, {});
  return p;
}

Ending collectives(const char* seed) {
  Rng rng(std::stoull(seed), "collectives between processes");
  const test::CollectiveCase c = test::random_collectives(5, rng);
  const real::DevicePlacement placement(c.program, world());
  const auto here = [&](DeviceId d) { return placement.here(d); };
  test::CollectiveNumbers numbers(c.program, c.expected, here);
  real::run_program_together(c.program, placement, numbers, numbers, {}, [] { return std::string(); });
  if (const int wrong = test::wrong_results(c, numbers, here)) return {1, fmt::format("{} wrong results", wrong)};
  return {};
}

Ending traffic() {
  const int processes = world().size, numbers = 100'000 * processes;
  test::ProgramBuilder builder(processes);
  std::vector<int> devices(processes);
  std::iota(devices.begin(), devices.end(), 0);
  for (const int d : devices) builder.compute(d, 0);
  builder.all_reduce(devices, sizeof(double) * numbers);
  test::CollectiveCase c{builder.build(), {}};
  Rng rng(1, "traffic");
  c.expected.push_back(test::expected(CollectiveKind::AllReduce, processes, numbers, rng, false));
  const real::DevicePlacement placement(c.program, world());
  const auto here = [&](DeviceId d) { return placement.here(d); };
  test::CollectiveNumbers results(c.program, c.expected, here);
  real::run_program_together(c.program, placement, results, results, {}, [] { return std::string(); });
  if (test::wrong_results(c, results, here) > 0) return {1, "wrong results"};
  const double read = static_cast<double>(dynamic_cast<real::TcpWire&>(real::wire()).bytes_read());
  const double share = read / static_cast<double>(sizeof(double) * numbers), ring = 2.0 * (processes - 1) / processes;
  if (share < ring || share > 1.01 * ring) return {1, fmt::format("{} arrays were read, not {}", share, ring)};
  return {};
}

/// The program is done at once; what matters is what the processes say to each other before and after it.
Ending silent(const std::string& how, double timeout) {
  const Program program = crossed(world().size);
  const real::DevicePlacement placement(program, world());
  const auto fail_at = [&](const std::string& where) {
    if (world().rank != 1) return;
    if (how == where) {
      fmt::print(stderr, "the second stops here\n");
      std::raise(SIGSTOP);
    }
    if (how == "memory-" + where) throw std::bad_alloc();
  };
  const auto run = [&] {
    fail_at("run");
    real::Times times;
    times.start.resize(program.size());
    times.end.resize(program.size());
    return times;
  };
  real::run_together(program, placement, timeout, run, [&] { return fail_at("report"), std::string(); });
  return {};
}

Ending cut(const char* file) {
  using namespace std::chrono_literals;
  if (world().rank == 1) std::ofstream(file) << getpid() << std::flush;
  barrier();
  if (world().rank == 1) {
    send_message(0, std::string(std::size_t{64} << 20, 'x'));
    std::raise(SIGKILL);
  }
  if (world().rank == 2) {
    pid_t second = 0;
    std::ifstream(file) >> second;
    while (kill(second, 0) == 0) std::this_thread::sleep_for(1ms);
    send_message(0, "third");
    for (;;) pause();  // The first one ends all.
  }
  std::string heard = "nothing";
  const auto deadline = std::chrono::steady_clock::now() + 5min;
  while (heard != "third" && std::chrono::steady_clock::now() < deadline) {
    if (const auto word = receive_message()) heard = word->from == 2 ? word->text : "the second";
    std::this_thread::sleep_for(1ms);
  }
  end_separately(false);
  return {4, "heard " + heard};
}

Ending attempt(char** words) try {
  join_world("of the test");
  const std::string how = words[1];
  if (how == "cut") return cut(words[2]);
  if (how == "silent") return silent(words[2], std::stod(words[3]));
  if (how == "traffic") return traffic();
  if (how == "collectives") return collectives(words[2]);
  const Program program = crossed();
  const real::DevicePlacement placement(program, world());
  Nothing nothing(how == "broken");
  real::ExecutorOptions options;
  options.timeout = std::stod(words[2]);
  real::run_program_together(program, placement, nothing, nothing, options, [] { return std::string(); });
  return {};
} catch (const BackendError& e) {
  return {4, e.what()};
} catch (const FailedElsewhere&) {
  return {4, {}};
} catch (const std::bad_alloc&) {
  return {4, "not enough memory for it"};
}

}  // namespace

int main(int, char** argv) {
  const Ending ending = finish_all(attempt(argv));
  if (!ending.text.empty()) fmt::print(stderr, "{}\n", ending.text);
  leave_world(ending.code);
  return ending.code;
}
