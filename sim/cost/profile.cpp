// The measured times of a device type: the fields of a profile, reading it, look-ups with interpolation, and writing it
// as YAML.

#include "sim/cost/profile.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <tuple>

#include <fmt/core.h>

#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

/// The value at x on the line through the two nearest points; in proportion where there is one, and below all of them.
template <class Point, class X, class Y>
double interpolate(const std::vector<const Point*>& sorted, double x, X x_of, Y y_of) {
  const Point &first = *sorted.front(), &last = *sorted.back();
  if (x <= x_of(first)) return y_of(first) * x / x_of(first);
  if (sorted.size() == 1) return y_of(last) * x / x_of(last);
  std::size_t i = 1;
  while (i + 1 < sorted.size() && x_of(*sorted[i]) < x) ++i;
  const Point &a = *sorted[i - 1], &b = *sorted[i];
  const double share = (x - x_of(a)) / (x_of(b) - x_of(a));
  return y_of(a) + share * (y_of(b) - y_of(a));
}

}  // namespace

std::optional<MeasuredLayer> Profile::find(const std::string& layer, double samples, const std::string& group) const {
  std::vector<const MeasuredLayer*> matches;
  for (const MeasuredLayer& m : layers)
    if (m.layer == layer && m.group == group) matches.push_back(&m);
  if (matches.empty() || layer.empty() || samples <= 0) return std::nullopt;
  std::sort(matches.begin(), matches.end(),
            [](const MeasuredLayer* a, const MeasuredLayer* b) { return a->samples < b->samples; });
  const auto at = [&](Seconds MeasuredLayer::*member) {
    return Seconds{interpolate(
        matches, samples, [](const MeasuredLayer& m) { return static_cast<double>(m.samples); },
        [&](const MeasuredLayer& m) { return (m.*member).value; })};
  };
  MeasuredLayer result = *matches.front();
  result.samples = static_cast<int>(samples);
  result.forward = at(&MeasuredLayer::forward);
  result.input_gradient = at(&MeasuredLayer::input_gradient);
  result.weight_gradient = at(&MeasuredLayer::weight_gradient);
  return result;
}

std::optional<Seconds> Profile::collective(CollectiveKind kind, CollectiveUse use, int ranks, Bytes bytes) const {
  std::vector<const MeasuredCollective*> sorted;
  for (const MeasuredCollective& c : collectives)
    if (c.kind == kind && c.use == use && c.ranks == ranks) sorted.push_back(&c);
  if (sorted.empty()) return std::nullopt;
  std::sort(sorted.begin(), sorted.end(),
            [](const MeasuredCollective* a, const MeasuredCollective* b) { return a->bytes < b->bytes; });
  if (bytes <= sorted.front()->bytes) return sorted.front()->time;
  return Seconds{interpolate(
      sorted, bytes.value, [](const MeasuredCollective& c) { return c.bytes.value; },
      [](const MeasuredCollective& c) { return c.time.value; })};
}

std::string group_text(const Degrees& d, ContextExchange exchange) {
  std::vector<std::string> parts;
  const char* const exchanges[] = {"p2p", "all_gather", "a2a"};
  if (d.tensor > 1) parts.push_back(fmt::format("tensor {}", d.tensor));
  if (d.tensor > 1 && d.sequence) parts.emplace_back("sequence");
  if (d.context > 1) parts.push_back(fmt::format("context {} {}", d.context, exchanges[static_cast<int>(exchange)]));
  if (d.expert > 1) parts.push_back(fmt::format("expert {}", d.expert));
  if (d.expert_tensor > 1) parts.push_back(fmt::format("expert_tensor {}", d.expert_tensor));
  return join(parts);
}

std::optional<Seconds> Profile::update(double parameters) const {
  return of_updates(parameters, &MeasuredUpdate::time);
}

std::optional<Seconds> Profile::predict(double parameters) const {
  return of_updates(parameters, &MeasuredUpdate::predict);
}

std::optional<Seconds> Profile::of_updates(double parameters, Seconds MeasuredUpdate::*member) const {
  if (updates.empty() || parameters <= 0) return std::nullopt;
  std::vector<const MeasuredUpdate*> sorted;
  for (const MeasuredUpdate& u : updates) sorted.push_back(&u);
  std::sort(sorted.begin(), sorted.end(),
            [](const MeasuredUpdate* a, const MeasuredUpdate* b) { return a->parameters < b->parameters; });
  return Seconds{interpolate(
      sorted, parameters, [](const MeasuredUpdate& u) { return u.parameters; },
      [&](const MeasuredUpdate& u) { return (u.*member).value; })};
}

