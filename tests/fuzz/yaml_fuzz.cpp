// Any bytes as YAML: it reads back from YAML and JSON as it was read, and a tree that a field table accepts is accepted
// again with its defaults. The first byte chooses the table.

#include <cstdint>
#include <cstdlib>

#include "sim/cluster/change_fields.hpp"
#include "sim/cluster/generator.hpp"
#include "sim/config/fields.hpp"
#include "sim/model/builder.hpp"
#include "tests/fuzz/tree.hpp"

using namespace stagecraft;

namespace {

template <class Def>
std::vector<config::Variant> variants_of(Catalog<Def> catalog) {
  std::vector<config::Variant> list;
  for (const Def* def : catalog) list.push_back({std::string(def->name), std::string(def->summary), def->fields});
  return list;
}

const config::MapSpec& model_table() {
  static const config::MapSpec common{"A model.",
                                      {config::text("schema").optional(), config::text("name").fallback("model"),
                                       config::text("title").optional(), config::any("expect").optional()}};
  static const config::MapSpec table{
      "A file.",
      {config::variant(
           "file", "builder", [] { return variants_of(model_builders::catalog()); }, &common)
           .reference()}};
  return table;
}

std::vector<config::Field> cluster_fields() {
  std::vector<config::Field> fields = change_fields();
  for (const char* name : {"schema", "name", "title"}) fields.push_back(config::text(name).optional());
  return fields;
}

const config::MapSpec& cluster_table() {
  static const config::MapSpec common{"A cluster.", cluster_fields()};
  static const config::MapSpec table{
      "A file.",
      {config::variant(
           "file", "generator", [] { return variants_of(topology_generators::catalog()); }, &common)
           .reference()}};
  return table;
}

config::Value filled_in(const config::Value& tree, const config::MapSpec& table, config::Problems& problems) {
  config::Value root;
  root.kind = config::Value::Kind::Map;
  root.where = tree.where;
  root.members.push_back({"file", tree.where, tree});
  const config::Value checked = config::check(root, table, "", problems);
  fuzz::print(problems);
  return checked.has("file") ? checked.at("file") : checked;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  config::Problems problems;
  const config::Value tree = config::parse_yaml(text, "<file>", problems);
  fuzz::print(problems);
  if (!problems.empty()) return 0;
  if (!fuzz::same(tree, fuzz::read_back(config::to_yaml(tree, data[0] & 2)))) std::abort();
  if (config::to_json(fuzz::read_back(config::to_json(tree))) != config::to_json(tree)) std::abort();

  const config::MapSpec& table = data[0] & 1 ? model_table() : cluster_table();
  const config::Value filled = filled_in(tree, table, problems);
  if (!problems.empty()) return 0;
  const config::Value again = filled_in(fuzz::read_back(config::to_yaml(filled, true)), table, problems);
  if (!problems.empty() || !fuzz::same(filled, again)) std::abort();
  return 0;
}
