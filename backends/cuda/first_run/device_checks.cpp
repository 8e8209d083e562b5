#include <chrono>
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
  std::set<int> all;
  std::size_t sum = 0;
  for (std::size_t p = 0; p < parts; ++p) {
    const auto seen = numbers_at(counts.as<unsigned>() + p * kMostMultiprocessors, kMostMultiprocessors);
    std::size_t own = 0;
    for (int m = 0; m < kMostMultiprocessors; ++m)
      if (seen[static_cast<std::size_t>(m)] > 0) ++own, all.insert(m);
    sum += own;
    sizes.push_back({{"granted", partitions.parts()[p].multiprocessors}, {"used", own}});
  }
  return {{"partitions", sizes}, {"disjoint", all.size() == sum}};
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
  const Partitions partitions(0, {1, 1});
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
  Json all = Json::array();
  for (const std::size_t count : {2U, 4U, 8U}) {
    const Partitions partitions(0, std::vector<unsigned>(count, 1));
    all.push_back({{"count", count},
                   {"unused", partitions.unused()},
                   {"launched", footprints(partitions, false)},
                   {"captured", footprints(partitions, true)}});
  }
  const Partitions unequal(0, {2, 1, 1});
  all.push_back({{"shares", {2, 1, 1}}, {"unused", unequal.unused()}, {"launched", footprints(unequal, false)}});
  return all;
}

Json events() {
  const Partitions partitions(0, {1, 1});
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
  Json all = Json::array();
  for (const std::size_t count : {2U, 4U, 8U}) {
    const Partitions partitions(0, std::vector<unsigned>(count, 1));
    const std::vector<cudaStream_t> streams = compute_streams(partitions);
    const auto spin_on = [&](std::size_t i) { spin(1, 20 * kMillisecond, nullptr, 0, streams[i]); };
    const double one = milliseconds(streams[0], [&] { spin_on(0); });
    const double each = milliseconds(streams[0], [&] { together(streams, spin_on); });
    all.push_back({{"count", count}, {"alone_ms", one}, {"all_ms", each}});
  }
  return all;
}

Json gaps() {
  constexpr int kChain = 1000;
  const Partitions partitions(0, {1, 1});
  cudaStream_t a = partitions.parts()[0].compute, b = partitions.parts()[1].compute;
  const auto chain = [&] {
    for (int i = 0; i < kChain; ++i) nothing(a);
  };
  std::vector<Event> events(2 * kChain);
  const auto ping_pong = [&] {
    for (std::size_t i = 0; i < kChain; ++i) {
      nothing(a);
      events[2 * i].record(a);
      events[2 * i].hold_up(b);
      nothing(b);
      events[2 * i + 1].record(b);
      events[2 * i + 1].hold_up(a);
    }
  };
  const Graph chain_graph(a, chain), ping_pong_graph(a, ping_pong);
  const auto us = [&](const std::function<void()>& work, int count) { return 1e3 * milliseconds(a, work) / count; };
  const double before = host_seconds();
  chain();
  const double enqueue = (host_seconds() - before) / kChain;
  check(cudaStreamSynchronize(a), "cudaStreamSynchronize");
  return {{"launch_us", us(chain, kChain)},
          {"launch_in_graph_us", us([&] { chain_graph.launch(a); }, kChain)},
          {"edge_us", us(ping_pong, 2 * kChain)},
          {"edge_in_graph_us", us([&] { ping_pong_graph.launch(a); }, 2 * kChain)},
          {"host_enqueue_us", 1e6 * enqueue}};
}

}  // namespace stagecraft::cuda::first_run
