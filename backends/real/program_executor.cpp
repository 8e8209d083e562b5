// The interpreter of real backends: starts each instruction of a Program when all that it waits for has ended, and
// watches for standstill.

#include "backends/real/program_executor.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/core.h>

#include "backends/real/clocks.hpp"
#include "backends/real/host_copies.hpp"
#include "backends/real/one_thread.hpp"
#include "backends/real/run_queue.hpp"
#include "backends/real/thread_places.hpp"
#include "backends/world.hpp"
#include "sim/core/cores.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/stop_point.hpp"
#include "sim/core/threads.hpp"

namespace stagecraft::real {
namespace {

constexpr std::int32_t kNothing = -1, kStop = -2;
constexpr double kPulse = 0.1;  // Seconds between two times that processes tell each other how they get on.

/// Instructions that wait for each instruction.
struct Followers {
  std::vector<std::uint32_t> first;
  std::vector<std::int32_t> ids;

  explicit Followers(const Program& p) : first(p.size() + 1, 0), ids(p.waits.size()) {
    for (const InstructionId w : p.waits) ++first[w.value + 1];
    for (std::size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
    auto next = first;
    for (std::size_t i = 0; i < p.size(); ++i)
      for (const InstructionId w : p.waits_for(InstructionId{i})) ids[next[w.value]++] = static_cast<std::int32_t>(i);
  }
};

class ProgramExecutor {
 public:
  ProgramExecutor(const Program& p, Actions& actions, Transport* transport, const ExecutorOptions& options)
      : p_(p),
        actions_(actions),
        transport_(transport),
        options_(options),
        followers_(p),
        released_(p.waits.size(), false),
        missing_(std::make_unique<std::atomic<std::int32_t>[]>(p.size())),
        ends_ready_(std::make_unique<std::atomic<std::int32_t>[]>(p.transfers.size())),
        members_ready_(std::make_unique<std::atomic<std::int32_t>[]>(p.collectives.size())),
        ended_(std::make_unique<std::atomic<bool>[]>(p.size())),
        next_(std::make_unique<Slot[]>(p.devices + p.streams.size())) {
    times_.start.resize(p.size());
    times_.end.resize(p.size());
    if (!transport && RunQueue().seconds()) times_.core_waits.resize(p.size());
    for (std::size_t i = 0; i < p.size(); ++i) {
      missing_[i] = static_cast<std::int32_t>(p.first_wait[i + 1] - p.first_wait[i]);
      left_ += here(p.at(InstructionId{i}).device);
    }
    actions_.when_part_done([this](InstructionId computation, InstructionId member) { release(computation, member); });
  }
  ProgramExecutor(const ProgramExecutor&) = delete;
  ProgramExecutor& operator=(const ProgramExecutor&) = delete;
  ~ProgramExecutor() { actions_.when_part_done({}); }

  Times run() {
    times_.origin = steady_seconds();
    actions_.follow_times(times_);
    std::vector<std::jthread> threads;
    const std::vector<DeviceId> busy = busy_devices();
    const bool spins = busy.size() <= static_cast<std::size_t>(usable_cores().count());
    // Whoever started several processes has placed their threads.
    const std::vector<int> places = transport_ ? std::vector<int>{} : thread_places(busy.size());
    const std::vector<StreamId> copies = copy_streams();
    const std::size_t count = busy.size() + copies.size();
    const bool all_started = guarded([&] {
      threads.reserve(count);
      for (std::size_t n = 0; n < busy.size(); ++n) {
        const int place = places.empty() ? -1 : places[n];
        threads.push_back(
            start_thread(n, count, [this, device = busy[n], place, spins] { serve(device, place, spins); }));
      }
      for (std::size_t n = 0; n < copies.size(); ++n)
        threads.push_back(
            start_thread(busy.size() + n, count, [this, stream = copies[n]] { serve_copies(slot_of(stream)); }));
    });
    if (all_started) start_all();
    transport_ ? watch_together() : watch();
    if (error_ && transport_) transport_->note_failure(reason());
    threads.clear();  // Joins them.
    if (error_) std::rethrow_exception(error_);
    return std::move(times_);
  }

 private:
  struct alignas(64) Slot {
    std::atomic<std::int32_t> ready{kNothing};
    Yield yield;  ///< Used only by the thread that serves the slot.
  };

