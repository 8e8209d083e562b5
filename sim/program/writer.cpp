// Appends ops, predictions and messages to a program with their streams, routes, waits and weight versions
// (ProgramWriter); lower.cpp and blocking.cpp decide the order, writer_*.cpp add collectives and memory.

#include "sim/program/writer.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "sim/core/host.hpp"
#include "sim/program/scores_time.hpp"

namespace stagecraft {
namespace {

/// Bytes of memory that devices share.
Bytes traffic(const StageCost& cost, OpKind kind) {
  switch (kind) {
    case OpKind::Forward:
    case OpKind::Recompute:
      return cost.traffic.forward;
    case OpKind::Backward:
      return cost.traffic.input_gradient + cost.traffic.weight_gradient;
    case OpKind::InputGradient:
      return cost.traffic.input_gradient;
    case OpKind::WeightGradient:
      return cost.traffic.weight_gradient;
    case OpKind::Update:
      return cost.update_traffic;
    case OpKind::Scores:
    case OpKind::ScoresGradient:
      break;
  }
  return {};
}

/// Bytes that memory moves while weights are touched for `time`.
Bytes traffic_of_touches(const StageCost& cost, Seconds time) {
  return cost.touch.value > 0 ? cost.touch_traffic * (time / cost.touch) : Bytes{};
}

}  // namespace

ProgramWriter::ProgramWriter(const Schedule& schedule, const Plan& plan, const StageCosts& costs,
                             const WeightsRule& weights, const LoweringOptions& options)
    : schedule_(schedule),
      plan_(plan),
      costs_(costs),
      weights_(weights),
      options_(options),
      reads_(schedule, plan, weights),
      pieces_(plan, options.iterations),
      edges_(plan),
      barriers_(plan),
      pairs_(plan, options.iterations),
      edge_arrays_(plan),
      vocabulary_(schedule, plan, options.iterations) {
  program_.devices = schedule.device_count();
  program_.iterations = options.iterations;
  program_.copies = plan.copies;
  program_.mini_batch = plan.copies * plan.mini_batch;
  if (!plan.loads.empty() && plan.loads.classes.size() > 1)
    program_.load_iterations =
        static_cast<int>(plan.loads.class_of.size()) / (plan.loads.replicas * plan.micro_batches(StageId{0}));
  program_.drain_every = schedule.drain_every;
  program_.rendezvous = options.rendezvous;
  program_.handshakes = options.handshakes;
  for (const StageId s : plan.stages.ids()) {
    program_.micro_batches.push_back(plan.micro_batches(s));
    program_.updates.push_back(schedule.updates_of(s));
  }
  program_.delays.assign(plan.stages.size(), 0);
  for (const StageEdge& edge : plan.edges) program_.edges.push_back({edge.from, edge.to});
  last_send_.resize(program_.devices);
  for (const DeviceId d : last_send_.ids()) stream(d, StreamKind::Compute, DeviceId{});
  open_channels();
  gradients_.resize(plan.stages.size());
  stages_on_.resize(program_.devices);
  for (const StageId s : plan.stages.ids())
    for (const DeviceId device : plan.stages[s].leaders) stages_on_[device].push_back(s);
  reductions_.resize(plan.reductions.size());
  int ties = 0;
  for (const ReductionId r : plan.reductions.ids())
    if (plan.reductions[r].source == ReductionSource::TiedParameters) reductions_[r].tie = ties++;
  forward_.resize(pieces_.size());
  count(schedule);
  find_leaders();
  if (vocabulary_.is_used()) open_meetings();
}

/// Reserves what is needed, so that a big program is not copied while it grows.
void ProgramWriter::count(const Schedule& schedule) {
  std::size_t messages = 0, ops = 0, reductions = 0;
  bool trains = !plan_.has_whole_stages();
  for (int d = 0; d < program_.devices; ++d) {
    for (const Op& op : schedule.row(DeviceId{d})) {
      ++ops;
      trains = trains || op.kind != OpKind::Forward;
      if (op.kind == OpKind::Update) reductions += barriers_.reductions(op.stage).size();
      for_each_message(DeviceId{d}, op, [&](const Message&) { ++messages; });
    }
  }
  const std::size_t filled = ops + 2 * messages;
  if (weights_.predicts() || weights_.reconstructs()) ops += ops / 2;
  const std::size_t total = ops + 2 * messages + reductions;
  reserve_column(program_.instructions, total, filled);
  reserve_column(program_.first_wait, total + 1, filled);
  program_.first_wait.push_back(0);
  for (const StageCost& c : costs_.values()) {
    shares_memory_ = shares_memory_ || (c.update_traffic + c.traffic.forward + c.traffic.weight_gradient).value > 0;
    op_times_.push_back(times_in_op(c));
  }
  if (shares_memory_) reserve_column(program_.traffic, total, filled);
  reserve_column(program_.waits, 2 * ops + 3 * messages + 2 * reductions, filled);
  reserve_column(program_.transfers, messages);
  reserve_column(program_.buffers, ops / 2, 0);
  keep_resident(trains);
}

StreamId ProgramWriter::stream(DeviceId device, StreamKind kind, DeviceId peer) {
  last_.emplace_back();
  return program_.streams.push_back({device, kind, peer});
}

std::int32_t ProgramWriter::route(DeviceId from, DeviceId to) {
  program_.routes.push_back({from, to});
  return static_cast<std::int32_t>(program_.routes.size()) - 1;
}

/// One stream or route for each different (device, peer, direction) that the options tell apart.
void ProgramWriter::open_channels() {
  using Key = std::tuple<DeviceId, DeviceId, int>;  // Device, peer, direction.
  std::map<Key, StreamId> streams;
  std::map<std::pair<DeviceId, DeviceId>, std::int32_t> routes;
  const auto stream_of = [&](DeviceId device, DeviceId peer, bool sends) -> StreamId {
    if (!options_.overlap) return compute_stream(device);
    switch (options_.streams) {
      case StreamModel::None:
        return {};
      case StreamModel::Single:
        peer = DeviceId{};
        [[fallthrough]];
      case StreamModel::Pair: {
        const auto [it, fresh] = streams.try_emplace(Key{device, peer, 0});
        if (fresh) it->second = stream(device, StreamKind::Communication, peer);
        return it->second;
      }
      case StreamModel::Direction: {
        const auto [it, fresh] = streams.try_emplace(Key{device, peer, sends ? 1 : 2});
        if (fresh) it->second = stream(device, sends ? StreamKind::Send : StreamKind::Receive, peer);
        return it->second;
      }
    }
    return {};
  };
  const auto route_of = [&](DeviceId from, DeviceId to) {
    const auto [it, fresh] = routes.try_emplace({from, to}, -1);
    if (fresh) it->second = route(from, to);
    return it->second;
  };
  pairs_.each([&](int e, int sender, int receiver) {
    const StageEdge& edge = plan_.edges[e];
    const DeviceId from = plan_.stage(edge.from).leaders[sender];
    const DeviceId to = plan_.stage(edge.to).leaders[receiver];
    Channel channel;
    for (int g = 0; g < 2 && from != to; ++g) {
      const DeviceId a = g == 0 ? from : to, b = g == 0 ? to : from;
      channel.route[g] = route_of(a, b);
      channel.send[g] = stream_of(a, b, true);
      channel.receive[g] = stream_of(b, a, false);
    }
    channels_.push_back(channel);
  });
}

InstructionId ProgramWriter::begin(const Instruction& instruction, Bytes traffic) {
  const InstructionId id = program_.instructions.push_back(instruction);
  if (shares_memory_) program_.traffic.push_back(traffic.value);
  program_.first_wait.push_back(static_cast<std::uint32_t>(program_.waits.size()));
  return id;
}

/// Adds to what the newest instruction waits for.
void ProgramWriter::wait(InstructionId on) {
  if (!on.valid()) return;
  auto& waits = program_.waits;
  const auto first = waits.begin() + program_.first_wait[program_.instructions.size() - 1];
  if (std::find(first, waits.end(), on) != waits.end()) return;
  waits.push_back(on);
  program_.first_wait.back() = static_cast<std::uint32_t>(waits.size());
}

/// Puts the newest instruction after the last of its stream.
void ProgramWriter::follow(StreamId stream) {
  if (!stream.valid()) return;
  auto& last = last_[stream];
  wait(last);
  last = InstructionId{program_.instructions.size() - 1};
}

/// Without the collectives that are separate instructions.
Seconds ProgramWriter::duration_of(const Op& op, int replica) const {
  if (op.kind == OpKind::Scores || op.kind == OpKind::ScoresGradient)
    return time_of_scores(cost(op, replica), schedule_.vocabulary, op.kind).total();
  return pass_of(op_times_[&cost(op, replica) - costs_.values().data()], op.kind);
}

Instruction ProgramWriter::instruction_of(DeviceId device, const Op& op, int replica, const WeightRead& read) const {
  const StageCost& c = cost(op.stage, replica);
  Instruction i;
  i.kind = instruction_kind(op.kind);
  i.duration = duration_of(op, replica);
  if (op.kind == OpKind::Update)
    i.duration += update_extra(weights_, c.touch, reads_.needs(op.stage, replica).delay, options_);
  i.stream = compute_stream(device);
  i.device = device;
  i.stage = op.stage;
  i.number = op.micro;
  i.payload = read.version;
  i.weights = read.from;
  return i;
}

Bytes ProgramWriter::traffic_of(const Op& op, int replica) const {
  const StageCost& c = cost(op, replica);
  if (op.kind != OpKind::Update) return traffic(c, op.kind);
  const int delay = reads_.needs(op.stage, replica).delay;
  return c.update_traffic + traffic_of_touches(c, update_extra(weights_, c.touch, delay, options_));
}

/// With communication in the way of computation a prediction has to wait for it like any other computation.
void ProgramWriter::predict(const Instruction& user, int replica, int horizon, std::span<const InstructionId> inputs) {
  Instruction i = user;
  const bool for_backward = user.kind != InstructionKind::Forward;
  i.kind = InstructionKind::Predict;
  i.weights = WeightsFrom::Version;
  i.payload = static_cast<std::int32_t>(program_.predictions.size());
  program_.predictions.push_back({user.version(), horizon, for_backward});
  i.duration = predict_time(weights_, for_backward, cost(user.stage, replica).touch, options_);
  begin(i, traffic_of_touches(cost(user.stage, replica), i.duration));
  follow(i.stream);
  if (!options_.overlap)
    for (const InstructionId input : inputs) wait(input);
}

InstructionId ProgramWriter::compute(DeviceId device, std::size_t first, std::size_t end,
                                     std::span<const InstructionId> inputs) {
  const auto& row = schedule_.row(device);
  const double slowdown = pair_slowdown(device, {row.data() + first, row.data() + end});
  InstructionId id;
  for (std::size_t n = first; n < end; ++n) {
    const Op& op = row[n];
    const int replica = replica_on(plan_.stage(op.stage), device);
    const WeightRead read = reads_.at(device, n);
    Instruction i = instruction_of(device, op, replica, read);
    if (op.kind != OpKind::Update) i.duration = slowdown * i.duration;
    const auto needed = n == first ? inputs : std::span<const InstructionId>{};
    if (read.horizon > 0) predict(i, replica, read.horizon, needed);
    for (std::size_t m = first; n == first && m < end && vocabulary_.is_used(); ++m) bring_embedding(device, row[m]);
    id = begin(i, traffic_of(op, replica));
    follow(i.stream);
    for (const InstructionId input : needed) wait(input);
    for (std::size_t m = first; n == first && m < end && vocabulary_.is_used(); ++m) wait_for_meeting(device, row[m]);
    if (has_collectives_ && n == first)
      for (const InstructionId before : ready_[device]) wait(before);
    keep_activations(id, op, replica);
  }
  for (std::size_t n = first; n < end; ++n) {
    keep_gradient(id, device, row[n]);
    if (vocabulary_.is_used()) meet(device, row[n], id);
  }
  return id;
}

/// Each replica has one sample of a micro-batch where these differ, so the first sample is the number of the replica.
Load ProgramWriter::load_of(const Message& message) const {
  const int load_class = plan_.loads.at(message.micro, static_cast<int>(message.rows.first));
  return load_class == LoadTable::kMean ? plan_.stage(message.stage).mean_load : plan_.loads.classes[load_class];
}

/// Messages of a channel have few shapes: one, unless the two stages cut the samples differently or loads differ.
std::int32_t ProgramWriter::shape_of(const Message& message) {
  const double exact = plan_.edges[message.edge].bytes_of(static_cast<double>(message.rows.count), load_of(message));
  const auto bytes = static_cast<std::uint64_t>(exact + 0.5);
  std::int32_t& newest = channels_[message.channel].shape[message.gradient];
  for (std::int32_t s = newest; s >= 0; s = next_shape_[s])
    if (program_.transfer_shapes[s].rows == message.rows && program_.transfer_shapes[s].bytes == bytes) return s;
  program_.transfer_shapes.push_back({bytes, channels_[message.channel].route[message.gradient], message.edge,
                                      message.gradient ? TensorRole::Gradient : TensorRole::Activation, message.rows});
  next_shape_.push_back(newest);
  return newest = static_cast<std::int32_t>(next_shape_.size()) - 1;
}

InstructionId ProgramWriter::send(const Message& message, InstructionId producer) {
  const Channel& channel = channels_[message.channel];
  const std::int32_t shape = shape_of(message);
  Instruction i;
  i.kind = InstructionKind::Send;
  i.stream = channel.send[message.gradient];
  i.device = message.from;
  i.stage = message.stage;
  i.number = message.micro;
  i.payload = static_cast<std::int32_t>(program_.transfers.size());
  const InstructionId id = begin(i);
  wait(producer);
  if (has_collectives_)
    for (const InstructionId collective : overlapped_[message.from]) wait(collective);
  if (options_.overlap) follow(i.stream);
  if (options_.fifo_sends) {
    auto& previous = last_send_[message.from];
    wait(previous);
    previous = id;
  }
  program_.transfers.push_back({id, InstructionId{}, producer, InstructionId{}, shape});
  return id;
}

InstructionId ProgramWriter::receive(const Message& message, InstructionId send, InstructionId after) {
  const Channel& channel = channels_[message.channel];
  Instruction i = program_.at(send);
  i.kind = InstructionKind::Receive;
  i.stream = channel.receive[message.gradient];
  i.device = message.to;
  const InstructionId id = begin(i);
  wait(after);
  if (options_.overlap) follow(i.stream);
  Transfer& transfer = program_.transfers[i.payload];
  transfer.receive = transfer.consumer = id;
  return id;
}

void ProgramWriter::consume(InstructionId receive, InstructionId consumer) {
  program_.transfers[program_.at(receive).transfer()].consumer = consumer;
}

}  // namespace stagecraft
