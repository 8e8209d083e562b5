#include "tools/stagecraft/explanation.hpp"

#include <optional>

#include "sim/core/text.hpp"
#include "sim/experiment/scenario.hpp"
#include "sim/published/published.hpp"
#include "sim/sweep/sweep.hpp"
#include "tools/stagecraft/glossary.hpp"
#include "tools/stagecraft/software_text.hpp"

namespace stagecraft {
namespace {

/// The text about a field of another kind of file, such as "sweep.axes"; nothing for other paths.
std::optional<std::string> field_of(const std::string& kind, const config::MapSpec& fields, const std::string& path) {
  if (path != kind && !path.starts_with(kind + ".")) return {};
  return config::explain(fields, path.size() > kind.size() + 1 ? path.substr(kind.size() + 1) : "") + "\n";
}

}  // namespace

std::string explanation(const std::string& path) {
  if (const auto text = field_of("published", published_fields(), path)) return *text;
  if (const auto text = field_of("sweep", sweep_fields(), path)) return *text;
  std::optional<std::string> entry = glossary_text(path);
  if (path == "software") entry = software_list();
  if (const auto stack = software_text(path)) entry = entry.value_or("") + *stack;
  try {
    const std::string text = config::explain(scenario_fields(), path) + "\n";
    return entry ? text + "\n" + *entry : text;
  } catch (const InputError& e) {
    if (entry) return *entry;
    const std::string near = suggest(path, glossary_words());
    if (path.find('.') != std::string::npos || near.empty()) throw;
    throw InputError(e.problems().front().message, near);
  }
}

}  // namespace stagecraft
