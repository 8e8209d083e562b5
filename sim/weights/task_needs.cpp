// The delay and the weight buffers of each stage by a WeightsRule, in plans whose stages do single tasks (LayerPipe):
// tasks of one layer on a device share the versions.

#include "sim/weights/reads.hpp"

#include <algorithm>
#include <map>

#include "sim/core/diagnostic.hpp"
#include "sim/weights/stage_walk.hpp"

namespace stagecraft {
namespace {

/// One layer on one device: its forwards, input gradients and new weights there, in the order of the list.
struct View {
  StageId forward, input_gradient, weight_gradient;  ///< Stages on the device; not valid: none.
  std::vector<Op> ops;

  bool reads() const { return forward.valid() || input_gradient.valid(); }
  StageId keeper() const {
    if (!reads()) return weight_gradient;
    return input_gradient.valid() ? input_gradient : forward;
  }
};

class Views {
 public:
  Views(const Schedule& schedule, const Plan& plan) : plan_(plan), seen_by_(plan.stages.size()) {
    for (const StageId s : plan.stages.ids()) add(s);
    bring_news();
    for (const auto& row : schedule.device_rows())
      for (const Op& op : row)
        for (const auto& [view, kind] : seen_by_[op.stage]) view->ops.push_back({kind, false, op.stage, op.micro});
  }
  const auto& by_place() const { return views_; }
  StageId forward(LayerId layer) const { return forwards_.at(layer); }
  const View& of_forward(LayerId layer) const { return views_.at({layer, device(forward(layer))}); }

 private:
  DeviceId device(StageId s) const { return plan_.stage(s).leaders.front(); }

  void add(StageId s) {
    const StageTask task = plan_.stage(s).task;
    if (task == StageTask::Update || task == StageTask::TakeWeights) return;
    const LayerId layer = plan_.stage(s).shape.layers.front();
    View& view = views_[{layer, device(s)}];
    if (task == StageTask::WeightGradient) {
      view.weight_gradient = s;
      return;
    }
    const bool forward = task == StageTask::Forward;
    (forward ? view.forward : view.input_gradient) = s;
    if (forward) forwards_[layer] = s;
    seen_by_[s].emplace_back(&view, forward ? OpKind::Forward : OpKind::Backward);
  }

  /// New weights come to a device with the update, or with taking in what it made.
  void bring_news() {
    IdVector<StageId, std::vector<StageId>> follow(plan_.stages.size());
    for (const StageEdge& edge : plan_.edges) {
      const StageTask to = plan_.stage(edge.to).task;
      if (to == StageTask::Update || to == StageTask::TakeWeights) follow[edge.from].push_back(edge.to);
    }
    for (auto& [place, view] : views_)
      if (view.weight_gradient.valid() && !follow[view.weight_gradient].empty()) {
        const StageId update = follow[view.weight_gradient].front();
        bring(place.first, update);
        for (const StageId taken : follow[update]) bring(place.first, taken);
      }
  }
  void bring(LayerId layer, StageId news) {
    const auto view = views_.find({layer, device(news)});
    if (view != views_.end()) seen_by_[news].emplace_back(&view->second, OpKind::Update);
  }

  const Plan& plan_;
  std::map<std::pair<LayerId, DeviceId>, View> views_;
  std::map<LayerId, StageId> forwards_;
  IdVector<StageId, std::vector<std::pair<View*, OpKind>>> seen_by_;  ///< [stage]: views of its ops, and as which kind.
};

/// Adds the forwards of another device to `ops`, each as soon as its version has arrived.
std::vector<Op> with_forwards(const std::vector<Op>& ops, const std::vector<Op>& elsewhere) {
  std::vector<Op> merged;
  std::size_t next = 0;
  int here = 0, there = 0;  // Updates so far in `ops` and in `elsewhere`.
  const auto take = [&] {
    for (; next < elsewhere.size(); ++next) {
      const bool news = elsewhere[next].kind == OpKind::Update;
      if (news && there == here) return;
      if (news)
        ++there;
      else
        merged.push_back(elsewhere[next]);
    }
  };
  take();
  for (const Op& op : ops) {
    merged.push_back(op);
    if (op.kind != OpKind::Update) continue;
    ++here;
    take();
  }
  return merged;
}

StageNeeds needs_of(const std::vector<Op>& ops, const Plan& plan, StageId forward, int drain_every,
                    const WeightsRule& rule) {
  StageDelays delays;
  for (const Op& op : ops) delays.add(op);
  StageWalk walk(plan, forward, {0, 1, plan.micro_batches_run(forward)}, drain_every, rule, delays);
  for (const Op& op : ops) walk.next(op);
  return walk.needs();
}

void require_known_delays(const WeightsRule& rule) {
  if (rule.forward == ForwardWeights::Vertical || rule.assumes_staleness())
    throw InputError("these weights follow from the number of stages, but the stages of this plan do single tasks",
                     "write weights: stash, or one with horizon: exact");
}

}  // namespace

IdVector<StageId, StageNeeds> task_needs(const Schedule& schedule, const Plan& plan, const WeightsRule& rule) {
  require_known_delays(rule);
  const Views views(schedule, plan);
  IdVector<StageId, StageNeeds> needs(plan.stages.size(), {.delay = 0, .buffers = 0});
  for (const auto& [place, view] : views.by_place()) {
    const LayerId layer = place.first;
    StageNeeds& stage_needs = needs[view.keeper()];
    stage_needs = {};  // A weight gradient alone needs one buffer, which updates work on.
    if (!view.reads()) continue;
    const bool apart = !view.forward.valid();
    stage_needs = needs_of(apart ? with_forwards(view.ops, views.of_forward(layer).ops) : view.ops, plan,
                           views.forward(layer), schedule.drain_every, rule);
  }
  return needs;
}

}  // namespace stagecraft
