// The planner `layerpipe`: each layer's forward, input gradient and weight gradient are separate tasks, each on the
// device that ends it first, longest processing time first (Graham, SIAM J. Appl. Math. 17 (1969)). The next
// micro-batch may start when the busiest device is done.
//
// F of layer l waits for F of l - 1; dX and dW of l wait for dX of l + 1, or at the end for the loss, which F of the
// last layer computes; dW also waits for the input of the layer. F sends dX the stash without the input of the layer,
// or the whole stash if the layer has no dW. Once in an iteration the device of dW updates the weights and sends them
// to the devices of F and dX. No task waits for them, so gradients are delayed.

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "sim/core/common_unit.hpp"
#include "sim/core/stop_point.hpp"
#include "sim/planners/shared/planner.hpp"

namespace stagecraft::planners {
namespace {

const config::MapSpec kLayerpipeFields{
    "The forward and both gradients of each layer as tasks of their own, each on the device that ends it first.",
    {config::integer("micro_batch_size", 1, 1e6).fallback("1").doc("Samples of one micro-batch."),
     config::list("devices", config::text("device"))
         .optional()
         .doc("Names of the devices to use. Default: all devices of the cluster.")}};

/// The tasks of one layer; a task that no layer needs is not valid.
struct LayerTasks {
  StageId forward, input_gradient, weight_gradient;
};

bool learns(const Layer& layer) {
  return layer.parameters > 0 || !layer.tie.empty() || layer.weight_gradient.value > 0 ||
         (layer.times && layer.times->weight_gradient.value > 0);
}

/// Forwards in the order of the model, then gradients in reverse.
IdVector<LayerId, LayerTasks> add_tasks(Plan& plan, const ModelGraph& model, int size) {
  IdVector<LayerId, LayerTasks> tasks(model.layers.size());
  const auto add = [&](LayerId layer, const char* word, StageTask task) {
    Stage stage;
    stage.name = fmt::format("{}.{}", model.layers[layer].name, word);
    stage.shape.layers = {layer};
    stage.micro_batch_size = size;
    stage.task = task;
    return plan.stages.push_back(std::move(stage));
  };
  IdVector<LayerId, bool> goes_back(model.layers.size()),
      wanted(model.layers.size());  // Gradients of input and output.
  for (const LayerId l : model.layers.ids()) {
    for (const LayerId input : model.layers[l].inputs) goes_back[l] = goes_back[l] || wanted[input];
    wanted[l] = goes_back[l] || learns(model.layers[l]);
    tasks[l].forward = add(l, "F", StageTask::Forward);
  }
  for (LayerId l{model.layers.size() - 1}; l.valid(); --l.value) {
    if (goes_back[l]) tasks[l].input_gradient = add(l, "dX", StageTask::InputGradient);
    if (learns(model.layers[l])) tasks[l].weight_gradient = add(l, "dW", StageTask::WeightGradient);
  }
  return tasks;
}

/// What goes to another task: from a forward what it keeps for gradients of its own layer, or its output; from an input
/// gradient the gradient for each layer in front of it.
int array_of(const Stage& from, const Stage& to) {
  const LayerId layer = to.shape.layers.front();
  if (from.task == StageTask::Forward) return layer == from.shape.layers.front() ? 0 : 1;
  return static_cast<int>(layer.value);
}

void connect(Plan& plan, const IdVector<LayerId, LayerTasks>& tasks, const ModelGraph& model) {
  std::map<std::pair<StageId, StageId>, Bytes> edges;
  const auto send = [&](StageId from, StageId to, Bytes bytes) {
    if (from.valid() && to.valid()) edges[{from, to}] += bytes;
  };
  IdVector<LayerId, bool> used(model.layers.size());
  for (const Layer& layer : model.layers)
    for (const LayerId input : layer.inputs) used[input] = true;
  for (const LayerId l : tasks.ids()) {
    const Layer& layer = model.layers[l];
    const LayerTasks& layer_tasks = tasks[l];
    Bytes inputs;
    for (const LayerId input : layer.inputs) {
      const LayerTasks& before = tasks[input];
      const Bytes bytes = model.layers[input].output;
      inputs += bytes;
      send(before.forward, layer_tasks.forward, bytes);
      send(before.forward, layer_tasks.weight_gradient, bytes);
      send(layer_tasks.input_gradient, before.input_gradient, bytes);
      send(layer_tasks.input_gradient, before.weight_gradient, bytes);
    }
    const Bytes elsewhere =
        layer_tasks.weight_gradient.valid() ? inputs : Bytes{};  // dW has it from the layers in front.
    if (layer.stash > elsewhere) send(layer_tasks.forward, layer_tasks.input_gradient, layer.stash - elsewhere);
    if (used[l]) continue;
    send(layer_tasks.forward, layer_tasks.input_gradient, layer.output);
    send(layer_tasks.forward, layer_tasks.weight_gradient, layer.output);
  }
  for (const auto& [ends, bytes] : edges)
    plan.edges.push_back({ends.first, ends.second, bytes, array_of(plan.stage(ends.first), plan.stage(ends.second))});
}

/// Layers that use the weights of this one: itself, and those that share them.
std::vector<LayerId> users_of(LayerId owner, const ModelGraph& model) {
  std::vector<LayerId> users{owner};
  for (const LayerId l : model.layers.ids())
    if (l != owner && !model.layers[owner].tie.empty() && model.layers[l].tie == model.layers[owner].tie)
      users.push_back(l);
  return users;
}

/// Adds the update of all weights, which receives the gradients of every layer that uses them, and the tasks that take
/// the new weights on the other devices that use them.
void add_updates(Plan& plan, const IdVector<LayerId, LayerTasks>& tasks, const ModelGraph& model) {
  const auto add = [&](LayerId layer, const char* word, StageTask task, const std::vector<DeviceId>& devices) {
    Stage stage;
    stage.name = fmt::format("{}.{}", model.layers[layer].name, word);
    stage.shape.layers = {layer};
    stage.place_on(devices);
    stage.micro_batch_size = plan.mini_batch;
    stage.task = task;
    return plan.stages.push_back(std::move(stage));
  };
  for (const LayerId owner : tasks.ids()) {
    const double each = model.layers[owner].parameters / plan.mini_batch;
    if (each <= 0) continue;
    const std::vector<DeviceId> home = plan.stage(tasks[owner].weight_gradient).leaders;
    const StageId update = add(owner, "U", StageTask::Update, home);
    std::set<std::vector<DeviceId>> there{home};
    for (const LayerId user : users_of(owner, model)) {
      const Bytes gradient{user == owner ? 0 : each * model.precision.gradient};
      plan.edges.push_back({tasks[user].weight_gradient, update, gradient});
      const std::pair<StageId, const char*> readers[] = {{tasks[user].forward, "F.weights"},
                                                         {tasks[user].input_gradient, "dX.weights"}};
      for (const auto& [task, word] : readers)
        if (task.valid() && there.insert(plan.stage(task).leaders).second)
          plan.edges.push_back({update, add(user, word, StageTask::TakeWeights, plan.stage(task).leaders),
                                Bytes{each * model.precision.weight}});
    }
  }
}

double seconds_of(const Stage& stage, DeviceId device, const CostTable& costs) {
  const DeviceTypeId type = costs.cluster().devices[device].type;
  const LayerCost one = costs.at(stage.shape.layers.front(), type, costs.load_of(stage.micro_batch_size));
  const Seconds task = stage.task == StageTask::Forward         ? one.forward
                       : stage.task == StageTask::InputGradient ? one.input_gradient
                                                                : one.weight_gradient;
  return (task + costs.operation(type)).value;
}

/// The longest task first, by its time on the device that is quickest with it; each to the device that ends it first,
/// and of equal ones to the first.
void assign(Plan& plan, const PlannerInput& input) {
  const std::vector<DeviceId> devices = distinct_devices(input);
  std::vector<DeviceId> first_of_type;
  std::vector<std::size_t> type_of;  // [device]: the place of its type in `first_of_type`.
  std::map<DeviceTypeId, std::size_t> types;
  for (const DeviceId device : devices) {
    const auto [type, is_new] = types.try_emplace(input.cluster.devices[device].type, first_of_type.size());
    if (is_new) first_of_type.push_back(device);
    type_of.push_back(type->second);
  }
  std::vector<std::vector<double>> seconds;  // [task][type]
  std::vector<double> quickest, times;
  for (const Stage& stage : plan.stages) {
    std::vector<double>& row = seconds.emplace_back();
    for (const DeviceId device : first_of_type) row.push_back(seconds_of(stage, device, input.costs));
    times.insert(times.end(), row.begin(), row.end());
  }
  const CommonUnit unit(times);
  for (std::vector<double>& row : seconds) {
    for (double& time : row) time = unit(time);
    quickest.push_back(*std::min_element(row.begin(), row.end()));
  }
  std::vector<std::size_t> order(plan.stages.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return quickest[a] > quickest[b]; });
  std::vector<double> load(devices.size(), 0);
  for (const std::size_t task : order) {
    stop_point();
    const auto end_on = [&](std::size_t d) { return load[d] + seconds[task][type_of[d]]; };
    std::size_t best = 0;
    for (std::size_t d = 1; d < devices.size(); ++d)
      if (end_on(d) < end_on(best)) best = d;
    load[best] = end_on(best);
    plan.stages[StageId{task}].place_on({devices[best]});
  }
}

Planned plan_layerpipe(const PlannerInput& input) {
  Plan plan;
  const auto tasks = add_tasks(plan, input.model, input.options.micro_batch_size);
  assign(plan, input);
  count_samples(plan, input);
  connect(plan, tasks, input.model);
  add_updates(plan, tasks, input.model);
  check_plan(plan);
  return {{}, std::move(plan)};
}

}  // namespace

extern const PlannerDef layerpipe{
    .name = "layerpipe",
    .summary =
        "Places forward, input gradient and weight gradient of each layer separately: longest first, on the device "
        "that ends it first.",
    .source = "Unnikrishnan and Parhi, LayerPipe, ICCAD 2021",
    .fields = &kLayerpipeFields,
    .plan = plan_layerpipe,
    .training_alone = "places the gradients of each layer as tasks of their own",
};

}  // namespace stagecraft::planners
