// The time and the collectives of each pass of a layer that lists its operations: its kernels or measured times, and
// its collectives as far as nothing hides them; CostTable asks.

#include <algorithm>

#include "sim/cost/cost_rules.hpp"
#include "sim/cost/layer_collectives.hpp"
#include "sim/cost/recomputed_operations.hpp"
#include "sim/cost/side_operations.hpp"

namespace stagecraft {
namespace {

Collectives joined(Collectives list, const Collectives& more) {
  list.insert(list.end(), more.begin(), more.end());
  return list;
}

/// Collectives that start together are launched as one.
double launches_of(const Collectives& list) {
  return static_cast<double>(std::count_if(list.begin(), list.end(), [](const Collective& c) { return !c.parallel; }));
}

class PassBuilder {
 public:
  PassBuilder(const std::vector<Operation>& operations, const StageShape& shape, const CostRules& rules,
              DeviceTypeId type, const Precision& precision, const Load& load, const MeasuredLayer* measured,
              const MinTime& min_time)
      : operations_(operations),
        shape_(shape),
        rules_(rules),
        type_(type),
        device_(rules.accelerators[type]),
        load_(load),
        measured_(measured),
        min_time_(min_time),
        kernels_(kernels_of(operations, shape.degrees, load, rules.formats(type), rules.software)),
        core_(kernel_time(core_of(kernels_.forward), device_).attention) {
    if (shape.overlaps_shared) find_side_times();
    EachPass<Collectives> lists =
        collectives_of(operations, shape, rules.node, load, precision.activation, rules.software.dispatch_bytes);
    if (measured) leave_out_measured(lists);
    launches_ = {.forward = launches_of(lists.forward),
                 .input_gradient = launches_of(lists.input_gradient),
                 .weight_gradient = rules.software.hides_regather ? 0 : launches_of(lists.weight_gradient)};
    price(lists);
    if (recomputes(shape.recomputation, kWholeModules)) {
      const std::vector<bool> whole = recomputed_operations(operations, shape.recomputation & kWholeModules);
      lists_.recompute = priced(collectives_of(operations, shape, rules.node, load, precision.activation,
                                               rules.software.dispatch_bytes, whole)
                                    .forward,
                                Pass::Forward, false);
    }
  }

  EachPass<PassCost> passes() const {
    if (measured_) return measured_passes();
    const auto pass = [&](const std::vector<Kernel>& kernels, double launches, const Collectives& list,
                          Seconds beside = {}) {
      return PassCost{time(kernel_time(kernels, device_), launch_count(kernels) + launches, list, beside), list};
    };
    return {.forward = pass(kernels_.forward, launches_.forward, lists_.forward),
            .input_gradient = pass(kernels_.input_gradient, launches_.input_gradient, lists_.input_gradient),
            .weight_gradient = pass(kernels_.weight_gradient, launches_.weight_gradient, lists_.weight_gradient),
            .backward = pass(kernels_.backward(), launches_.input_gradient + launches_.weight_gradient, lists_.backward,
                             recomputed_beside_gathers()),
            .recompute = {recompute(lists_.recompute), lists_.recompute}};
  }

 private:
  /// A backend that was measured exchanges rings next to computation, and what weight gradients need inside of it: see
  /// the fields of a profile.
  static void leave_out_measured(EachPass<Collectives>& lists) {
    for (Collectives* list : {&lists.forward, &lists.input_gradient})
      std::erase_if(*list, [](const Collective& c) { return c.ring; });
    lists.weight_gradient.clear();
  }

  /// What divided weights need comes after the collectives of the operations. A backward in one op gathers them once;
  /// what a layer recomputes has the weights that its backward gathers anyway.
  void price(const EachPass<Collectives>& unpriced) {
    const DeviceParameters parameters = parameters_of_device();
    const Collectives gather = gather_for_pass(parameters, shape_, rules_, type_, min_time_);
    const Collectives forward = priced(unpriced.forward, Pass::Forward, false);
    lists_.forward = joined(forward, gather);
    lists_.input_gradient = joined(priced(unpriced.input_gradient, Pass::InputGradient, false), gather);
    lists_.weight_gradient = joined(priced(unpriced.weight_gradient, Pass::WeightGradient, false),
                                    sum_of_pass(parameters, shape_, rules_, type_, min_time_));
    lists_.backward =
        joined(joined(priced(unpriced.input_gradient, Pass::InputGradient, true), gather), lists_.weight_gradient);
    if (repeats_forward()) lists_.recompute = forward;
  }

