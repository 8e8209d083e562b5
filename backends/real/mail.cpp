#include "backends/real/mail.hpp"

#include <algorithm>
#include <cstring>

namespace stagecraft::real {

Mail::Mail(const Program& program, const Plan& plan, std::vector<const StageNet*> nets,
           std::vector<DeviceMemory*> memories, std::size_t width)
    : p_(program),
      plan_(plan),
      nets_(std::move(nets)),
      memories_(std::move(memories)),
      width_(width),
      pieces_(plan, program.iterations),
      edges_(plan),
      expected_(2 * pieces_.size(), 0),
      posted_(std::make_unique<Posted[]>(2 * pieces_.size())) {
  for (std::size_t t = 0; t < p_.transfers.size(); ++t) {
    const Letter l = letter(static_cast<int>(t));
    ++expected_[key(l.from, l.from_micro, l.from_replica, l.gradient)];
  }
}

Mail::Letter Mail::letter(int transfer) const {
  const Transfer& t = p_.transfers[transfer];
  const Instruction &send = p_.at(t.send), &receive = p_.at(t.receive);
  const Stage& to = plan_.stage(p_.receiving_stage(t));
  return letter(p_.shape(t).edge, p_.moves_gradient(send), send.micro_batch(),
                replica_on(plan_.stage(send.stage), send.device), p_.receiving_micro_batch(t),
                replica_on(to, receive.device));
}

Mail::Letter Mail::letter(int edge, bool gradient, int from_micro, int from_replica, int to_micro,
                          int to_replica) const {
  const StageEdge& e = plan_.edges[edge];
  Letter l{edge,         gradient,  gradient ? e.to : e.from, gradient ? e.from : e.to, from_micro, to_micro,
           from_replica, to_replica};
  const SampleRange a = samples_of(plan_.stage(l.from), from_micro, from_replica);
  const SampleRange b = samples_of(plan_.stage(l.to), to_micro, to_replica);
  const std::int64_t low = std::max(a.low, b.low);
  l.from_first = low - a.low;
  l.to_first = low - b.low;
  l.samples = std::min(a.high, b.high) - low;
  return l;
}

const Crossing& Mail::crossing(StageId stage, int edge, bool enters) const {
  const StageNet& net = *nets_[stage];
  const auto& list = enters ? net.inputs : net.outputs;
  return *std::find_if(list.begin(), list.end(), [&](const Crossing& c) { return c.edge == edge; });
}

void Mail::post(StageId stage, int micro, int replica, bool gradient, std::vector<Array> values) {
  const std::size_t at = key(stage, micro, replica, gradient);
  const Stage& own = plan_.stage(stage);
  const DeviceId device = own.devices[replica];
  Posted& posted = posted_[at];
  posted.values = std::move(values);
  posted.readers = expected_[at] + 1;
  Kernels& kernels = memories_[device]->kernels();
  const auto copy = [&](const void* from, void* to, std::size_t bytes) { kernels.copy(from, to, bytes); };
  for (const int e : (gradient ? edges_.in : edges_.out)[stage]) {
    const StageEdge& edge = plan_.edges[e];
    const Stage& other = plan_.stage(gradient ? edge.from : edge.to);
    for_each_overlap(own, micro, replica, other, [&](int m, int r, int) {
      if (other.devices[r] == device) deliver(letter(e, gradient, micro, replica, m, r), copy);
    });
  }
  if (--posted.readers == 0) posted.values.clear();
}

std::vector<Array>& Mail::box(const Letter& l) {
  const std::uint64_t name =
      static_cast<std::uint64_t>(key(l.to, l.to_micro, l.to_replica, l.gradient)) * plan_.edges.size() +
      static_cast<std::uint64_t>(l.edge);
  const std::lock_guard lock(mutex_);
  auto& arrays = boxes_[name];
  if (!arrays.empty()) return arrays;
  const StageNet& net = *nets_[l.to];
  const Stage& stage = plan_.stage(l.to);
  const SampleRange all = samples_of(stage, l.to_micro, l.to_replica);
  DeviceMemory& memory = *memories_[stage.devices[l.to_replica]];
  for (const int v : crossing(l.to, l.edge, !l.gradient).values) {
    const Value& value = net.values[v];
    arrays.emplace_back(memory, (all.high - all.low) * value.rows, value.columns, Use::Activations);
  }
  return arrays;
}

void Mail::deliver(const Letter& l, const Copier& copy) {
  const Posted& posted = posted_[key(l.from, l.from_micro, l.from_replica, l.gradient)];
  const StageNet& from = *nets_[l.from];
  auto& arrays = box(l);
  const auto& values = crossing(l.from, l.edge, l.gradient).values;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto v = static_cast<std::size_t>(values[i]);
    const std::size_t sample = static_cast<std::size_t>(from.values[v].numbers()) * width_;
    copy(static_cast<const char*>(posted.values[v].data()) + static_cast<std::size_t>(l.from_first) * sample,
         static_cast<char*>(arrays[i].data()) + static_cast<std::size_t>(l.to_first) * sample,
         static_cast<std::size_t>(l.samples) * sample);
  }
}

