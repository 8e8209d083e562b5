// The tensors that stages send each other: copied within a process, packed and unpacked between processes.

#include "backends/real/transfer_tensors.hpp"

#include <algorithm>
#include <cstring>

namespace stagecraft::real {

TransferTensors::TransferTensors(const Program& program, NetOf net_of, std::vector<DeviceMemory*> memories,
                                 std::size_t width)
    : p_(program),
      w_(*program.workload),
      net_of_(std::move(net_of)),
      memories_(std::move(memories)),
      width_(width),
      first_key_{0} {
  for (const StageId s : w_.stages.ids())
    first_key_.push_back(first_key_.back() + 2 * w_.stages[s].replicas.size() * p_.micro_batches[s] *
                                                 static_cast<std::size_t>(p_.iterations));
  expected_.assign(first_key_.back(), 0);
  posted_ = std::make_unique<Posted[]>(first_key_.back());
  for (int t = 0; t < std::ssize(p_.transfers); ++t) ++expected_[key(layout(t).from)];
}

std::size_t TransferTensors::key(const MessageEnd& e) const {
  const std::size_t piece = e.micro * stage(e.stage).replicas.size() + e.replica;
  return first_key_[e.stage] + 2 * piece + e.gradient;
}

TransferTensors::TransferLayout TransferTensors::layout(int transfer) const {
  const Transfer& t = p_.transfers[transfer];
  const Instruction &send = p_.at(t.send), &receive = p_.at(t.receive);
  const bool gradient = p_.shape(t).role == TensorRole::Gradient;
  const StageId to = p_.receiving_stage(t);
  return layout(p_.shape(t).edge, {send.stage, send.micro_batch(), stage(send.stage).replica_on(send.device), gradient},
                {to, p_.receiving_micro_batch(t), stage(to).replica_on(receive.device), gradient}, p_.rows(t));
}

TransferTensors::TransferLayout TransferTensors::layout(int edge, const MessageEnd& from, const MessageEnd& to,
                                                        const RowRange& rows) const {
  const auto first_at = [&](const MessageEnd& end) {
    return rows.first - stage(end.stage).samples(end.micro, end.replica).first;
  };
  return {edge, from, to, first_at(from), first_at(to), rows.count};
}

const Crossing& TransferTensors::crossing(const MessageEnd& end, int edge, bool enters) const {
  const auto& list = enters ? net(end).inputs : net(end).outputs;
  return *std::find_if(list.begin(), list.end(), [&](const Crossing& c) { return c.edge == edge; });
}

void TransferTensors::post(StageId from, int micro, int replica, bool gradient, std::vector<Array> values) {
  const MessageEnd sender{from, micro, replica, gradient};
  const std::size_t at = key(sender);
  Posted& posted = posted_[at];
  posted.values = std::move(values);
  posted.readers = expected_[at] + 1;
  Kernels& kernels = memories_[stage(from).replicas[replica].device]->kernels();
  const auto copy = [&](const void* source, void* to, std::size_t bytes) { kernels.copy(source, to, bytes); };
  const TensorRole role = gradient ? TensorRole::Gradient : TensorRole::Activation;
  for (const Handover& h : handovers(w_, from, micro, replica, role))
    deliver(layout(h.edge, sender, {h.to, h.micro_batch, h.replica, gradient}, h.rows), copy);
  read(posted);
}

/// The last reader gives the memory back.
void TransferTensors::read(Posted& posted) {
  if (--posted.readers == 0) posted.values.clear();
}

std::vector<Array>& TransferTensors::box(const TransferLayout& l) {
  const std::lock_guard lock(mutex_);
  auto& arrays = boxes_[box_name(l.to, l.edge)];
  if (!arrays.empty()) return arrays;
  const StageNet& net = this->net(l.to);
  const StageReplica& replica = stage(l.to.stage).replicas[l.to.replica];
  DeviceMemory& memory = *memories_[replica.device];
  for (const int v : crossing(l.to, l.edge, !l.to.gradient).values) {
    const Value& value = net.values[v];
    const std::int64_t rows = w_.rows_of(value.rows, replica.samples.count, l.to.micro, l.to.replica);
    arrays.emplace_back(memory, rows, value.columns, Use::Activations,
                        l.to.gradient ? NumberWidth::Narrow : value.number_width());
  }
  return arrays;
}

void TransferTensors::deliver(const TransferLayout& l, const Copier& copy) {
  const Posted& posted = this->posted(l);
  const StageNet& from = this->net(l.from);
  auto& arrays = box(l);
  const auto& values = crossing(l.from, l.edge, l.from.gradient).values;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t v = values[i];
    const std::size_t sample = sample_bytes(from.values[v], l);
    copy(static_cast<const char*>(posted.values[v].data()) + l.from_first * sample,
         static_cast<char*>(arrays[i].data()) + l.to_first * sample, part_bytes(from.values[v], l));
  }
}