  /// With the cost of each, and the work next to it. Collectives that start together take as long as the longest.
  Collectives priced(Collectives list, Pass pass, bool joint) const {
    const auto by_shape = [&](const Collective& c) { return rules_.price_by_shape(c, shape_, type_).time; };
    for (std::size_t i = 0; i < list.size(); ++i) {
      Collective& c = list[i];
      if (c.parallel) {
        c.cost = list[i - 1].cost, c.hidden = list[i - 1].hidden;
        continue;
      }
      const bool starts_two = i + 1 < list.size() && list[i + 1].parallel;
      const Seconds alone = starts_two ? std::max(by_shape(c), by_shape(list[i + 1])) : by_shape(c);
      c.cost = not_below_floor(alone, c, min_time_);
      c.hidden = work_beside(c, alone, pass, joint);
    }
    return list;
  }

  /// What hides a collective hides as many seconds of it as it does at its price by shape: `alone`. A part of a ring
  /// hides behind the attention on the part before.
  Seconds work_beside(const Collective& c, Seconds alone, Pass pass, bool joint) const {
    const SoftwareStack& software = rules_.software;
    if (pass == Pass::WeightGradient && software.hides_regather) return alone;
    if (c.axis == Axis::Tensor) return software.hides(Overlap::Tensor) * alone;
    if (c.axis == Axis::Expert) return software.hides(Overlap::Experts) * alone + side_time(c, pass, joint);
    const double context = shape_.degrees.context;
    return (c.ring ? (context - 1.0) / context * (pass == Pass::Forward ? 1 : 2.5) : 0) * core_;
  }

  bool repeats_forward() const { return shape_.recomputes_layers() || shape_.recomputes_all(); }

  TimeByClass time(const TimeByClass& kernels, double launches, const Collectives& list, Seconds beside = {}) const {
    return pass_time(kernels, launches, list, device_, rules_.software, beside);
  }

  /// Nothing is launched apart, and both gradients take as long in one op as in two.
  EachPass<PassCost> measured_passes() const {
    const auto pass = [&](Seconds measured, const Collectives& list) {
      TimeByClass kernels;
      kernels.other = measured;
      return PassCost{time(kernels, 0, list), list};
    };
    EachPass<PassCost> passes{.forward = pass(measured_->forward, lists_.forward),
                              .input_gradient = pass(measured_->input_gradient, lists_.input_gradient),
                              .weight_gradient = pass(measured_->weight_gradient, lists_.weight_gradient)};
    passes.backward = {passes.input_gradient.time + passes.weight_gradient.time, lists_.backward};
    const Seconds by_shapes = recompute({}).total(), kernels = kernel_time(kernels_.forward, device_).total();
    const double share = repeats_forward() ? 1 : kernels.value > 0 ? std::min(1.0, by_shapes / kernels) : 0;
    passes.recompute = pass(share * measured_->forward, lists_.recompute);
    return passes;
  }

  /// Where a stack gathers ahead, what a backward recomputes is next to its collectives of divided weights.
  Seconds recomputed_beside_gathers() const {
    const double share = shape_.recomputes_layers() ? 1 : shape_.recomputes_half() ? 0.5 : 0;
    return share * kernel_time(kernels_.forward, device_).total();
  }

  /// The forward of modules.
  std::vector<Kernel> module_kernels() const {
    if (!shape_.recomputes_operations()) return core_of(kernels_.forward);
    const std::vector<bool> again = recomputed_operations(operations_, shape_.recomputation);
    PassKernels kernels;
    if (shape_.recomputes_attention()) kernels.forward = core_of(kernels_.forward);
    for (std::size_t i = 0; i < operations_.size(); ++i)
      if (again[i])
        kernels.add(kernels_of(operations_[i], shape_.degrees, load_, rules_.formats(type_), rules_.software));
    return std::move(kernels.forward);
  }

