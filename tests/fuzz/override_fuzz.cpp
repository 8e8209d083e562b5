// Any bytes as path=value of --set, in the first line, and the file it changes: the value is set at the path, or a
// problem is reported.

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "sim/config/override.hpp"
#include "tests/fuzz/tree.hpp"

using namespace stagecraft;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::string assignment(input.substr(0, input.find('\n')));
  config::Problems problems;
  config::Value tree =
      config::parse_yaml(input.substr(std::min(input.size(), assignment.size() + 1)), "<file>", problems);
  if (!problems.empty()) return 0;
  const config::Value before = tree;
  config::apply_set(tree, assignment, problems);
  fuzz::print(problems);
  const auto set = config::read_assignment("--set", assignment, problems);
  if (!problems.empty()) {
    if (!set && !fuzz::same(tree, before)) std::abort();
    return 0;
  }
  // An item of a list that gets another name, or none, is no longer found by its own.
  const config::Value* stood = config::get_path(before, set->key);
  if (set->value.has("name") || (stood && stood->has("name") && !set->value.is_map())) return 0;
  const config::Value* node = config::get_path(tree, set->key);
  if (!node) std::abort();
  config::Value value = *node;
  if (set->value.is_map() && value.has("name")) value.members.erase(value.members.begin());
  if (!fuzz::same(value, set->value)) std::abort();
  return 0;
}
