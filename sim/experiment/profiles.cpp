// Reads the profiles that a scenario names, and gives what they measured to links and memories of the cluster.

#include "sim/experiment/profiles.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "sim/cluster/device_presets.hpp"
#include "sim/config/library.hpp"
#include "sim/core/text.hpp"
#include "sim/experiment/references.hpp"

namespace stagecraft {
namespace {

using config::Problems;
using config::Value;

Value read_file_of(const std::string& file, Problems& problems) {
  Value root = config::parse_yaml_file(file, problems);
  if (!problems.empty() || !check_schema_line(root, "profile", problems)) return root;
  return config::check(root, profile_fields(), "", problems);
}

/// Figures of the memory that parts of a GPU share; false where they share none.
bool apply_to_memory(const Profile& profile, const Where& where, Cluster& cluster) {
  const LinkId memory = cluster.devices.front().memory;
  if (!memory.valid()) return false;
  if (!profile.gpu && profile.threads == 1) return true;  // A single thread shares its memory with no other.
  if (!profile.gpu)
    throw InputError(
        {{where, "profile",
          fmt::format("the parts of '{}' share their memory, and the profile does not say what it gives to "
                      "one of them and to all",
                      cluster.name),
          "stagecraft profile --backend cuda, with two parts or more", "profile"}});
  cluster.links[memory].bandwidth = profile.gpu->memory / 2;
  for (DeviceType& type : cluster.types)
    if (type.name == profile.device) type.memory_bandwidth = std::min(profile.gpu->memory, profile.gpu->memory_alone);
  return true;
}

}  // namespace

void expand_profile(Value& profile, Problems& problems) {
  if (profile.is_list()) {
    for (Value& item : profile.items) {
      if (item.is_list())
        problems.add(item.where, "profile", "a list cannot stand here", "write names of profiles, or files",
                     "wrong-type");
      else
        expand_profile(item, problems);
    }
    return;
  }
  if (profile.is_map()) {
    profile = config::check(profile, profile_fields(), "profile", problems);
    return;
  }
  const std::string file = find_file(FileKind::Profile, profile.text, profile.where.file);
  if (file.empty()) {
    const std::string near = suggest(profile.text, file_names(FileKind::Profile));
    problems.add(profile.where, "profile", fmt::format("there is no profile '{}'", profile.text),
                 near.empty() ? "stagecraft profile measures one" : near, "unreadable-file");
    return;
  }
  profile = read_file_of(file, problems);
}

Value load_profile_file(const std::string& file) {
  Problems problems;
  Value root = read_file_of(file, problems);
  problems.throw_if_any();
  return root;
}

void apply(const Profile& profile, const Where& where, Cluster& cluster) {
  const auto meant = std::count_if(cluster.devices.begin(), cluster.devices.end(),
                                   [&](const Device& d) { return cluster.types[d.type].name == profile.device; });
  if (meant == 0)
    throw InputError({{where, "profile.device",
                       fmt::format("the profile is of devices of the type '{}', but the cluster '{}' has none",
                                   profile.device, cluster.name),
                       fmt::format("take a profile of its devices, such as '{}', or leave the profile out",
                                   cluster.types[cluster.devices.front().type].name),
                       "profile"}});
  if (meant < std::ssize(cluster.devices)) return;
  const LinkId memory = apply_to_memory(profile, where, cluster) ? cluster.devices.front().memory : LinkId{};
  for (const LinkId l : cluster.links.ids()) {
    if (memory.valid() && l == memory) continue;
    cluster.links[l].latency = profile.latency;
    cluster.links[l].bandwidth = profile.bandwidth;  // As measured, so with headers and windows.
    cluster.links[l].efficiency = 1;
    cluster.links[l].window = {};
  }
}

void require_same_parts(const Profile& profile, const Value& cluster) {
  if (!profile.gpu || cluster.at("generator").text != "carved_gpu") return;
  const MeasuredGpu& g = *profile.gpu;
  const int total = config::as_int(cluster.at("multiprocessors")), parts = config::as_int(cluster.at("parts"));
  const int part = multiprocessors_of_part(total, config::as_int(cluster.at("group")), parts);
  const bool undivided = g.part == g.multiprocessors;  // The driver could not divide it, and its machine says so.
  if (g.parts == parts && g.multiprocessors == total && (undivided || g.part == part)) return;
  const auto words = [](int count, int each, int multiprocessors) {
    return fmt::format("{} of {} of {} multiprocessors", count == 1 ? "1 part" : fmt::format("{} parts", count), each,
                       multiprocessors);
  };
  throw InputError({{cluster.at("parts").where, "cluster.parts",
                     fmt::format("the cluster has {}, but the profile was measured on {}", words(parts, part, total),
                                 words(g.parts, g.part, g.multiprocessors)),
                     fmt::format("describe the GPU that was measured, or measure again: stagecraft profile --backend "
                                 "cuda, with a plan that uses all {} parts",
                                 parts),
                     "profile"}});
}

}  // namespace stagecraft
