// Any bytes as the results of a sweep, which SQLite reads: a table that can be printed in every form, or refused.

#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "sim/core/diagnostic.hpp"
#include "sim/sweep/store.hpp"
#include "sim/sweep/table.hpp"
#include "tests/fuzz/named_file.hpp"

using namespace stagecraft;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const NamedFile file;
  try {
    const SweepTable table = results_in(file.write({reinterpret_cast<const char*>(data), size}));
    if (to_text(table).empty() || sweep_csv(table).empty()) std::abort();
    if (nlohmann::json::parse(sweep_json(table)).at("points").size() != table.rows.size()) std::abort();
    if (failures_text(table).empty() != (table.failed() == 0)) std::abort();
  } catch (const InputError& error) {
    if (error.problems().empty()) std::abort();
  } catch (const BackendError&) {
  }
  return 0;
}