  /// `repeated` has the collectives that run again.
  TimeByClass recompute(const Collectives& repeated) const {
    if (recomputes_by_modules(shape_.recomputation)) {
      const std::vector<Kernel> kernels = module_kernels();
      return time(kernel_time(kernels, device_), launch_count(kernels) + launches_of(repeated), repeated);
    }
    const TimeByClass kernels = kernel_time(kernels_.forward, device_);
    const double all_launches = launch_count(kernels_.forward) + (measured_ ? 0 : launches_.forward);
    if (shape_.recomputes_half()) return time(0.5 * kernels, all_launches, {});
    return repeats_forward() ? time(kernels, all_launches, repeated) : TimeByClass{};
  }

  /// Where a layer has several dispatches or combines, they divide the kernels of shared experts.
  void find_side_times() {
    const SideOperations side = side_operations(operations_);
    const auto exchanges = [&](OperationKind kind) {
      return std::count_if(operations_.begin(), operations_.end(), [&](const Operation& o) { return o.kind == kind; });
    };
    const auto add = [&](const std::vector<int>& numbers, OperationKind kind, EachPass<Seconds>& sum) {
      if (numbers.empty()) return;
      PassKernels kernels;
      for (const int i : numbers)
        kernels.add(kernels_of(operations_[i], shape_.degrees, load_, rules_.formats(type_), rules_.software));
      const double share = 1.0 / static_cast<double>(exchanges(kind));
      sum = {.forward = share * kernel_time(kernels.forward, device_).total(),
             .input_gradient = share * kernel_time(kernels.input_gradient, device_).total(),
             .weight_gradient = share * kernel_time(kernels.weight_gradient, device_).total()};
    };
    add(side.next_to_dispatch, OperationKind::Dispatch, dispatch_side_);
    add(side.next_to_combine, OperationKind::Combine, combine_side_);
  }

  /// A backward in one op has both gradients of the shared experts next to its exchanges.
  Seconds side_time(const Collective& c, Pass pass, bool joint) const {
    if (c.kind != CollectiveKind::AllToAll) return {};
    const EachPass<Seconds>& side = c.combines ? combine_side_ : dispatch_side_;
    if (pass == Pass::Forward) return side.forward;
    return joint ? side.input_gradient + side.weight_gradient : side.input_gradient;
  }

  DeviceParameters parameters_of_device() const {
    DeviceParameters sum;
    for (const Operation& op : operations_) {
      const ParametersByClass counts = parameters_by_class(op);
      sum.experts += counts[ParameterClass::Expert] / (shape_.degrees.expert * shape_.degrees.expert_tensor);
      sum.dense += counts[ParameterClass::Divided] / shape_.degrees.tensor + counts[ParameterClass::Replicated];
    }
    return sum;
  }

  const std::vector<Operation>& operations_;
  const StageShape& shape_;
  const CostRules& rules_;
  DeviceTypeId type_;
  const Accelerator& device_;
  Load load_;
  const MeasuredLayer* measured_;  ///< Null: kernels take what their shapes say.
  const MinTime& min_time_;
  PassKernels kernels_;
  Seconds core_;                                    ///< Attention of the forward.
  EachPass<Seconds> dispatch_side_, combine_side_;  ///< Kernels of shared experts next to a dispatch or a combine.
  EachPass<double> launches_;                       ///< Collectives that the host launches, in kernels.
  EachPass<Collectives> lists_;
};

}  // namespace

EachPass<PassCost> passes_of(const std::vector<Operation>& operations, const StageShape& shape, const CostRules& rules,
                             DeviceTypeId type, const Precision& precision, const Load& load,
                             const MeasuredLayer* measured, const MinTime& min_time) {
  return PassBuilder(operations, shape, rules, type, precision, load, measured, min_time).passes();
}

}  // namespace stagecraft
