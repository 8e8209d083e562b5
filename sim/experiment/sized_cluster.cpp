// Names of clusters that end in a size: the base that they stand for, and the devices of its nodes.

#include "sim/experiment/sized_cluster.hpp"

#include <algorithm>

#include "sim/config/library.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

/// "dgx-h200-x2" is "dgx-h200" and "x2"; a name without a size has no second part.
std::pair<std::string, std::string> stem_and_size(const std::string& name) {
  const std::size_t hyphen = name.rfind('-');
  if (hyphen == std::string::npos) return {name, {}};
  const std::string size = name.substr(hyphen + 1);
  const std::size_t digits = size.starts_with('x') ? 1 : 0;
  const bool is_size = size.size() > digits && size.find_first_not_of("0123456789", digits) == std::string::npos;
  return is_size ? std::pair{name.substr(0, hyphen), size} : std::pair{name, std::string()};
}

/// The whole number of a field that is written; 0 otherwise.
int number_of(const config::Value* value) {
  if (!value || !value->is_scalar()) return 0;
  std::string_view rest = value->text;
  const std::optional<int> number = read_number(rest);
  return rest.empty() ? number.value_or(0) : 0;
}

}  // namespace

std::optional<SizedCluster> sized_cluster(const std::string& name) {
  const auto [stem, size] = stem_and_size(name);
  if (size.empty()) return {};
  const bool counts_nodes = size.starts_with('x');
  std::string_view digits = std::string_view(size).substr(counts_nodes ? 1 : 0);
  const std::optional<int> count = read_number(digits);
  constexpr int kMostDevices = 1 << 20;
  if (!count || *count < 1 || *count > kMostDevices) return {};
  const std::vector<std::string> names = file_names(FileKind::Cluster);
  auto base = std::find(names.begin(), names.end(), stem);
  if (base == names.end())
    base = std::find_if(names.begin(), names.end(),
                        [stem = stem](const auto& n) { return stem_and_size(n).first == stem; });
  if (base == names.end()) return {};
  return SizedCluster{*base, *count, counts_nodes};
}

int devices_of_each_node(const config::Value& cluster) {
  const config::Value* nodes = cluster.find("nodes");
  if (!nodes || cluster.has("pods")) return 0;
  if (nodes->is_scalar()) return number_of(cluster.find("gpus"));
  return nodes->items.size() == 1 ? number_of(nodes->items.front().find("gpus")) : 0;
}

}  // namespace stagecraft
