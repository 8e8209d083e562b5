// Any bytes as published figures: tables whose rows have a value for each column, and numbers only, or refused.

#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "sim/core/diagnostic.hpp"
#include "sim/published/published.hpp"
#include "tests/fuzz/memory_file.hpp"

using namespace stagecraft;

namespace {

void check_row(const PublishedTable& table, const PublishedTable::Row& row) {
  const std::size_t columns = table.columns.size();
  if (row.values.size() != columns || row.missed.size() > columns || row.only.size() > columns) std::abort();
  if (!std::isfinite(row.scale)) std::abort();
  for (const auto* list : {&row.values, &row.missed})
    for (const std::optional<double>& value : *list)
      if (value && !std::isfinite(*value)) std::abort();
  for (const std::optional<double>& value : row.values)
    if (value) static_cast<void>(table.match_rule.holds(*value, *value * table.scale + table.offset));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static fuzz::MemoryFile file;
  file.write({reinterpret_cast<const char*>(data), size});
  try {
    const Published published = load_published(file.path());
    for (const PublishedTable& table : published.tables) {
      if (!std::isfinite(table.scale) || !std::isfinite(table.offset)) std::abort();
      for (const PublishedTable::Row& row : table.rows) check_row(table, row);
    }
  } catch (const InputError& error) {
    if (error.problems().empty() || render(error.problems()).empty()) std::abort();
  }
  return 0;
}