std::string signature(const std::vector<Operation>& of_layer, const Precision& precision) {
  if (of_layer.empty()) return {};
  std::string text = fmt::format("fp{:.0f}:", 8 * precision.activation);
  for (std::size_t i = 0; i < of_layer.size(); ++i) text += (i == 0 ? " " : "; ") + to_text(of_layer[i]);
  return text;
}

namespace {

using namespace config;

const MapSpec& layer_fields() {
  static const MapSpec spec{
      .title = "One kind of layer with one number of samples.",
      .fields = {text("layer").doc("Width of its numbers, and its operations, in the words of the program."),
                 integer("samples", 1, 1e9).doc("Samples of one micro-batch."),
                 quantity("forward", Dimension::Time).doc("Median of a forward."),
                 quantity("input_gradient", Dimension::Time).doc("Median of the gradient of its input."),
                 quantity("weight_gradient", Dimension::Time).doc("Median of the gradient of its weights."),
                 real("spread", 0, 1e6).fallback("0").doc("Half the distance between the quartiles, over the median."),
                 real("slowdown", 0, 1e6)
                     .fallback("0")
                     .doc("Time while all parts of a GPU run it, over that alone; 0 where that was not measured."),
                 text("group").optional().doc(
                     "The group whose devices divide it, as 'tensor 2, sequence': these are times of one device, "
                     "without the collectives of its passes. Its weight gradient, and an attention around whose "
                     "context group keys go, contain theirs.")}};
  return spec;
}

const MapSpec& update_fields() {
  static const MapSpec spec{
      .title = "One update.",
      .fields = {real("parameters", 1, 1e15).doc("Numbers that are updated."),
                 quantity("time", Dimension::Time).doc("Median of an update."),
                 quantity("predict", Dimension::Time).fallback("0").doc("Median of a prediction.")}};
  return spec;
}

const MapSpec& collective_fields() {
  static const MapSpec spec{
      .title = "One kind of collective of one size.",
      .fields = {
          choice("kind", {"all_reduce", "reduce_scatter", "all_gather", "all_to_all"}).doc("What it does."),
          choice("use", {"ops", "parameters"})
              .fallback("ops")
              .doc("Inside of ops, or a sum of gradients or a gather of weights between devices with equal ones."),
          integer("ranks", 2, 1e6).doc("Devices that take part."),
          quantity("bytes", Dimension::Size).doc("Size of the whole array."),
          quantity("time", Dimension::Time).doc("Median, from the arrival of a device until it goes on.")}};
  return spec;
}

const MapSpec& message_fields() {
  static const MapSpec spec{.title = "Messages between two devices of this type.",
                            .fields = {quantity("latency", Dimension::Time).doc("Time of a message without bytes."),
                                       quantity("bandwidth", Dimension::Bandwidth).doc("Of a long one.")}};
  return spec;
}

const MapSpec& gpu_fields() {
  static const MapSpec spec{
      .title = "A GPU whose multiprocessors are divided.",
      .fields = {integer("multiprocessors", 1, 1e6).doc("Multiprocessors of the whole GPU."),
                 integer("group", 1, 1e6)
                     .doc("Fewest multiprocessors of a part that the driver allows; parts are multiples of it."),
                 integer("parts", 1, 1e6).doc("Virtual devices that it was divided into."),
                 integer("part", 1, 1e6).doc("Multiprocessors of each."),
                 quantity("memory", Dimension::Bandwidth).doc("Read and written together by all parts at once."),
                 quantity("memory_alone", Dimension::Bandwidth).doc("By one part while the others rest.")}};
  return spec;
}

std::string to_yaml(const MeasuredGpu& g) {
  return fmt::format(
      "gpu: {{multiprocessors: {}, group: {}, parts: {}, part: {}, memory: {:.6g} GB/s, memory_alone: {:.6g} GB/s}}\n",
      g.multiprocessors, g.group, g.parts, g.part, g.memory.value / 1e9, g.memory_alone.value / 1e9);
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) out += c == '"' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
  return out + "\"";
}

std::string time(Seconds s) { return fmt::format("{:.6g} us", s.value * 1e6); }