  /// Devices of this process that have anything to do.
  std::vector<DeviceId> busy_devices() const {
    std::vector<bool> busy(p_.devices, false);
    for (const Instruction& i : p_.instructions) busy[i.device.value] = true;
    std::vector<DeviceId> devices;
    for (int d = 0; d < p_.devices; ++d)
      if (busy[d] && here(DeviceId{d})) devices.emplace_back(d);
    return devices;
  }
  /// Streams of this process that copy stashes, next to the computations of their devices.
  std::vector<StreamId> copy_streams() const {
    std::vector<StreamId> copies;
    for (const StreamId s : p_.streams.ids())
      if (p_.streams[s].kind == StreamKind::Copy && here(p_.streams[s].device)) copies.push_back(s);
    return copies;
  }
  Slot& slot_of(StreamId copies) { return next_[p_.devices + copies.value]; }
  bool is_computing() const { return computing_.load() > actions_.waiting(); }
  bool here(DeviceId d) const { return !transport_ || transport_->here(d); }
  double now() const { return steady_seconds() - times_.origin; }

  /// What waits for nothing, the first last: there it is taken from.
  void start_all() {
    std::vector<std::int32_t> ready;
    for (std::size_t i = p_.size(); i-- > 0;)
      if (p_.first_wait[i + 1] == p_.first_wait[i] && here(p_.at(InstructionId{i}).device))
        ready.push_back(static_cast<std::int32_t>(i));
    guarded([&] { advance(ready); });
  }

  template <class F>
  bool guarded(F&& f) {
    try {
      f();
      return true;
    } catch (...) {
      stop(std::current_exception());
      return false;
    }
  }

  void stop(std::exception_ptr error) {
    {
      const std::lock_guard lock(mutex_);
      if (error && !error_) error_ = error;
      stopped_ = true;
    }
    over_.notify_all();
    if (transport_) transport_->wake();
    actions_.interrupt();
    for (std::size_t n = 0; n < p_.devices + p_.streams.size(); ++n) {
      next_[n].ready = kStop;
      next_[n].ready.notify_all();
    }
  }

  /// The life of a device's thread. `processor`: where it stays; negative: where the system puts it.
  void serve(DeviceId device, int processor, bool spins) {
    if (processor >= 0) pin_thread(processor);
    const RunQueue queue;
    CoreWaitMeter meter(queue.seconds().value_or(0));
    Slot& slot = next_[device.value];
    std::vector<std::int32_t> ready;
    while (true) {
      const bool follows = slot.ready.load(std::memory_order_relaxed) != kNothing;
      const std::int32_t i = take(slot, spins);
      if (i == kStop) return;
      guarded([&] {
        ++computing_;
        compute(InstructionId{i}, queue, meter, follows);
        --computing_;
        end(i, ready);
        advance(ready);
      });
    }
  }

  void serve_copies(Slot& slot) {
    std::vector<std::int32_t> ready;
    for (std::int32_t i = take(slot, false); i != kStop; i = take(slot, false))
      guarded([&] {
        ++computing_;
        collective(p_.at(InstructionId{i}).collective(), InstructionId{i}, ready);
        --computing_;
        advance(ready);
      });
  }

  void compute(InstructionId i, const RunQueue& queue, CoreWaitMeter& meter, bool follows) {
    const bool counts = !times_.core_waits.empty();
    if (counts && !follows) meter.add_pause(queue.seconds().value_or(0));
    times_.start[i] = now();
    actions_.compute(i);
    times_.end[i] = now();
    if (counts) times_.core_waits[i] = meter.finish(queue.seconds().value_or(0));
  }

  std::int32_t take(Slot& slot, bool spins) {
    slot.yield.reset();
    Spin spin;
    while (true) {
      if (slot.ready.load(std::memory_order_acquire) != kNothing) {
        const std::int32_t i = slot.ready.exchange(kNothing, std::memory_order_acquire);
        if (i == kStop) slot.ready = kStop;
        return i;
      }
      if (transport_ && !transport_->is_awaited() && slot.yield()) {
        poll();
      } else if (transport_ || !spins || !spin()) {
        slot.ready.wait(kNothing, std::memory_order_acquire);
      }
    }
  }

  /// Whether anything has come or gone.
  bool poll() {
    std::vector<InstructionId> ended;
    guarded([&] {
      transport_->poll(ended);
      std::vector<std::int32_t> ready;
      for (const InstructionId i : ended) {
        times_.end[i] = now();
        end(i.value, ready);
      }
      advance(ready);
    });
    return !ended.empty();
  }

  void end(std::int32_t i, std::vector<std::int32_t>& ready) {
    const std::size_t n = i;
    ended_[n].store(true, std::memory_order_release);
    progress_.fetch_add(1, std::memory_order_relaxed);
    for (std::uint32_t f = followers_.first[n]; f < followers_.first[n + 1]; ++f) {
      const std::int32_t follower = followers_.ids[f];
      if (released_[f]) continue;
      if (missing_[follower].fetch_sub(1, std::memory_order_acq_rel) == 1) ready.push_back(follower);
    }
    if (left_.fetch_sub(1) == 1) stop(nullptr);
  }

