// Prices the collectives of gradients and weights over the replicas of a stage, and the step of the optimizer.

#include <algorithm>

#include "sim/cost/cost_rules.hpp"

namespace stagecraft {
namespace {

/// Makes collectives over the devices that have the same part of the dense parameters, or of the experts.
class DataCollectives {
 public:
  DataCollectives(const StageShape& shape, const CostRules& rules, DeviceTypeId type, const MinTime& min_time = {})
      : shape_(shape), rules_(rules), type_(type), min_time_(min_time) {}

  /// Among the devices that divide a state.
  GroupPart with_states() const { return shape_.shard_copies() > 1 ? GroupPart::InsideCopies : GroupPart::Whole; }

  /// `overlap` is the share of it that other work hides.
  Collectives list(CollectiveKind kind, GroupPart part, const DeviceParameters& p, double bytes_each,
                   double overlap) const {
    Collectives list;
    for (const bool of_experts : {false, true}) {
      Collective c{.axis = Axis::Data,
                   .of_experts = of_experts,
                   .kind = kind,
                   .part = part,
                   .bytes = Bytes{bytes_each * (of_experts ? p.experts : p.dense)}};
      const Price price = rules_.price_by_shape(c, shape_, type_);
      if (price.from == PriceSource::Nothing) continue;
      c.cost = not_below_floor(price.time, c, min_time_);
      c.hidden = overlap * price.time;
      list.push_back(c);
    }
    return list;
  }

  Collectives of_pass(CollectiveKind kind, const DeviceParameters& p, double bytes_each) const {
    const Overlap feature = kind == CollectiveKind::AllGather ? Overlap::Weights : Overlap::Gradients;
    Collectives list = this->list(kind, with_states(), p, bytes_each, 0);
    if (!rules_.software.overlap[feature]) return list;
    for (Collective& c : list) c.ahead = true, c.shown = 1 - rules_.software.pass_overlap;
    return list;
  }

 private:
  const StageShape& shape_;
  const CostRules& rules_;
  DeviceTypeId type_;
  const MinTime min_time_;
};

}  // namespace

Collectives sum_of_gradients(const DeviceParameters& p, const StageShape& shape, const CostRules& rules,
                             DeviceTypeId type) {
  const double bytes = rules.software.gradient_bytes;
  const DataCollectives over(shape, rules, type);
  if (shape.sharding == StateSharding::None) return over.list(CollectiveKind::AllReduce, GroupPart::Whole, p, bytes, 0);
  Collectives list;
  if (!shape.sums_each_pass()) list = over.list(CollectiveKind::ReduceScatter, over.with_states(), p, bytes, 0);
  if (shape.shard_copies() > 1)
    append(list,
           over.list(CollectiveKind::AllReduce, GroupPart::AcrossCopies,
                     {p.dense / shape.shards(), p.experts / shape.expert_shards()}, bytes, 0),
           true);
  return list;
}

Collectives gather_of_weights(const DeviceParameters& p, const StageShape& shape, const CostRules& rules,
                              DeviceTypeId type) {
  if (shape.sharding == StateSharding::None || shape.gathers_each_pass()) return {};
  const DataCollectives over(shape, rules, type);
  return over.list(CollectiveKind::AllGather, over.with_states(), p, rules.software.gathered_bytes,
                   rules.software.hides(Overlap::Weights));
}

Collectives gather_for_pass(const DeviceParameters& p, const StageShape& shape, const CostRules& rules,
                            DeviceTypeId type, const MinTime& min_time) {
  if (!shape.gathers_each_pass()) return {};
  return DataCollectives(shape, rules, type, min_time)
      .of_pass(CollectiveKind::AllGather, p, rules.software.gathered_bytes);
}

Collectives sum_of_pass(const DeviceParameters& p, const StageShape& shape, const CostRules& rules, DeviceTypeId type,
                        const MinTime& min_time) {
  if (!shape.sums_each_pass()) return {};
  const double bytes = rules.software.gradient_bytes;
  return DataCollectives(shape, rules, type, min_time).of_pass(CollectiveKind::ReduceScatter, p, bytes);
}

Seconds optimizer_time(const DeviceParameters& p, const StageShape& shape, const CostRules& rules, DeviceTypeId type) {
  const double updated = p.dense / shape.shards() + p.experts / shape.expert_shards();
  return Bytes{updated * rules.software.optimizer_traffic + (p.dense + p.experts) * rules.software.gradient_traffic} /
         rules.accelerators[type].streaming_rate();
}

}  // namespace stagecraft
