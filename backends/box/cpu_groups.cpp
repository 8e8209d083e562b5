// Control groups (version 1 or 2) with a quota of the processor for each device.

#include "backends/box/cpu_groups.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>

#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"

namespace stagecraft::box {
namespace {

namespace fs = std::filesystem;

constexpr int kPeriod = 100'000;       // Microseconds in which a group may compute for its share.
constexpr int kShortestQuota = 1'000;  // What the kernel takes.

void set_in(const fs::path& file, const std::string& text) {
  errno = 0;
  std::ofstream out(file);
  out << text;
  out.flush();
  if (!out) throw BackendError(fmt::format("{}: {}", file.string(), std::strerror(errno)));
}

std::string first_line(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

bool has_word(const std::string& text, char separator, std::string_view word) {
  const std::vector<std::string> words = split(text, separator);
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// The folder of the controller `cpu`, and whether it is of version 2.
std::pair<fs::path, bool> controller() {
  std::ifstream mounts("/proc/mounts");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string device, place, kind, options;
    words >> device >> place >> kind >> options;
    if (kind == "cgroup" && has_word(options, ',', "cpu")) return {place, false};
    if (kind == "cgroup2" && has_word(first_line(fs::path(place) / "cgroup.controllers"), ' ', "cpu"))
      return {place, true};
  }
  throw BackendError("this system has no control groups with the controller 'cpu'");
}

/// Lets groups in this folder have a quota.
void allow_quotas(const fs::path& folder, bool second) {
  if (second && !has_word(first_line(folder / "cgroup.subtree_control"), ' ', "cpu"))
    set_in(folder / "cgroup.subtree_control", "+cpu");
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directory(folder, error);
  if (error) throw BackendError(fmt::format("{}: {}", folder.string(), error.message()));
}

}  // namespace

std::vector<double> core_shares(const Cluster& cluster, int cores) {
  std::vector<double> shares;
  for (const Device& device : cluster.devices) {
    const DeviceType& type = cluster.types[device.type];
    shares.push_back(type.peak.value > 0 ? type.peak.value * type.efficiency : type.speed);
  }
  const auto [slowest, fastest] = std::minmax_element(shares.begin(), shares.end());
  if (shares.empty() || *slowest == *fastest || *slowest <= 0) return {};
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  const double core = std::max(*fastest, sum / cores);
  for (double& share : shares) share /= core;
  return shares;
}

std::string make_cpu_groups(const std::string& name, const std::vector<double>& shares) {
  const auto [root, second] = controller();
  const fs::path folder = root / ("stagecraft-" + name);
  remove_cpu_groups(folder);
  allow_quotas(root, second);
  make_folder(folder);
  try {
    allow_quotas(folder, second);
    for (std::size_t d = 0; d < shares.size(); ++d) {
      const fs::path group = folder / fmt::format("{}", d);
      make_folder(group);
      const int quota = std::max(kShortestQuota, static_cast<int>(std::lround(shares[d] * kPeriod)));
      if (second) {
        set_in(group / "cpu.max", fmt::format("{} {}", quota, kPeriod));
      } else {
        set_in(group / "cpu.cfs_period_us", fmt::format("{}", kPeriod));
        set_in(group / "cpu.cfs_quota_us", fmt::format("{}", quota));
      }
    }
  } catch (const BackendError&) {
    remove_cpu_groups(folder);
    throw;
  }
  return folder;
}

void enter_cpu_group(const std::string& folder, int device) {
  set_in(fs::path(folder) / fmt::format("{}", device) / "cgroup.procs", "0");
}

void remove_cpu_groups(const std::string& folder) noexcept {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
    if (entry.is_directory(error)) fs::remove(entry.path(), error);
  fs::remove(folder, error);
}

}  // namespace stagecraft::box
