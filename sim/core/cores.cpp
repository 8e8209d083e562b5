// The processors that this process may use, by its affinity mask, its physical cores and the quota of its control
// group.

#include "sim/core/cores.hpp"

#ifdef __linux__
#include <sched.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include <fmt/core.h>

#include "sim/core/numbers.hpp"

namespace stagecraft {
namespace {

std::string first_line(const std::string& file) {
  std::string line;
  std::ifstream in(file);
  std::getline(in, line);
  return line;
}

/// The smallest quota of the control group of this process and of all groups above it, which limit it too.
double quota_of_process() {
  double quota = kInfinity;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (line.rfind("0::", 0) != 0) continue;  // Version 2 has one hierarchy.
    for (std::string path = line.substr(3);; path.erase(path.rfind('/'))) {
      quota = std::min(quota, quota_of(first_line("/sys/fs/cgroup" + path + "/cpu.max")));
      if (path.find('/') == std::string::npos) break;
    }
  }
  // Version 1: a container sees its own group at the root.
  const std::string whole = first_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  const std::string period = first_line("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  if (!whole.empty() && whole.front() != '-') quota = std::min(quota, quota_of(whole + " " + period));
  return quota;
}

std::vector<int> allowed_processors() {
  std::vector<int> processors;
#ifdef __linux__
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
    for (int c = 0; c < CPU_SETSIZE; ++c)
      if (CPU_ISSET(c, &allowed)) processors.push_back(c);
#endif
  if (processors.empty())
    for (unsigned c = 0; c < std::max(1U, std::thread::hardware_concurrency()); ++c)
      processors.push_back(static_cast<int>(c));
  return processors;
}

}  // namespace

int UsableCores::count() const {
  return static_cast<int>(std::clamp(std::floor(quota), 1.0, std::max(1.0, static_cast<double>(order.size()))));
}

double quota_of(const std::string& cpu_max) {
  std::istringstream text(cpu_max);
  std::string amount;
  double period = 0;
  if (!(text >> amount >> period) || amount == "max" || period <= 0) return kInfinity;
  const double microseconds = std::strtod(amount.c_str(), nullptr);
  return microseconds > 0 ? microseconds / period : kInfinity;
}

std::vector<int> one_per_core_first(const std::vector<int>& processors, const std::function<std::string(int)>& core_of,
                                    int& physical) {
  std::map<std::string, int> taken;  // Processors of each core so far.
  std::vector<std::pair<int, int>> ranked;
  for (const int p : processors) ranked.emplace_back(taken[core_of(p)]++, p);
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  physical = static_cast<int>(taken.size());
  std::vector<int> order;
  for (const auto& [rank, p] : ranked) order.push_back(p);
  return order;
}

namespace {

UsableCores find_usable_cores() {
  UsableCores cores;
  cores.quota = quota_of_process();
  const auto core_of = [](int p) {
    const std::string siblings =
        first_line(fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", p));
    return siblings.empty() ? fmt::format("processor {}", p) : siblings;
  };
  cores.order = one_per_core_first(allowed_processors(), core_of, cores.physical);
  return cores;
}

}  // namespace

UsableCores usable_cores() {
  static const UsableCores cores = find_usable_cores();
  return cores;
}

int other_runnable_threads() {
  std::ifstream load("/proc/loadavg");
  std::string one, five, fifteen;
  int running = 0;
  if (!(load >> one >> five >> fifteen >> running)) return 0;
  return std::max(0, running - 1);
}

}  // namespace stagecraft
