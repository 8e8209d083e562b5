// Any bytes as the results of a sweep, which SQLite reads: a table that can be printed in every form, or refused.

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "sim/core/diagnostic.hpp"
#include "sim/sweep/store.hpp"
#include "sim/sweep/table.hpp"

using namespace stagecraft;

namespace {

/// SQLite needs a file with a name. It is in memory, because closing a truncated file waits for the disk.
class NamedFile {
 public:
  NamedFile() : path_(folder() / ("stagecraft-fuzz-" + std::to_string(getpid()))) {}
  ~NamedFile() { remove(); }

  std::string write(std::string_view bytes) const {
    remove();
    std::ofstream(path_, std::ios::binary) << bytes;
    return path_.string();
  }

 private:
  static std::filesystem::path folder() {
    const std::filesystem::path memory = "/dev/shm";
    return access(memory.c_str(), W_OK) == 0 ? memory : std::filesystem::temp_directory_path();
  }

  /// Removes the file and the logs that SQLite leaves next to a damaged one; the next file would be read with them.
  void remove() const {
    for (const char* end : {"", "-wal", "-shm", "-journal"}) unlink((path_.string() + end).c_str());
  }

  std::filesystem::path path_;
};

}  // namespace

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
