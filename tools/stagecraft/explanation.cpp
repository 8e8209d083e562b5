// Explains a word for `explain` and `serve`: a field by its path, a term of the glossary, a software stack, a name that
// other frameworks use, or a library file.

#include "tools/stagecraft/explanation.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <tuple>

#include <fmt/core.h>

#include "sim/config/library.hpp"
#include "sim/config/synonyms.hpp"
#include "sim/config/walk.hpp"
#include "sim/core/text.hpp"
#include "sim/cost/software.hpp"
#include "sim/experiment/scenario.hpp"
#include "sim/published/predictions.hpp"
#include "sim/published/published.hpp"
#include "sim/sweep/sweep.hpp"

namespace stagecraft {
namespace {

/// The text about a field of another kind of file, such as "sweep.axes"; nothing for other paths.
std::optional<std::string> field_of(const std::string& kind, const config::MapSpec& fields, const std::string& path) {
  if (path != kind && !path.starts_with(kind + ".")) return {};
  return config::explain(fields, path.size() > kind.size() + 1 ? path.substr(kind.size() + 1) : "") + "\n";
}

std::string in_small_letters(std::string word) {
  std::transform(word.begin(), word.end(), word.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return word;
}

/// The fields of this name, where they are few; nothing for other words.
std::string fields_text(const std::string& name) {
  constexpr std::size_t kMostPlaces = 3;
  const std::vector<std::string> places = config::places_of(scenario_fields(), "", name);
  if (places.size() > kMostPlaces) return {};
  std::string text;
  for (const std::string& place : places)
    text += (text.empty() ? "" : "\n") + config::explain(scenario_fields(), config::under(place, name)) + "\n";
  return text;
}

/// A word of other frameworks: what it is called here, and the fields with this name. A field without its path: the
/// fields of this name. Nothing for other words.
std::optional<std::string> meant_text(const std::string& word) {
  if (word.find('.') != std::string::npos) return {};
  std::string text = fields_text(in_small_letters(word));
  for (const config::Meaning& meaning : config::meanings(word)) {
    const std::string name(meaning.name), only(meaning.place);
    for (const std::string& place : config::places_of(scenario_fields(), "", name)) {
      if (!only.empty() && place != only) continue;
      const std::string path = config::under(place, name);
      text += fmt::format("{}'{}' is called '{}' here.\n{}\n", text.empty() ? "" : "\n", word, name,
                          config::explain(scenario_fields(), path));
    }
  }
  return text.empty() ? std::nullopt : std::optional(std::move(text));
}

/// A file of the library that has this name, such as a model; nothing for other words.
std::optional<std::string> file_text(const std::string& word) {
  constexpr std::tuple<FileKind, const char*, const char*> kKinds[] = {
      {FileKind::Model, "a model", "use: model: NAME in a scenario; its layers: stagecraft show SCENARIO --what model"},
      {FileKind::Cluster, "a cluster", "use: cluster: NAME in a scenario"},
      {FileKind::Device, "a device type", "use: type: NAME in a cluster; its figures: stagecraft list devices"},
      {FileKind::Curves, "measured times of collectives", "use: collectives: NAME in a cluster"},
      {FileKind::Scenario, "a scenario", "use: stagecraft run NAME"}};
  for (const auto& [kind, what, use] : kKinds)
    for (const NamedFile& f : named_files(kind)) {
      if (f.name != word) continue;
      config::Problems ignored;
      const config::Value root = config::parse_yaml_file(f.path, ignored);
      const config::Value* title = root.is_map() ? root.find("title") : nullptr;
      return fmt::format("{}: {}.{}\n  file: {}\n  {}\n", word, what, title ? " " + title->text + "." : "", f.path,
                         use);
    }
  return {};
}

}  // namespace

namespace {

/// The field of the overlap that a flag of a framework turns on, such as --tp-comm-overlap; empty for other words.
std::string overlap_of_flag(const std::string& word) {
  const std::string flag = word.starts_with("--") ? word : "--" + word;
  for (const Overlap f : overlap_features()) {
    const std::string flags(flags_of(f));
    for (auto at = flags.find(flag); at != flags.npos; at = flags.find(flag, at + 1)) {
      const char after = at + flag.size() < flags.size() ? flags[at + flag.size()] : ' ';
      if (after != '-' && !std::isalnum(static_cast<unsigned char>(after)))
        return fmt::format("software.overlap.{}", name_of(f));
    }
  }
  return {};
}

std::string explanation_as_written(const std::string& path) {
  if (const std::string field = overlap_of_flag(path); !field.empty()) return explanation_as_written(field);
  if (const auto text = field_of("published", published_fields(), path)) return *text;
  if (const auto text = field_of("sweep", sweep_fields(), path)) return *text;
  if (const auto text = field_of("predictions", prediction_fields(), path)) return *text;
  std::optional<std::string> entry = glossary_text(path);
  if (path == "software") entry = software_list();
  if (const auto overlap = overlap_text(path)) entry = *overlap;
  if (const auto stack = software_text(path)) entry = entry.value_or("") + *stack;
  try {
    const std::string text = config::explain(scenario_fields(), path) + "\n";
    return entry ? text + "\n" + *entry : text;
  } catch (const InputError& e) {
    if (const auto meant = meant_text(path)) return entry ? *entry + "\n" + *meant : *meant;
    if (const auto file = file_text(path)) return entry.value_or("") + *file;
    if (entry) return *entry;
    const std::string near = suggest(path, glossary_words());
    if (path.find('.') != std::string::npos || near.empty()) throw;
    throw InputError(e.problems().front().message, near);
  }
}

}  // namespace

std::string explanation(const std::string& path) try {
  return explanation_as_written(path);
} catch (const InputError&) {
  const std::string small = in_small_letters(path);
  if (small == path) throw;
  try {
    return explanation_as_written(small);
  } catch (const InputError&) {  // The message of the word as it is written says more.
  }
  throw;
}

}  // namespace stagecraft