void Mail::carry(int transfer, const Copier& copy) {
  const Letter l = letter(transfer);
  deliver(l, copy);
  Posted& posted = posted_[key(l.from, l.from_micro, l.from_replica, l.gradient)];
  if (--posted.readers == 0) posted.values.clear();
}

std::size_t Mail::bytes(int transfer) const {
  const Letter l = letter(transfer);
  return static_cast<std::size_t>(crossing(l.from, l.edge, l.gradient).numbers * l.samples) * width_;
}

void Mail::pack(int transfer, void* into) {
  const Letter l = letter(transfer);
  const DeviceId device = plan_.stage(l.from).devices[l.from_replica];
  Kernels& kernels = memories_[device]->kernels();
  auto* to = static_cast<char*>(into);
  give(transfer, [&](const void* from, std::size_t length) {
    kernels.copy(from, to, length);
    to += length;
  });
}

void Mail::give(int transfer, const Piece& piece) {
  const Letter l = letter(transfer);
  Posted& posted = posted_[key(l.from, l.from_micro, l.from_replica, l.gradient)];
  const StageNet& net = *nets_[l.from];
  for (const int v : crossing(l.from, l.edge, l.gradient).values) {
    const std::size_t sample = static_cast<std::size_t>(net.values[v].numbers()) * width_;
    piece(static_cast<char*>(posted.values[v].data()) + static_cast<std::size_t>(l.from_first) * sample,
          static_cast<std::size_t>(l.samples) * sample);
  }
  if (--posted.readers == 0) posted.values.clear();
}

void Mail::unpack(int transfer, const void* from) {
  const Letter l = letter(transfer);
  const DeviceId device = plan_.stage(l.to).devices[l.to_replica];
  Kernels& kernels = memories_[device]->kernels();
  const auto* next = static_cast<const char*>(from);
  take(transfer, [&](void* to, std::size_t length) {
    kernels.copy(next, to, length);
    next += length;
  });
}

void Mail::take(int transfer, const Piece& piece) {
  const Letter l = letter(transfer);
  auto& arrays = box(l);
  const StageNet& net = *nets_[l.to];
  const auto& values = crossing(l.to, l.edge, !l.gradient).values;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t sample = static_cast<std::size_t>(net.values[values[i]].numbers()) * width_;
    piece(static_cast<char*>(arrays[i].data()) + static_cast<std::size_t>(l.to_first) * sample,
          static_cast<std::size_t>(l.samples) * sample);
  }
}

void Mail::forget() {
  boxes_.clear();
  for (std::size_t i = 0; i < 2 * pieces_.size(); ++i) posted_[i].values.clear();
}

std::vector<Array> Mail::collect(int edge, StageId to, int micro, int replica, bool gradient) {
  const std::uint64_t name = static_cast<std::uint64_t>(key(to, micro, replica, gradient)) * plan_.edges.size() +
                             static_cast<std::uint64_t>(edge);
  const std::lock_guard lock(mutex_);
  const auto found = boxes_.find(name);
  if (found == boxes_.end()) return {};
  std::vector<Array> arrays = std::move(found->second);
  boxes_.erase(found);
  return arrays;
}

}  // namespace stagecraft::real
