#include "sim/experiment/settings.hpp"

#include <fmt/format.h>

#include "sim/config/fields.hpp"

namespace stagecraft {
namespace {

using config::Value;

StreamModel stream_model(const std::string& word) {
  if (word == "single") return StreamModel::Single;
  if (word == "pair") return StreamModel::Pair;
  return word == "none" ? StreamModel::None : StreamModel::Direction;
}

GpuOptions gpu_options(const Value& gpu) {
  GpuOptions options;
  const std::string& precision = gpu.at("precision").text;
  if (precision == "tf32") options.precision = GpuPrecision::Tf32;
  if (precision == "bf16") options.precision = GpuPrecision::Bf16;
  if (gpu.at("messages").text == "nccl") options.messages = GpuMessages::Nccl;
  if (gpu.at("messages").text == "kernel") options.messages = GpuMessages::Kernel;
  if (gpu.at("sums").text == "collective") options.sums = GpuSums::Collective;
  if (gpu.at("timing").text == "off") options.timing = GpuTiming::Off;
  options.graph = config::as_bool(gpu.at("graph"));
  if (options.graph && options.timing == GpuTiming::Events)
    throw InputError({{gpu.at("graph").where, "run.gpu.graph",
                       "a graph of a whole iteration has no events around its instructions, and run.gpu.timing asks "
                       "for them",
                       "run.gpu.timing: off", "graph"}});
  return options;
}

LoweringOptions lowering_options(const Value& run) {
  LoweringOptions options;
  options.iterations = config::as_int(run.at("iterations"));
  options.overlap = config::as_bool(run.at("overlap"));
  options.rendezvous = run.at("transfers").text == "rendezvous";
  options.streams = stream_model(run.at("streams").text);
  options.fifo_sends = run.at("sends").text == "fifo";
  return options;
}

std::shared_ptr<const Profile> profile_of(const Value& tree, const Training& training) {
  const Value* given = tree.find("profile");
  if (!given) return nullptr;
  auto profile = std::make_shared<const Profile>(read_profile(*given));
  if (const auto kind = to_text(training.optimizer.kind); profile->optimizer != kind)
    throw InputError({{given->where, "profile",
                       fmt::format("the profile was measured with the optimizer {}, and the training asks for {}",
                                   profile->optimizer, kind),
                       "measure another one, or change training.optimizer", "profile"}});
  return profile;
}

}  // namespace

Settings read_settings(const Value& tree) {
  Settings s;
  const Value& run = tree.at("run");
  s.run.micro_batches = config::as_int(run.at("micro_batches"));
  s.run.seed = static_cast<std::uint64_t>(config::as_real(run.at("seed")));
  s.run.lowering = lowering_options(run);
  s.run.emulated = run.at("compute").text == "emulated";
  if (const Value* gpu = run.find("gpu")) s.run.gpu = gpu_options(*gpu);
  const Value* training = tree.find("training");
  s.has_training = training != nullptr;
  if (training)
    s.training = read_training(*training);
  else
    s.training.task = "random";
  s.run.lowering.gradient_slots = s.training.slots;
  s.run.lowering.optimizer_states = s.training.optimizer.state_tensors();
  s.profile = profile_of(tree, s.training);
  return s;
}

}  // namespace stagecraft