void TransferTensors::carry(int transfer, const Copier& copy) {
  const TransferLayout l = layout(transfer);
  deliver(l, copy);
  read(posted(l));
}

std::size_t TransferTensors::bytes(int transfer) const {
  const TransferLayout l = layout(transfer);
  const StageNet& net = this->net(l.from);
  std::size_t bytes = 0;
  for (const int v : crossing(l.from, l.edge, l.from.gradient).values) bytes += part_bytes(net.values[v], l);
  return bytes;
}

/// Where sequences differ in length, a transfer has all of them, and begins with the micro-batch.
std::size_t TransferTensors::part_bytes(const Value& value, const TransferLayout& l) const {
  const std::int64_t rows = w_.rows_of(value.rows, l.samples, l.from.micro, l.from.replica);
  return value.rows == 0
             ? 0
             : sample_bytes(value, l) / static_cast<std::size_t>(value.rows) * static_cast<std::size_t>(rows);
}

/// Gradients of words are never wide: no operation reads them.
std::size_t TransferTensors::sample_bytes(const Value& value, const TransferLayout& l) const {
  const bool is_wide = value.is_wide && !l.from.gradient;
  return static_cast<std::size_t>(value.numbers()) * (is_wide ? wide_width(width_) : width_);
}

void TransferTensors::pack(int transfer, void* into) {
  const TransferLayout l = layout(transfer);
  const DeviceId device = stage(l.from.stage).replicas[l.from.replica].device;
  Kernels& kernels = memories_[device]->kernels();
  auto* to = static_cast<char*>(into);
  give(transfer, [&](const void* from, std::size_t length) {
    kernels.copy(from, to, length);
    to += length;
  });
}

void TransferTensors::give(int transfer, const Piece& piece) {
  const TransferLayout l = layout(transfer);
  Posted& posted = this->posted(l);
  const StageNet& net = this->net(l.from);
  for (const int v : crossing(l.from, l.edge, l.from.gradient).values) {
    const std::size_t sample = sample_bytes(net.values[v], l);
    piece(static_cast<char*>(posted.values[v].data()) + l.from_first * sample, part_bytes(net.values[v], l));
  }
  read(posted);
}

void TransferTensors::unpack(int transfer, const void* from) {
  const TransferLayout l = layout(transfer);
  const DeviceId device = stage(l.to.stage).replicas[l.to.replica].device;
  Kernels& kernels = memories_[device]->kernels();
  const auto* next = static_cast<const char*>(from);
  take(transfer, [&](void* to, std::size_t length) {
    kernels.copy(next, to, length);
    next += length;
  });
}

void TransferTensors::take(int transfer, const Piece& piece) {
  const TransferLayout l = layout(transfer);
  auto& arrays = box(l);
  const StageNet& net = this->net(l.to);
  const auto& values = crossing(l.to, l.edge, !l.to.gradient).values;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t sample = sample_bytes(net.values[values[i]], l);
    piece(static_cast<char*>(arrays[i].data()) + l.to_first * sample, part_bytes(net.values[values[i]], l));
  }
}

void TransferTensors::forget() {
  boxes_.clear();
  for (std::size_t i = 0; i < first_key_.back(); ++i) posted_[i].values.clear();
}

std::vector<Array> TransferTensors::collect(int edge, StageId to, int micro, int replica, bool gradient) {
  const std::lock_guard lock(mutex_);
  const auto it = boxes_.find(box_name({to, micro, replica, gradient}, edge));
  if (it == boxes_.end()) return {};
  std::vector<Array> arrays = std::move(it->second);
  boxes_.erase(it);
  return arrays;
}

}  // namespace stagecraft::real
