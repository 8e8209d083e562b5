// Writes problems of input files as annotations of GitHub Actions and as SARIF 2.1.0, for `check --format`.

#include "tools/stagecraft/check_input.hpp"

#include <cctype>
#include <filesystem>
#include <set>

#include <fmt/core.h>

#include "sim/core/json.hpp"
#include "sim/experiment/version.hpp"

namespace stagecraft {
namespace {

/// Escapes as GitHub's own toolkit does (toolkit/packages/core/src/command.ts): a property may not have : and , either.
std::string escaped(std::string_view text, bool property) {
  std::string out;
  for (const char c : text) {
    const bool special = c == '%' || c == '\r' || c == '\n' || (property && (c == ':' || c == ','));
    out += special ? fmt::format("%{:02X}", static_cast<unsigned char>(c)) : std::string(1, c);
  }
  return out;
}

/// The path of the field, the message and the help in one text.
std::string message_of(const Diagnostic& d) {
  std::string text = d.path.empty() ? full_message(d) : d.path + ": " + full_message(d);
  if (d.more > 0) text += fmt::format(" (and {} more like it)", d.more);
  if (!d.help.empty()) text += "\nhelp: " + d.help;
  return text;
}

/// Whether the place is a file of the repository, and not an option of the command line such as "<--set a=b>".
bool has_file(const Diagnostic& d) { return !d.where.file.empty() && d.where.file.front() != '<'; }

std::string code_of(const Diagnostic& d) { return d.code.empty() ? "input" : d.code; }

/// The path relative to the root of the repository, where the command runs, as a repository has it: without "./".
std::string path_of(const Diagnostic& d) {
  return std::filesystem::path(d.where.file).lexically_normal().generic_string();
}

std::string uri_of(const std::string& path) {
  std::string uri;
  for (const char c : path) {
    const bool plain =
        std::isalnum(static_cast<unsigned char>(c)) || std::string_view("-._~/").find(c) != std::string::npos;
    uri += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return uri.starts_with('/') ? "file://" + uri : uri;
}

Json location_of(const Diagnostic& d) {
  JsonObject place{{"artifactLocation", JsonObject{{"uri", uri_of(path_of(d))}}}};
  JsonObject region{{"startLine", d.where.line}};
  if (d.where.column > 0) region.push_back({"startColumn", d.where.column});
  if (d.where.line > 0) place.push_back({"region", std::move(region)});
  return JsonObject{{"physicalLocation", std::move(place)}};
}

Json result_of(const Diagnostic& d) {
  JsonObject result{{"ruleId", code_of(d)}, {"level", "error"}, {"message", JsonObject{{"text", message_of(d)}}}};
  if (has_file(d)) result.push_back({"locations", JsonArray{location_of(d)}});
  return result;
}

}  // namespace

std::string github_annotations(const std::vector<Diagnostic>& problems) {
  std::string text;
  for (const Diagnostic& d : problems) {
    std::string properties = has_file(d) ? "file=" + escaped(path_of(d), true) + "," : "";
    if (has_file(d) && d.where.line > 0) properties += fmt::format("line={},", d.where.line);
    if (has_file(d) && d.where.column > 0) properties += fmt::format("col={},", d.where.column);
    text += fmt::format("::error {}title=stagecraft {}::{}\n", properties, escaped(code_of(d), true),
                        escaped(message_of(d), false));
  }
  return text;
}

std::string sarif(const std::vector<Diagnostic>& problems) {
  JsonArray results, rules;
  std::set<std::string> codes;
  for (const Diagnostic& d : problems) {
    results.push_back(result_of(d));
    if (codes.insert(code_of(d)).second) rules.push_back(JsonObject{{"id", code_of(d)}});
  }
  JsonObject driver{{"name", "stagecraft"},
                    {"semanticVersion", version().substr(0, version().find(' '))},
                    {"rules", std::move(rules)}};
  JsonObject run{{"tool", JsonObject{{"driver", std::move(driver)}}},
                 {"columnKind", "unicodeCodePoints"},
                 {"results", std::move(results)}};
  return Json(JsonObject{{"version", "2.1.0"},
                         {"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
                         {"runs", JsonArray{std::move(run)}}})
      .dump(2);
}

}  // namespace stagecraft
