// The part of NetRun in which operations meet the other devices of their groups: they exchange rows, partial sums and
// keys, gather divided weights and sum gradients.

#include "backends/real/net_run.hpp"

namespace stagecraft::real {
namespace {

/// Copies `count` columns from column `first` of one array to column `to_first` of another.
void copy_columns(Kernels& kernels, const Tensor& from, std::int64_t first, const Tensor& to, std::int64_t to_first,
                  std::int64_t count) {
  const auto width = static_cast<std::int64_t>(kernels.width());
  kernels.copy_rows(static_cast<const char*>(from.data) + first * width, from.columns,
                    static_cast<char*>(to.data) + to_first * width, to.columns, from.rows, count);
}

}  // namespace

/// The part of a section that this device has, in an array of its parts.
Tensor NetRun::part_of(const WeightSection& section, void* parts, NumberWidth width) const {
  Tensor part{parts, 1, section.shard.count, width == NumberWidth::Wide};
  part.data = static_cast<char*>(parts) + section.part * static_cast<std::int64_t>(width_of(memory_->kernels(), part));
  return part;
}

/// Divided weights are gathered for one operation at a time, by every member at the same operation.
const void* NetRun::weights_of(const Node& node, const void* weights, Array& gathered) const {
  if (node.count == 0) return nullptr;
  if (!sharded_.weights)
    return static_cast<const char*>(weights) + node.weights * static_cast<std::int64_t>(memory_->kernels().width());
  gathered = Array(*memory_, 1, node.count, Use::Weights, NumberWidth::Narrow);
  const WeightSection& section = section_at(sharded_.sections, node.weights);
  gather_range(section.group, *memory_, section.count,
               part_of(section, const_cast<void*>(weights), NumberWidth::Narrow),
               {node.weights - section.first, node.count}, gathered.data());
  return gathered.data();
}

/// Gradients that are summed with other devices are made apart, so that what was summed before is not summed again.
void NetRun::add_weight_gradient(const Node& node, const Call& c, const Tensor& d_output, void* sum) const {
  Kernels& kernels = memory_->kernels();
  const auto width = static_cast<std::int64_t>(wide_width(kernels.width()));
  const bool over_tensor = node.sums_gradient && groups_.tensor;
  void* const place = sharded_.gradients ? nullptr : static_cast<char*>(sum) + node.weights * width;
  if (!over_tensor && place != nullptr) return kernels.weight_gradient(c, d_output, place);
  Array fresh(*memory_, 1, node.count, Use::Gradients);
  kernels.zero(fresh.data(), node.count * width);
  kernels.weight_gradient(c, d_output, fresh.data());
  if (over_tensor) {
    const Array joined(*memory_, 1, node.count, Use::Gradients);
    sum_over(groups_.tensor, *memory_, fresh.tensor(), joined.tensor());
    fresh = joined;
  }
  if (place != nullptr) return kernels.add(fresh.tensor(), {place, 1, node.count, true});
  const WeightSection& section = section_at(sharded_.sections, node.weights);
  scatter_range(section.group, *memory_, section.count, fresh.tensor(), {node.weights - section.first, node.count},
                part_of(section, sum, NumberWidth::Wide));
}

void NetRun::exchange(const Node& node, const Samples& s, Activations& a) const {
  const Array& in = a.values[node.inputs.front()];
  Array& out = a.values[node.output];
  if (node.exchange == Exchange::Copy) {
    out = in;
    return;
  }
  const Value& value = net_->values[node.output];
  if (node.exchange == Exchange::SendRows) a.routings[node.routing] = route(node, a);
  out = Array(*memory_, rows_of(value, s, a), value.columns, Use::Activations, value.number_width());
  const GroupMember& group = groups_.tensor;
  switch (node.exchange) {
    case Exchange::GatherRows:
      return gather_rows(group, *memory_, s.count, in.tensor(), out.tensor());
    case Exchange::TakeRows:
      return take_rows(group, *memory_, s.count, in.tensor(), out.tensor());
    case Exchange::SumRows:
      return scatter_rows(group, *memory_, s.count, in.tensor(), out.tensor());
    case Exchange::Sum:
      return sum_over(group, *memory_, in.tensor(), out.tensor());
    case Exchange::RowsToHeads:
      return rows_to_heads(groups_.context, *memory_, s.count, node.blocks, in.tensor(), out.tensor());
    case Exchange::HeadsToRows:
      return heads_to_rows(groups_.context, *memory_, s.count, node.blocks, in.tensor(), out.tensor());
    case Exchange::GatherKeys:
      return gather_keys(s, in.tensor(), out.tensor());
    case Exchange::SendRows:
      return send_rows(node, a, in.tensor(), out.tensor());
    case Exchange::ReturnRows:
      return return_rows(node, a, in.tensor(), out.tensor());
    case Exchange::None:
    case Exchange::Copy:
    case Exchange::RingKeys:
    case Exchange::DividedLoss:
      return;
  }
}

/// Keys and values are the last columns of what an attention reads.
void NetRun::gather_keys(const Samples& s, const Tensor& in, const Tensor& keys) const {
  const Array part(*memory_, in.rows, keys.columns, Use::Activations);
  copy_columns(memory_->kernels(), in, in.columns - keys.columns, part.tensor(), 0, keys.columns);
  gather_rows(groups_.context, *memory_, s.count, part.tensor(), keys);
}

/// Adds the gradient of the keys and values of the rows that are here to the gradient of what the attention read.
void NetRun::return_keys(const Samples& s, const Tensor& d_keys, const Tensor& d_in) const {
  Kernels& kernels = memory_->kernels();
  const Array part(*memory_, d_in.rows, d_keys.columns, Use::Activations);
  const Array wide(*memory_, d_in.rows, d_in.columns, Use::Activations);
  scatter_rows(groups_.context, *memory_, s.count, d_keys, part.tensor());
  kernels.zero(wide.data(), wide.tensor().size() * kernels.width());
  copy_columns(kernels, part.tensor(), 0, wide.tensor(), d_in.columns - d_keys.columns, d_keys.columns);
  kernels.add(wide.tensor(), d_in);
}

void NetRun::exchange_back(const Node& node, const Samples& s, Activations& a) const {
  const int in = node.inputs.front();
  const Value& value = net_->values[in];
  if (!value.needs_gradient) return;
  const Array& d_out = a.gradients[node.output];
  Array& d_in = a.gradients[in];
  if (node.exchange == Exchange::Sum) {  // Partial sums have no other reader.
    d_in = d_out;
    return;
  }
  if (node.exchange == Exchange::GatherKeys) return return_keys(s, d_out.tensor(), d_in.tensor());
  const Array fresh(*memory_, rows_of(value, s, a), value.columns, Use::Activations);
  const GroupMember& group = groups_.tensor;
  if (node.exchange == Exchange::SendRows) return_rows(node, a, d_out.tensor(), fresh.tensor());
  if (node.exchange == Exchange::ReturnRows) send_rows(node, a, d_out.tensor(), fresh.tensor());
  if (node.exchange == Exchange::RowsToHeads)
    heads_to_rows(groups_.context, *memory_, s.count, node.blocks, d_out.tensor(), fresh.tensor());
  if (node.exchange == Exchange::HeadsToRows)
    rows_to_heads(groups_.context, *memory_, s.count, node.blocks, d_out.tensor(), fresh.tensor());
  if (node.exchange == Exchange::Copy) sum_over(group, *memory_, d_out.tensor(), fresh.tensor());
  if (node.exchange == Exchange::GatherRows) scatter_rows(group, *memory_, s.count, d_out.tensor(), fresh.tensor());
  if (node.exchange == Exchange::TakeRows || node.exchange == Exchange::SumRows)
    gather_rows(group, *memory_, s.count, d_out.tensor(), fresh.tensor());
  if (d_in)
    memory_->kernels().add(fresh.tensor(), d_in.tensor());
  else
    d_in = fresh;
}

/// In step n, a device has the part that started n ranks before it.
KeyPart NetRun::key_part(const Node& node, const Tensor& keys, int step) const {
  const int size = groups_.context.size(), source = (groups_.context.rank - step + size) % size;
  return {keys, std::int64_t{source} * node.rows, node.all_rows, step == 0, step + 1 == size};
}

/// Each device takes over the array of the rank before it.
void NetRun::pass_on(Array& part) const {
  const Tensor& old = part.tensor();
  const Array next(*memory_, old.rows, old.columns, Use::Activations);
  const GroupMember& ring = groups_.context;
  ring.exchange(old, memory_->kernels().width(), [&](std::span<const Tensor> parts) {
    const Tensor& from = parts[(ring.rank + ring.size() - 1) % ring.size()];
    memory_->kernels().copy(from.data, next.data(), bytes_of(memory_->kernels(), from));
  });
  part = next;
}

namespace {

std::int64_t key_columns(const Operation& attention) {
  const HeadShape s = head_shape(attention);
  return std::int64_t{s.key_value_heads} * (s.query + s.value);
}

}  // namespace

void NetRun::ring_attention(const Node& node, const Call& c) const {
  const Tensor& in = c.inputs[0];
  const std::int64_t columns = key_columns(*node.operation);
  Array keys(*memory_, in.rows, columns, Use::Activations), sums;
  copy_columns(memory_->kernels(), in, in.columns - columns, keys.tensor(), 0, columns);
  const bool rounds = memory_->kernels().width() == kMixedWidth;
  if (rounds) sums = Array(*memory_, c.output.rows, c.output.columns, Use::Activations, NumberWidth::Wide);
  Call summed = c;
  summed.output = rounds ? sums.tensor() : c.output;
  for (int step = 0; step < groups_.context.size(); ++step) {
    if (step > 0) pass_on(keys);
    memory_->kernels().attention_part(summed, key_part(node, keys.tensor(), step));
  }
  if (rounds) memory_->kernels().narrow(sums.tensor(), c.output);
}

/// The gradients of a part of the keys and values travel with it, and are back home after the last step.
void NetRun::ring_attention_gradient(const Node& node, const Call& c, const Tensor& d_output,
                                     const Gradient& to) const {
  Kernels& kernels = memory_->kernels();
  const Tensor& in = c.inputs[0];
  const std::int64_t columns = key_columns(*node.operation);
  Array keys(*memory_, in.rows, columns, Use::Activations), d_keys(*memory_, in.rows, columns, Use::Activations);
  Array d_in(*memory_, in.rows, in.columns, Use::Activations, NumberWidth::Wide);
  copy_columns(kernels, in, in.columns - columns, keys.tensor(), 0, columns);
  kernels.zero(d_keys.data(), d_keys.tensor().size() * kernels.width());
  kernels.zero(d_in.data(), bytes_of(kernels, d_in.tensor()));
  for (int step = 0; step < groups_.context.size(); ++step) {
    if (step > 0) pass_on(keys);
    kernels.attention_part_gradient(c, key_part(node, keys.tensor(), step), d_output, d_in.tensor(), d_keys.tensor());
    pass_on(d_keys);
  }
  d_in = rounded(*memory_, d_in, Use::Activations);
  copy_columns(kernels, d_keys.tensor(), 0, d_in.tensor(), in.columns - columns, columns);
  if (to.add) return kernels.add(d_in.tensor(), to.tensor);
  kernels.copy(d_in.data(), to.tensor.data, to.tensor.size() * kernels.width());
}

void NetRun::divided_loss(Call& c) const {
  Kernels& kernels = memory_->kernels();
  const std::int64_t rows = c.samples * c.operation->rows;
  const auto array = [&] { return Array(*memory_, 1, rows, Use::Activations, NumberWidth::Wide); };
  const Array here[3] = {array(), array(), array()}, joined[3] = {array(), array(), array()};
  const DividedLoss parts{here[0].tensor(), here[1].tensor(), here[2].tensor()};
  DividedLoss whole = parts;
  kernels.divided_loss(DividedLossStep::Largest, c, parts);
  whole.largest = joined[0].tensor();
  maximum_over(groups_.tensor, *memory_, parts.largest, whole.largest);
  kernels.divided_loss(DividedLossStep::Sums, c, {whole.largest, parts.sums, parts.targets});
  whole.sums = joined[1].tensor();
  sum_over(groups_.tensor, *memory_, parts.sums, whole.sums);
  whole.targets = joined[2].tensor();
  sum_over(groups_.tensor, *memory_, parts.targets, whole.targets);
  kernels.divided_loss(DividedLossStep::Gradient, c, whole);
}

}  // namespace stagecraft::real
