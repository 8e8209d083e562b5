// Carries the messages of a program between processes over TCP; collectives.cpp has its collectives.

#include "backends/real/tcp/transport.hpp"

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"

namespace stagecraft::real {
namespace {

constexpr std::size_t kMostReceives = 64;

}  // namespace

TcpTransport::TcpTransport(TcpWire& wire, const Program& program, const DevicePlacement& placement,
                           RemoteBuffers& buffers)
    : wire_(wire),
      p_(program),
      placement_(placement),
      buffers_(buffers),
      lanes_(program, placement),
      collectives_(wire, program, placement, buffers, lanes_) {}

void TcpTransport::connect(double seconds) {
  const Deadline deadline = deadline_after(Patience(seconds));
  wire_.open_control(lanes_.peers(), deadline);
  for (const auto& [peer, lane] : lanes_.outgoing()) wire_.open_lane(peer, lane, deadline);
}

void TcpTransport::send(int transfer) {
  const Block data = pool_.take(buffers_.bytes(transfer));
  buffers_.pack(transfer, data.get());
  {
    const std::lock_guard lock(mutex_);
    if (p_.rendezvous && ready_.erase(transfer) == 0) {
      unsent_[transfer] = data;
      return;
    }
  }
  send_data(transfer, data);
}

void TcpTransport::send_data(int transfer, Block data) {
  const Instruction& send = p_.at(p_.transfers[transfer].send);
  wire_.send(receiver(transfer), lanes_.lane(send), {FrameKind::Message, transfer, 0, 0, buffers_.bytes(transfer)},
             std::move(data));
}

void TcpTransport::send_note(int to, FrameKind kind, int transfer) {
  wire_.send(to, TcpWire::kControl, {kind, transfer, 0, 0, 0}, nullptr);
}

void TcpTransport::receive(int transfer) {
  const std::lock_guard lock(mutex_);
  waiting_.insert(transfer);
  post_receives();
}

/// Where receives wait for nothing all of them may start at once, and each takes memory. No message waits for one with
/// a greater number, so a run can go on as long as the first is posted.
void TcpTransport::post_receives() {
  while (!waiting_.empty() && (posted_.size() < kMostReceives || *waiting_.begin() < *posted_.begin())) {
    const int transfer = waiting_.extract(waiting_.begin()).value();
    if (auto arrived = early_.extract(transfer)) {
      complete_.insert(std::move(arrived));
      wire_.wake();
      continue;
    }
    posted_.insert(transfer);
    if (p_.rendezvous) send_note(sender(transfer), FrameKind::Ready, transfer);
  }
}

void TcpTransport::join(int, InstructionId member) { collectives_.join(member); }

void TcpTransport::poll(std::vector<InstructionId>& ended) {
  const std::unique_lock alone(polling_, std::try_to_lock);
  if (!alone.owns_lock()) return;
  wire_.pump(0);
  for (Arrival& arrival : wire_.arrivals()) use(std::move(arrival), ended);
  collectives_.advance(ended);
  std::map<int, Block> complete;
  {
    const std::lock_guard lock(mutex_);
    complete.swap(complete_);
    for (const auto& [transfer, data] : complete) posted_.erase(transfer);
    post_receives();
  }
  for (const auto& [transfer, data] : complete) {
    buffers_.unpack(transfer, data.get());
    ended.push_back(p_.transfers[transfer].receive);
  }
}

/// Where a process is lost, the first tells all of it. A connection may be lost between two others, too.
std::optional<Transport::Pulse> TcpTransport::pulse(const Pulse& local) {
  constexpr double kVerdict = 1;
  std::string loss;
  for (const int peer : lanes_.peers())
    if (loss.empty()) loss = wire_.loss(peer);
  if (loss.empty() || lost_at_ == 0) lost_at_ = loss.empty() ? 0 : steady_seconds();
  if (!loss.empty() && steady_seconds() - lost_at_ > kVerdict) throw BackendError(loss);
  return reduce_pulse(pulses_, local);
}

void TcpTransport::use(Arrival&& arrival, std::vector<InstructionId>& ended) {
  const int transfer = arrival.frame.number;
  switch (arrival.frame.kind) {
    case FrameKind::Ready: {
      std::unique_lock lock(mutex_);
      auto waiting = unsent_.extract(transfer);
      if (!waiting) ready_.insert(transfer);
      lock.unlock();
      if (waiting) send_data(transfer, std::move(waiting.mapped()));
      break;
    }
    case FrameKind::Taken:
      ended.push_back(p_.transfers[transfer].send);
      break;
    case FrameKind::Message: {
      send_note(arrival.from, FrameKind::Taken, transfer);
      const std::lock_guard lock(mutex_);
      (posted_.contains(transfer) ? complete_ : early_)[transfer] = std::move(arrival.data);
      break;
    }
    default:
      collectives_.use(std::move(arrival));
  }
}

/// The last words about messages are on their way when all instructions have ended.
void TcpTransport::finish(double seconds) {
  if (!wait_for([&] { return wire_.all_left(); }, deadline_after(Patience(seconds))))
    throw BackendError(fmt::format("messages have not left for {:.3g} s", seconds));
}

}  // namespace stagecraft::real