  /// A member of a collective waits no longer for a computation that goes on. The thread of the computation calls it.
  void release(InstructionId computation, InstructionId member) {
    std::vector<std::int32_t> ready;
    for (std::uint32_t f = followers_.first[computation.value]; f < followers_.first[computation.value + 1]; ++f) {
      if (followers_.ids[f] != member.value || released_[f]) continue;
      released_[f] = true;
      if (missing_[member.value].fetch_sub(1, std::memory_order_acq_rel) == 1) ready.push_back(member.value);
    }
    advance(ready);
  }

  /// Computation that is ready is handed to its device, and copies to their stream; communication is done at once.
  void advance(std::vector<std::int32_t>& ready) {
    while (!ready.empty()) {
      hand_out(ready);
      if (ready.empty()) return;
      const InstructionId i{ready.back()};
      ready.pop_back();
      const Instruction& instruction = p_.at(i);
      if (instruction.kind == InstructionKind::Collective)
        collective(instruction.collective(), i, ready);
      else
        message(instruction, i, ready);
    }
  }

  void hand_out(std::vector<std::int32_t>& ready) {
    std::erase_if(ready, [&](std::int32_t i) {
      const Instruction& instruction = p_.at(InstructionId{i});
      const bool copies = is_host_copy(p_, instruction);
      if (!instruction.is_compute() && !copies) return false;
      Slot& slot = copies ? slot_of(instruction.stream) : next_[instruction.device.value];
      std::int32_t expected = kNothing;
      if (slot.ready.compare_exchange_strong(expected, i, std::memory_order_acq_rel))
        slot.ready.notify_one();
      else
        STAGECRAFT_CHECK(expected == kStop);  // Computations of a device follow each other, copies of a stream too.
      return true;
    });
  }

  void message(const Instruction& instruction, InstructionId i, std::vector<std::int32_t>& ready) {
    const int transfer = instruction.transfer();
    const Transfer& t = p_.transfers[transfer];
    if (!here(p_.at(t.send).device) || !here(p_.at(t.receive).device)) return pass(instruction, i, ready);
    const InstructionId s = t.send, r = t.receive;
    auto& ends_ready = ends_ready_[transfer];
    if (p_.rendezvous) {
      if (ends_ready.fetch_add(1) == 0) return;
      times_.start[s] = times_.start[r] = now();
      actions_.carry(transfer);
      times_.end[s] = times_.end[r] = now();
      end(s.value, ready);
      end(r.value, ready);
      return;
    }
    // Eager: a message goes when it is made, and its receive ends when both are there.
    times_.start[i] = now();
    if (instruction.kind == InstructionKind::Send) {
      actions_.carry(transfer);
      times_.end[s] = now();
      end(s.value, ready);
    }
    if (ends_ready.fetch_add(1) == 0) return;
    times_.end[r] = now();
    end(r.value, ready);
  }

  /// A message from or to another process.
  void pass(const Instruction& instruction, InstructionId i, std::vector<std::int32_t>& ready) {
    times_.start[i] = now();
    if (instruction.kind == InstructionKind::Receive) return transport_->receive(instruction.transfer());
    transport_->send(instruction.transfer());
    if (p_.rendezvous || transport_->confirms_eager_sends()) return;
    times_.end[i] = now();
    end(i.value, ready);
  }

  void collective(int index, InstructionId i, std::vector<std::int32_t>& ready) {
    const CollectiveCall& c = p_.collectives[index];
    for (int m = 0; m < c.members; ++m) {
      if (here(p_.at(c.member(m)).device)) continue;
      times_.start[i] = now();
      return transport_->join(index, i);
    }
    if (members_ready_[index].fetch_add(1) + 1 < c.members) return;
    const double start = now();
    actions_.collective(index);
    const double finish = now();
    for (int m = 0; m < c.members; ++m) {
      const InstructionId member = c.member(m);
      times_.start[member] = start;
      times_.end[member] = finish;
      end(member.value, ready);
    }
  }

