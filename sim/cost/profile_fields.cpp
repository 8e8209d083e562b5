#include <fmt/format.h>

#include "sim/cost/profile.hpp"

namespace stagecraft {
namespace {

using namespace config;

const MapSpec& layer_fields() {
  static const MapSpec spec{
      .title = "One kind of layer with one number of samples.",
      .fields = {
          text("layer").doc("Width of its numbers, and its operations, in the words of the program."),
          integer("samples", 1, 1e9).doc("Samples of one micro-batch."),
          quantity("forward", Dimension::Time).doc("Median of a forward."),
          quantity("input_gradient", Dimension::Time).doc("Median of the gradient of its input."),
          quantity("weight_gradient", Dimension::Time).doc("Median of the gradient of its weights."),
          real("spread", 0, 1e6).fallback("0").doc("Half the distance between the quartiles, over the median.")}};
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

const MapSpec& message_fields() {
  static const MapSpec spec{.title = "Messages between two devices of this type.",
                            .fields = {quantity("latency", Dimension::Time).doc("Of a message without bytes."),
                                       quantity("bandwidth", Dimension::Bandwidth).doc("Of a long one.")}};
  return spec;
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) out += c == '"' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
  return out + "\"";
}

std::string time(Seconds s) { return fmt::format("{:.6g} us", s.value * 1e6); }

}  // namespace

const MapSpec& profile_fields() {
  static const MapSpec spec{
      .title = "What layers, updates and messages cost on one type of device, as measured.",
      .fields = {choice("schema", {"profile/1"}).doc("Kind and version of the file."),
                 text("title").fallback("\"\"").doc("One line for people."),
                 text("device").doc("Type of device, as a cluster names it, that the figures are for."),
                 text("machine").doc("Where it was measured."), text("date").doc("When."),
                 text("commit").doc("With which version."), text("backend").doc("On which backend."),
                 text("precision").doc("Width of the numbers."), text("optimizer").doc("Of the updates."),
                 integer("threads", 1, 1e6).fallback("1").doc("Devices that were busy at the same time."),
                 list("layers", map("layer", layer_fields())).doc("Layers."),
                 list("updates", map("update", update_fields())).doc("Updates of different sizes."),
                 quantity("operation", Dimension::Time).doc("Of each op of a stage, beside its layers."),
                 map("messages", message_fields()).doc("Between two devices of this type.")},
  };
  return spec;
}

Profile read_profile(const Value& v) {
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
                        as_real(l.at("spread"))});
  for (const Value& u : v.at("updates").items)
    p.updates.push_back({as_real(u.at("parameters")), as_seconds(u.at("time")), as_seconds(u.at("predict"))});
  p.operation = as_seconds(v.at("operation"));
  p.latency = as_seconds(v.at("messages").at("latency"));
  p.bandwidth = as_bandwidth(v.at("messages").at("bandwidth"));
  return p;
}

std::string to_yaml(const Profile& p) {
  std::string text = fmt::format(
      "schema: profile/1\ntitle: {}\ndevice: {}\nmachine: {}\ndate: {}\ncommit: {}\nbackend: {}\nprecision: {}\n"
      "optimizer: {}\nthreads: {}\n",
      quoted(p.title), quoted(p.device), quoted(p.machine), quoted(p.date), quoted(p.commit), quoted(p.backend),
      p.precision, p.optimizer, p.threads);
  text += fmt::format("operation: {}\nmessages: {{latency: {}, bandwidth: {:.6g} GB/s}}\nupdates:\n", time(p.operation),
                      time(p.latency), p.bandwidth.value / 1e9);
  for (const MeasuredUpdate& u : p.updates)
    text +=
        fmt::format("  - {{parameters: {:.0f}, time: {}, predict: {}}}\n", u.parameters, time(u.time), time(u.predict));
  text += "layers:\n";
  for (const MeasuredLayer& l : p.layers)
    text += fmt::format(
        "  - layer: \"{}\"\n    samples: {}\n    forward: {}\n    input_gradient: {}\n    weight_gradient: {}\n    "
        "spread: {:.3g}\n",
        l.layer, l.samples, time(l.forward), time(l.input_gradient), time(l.weight_gradient), l.spread);
  return text;
}

}  // namespace stagecraft
