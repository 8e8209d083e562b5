#include "tests/support/emulated_gpu/machine.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <numeric>
#include <sstream>
#include <thread>

namespace stagecraft::emulated_gpu {
namespace {

constexpr std::size_t kGuard = 256;
constexpr int kNan = 0xff;  // All bits set are a NaN, of float and of double.
constexpr double kHostCall = 1e-6;

/// STAGECRAFT_EMULATED_GPUS is the number of GPUs until a test resets the machine, STAGECRAFT_EMULATED_DRIVER the CUDA
/// that its driver is for, STAGECRAFT_EMULATED_PRODUCTS the seconds of the algorithms of cuBLASLt, with blanks between;
/// STAGECRAFT_EMULATED_CLOCK=real takes times from the clock of this machine, which processes share.
Machine first_machine() {
  Machine machine;
  if (const char* const count = std::getenv("STAGECRAFT_EMULATED_GPUS")) machine.devices = std::atoi(count);
  if (const char* const driver = std::getenv("STAGECRAFT_EMULATED_DRIVER")) machine.driver = std::atoi(driver);
  if (const char* const products = std::getenv("STAGECRAFT_EMULATED_PRODUCTS")) {
    std::istringstream seconds(products);
    machine.product_seconds.assign(std::istream_iterator<double>(seconds), {});
  }
  const char* const clock = std::getenv("STAGECRAFT_EMULATED_CLOCK");
  machine.real_clock = clock && std::string_view(clock) == "real";
  return machine;
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::unique_ptr<State>& current_state() {
  static std::unique_ptr<State> state = std::make_unique<State>(first_machine());
  return state;
}

}  // namespace

State& state() { return *current_state(); }

void reset(const Machine& machine) { current_state() = std::make_unique<State>(machine); }

void enqueue(cudaStream_t stream, std::function<void()> work, double seconds) {
  State& s = state();
  const Lock lock(s.mutex);
  s.push(s.stream_of(stream), {std::move(work), seconds, 0, nullptr, nullptr, false});
}

void enqueue_when(cudaStream_t stream, std::function<bool()> ready, std::function<void()> work) {
  State& s = state();
  const Lock lock(s.mutex);
  s.push(s.stream_of(stream), {std::move(work), 1e-6, 0, nullptr, nullptr, false, std::move(ready)});
}

int device_of(cudaStream_t stream) { return state().stream_of(stream).device; }

std::vector<unsigned> multiprocessors_of(cudaStream_t stream) {
  if (const CUgreenCtx_st* const partition = state().stream_of(stream).partition) return partition->multiprocessors;
  std::vector<unsigned> numbers(static_cast<std::size_t>(state().machine.multiprocessors));
  std::iota(numbers.begin(), numbers.end(), 0U);
  return numbers;
}

void hang(cudaStream_t stream) {
  State& s = state();
  const Lock lock(s.mutex);
  s.push(s.stream_of(stream), {{}, 0, 0, nullptr, nullptr, true});
}

void crash(cudaStream_t stream) {
  enqueue(stream, [] { state().broken = true; });
}

const void* capture_of(cudaStream_t stream) { return state().stream_of(stream).graph; }

const Machine& machine() { return state().machine; }

std::int64_t waits() { return state().waits; }

std::int64_t blocks() { return state().blocks; }

std::int64_t blocked_calls() { return state().blocked_calls; }

std::int64_t submitted_work() { return state().submitted; }

std::int64_t products(std::size_t algorithm) { return state().products[algorithm]; }
double count_product(std::size_t algorithm) {
  constexpr double kCold = 4, kDisturbed = 5;
  State& s = state();
  const Lock lock(s.mutex);
  ++s.products[algorithm];
  double seconds = s.machine.product_seconds[algorithm];
  if (s.machine.product_noise > 0) {
    std::uniform_real_distribution<double> share(-s.machine.product_noise, s.machine.product_noise);
    seconds *= 1 + share(s.random);
    if (std::uniform_int_distribution<int>(0, 19)(s.random) == 0) seconds *= kDisturbed;
  }
  if (s.product_seconds < s.machine.clock_rise) seconds *= kCold;
  s.product_seconds += seconds;
  return seconds;
}
std::int64_t attentions() { return state().attentions; }
std::int64_t fused_gelus() { return state().gelus; }
void count_gelu() { ++state().gelus; }
void count_attention() { ++state().attentions; }

std::int64_t events_made() { return static_cast<std::int64_t>(state().events.size()); }

int most_streams() { return state().most_streams; }

std::size_t device_bytes() {
  std::size_t sum = 0;
  for (const auto& [begin, a] : state().allocations)
    if (!a.host && !a.freed) sum += a.size;
  return sum;
}

bool on_device(const void* data, std::size_t bytes) {
  const Allocation* const a = state().holds(data, bytes);
  return a && !a->host;
}

CUstream_st* State::new_stream(int on, bool blocking) {
  streams.push_back(std::make_unique<CUstream_st>());
  CUstream_st& stream = *streams.back();
  stream.device = on;
  stream.blocking = blocking;
  stream.importance = static_cast<int>(random() & 0xffff);
  if (machine.connections > 0) stream.connection = static_cast<int>((streams.size() - 1) % machine.connections);
  const auto alive = std::count_if(streams.begin(), streams.end(), [](const auto& s) { return s->alive; });
  most_streams = std::max(most_streams, static_cast<int>(alive));
  return &stream;
}

CUstream_st& State::stream_of(cudaStream_t stream) {
  if (!stream) return legacy;
  const auto it = std::find_if(streams.begin(), streams.end(), [&](const auto& s) { return s.get() == stream; });
  if (it == streams.end() || !stream->alive) throw Misuse("a stream that is not there");
  return *stream;
}

CUevent_st& State::event_of(cudaEvent_t event) const {
  if (!events.contains(event) || !event->alive) throw Misuse("an event that is not there");
  return *event;
}

void State::push(CUstream_st& stream, Item item) {
  if (&stream == &legacy && capturing()) invalidate(cudaErrorStreamCaptureImplicit);
  if (stream.graph) {
    if (item.ready) throw Misuse("work that waits for another rank is captured");
    stream.graph->nodes.push_back({std::move(item), stream.last});
    stream.last = {static_cast<int>(stream.graph->nodes.size()) - 1};
    return;
  }
  looks = 0;
  item.earliest = host_time += kHostCall;
  item.sequence = ++submitted;
  stream.items.push_back(std::move(item));
  wait_for_room(stream);
}

/// A call whose queue is full does not return before the GPU has taken work out of it.
void State::wait_for_room(const CUstream_st& stream) {
  if (stream.items.size() <= machine.queue) return;
  ++blocked_calls;
  while (stream.items.size() > machine.queue)
    if (!step() && !waits_for_others())
      throw Misuse("a call blocks without end, because the queue of its stream is full and nothing moves");
}

void State::record(CUevent_st& event, CUstream_st& stream, bool node_of_graph) {
  if (stream.device != event.device) throw Misuse("an event of one device is recorded on another");
  event.latest = std::make_shared<Record>();
  event.latest->device = stream.device;
  if (!stream.graph || node_of_graph) {
    push(stream, {{}, 0, 0, nullptr, event.latest, false});
    return;
  }
  push(stream, {});
  event.latest->graph = stream.graph;
  event.latest->node = stream.last.front();
}

bool State::capturing() const {
  return std::any_of(graphs.begin(), graphs.end(), [](const auto& g) { return g->open && !g->invalid; });
}

cudaError_t State::invalidate(cudaError_t why) {
  for (const auto& graph : graphs) graph->invalid |= graph->open;
  return why;
}

cudaError_t State::wait(CUstream_st& stream, const CUevent_st& event) {
  const std::shared_ptr<Record>& record = event.latest;
  if (!record) return cudaSuccess;
  // An event from outside of the capture, of another one, or of one that has ended.
  if (stream.graph && record->graph != stream.graph) return invalidate(cudaErrorStreamCaptureIsolation);
  if (record->graph && !record->graph->open) return cudaErrorInvalidValue;
  if (record->done || waits++ == machine.ignored_wait) return cudaSuccess;
  if (!record->graph) {
    push(stream, {{}, 0, 0, record, nullptr, false});
    return cudaSuccess;
  }
  if (!stream.graph) {
    stream.graph = record->graph;
    stream.last.clear();
    record->graph->streams.push_back(&stream);
  }
  stream.last.push_back(record->node);
  return cudaSuccess;
}

/// Streams that share a hardware queue go on in the order of the calls.
bool State::first_of_connection(const CUstream_st& stream) const {
  if (stream.connection < 0) return true;
  return std::all_of(streams.begin(), streams.end(), [&](const auto& other) {
    return other->connection != stream.connection || other->items.empty() ||
           other->items.front().sequence >= stream.items.front().sequence;
  });
}

bool State::ready(const CUstream_st& stream) const {
  if (stream.items.empty() || !first_of_connection(stream)) return false;
  const Item& next = stream.items.front();
  return !next.never && (!next.waits_for || next.waits_for->done) && (!next.ready || next.ready());
}

bool State::waits_for_others() const {
  const bool any = std::any_of(streams.begin(), streams.end(), [](const auto& stream) {
    return !stream->items.empty() && !stream->items.front().never && stream->items.front().ready;
  });
  if (any) std::this_thread::sleep_for(std::chrono::microseconds(50));
  return any;
}

void State::run(CUstream_st& stream) {
  const Item item = std::move(stream.items.front());
  stream.items.pop_front();
  double start = std::max(stream.free_at, item.earliest);
  if (item.waits_for) start = std::max(start, item.waits_for->time);
  stream.free_at = start + item.seconds;
  if (item.work) item.work();
  if (machine.real_clock) stream.free_at = seconds_now();
  if (!item.records) return;
  item.records->time = stream.free_at;
  item.records->done = true;
}

bool State::step() {
  std::vector<CUstream_st*> able;
  if (ready(legacy)) able.push_back(&legacy);
  for (const auto& stream : streams)
    if (ready(*stream)) able.push_back(stream.get());
  if (able.empty()) return false;
  const auto less = [](const CUstream_st* a, const CUstream_st* b) { return a->importance < b->importance; };
  if (machine.order == Order::Rush) return run(**std::max_element(able.begin(), able.end(), less)), true;
  if (machine.order == Order::Starve && able.size() > 1) {
    // The least important of all streams, not only of those that are able.
    const auto smallest = std::min_element(streams.begin(), streams.end(),
                                           [&](const auto& a, const auto& b) { return less(a.get(), b.get()); });
    std::erase(able, smallest->get());
  }
  run(*able[random() % able.size()]);
  return true;
}

void State::run_random_steps() {
  constexpr int kDoublings = 20;
  const std::uint64_t limit = std::uint64_t{8} << std::min(looks++, kDoublings);
  for (std::uint64_t n = random() % limit; n > 0 && step(); --n) continue;
}

bool State::idle() const {
  return legacy.items.empty() &&
         std::all_of(streams.begin(), streams.end(), [](const auto& s) { return s->items.empty(); });
}

void* State::allocate(std::size_t bytes, bool host) {
  std::size_t used = bytes;
  for (const auto& [begin, a] : allocations)
    if (!a.host && !a.freed && a.device == current) used += a.size;
  if (!host && used > machine.memory) return nullptr;
  blocks += !host;
  Allocation a;
  a.bytes = std::make_unique_for_overwrite<char[]>(bytes + 3 * kGuard);
  a.size = bytes;
  a.host = host;
  a.device = current;
  std::memset(a.bytes.get(), kNan, bytes + 3 * kGuard);
  const auto at = reinterpret_cast<std::uintptr_t>(a.bytes.get());
  char* const begin = a.bytes.get() + (2 * kGuard - at % kGuard);
  allocations[begin] = std::move(a);
  return begin;
}

void State::free(void* data, bool host) {
  const auto it = allocations.find(static_cast<char*>(data));
  if (it == allocations.end() || it->second.freed || it->second.host != host)
    throw Misuse("memory is freed that is not in use");
  run_until([&] { return idle(); });  // The real one waits for the device, too.
  Allocation& a = it->second;
  const char* const begin = it->first;
  const auto is_nan = [](char c) { return static_cast<unsigned char>(c) == kNan; };
  if (!std::all_of(a.bytes.get(), a.bytes.get() + (begin - a.bytes.get()), is_nan) ||
      !std::all_of(begin + a.size, begin + a.size + kGuard, is_nan))
    throw Misuse("something wrote beyond the ends of a block of memory");
  std::memset(static_cast<char*>(data), kNan, a.size);
  a.freed = true;
}

const Allocation* State::holds(const void* data, std::size_t bytes) const {
  const char* const begin = static_cast<const char*>(data);
  auto it = allocations.upper_bound(begin);
  if (it == allocations.begin()) return nullptr;
  --it;
  const Allocation& a = it->second;
  return !a.freed && begin + bytes <= it->first + a.size ? &a : nullptr;
}

}  // namespace stagecraft::emulated_gpu
