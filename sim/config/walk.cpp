#include "sim/config/walk.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace stagecraft::config {

std::string under(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : path + '.' + std::string(key);
}

const Field& innermost(const Field& field) {
  const Field* inner = &field;
  while ((inner->kind == Field::Kind::List || inner->kind == Field::Kind::Table) && inner->item) inner = &*inner->item;
  return *inner;
}

std::vector<const MapSpec*> tables_in(const Field& field) {
  const Field& inner = innermost(field);
  std::vector<const MapSpec*> tables;
  if (inner.map) tables.push_back(inner.map);
  if (inner.kind == Field::Kind::Variant) {
    for (const Variant& variant : inner.variants())
      if (variant.fields) tables.push_back(variant.fields);
  }
  return tables;
}

std::vector<std::string> places_of(const MapSpec& root, const std::string& root_path, std::string_view key) {
  std::vector<std::pair<std::string, const MapSpec*>> queue{{root_path, &root}};
  std::set<const MapSpec*> seen{&root};
  std::vector<std::string> places;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    const auto [path, spec] = queue[i];
    if (spec->find(key) && std::find(places.begin(), places.end(), path) == places.end()) places.push_back(path);
    for (const Field& field : spec->fields)
      for (const MapSpec* inner : tables_in(field))
        if (seen.insert(inner).second) queue.emplace_back(under(path, field.name), inner);
  }
  return places;
}

bool names_its_own_field(const Variant& variant) { return variant.fields && variant.fields->find(variant.name); }

const Variant* meant_by_key(const Value& map, const std::vector<Variant>& variants) {
  for (const Variant& variant : variants)
    if (names_its_own_field(variant) && map.has(variant.name)) return &variant;
  return nullptr;
}

}  // namespace stagecraft::config