std::string group_of(const Value& layer) {
  const Value* group = layer.find("group");
  return group ? group->text : std::string();
}

std::vector<Value> collectives_of(const Value& profile) {
  const Value* list = profile.find("collectives");
  return list ? list->items : std::vector<Value>();
}

/// Refuses two times for the same point, which no line connects, and layers without a text, which are never looked up.
void check_items(const Value& v) {
  std::set<std::tuple<std::string, std::string, double>> layers, updates, collectives;
  const auto refuse = [](const Value& item, const char* path, const char* what) {
    throw InputError({{item.where, path, fmt::format("{} stands here twice", what), "leave one of them out", "twice"}});
  };
  for (const Value& l : v.at("layers").items) {
    if (l.at("layer").text.empty())
      throw InputError({{l.where, "profile.layers", "a layer without its operations",
                         "copy them from the output of 'stagecraft profile'", "empty"}});
    if (!layers.emplace(l.at("layer").text, group_of(l), as_int(l.at("samples"))).second)
      refuse(l, "profile.layers", "a layer with one number of samples");
  }
  for (const Value& u : v.at("updates").items)
    if (!updates.emplace("", "", as_real(u.at("parameters"))).second)
      refuse(u, "profile.updates", "an update with this number of parameters");
  for (const Value& c : collectives_of(v))
    if (!collectives
             .emplace(c.at("kind").text + " " + c.at("use").text, std::to_string(as_int(c.at("ranks"))),
                      as_bytes(c.at("bytes")).value)
             .second)
      refuse(c, "profile.collectives", "a collective of this kind and size");
}

void check_gpu(const Value& g) {
  Problems problems;
  const auto refuse = [&](const char* field, const std::string& what, const std::string& help) {
    problems.add(g.at(field).where, fmt::format("profile.gpu.{}", field), what, help, "range");
  };
  const int total = as_int(g.at("multiprocessors")), parts = as_int(g.at("parts")), part = as_int(g.at("part"));
  if (as_int(g.at("group")) > total)
    refuse("group",
           fmt::format("a group of {} does not fit into {}", g.at("group").text, pluralize(total, "multiprocessor")),
           {});
  // Where the driver divides nothing, each part may use the whole GPU.
  if (part != total && std::int64_t{parts} * part > total)
    refuse(
        "parts",
        fmt::format("{} of {} cannot fit into {}", pluralize(parts, "part"), part, pluralize(total, "multiprocessor")),
        part > total ? fmt::format("part: at most {}", total) : "at most " + pluralize(total / part, "part"));
  const Bandwidth memory = as_bandwidth(g.at("memory")), alone = as_bandwidth(g.at("memory_alone"));
  for (const char* field : {"memory", "memory_alone"})
    if (!(as_bandwidth(g.at(field)).value > 0))
      refuse(field, fmt::format("{} is not possible here", g.at(field).text), "it has to be more than zero");
  if (alone > memory && memory.value > 0)
    refuse("memory_alone",
           fmt::format("{} are more than the {} that all parts get together", to_text(alone), to_text(memory)), {});
  problems.throw_if_any();
}

CollectiveKind kind_of(const std::string& text) {
  return *std::find_if(std::begin(kCollectiveKinds), std::end(kCollectiveKinds),
                       [&](CollectiveKind kind) { return text == name(kind); });
}

}  // namespace

const MapSpec& profile_fields() {
  static const MapSpec spec{
      .title = "What layers, updates and messages cost on one type of device, as measured.",
      .fields = {choice("schema", {"profile/1"}).doc("Kind and version of the file."),
                 text("title").fallback("\"\"").doc("Title for people."),
                 text("device").doc("Type of device, as a cluster names it, that the figures are for."),
                 text("machine").doc("Where it was measured."), text("date").doc("When."),
                 text("commit").doc("With which version."), text("backend").doc("On which backend."),
                 text("precision").doc("Width of the numbers."), text("optimizer").doc("Of the updates."),
                 integer("threads", 1, 1e6).fallback("1").doc("Devices that were busy at the same time."),
                 list("layers", map("layer", layer_fields())).doc("Layers."),
                 list("updates", map("update", update_fields())).doc("Updates of different sizes."),
                 list("collectives", map("collective", collective_fields()))
                     .optional()
                     .doc("Collectives of groups of devices."),
                 quantity("operation", Dimension::Time).doc("Overhead of each op, in addition to its layers."),
                 text("transport").fallback("\"\"").doc("What carried messages on a GPU: copy, kernel or nccl."),
                 map("messages", message_fields()).doc("Between two devices of this type."),
                 map("gpu", gpu_fields()).optional().doc("Where the devices are parts of one GPU.")},
  };
  return spec;
}

