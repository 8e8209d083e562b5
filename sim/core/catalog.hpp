#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {

/// A catalogue is the list of definitions that the build made from one directory. Every definition has a
/// `name`, a one-line `summary` and a `source` (paper or code it follows).
template <class Def>
using Catalog = std::span<const Def* const>;

template <class Def>
std::vector<std::string> names_of(Catalog<Def> catalog) {
  std::vector<std::string> names;
  for (const Def* def : catalog) names.emplace_back(def->name);
  return names;
}

template <class Def>
const Def* find_in(Catalog<Def> catalog, std::string_view name) {
  for (const Def* def : catalog)
    if (def->name == name) return def;
  return nullptr;
}

/// The error about a name that no entry of a catalogue has, with a suggestion or the command that lists them.
InputError unknown_entry(std::string_view kind, std::string_view name, const std::vector<std::string>& names);

/// The entry called `name`; throws unknown_entry() when there is none.
template <class Def>
const Def& get_from(Catalog<Def> catalog, std::string_view kind, std::string_view name) {
  if (const Def* def = find_in(catalog, name)) return *def;
  throw unknown_entry(kind, name, names_of(catalog));
}

}  // namespace stagecraft
