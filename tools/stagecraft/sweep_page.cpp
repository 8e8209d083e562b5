#include "tools/stagecraft/sweep_page.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "sim/config/value.hpp"
#include "sim/core/text.hpp"
#include "sim/experiment/library.hpp"
#include "sim/sweep/result.hpp"
#include "sim/sweep/sweep.hpp"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSqlite = "SQLite format 3";
constexpr std::size_t kKeyLength = 12;  // Of a hash: two of a million points are alike once in a billion sweeps.

/// What `base:` of a sweep's text says.
std::string base_in(const SweepTable& table) {
  config::Problems problems;
  const config::Value root = config::parse_yaml(table.text, table.name + ".yaml", problems);
  const config::Value* base = problems.empty() ? root.find("base") : nullptr;
  return base ? base->text : "SCENARIO";
}

/// The scenario of a sweep whose file stands beside the results, in the working folder or among those with names, and
/// still says the same.
std::optional<std::string> found_base(const SweepTable& table, const std::string& results) {
  std::vector<std::string> files{(fs::path(results).parent_path() / (table.name + ".yaml")).string(),
                                 table.name + ".yaml"};
  for (const NamedFile& f : named_files(FileKind::Sweep))
    if (fs::path(f.path).stem() == table.name) files.push_back(f.path);
  for (const std::string& file : files) {
    std::error_code error;
    if (fs::is_regular_file(file, error) && read_file(file) == table.text) return load_sweep(file).base_file;
  }
  return std::nullopt;
}

/// As people call it: by its name where it has one.
std::string called(const std::string& file) {
  for (const NamedFile& f : named_files(FileKind::Scenario))
    if (f.path == file) return f.name;
  return file;
}

}  // namespace

bool is_sweep_results(const std::string& given) {
  std::error_code error;
  if (!fs::is_regular_file(given, error)) return false;
  std::ifstream file(given, std::ios::binary);
  std::string start(kSqlite.size(), '\0');
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  return file && start == kSqlite;
}

bool is_sweep_file(const std::string& given) {
  std::error_code error;
  if (fs::is_regular_file(given, error)) {
    config::Problems problems;
    const config::Value root = config::parse_yaml_file(given, problems);
    const config::Value* schema = problems.empty() ? root.find("schema") : nullptr;
    return schema && schema->text.starts_with("sweep/");
  }
  const auto named = [&](FileKind kind) {
    const auto files = named_files(kind);
    return std::any_of(files.begin(), files.end(), [&](const NamedFile& f) { return f.name == given; });
  };
  return named(FileKind::Sweep) && !named(FileKind::Scenario);
}

SweepPage sweep_page(const SweepTable& table, const std::string& results, const std::string& base,
                     const std::string& out) {
  const auto found = base.empty() ? found_base(table, results) : base;
  SweepPage page{.title = table.title,
                 .name = table.name,
                 .backend = table.backend,
                 .version = table.version,
                 .base = found ? called(*found) : base_in(table),
                 .found = found.has_value(),
                 .folder = table.name + "-" + table.backend,
                 .out = {},
                 .figures = {},
                 .points = {}};
  page.out = (fs::path(out).parent_path() / page.folder).string();
  for (const Metric& f : metrics()) page.figures.emplace_back(f.name);
  for (const SweepRow& row : table.rows) {
    const std::string key = row.hash.substr(0, kKeyLength);
    std::error_code error;
    const bool kept = fs::is_regular_file(fs::path(page.out) / key / "report.html", error);
    page.points.push_back({.number = row.number,
                           .settings = row.settings,
                           .status = row.status,
                           .code = row.code,
                           .message = row.message,
                           .key = key,
                           .kept = kept,
                           .figures = row.figures});
  }
  return page;
}

}  // namespace stagecraft
