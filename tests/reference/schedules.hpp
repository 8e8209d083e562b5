#pragma once

#include <nlohmann/json.hpp>

#include "sim/core/diagnostic.hpp"
#include "tests/support/reference.hpp"

namespace stagecraft::test {

using ParsedJson = nlohmann::json;

inline ParsedJson reference_json(const std::string& file) { return ParsedJson::parse(reference_text(file)); }

/// The order of an entry of schedules.json in PyTorch's text, one line for each rank.
inline std::string csv_of(const ParsedJson& entry) {
  return join(entry["order"].get<std::vector<std::string>>(), "\n") + "\n";
}

}  // namespace stagecraft::test
