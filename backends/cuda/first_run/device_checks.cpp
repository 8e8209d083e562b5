// Checks of first_run that look at one GPU: its properties, clocks, partitions and events, and the gaps between
// kernels.

#include <chrono>
#include <memory>
#include <set>

#include "backends/cuda/first_run/checks.hpp"
#include "backends/cuda/first_run/kernels.hpp"

namespace stagecraft::cuda::first_run {
namespace {

constexpr int kMostMultiprocessors = 1024;
constexpr long long kMillisecond = 1'500'000;  // Clock cycles, more or less.

double host_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::vector<unsigned> numbers_at(const unsigned* device, std::size_t count) {
  std::vector<unsigned> numbers(count);
  check(cudaMemcpy(numbers.data(), device, count * sizeof(unsigned), cudaMemcpyDeviceToHost), "cudaMemcpy");
  return numbers;
}

/// Which multiprocessors each partition used, when all were busy.
Json footprints(const Partitions& partitions, bool captured) {
  const std::size_t parts = partitions.parts().size();
  const Block counts(parts * kMostMultiprocessors * sizeof(unsigned));
  check(cudaMemset(counts.as<unsigned>(), 0, parts * kMostMultiprocessors * sizeof(unsigned)), "cudaMemset");
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");  // Streams of partitions do not wait for the legacy one.
  const std::vector<cudaStream_t> streams = compute_streams(partitions);
  const auto work = [&] {
    together(streams, [&](std::size_t i) {
      note_multiprocessor(4096, counts.as<unsigned>() + i * kMostMultiprocessors, kMillisecond / 50, streams[i]);
    });
  };
  if (captured)
    Graph(streams.front(), work).launch(streams.front());
  else
    work();
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  Json sizes = Json::array();
  std::set<int> distinct;
  std::size_t sum = 0;
  for (std::size_t p = 0; p < parts; ++p) {
    const auto seen = numbers_at(counts.as<unsigned>() + p * kMostMultiprocessors, kMostMultiprocessors);
    std::size_t used = 0;
    for (int m = 0; m < kMostMultiprocessors; ++m)
      if (seen[m] > 0) ++used, distinct.insert(m);
    sum += used;
    sizes.push_back({{"granted", partitions.parts()[p].multiprocessors}, {"used", used}});
  }
  return {{"partitions", sizes}, {"disjoint", distinct.size() == sum}};
}

constexpr int kChain = 250;  // Each link is three calls; a driver's stream holds about a thousand.

/// What it takes one kernel to follow another on the stream, or on two streams in turns: eagerly and in a graph; and
/// what each takes the host.
Json gaps_between(cudaStream_t a, cudaStream_t b) {
  std::vector<Event> events(2 * kChain);
  nothing(a);  // A kernel that is loaded during a capture may end it.
  check(cudaStreamSynchronize(a), "cudaStreamSynchronize");
  const int count = a == b ? kChain : 2 * kChain;
  const auto work = [&] {
    for (std::size_t i = 0; i < kChain; ++i) {
      nothing(a);
      if (a == b) continue;
      events[2 * i].record(a);
      events[2 * i].hold_up(b);
      nothing(b);
      events[2 * i + 1].record(b);
      events[2 * i + 1].hold_up(a);
    }
  };
  const auto host_us = [&](const std::function<void()>& launch) {
    const double before = host_seconds();
    launch();
    const double seconds = host_seconds() - before;
    check(cudaStreamSynchronize(a), "cudaStreamSynchronize");
    return 1e6 * seconds / count;
  };
  std::unique_ptr<Graph> graph;
  const double making = host_us([&] { graph = std::make_unique<Graph>(a, work); });
  graph->upload(a);
  const auto launch = [&] { graph->launch(a); };
  return {{"eager_us", 1e3 * milliseconds(a, work) / count},
          {"in_graph_us", 1e3 * milliseconds(a, launch) / count},
          {"host_eager_us", host_us(work)},
          {"host_graph_us", host_us(launch)},
          {"host_making_graph_us", making}};
}

}  // namespace

Json device_facts() {
  cudaDeviceProp p{};
  check(cudaGetDeviceProperties(&p, 0), "cudaGetDeviceProperties");
  int driver = 0, runtime = 0, devices = 0;
  check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  check(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
  const Partitions whole(0, {1});
  return {{"name", p.name},
          {"devices", devices},
          {"compute_capability", std::to_string(p.major) + "." + std::to_string(p.minor)},
          {"multiprocessors", p.multiProcessorCount},
          {"memory_bytes", p.totalGlobalMem},
          {"level_two_cache_bytes", p.l2CacheSize},
          {"copy_engines", p.asyncEngineCount},
          {"driver", driver},
          {"runtime", runtime},
          {"partition_group", whole.group()},
          {"partition_groups", whole.groups()}};
}

Json clocks() {
  const Partitions partitions(0, {1, 1}, true);
  cudaStream_t stream = partitions.parts()[0].compute;
  std::vector<double> pairs;
  for (int i = 0; i < 1000; ++i) {
    const Event a(cudaEventDefault), b(cudaEventDefault);
    a.record(stream);
    b.record(stream);
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    pairs.push_back(1e3 * b.milliseconds_since(a));
  }
  std::sort(pairs.begin(), pairs.end());
  constexpr int kReadings = 20000;
  const Block readings(kReadings * sizeof(unsigned long long));
  read_clock(readings.as<unsigned long long>(), kReadings, stream);
  std::vector<unsigned long long> seen(kReadings);
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  check(cudaMemcpy(seen.data(), readings.as<void>(), seen.size() * sizeof(seen[0]), cudaMemcpyDeviceToHost),
        "cudaMemcpy");
  unsigned long long tick = ~0ULL;
  for (std::size_t i = 1; i < seen.size(); ++i)
    if (seen[i] != seen[i - 1]) tick = std::min(tick, seen[i] - seen[i - 1]);
  return {{"event_pair_us", {{"least", pairs.front()}, {"median", pairs[500]}, {"most", pairs.back()}}},
          {"global_clock_tick_ns", tick}};
}

Json carving() {
  Json results = Json::array();
  for (const std::size_t count : {2U, 4U, 8U}) {
    const Partitions partitions(0, std::vector<unsigned>(count, 1), true);
    results.push_back({{"count", count},
                       {"unused", partitions.unused()},
                       {"launched", footprints(partitions, false)},
                       {"captured", footprints(partitions, true)}});
  }
  const Partitions unequal(0, {2, 1, 1}, true);
  results.push_back({{"shares", {2, 1, 1}}, {"unused", unequal.unused()}, {"launched", footprints(unequal, false)}});
  return results;
}

Json events() {
  const Partitions partitions(0, {1, 1}, true);
  cudaStream_t primary = nullptr;
  check(cudaStreamCreateWithFlags(&primary, cudaStreamNonBlocking), "cudaStreamCreate");
  const Block flags(2 * sizeof(unsigned));
  unsigned* const flag = flags.as<unsigned>();
  unsigned expected = 0;
  const auto holds = [&](cudaStream_t from, cudaStream_t to) {
    int right = 0;
    for (int i = 0; i < 20; ++i) {
      const Event done;
      spin(1, 2 * kMillisecond, flag, ++expected, from);
      done.record(from);
      done.hold_up(to);
      read_flag(flag, flag + 1, to);
      check(cudaStreamSynchronize(to), "cudaStreamSynchronize");
      right += numbers_at(flag + 1, 1)[0] == expected;
    }
    return right == 20;
  };
  cudaStream_t a = partitions.parts()[0].compute, b = partitions.parts()[1].compute;
  const Json seen = {{"partition_to_partition", holds(a, b)},
                     {"partition_to_primary", holds(a, primary)},
                     {"primary_to_partition", holds(primary, b)}};
  check(cudaStreamDestroy(primary), "cudaStreamDestroy");
  return seen;
}

Json side_by_side() {
  Json results = Json::array();
  for (const std::size_t count : {2U, 4U, 8U}) {
    const Partitions partitions(0, std::vector<unsigned>(count, 1), true);
    const std::vector<cudaStream_t> streams = compute_streams(partitions);
    const auto spin_on = [&](std::size_t i) { spin(1, 20 * kMillisecond, nullptr, 0, streams[i]); };
    const double one = milliseconds(streams[0], [&] { spin_on(0); });
    const double each = milliseconds(streams[0], [&] { together(streams, spin_on); });
    results.push_back({{"count", count}, {"alone_ms", one}, {"all_ms", each}});
  }
  return results;
}

Json gaps() {
  const Partitions partitions(0, {1, 1}, true);
  const Partitions::Partition &one = partitions.parts()[0], &other = partitions.parts()[1];
  return {{"kernels_of_a_chain", kChain},
          {"one_stream", gaps_between(one.compute, one.compute)},
          {"two_streams_of_a_partition", gaps_between(one.compute, one.comm)},
          {"two_partitions", gaps_between(one.compute, other.compute)}};
}

}  // namespace stagecraft::cuda::first_run