Profile read_profile(const Value& v) {
  check_items(v);
  Profile p;
  p.title = v.at("title").text;
  p.device = v.at("device").text;
  p.machine = v.at("machine").text;
  p.date = v.at("date").text;
  p.commit = v.at("commit").text;
  p.backend = v.at("backend").text;
  p.precision = v.at("precision").text;
  p.optimizer = v.at("optimizer").text;
  p.threads = as_int(v.at("threads"));
  for (const Value& l : v.at("layers").items)
    p.layers.push_back({l.at("layer").text, as_int(l.at("samples")), as_seconds(l.at("forward")),
                        as_seconds(l.at("input_gradient")), as_seconds(l.at("weight_gradient")),
                        as_real(l.at("spread")), as_real(l.at("slowdown")), group_of(l)});
  for (const Value& u : v.at("updates").items)
    p.updates.push_back({as_real(u.at("parameters")), as_seconds(u.at("time")), as_seconds(u.at("predict"))});
  for (const Value& c : collectives_of(v))
    p.collectives.push_back(
        {kind_of(c.at("kind").text),
         c.at("use").text == name(CollectiveUse::Ops) ? CollectiveUse::Ops : CollectiveUse::Parameters,
         as_int(c.at("ranks")), as_bytes(c.at("bytes")), as_seconds(c.at("time"))});
  p.operation = as_seconds(v.at("operation"));
  p.messages = v.at("transport").text;
  p.latency = as_seconds(v.at("messages").at("latency"));
  p.bandwidth = as_bandwidth(v.at("messages").at("bandwidth"));
  if (const Value* g = v.find("gpu")) {
    check_gpu(*g);
    p.gpu = MeasuredGpu{as_int(g->at("multiprocessors")), as_int(g->at("group")),
                        as_int(g->at("parts")),           as_int(g->at("part")),
                        as_bandwidth(g->at("memory")),    as_bandwidth(g->at("memory_alone"))};
  }
  return p;
}

std::string to_yaml(const Profile& p) {
  std::string text = fmt::format(
      "schema: profile/1\ntitle: {}\ndevice: {}\nmachine: {}\ndate: {}\ncommit: {}\nbackend: {}\nprecision: {}\n"
      "optimizer: {}\nthreads: {}\n",
      quoted(p.title), quoted(p.device), quoted(p.machine), quoted(p.date), quoted(p.commit), quoted(p.backend),
      quoted(p.precision), quoted(p.optimizer), p.threads);
  if (!p.messages.empty()) text += fmt::format("transport: {}\n", p.messages);
  text += fmt::format("operation: {}\nmessages: {{latency: {}, bandwidth: {:.6g} GB/s}}\nupdates:\n", time(p.operation),
                      time(p.latency), p.bandwidth.value / 1e9);
  for (const MeasuredUpdate& u : p.updates)
    text +=
        fmt::format("  - {{parameters: {:.0f}, time: {}, predict: {}}}\n", u.parameters, time(u.time), time(u.predict));
  if (p.gpu) text += to_yaml(*p.gpu);
  if (!p.collectives.empty()) text += "collectives:\n";
  for (const MeasuredCollective& c : p.collectives)
    text += fmt::format("  - {{kind: {}, use: {}, ranks: {}, bytes: {:.0f} B, time: {}}}\n", name(c.kind), name(c.use),
                        c.ranks, c.bytes.value, time(c.time));
  text += "layers:\n";
  for (const MeasuredLayer& l : p.layers) {
    text += fmt::format(
        "  - layer: {}\n    samples: {}\n    forward: {}\n    input_gradient: {}\n    weight_gradient: {}\n    "
        "spread: {:.3g}\n",
        quoted(l.layer), l.samples, time(l.forward), time(l.input_gradient), time(l.weight_gradient), l.spread);
    if (l.slowdown > 0) text += fmt::format("    slowdown: {:.4g}\n", l.slowdown);
    if (!l.group.empty()) text += fmt::format("    group: {}\n", quoted(l.group));
  }
  return text;
}

}  // namespace stagecraft