  /// Waits until all is done, something has failed, or nothing has moved for too long while no thread computes.
  void watch() {
    std::unique_lock lock(mutex_);
    std::int64_t seen = -1;
    auto since = std::chrono::steady_clock::now();
    while (!stopped_) {
      over_.wait_for(lock, std::chrono::milliseconds(20));
      const std::int64_t progress = progress_.load();
      const auto moment = std::chrono::steady_clock::now();
      if (progress != seen || is_computing()) {
        seen = progress;
        since = moment;
      }
      const bool is_stuck = std::chrono::duration<double>(moment - since).count() >= options_.timeout;
      if (stopped_) continue;
      lock.unlock();
      if (is_stuck) return stop(stuck());
      if (!guarded([] { stop_point(); })) return;
      lock.lock();
    }
  }

  std::string whereabouts() const {
    std::vector<bool> ended(p_.size());
    for (std::size_t i = 0; i < ended.size(); ++i) ended[i] = ended_[i].load();
    return waiting(p_, ended, [this](DeviceId d) { return here(d); });
  }

  std::exception_ptr stuck() const {
    return std::make_exception_ptr(BackendError(
        fmt::format("nothing has moved for {:.3g} s, so the run is stuck:\n{}", options_.timeout, whereabouts())));
  }

  std::string reason() const try { std::rethrow_exception(error_); } catch (const std::exception& e) {
    return e.what();
  }

  bool stopped() {
    const std::lock_guard lock(mutex_);
    return stopped_;
  }

  /// Waits up to some seconds for what other processes send.
  void idle(Nap& nap, double seconds) {
    if (!transport_->is_awaited()) return nap();
    guarded([&] { transport_->wait(std::max(seconds, 0.0)); });
  }

  /// Waits until all processes are through: they leave at the same pulse, and learn from it when one has failed.
  void watch_together() {
    Nap nap;
    double next = 0, moved = 0, asked = 0;
    std::int64_t reported = 0;
    bool under_way = false;
    Transport::Pulse local;
    while (true) {
      if (poll())
        nap.reset();
      else
        idle(nap, under_way ? kPulse : stopped() ? 0 : next - now());
      if (transport_->stop_requested_by_launcher())
        return stop(std::make_exception_ptr(BackendError("told to stop in the middle of the run:\n" + whereabouts())));
      const double moment = now();
      if (!under_way && (stopped() || moment >= next)) {
        local = pulse_of(reported, moment - moved > options_.timeout);
        asked = moment;
        under_way = true;
      }
      if (!under_way) continue;
      std::optional<Transport::Pulse> total;
      if (!guarded([&] { total = pulse(local); })) return;
      if (!total && moment - asked > options_.timeout)
        return stop(std::make_exception_ptr(BackendError(
            fmt::format("another process has not answered for {:.3g} s:\n{}", options_.timeout, whereabouts()))));
      if (!total) continue;
      if (total->stuck > 0 && left_.load() > 0) return stop(stuck());
      if (total->stuck + total->failed > 0) return stop(std::make_exception_ptr(FailedElsewhere()));
      if (total->unfinished == 0) return;
      if (total->moving > 0) moved = moment;
      next = moment + kPulse;
      under_way = false;
    }
  }

  std::optional<Transport::Pulse> pulse(const Transport::Pulse& local) const try {
    return transport_->pulse(local);
  } catch (const BackendError& e) {
    throw BackendError(fmt::format("{}:\n{}", e.what(), whereabouts()));
  }

  Transport::Pulse pulse_of(std::int64_t& reported, bool still) {
    const std::int64_t progress = progress_.load() + static_cast<std::int64_t>(transport_->bytes_moved());
    const bool moving = std::exchange(reported, progress) != progress || is_computing();
    const std::lock_guard lock(mutex_);
    return {moving, error_ != nullptr, still && !moving && left_.load() > 0, left_.load() > 0};
  }

  const Program& p_;
  Actions& actions_;
  Transport* transport_;
  ExecutorOptions options_;
  Followers followers_;
  std::vector<char> released_;  ///< By place in followers_.ids: it did not wait for the end.
  std::unique_ptr<std::atomic<std::int32_t>[]> missing_, ends_ready_, members_ready_;
  std::unique_ptr<std::atomic<bool>[]> ended_;
  std::unique_ptr<Slot[]> next_;
  Times times_;
  std::atomic<std::int64_t> left_{0}, progress_{0};
  std::atomic<int> computing_{0};
  std::mutex mutex_;
  std::condition_variable over_;
  bool stopped_ = false;
  std::exception_ptr error_;
};

}  // namespace

Times run_program(const Program& program, Actions& actions, Transport* transport, const ExecutorOptions& options) {
  if (options.one_thread && !transport) return run_on_one_thread(program, actions);
  if (program.size() == 0) return {};
  return ProgramExecutor(program, actions, transport, options).run();
}

}  // namespace stagecraft::real
