#include "sim/run/profiles.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "sim/core/text.hpp"
#include "sim/run/library.hpp"
#include "sim/run/references.hpp"

namespace stagecraft {
namespace {

using config::Problems;
using config::Value;

Value read_file_of(const std::string& file, Problems& problems) {
  Value root = config::parse_yaml_file(file, problems);
  if (!problems.empty() || !check_schema_line(root, "profile", problems)) return root;
  return config::check(root, profile_fields(), "", problems);
}

}  // namespace

void expand_profile(Value& profile, Problems& problems) {
  if (profile.is_map()) {
    profile = config::check(profile, profile_fields(), "profile", problems);
    return;
  }
  if (!profile.is_scalar())
    return problems.add(profile.where, "profile", "a list cannot stand here", "write the name of a profile, or a file",
                        "wrong-type");
  const std::string file = find_file(FileKind::Profile, profile.text, profile.where.file);
  if (file.empty()) {
    std::vector<std::string> names;
    for (const NamedFile& f : named_files(FileKind::Profile)) names.push_back(f.name);
    const std::string near = suggest(profile.text, names);
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

void apply(const Profile& profile, Cluster& cluster) {
  const auto meant = std::count_if(cluster.devices.begin(), cluster.devices.end(), [&](const Device& d) {
    return cluster.types[static_cast<std::size_t>(d.type)].name == profile.device;
  });
  if (meant == 0)
    throw InputError(fmt::format("the profile is of devices of the type '{}', but the cluster '{}' has none",
                                 profile.device, cluster.name),
                     "take a profile of its devices, or leave the profile out");
  if (static_cast<std::size_t>(meant) < cluster.devices.size()) return;
  for (Link& link : cluster.links) {
    link.latency = profile.latency;
    link.bandwidth = profile.bandwidth;
  }
}

}  // namespace stagecraft
