// Finds models, clusters, scenarios and other files by name, in the folders of STAGECRAFT_PATH and of the installation.

#include "sim/config/library.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <utility>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

std::string folder_name(FileKind kind) {
  switch (kind) {
    case FileKind::Model:
      return "models";
    case FileKind::Cluster:
      return "topologies";
    case FileKind::Scenario:
      return "scenarios";
    case FileKind::Profile:
      return "models/profiles";
    case FileKind::Sweep:
      return "scenarios/sweeps";
    case FileKind::Published:
      return "scenarios/papers";
    case FileKind::Device:
      return "topologies/devices";
    case FileKind::Curves:
      return "topologies/collectives";
    case FileKind::Predictions:
      return "scenarios/predictions";
  }
  return {};
}

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

/// An installation that was moved, or unpacked elsewhere: PREFIX/bin/stagecraft has its files in PREFIX/share.
fs::path beside_program() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return error ? fs::path() : program.parent_path().parent_path() / "share/stagecraft";
}

/// Files of these kinds stand in a folder of another kind.
bool is_guest(FileKind kind, const fs::path& file) {
  const fs::path folder = file.parent_path().filename();
  if ((kind == FileKind::Published) != (file.filename() == "published.yaml")) return true;
  const std::pair<FileKind, const char*> homes[] = {{FileKind::Profile, "profiles"},
                                                    {FileKind::Sweep, "sweeps"},
                                                    {FileKind::Device, "devices"},
                                                    {FileKind::Curves, "collectives"},
                                                    {FileKind::Predictions, "predictions"}};
  return std::any_of(std::begin(homes), std::end(homes),
                     [&](const auto& home) { return kind != home.first && folder == home.second; });
}

// As people would type it: relative when it lies below the working folder.
std::string shown(const fs::path& path) {
  std::error_code error;
  const fs::path near = fs::proximate(path, error);
  return error || near.empty() || *near.begin() == ".." ? path.lexically_normal().string() : near.string();
}

bool is_text_file(const fs::path& path) {
  return path.extension() == ".yaml" || path.extension() == ".yml" || path.extension() == ".json";
}

/// Words that may be meant by `given`, each with what to write for it: the files next to it, and the files of the
/// library by name, by the last part of the name, and by path.
std::vector<std::pair<std::string, std::string>> words_for(FileKind kind, const fs::path& given, const fs::path& from) {
  std::vector<std::pair<std::string, std::string>> files;
  std::error_code error;
  const fs::path folder = from / given.parent_path();
  if (is_text_file(given))
    for (fs::directory_iterator it(folder.empty() ? "." : folder, error), end; !error && it != end; it.increment(error))
      if (is_text_file(it->path())) {
        const std::string path = (given.parent_path() / it->path().filename()).string();
        files.emplace_back(path, path);
      }
  const std::string ending = is_text_file(given) ? given.extension().string() : "";
  for (const NamedFile& file : named_files(kind)) {
    files.emplace_back(file.name + ending, file.name);
    files.emplace_back(fs::path(file.name).filename().string() + ending, file.name);
    if (given.has_parent_path()) files.emplace_back(file.path, ending.empty() ? file.name : file.path);
  }
  return files;
}

std::string given_file(FileKind kind, const std::string& given, const char* listed) {
  std::error_code error;
  if (fs::exists(given, error)) return given;
  for (const NamedFile& file : named_files(kind))
    if (file.name == given) return file.path;
  std::string help = suggest_file(kind, given, "");
  if (help.empty()) help = fmt::format("stagecraft list {} shows those that are there", listed);
  throw InputError({{{given, 0, 0}, {}, "there is no such file", help, "unreadable-file"}});
}

}  // namespace

std::vector<std::string> folders(FileKind kind) {
  std::vector<fs::path> roots;
  if (const char* path = std::getenv("STAGECRAFT_PATH"))
    for (const std::string& folder : split(path, ':'))
      if (!folder.empty()) roots.emplace_back(folder);
  // An installed program reads what was installed with it, also where the folder that it was built in still exists.
  std::error_code unreadable;
  if (const fs::path data = beside_program(); !data.empty() && fs::is_directory(data, unreadable)) {
    roots.push_back(data);
  } else {
    roots.emplace_back(STAGECRAFT_SOURCE_DIR);
    roots.emplace_back(STAGECRAFT_DATA_DIR);
  }
  std::vector<std::string> result;
  for (const fs::path& root : roots) {
    std::error_code error;
    if (const fs::path folder = root / folder_name(kind); fs::is_directory(folder, error))
      result.push_back(folder.string());
  }
  return result;
}

namespace {

/// The first folder that has a name counts.
std::map<std::string, fs::path> files_by_name(FileKind kind) {
  std::map<std::string, fs::path> files;
  for (const std::string& folder : folders(kind)) {
    std::error_code error;
    for (fs::recursive_directory_iterator it(folder, error), end; it != end; it.increment(error)) {
      if (error || it->path().extension() != ".yaml" || is_guest(kind, it->path())) continue;
      const fs::path named = kind == FileKind::Published ? it->path().parent_path() : it->path();
      files.try_emplace(named.lexically_relative(folder).replace_extension().string(), it->path());
    }
  }
  return files;
}

}  // namespace

std::vector<NamedFile> named_files(FileKind kind) {
  std::vector<NamedFile> files;
  for (const auto& [name, path] : files_by_name(kind)) files.push_back({name, shown(path)});
  return files;
}

std::vector<std::string> file_names(FileKind kind) {
  std::vector<std::string> names;
  for (const auto& [name, path] : files_by_name(kind)) names.push_back(name);
  return names;
}

std::string library_file(FileKind kind, const std::string& name) {
  if (name.find('/') != std::string::npos) return {};
  for (const std::string& folder : folders(kind))
    if (const fs::path path = fs::path(folder) / (name + ".yaml"); is_file(path)) return shown(path);
  return {};
}

std::string find_file(FileKind kind, const std::string& name, const std::string& from) {
  const fs::path here = from.starts_with('<') ? fs::path() : fs::path(from).parent_path();  // Said on the command line.
  if (name.ends_with(".yaml") || name.ends_with(".json") || name.find('/') != std::string::npos) {
    const fs::path path = here / name;
    return is_file(path) ? shown(path) : std::string{};
  }
  if (const fs::path sibling = here / (name + ".yaml"); is_file(sibling)) return shown(sibling);
  return library_file(kind, name);
}

std::string suggest_file(FileKind kind, const std::string& given, const std::string& from) {
  const auto files = words_for(kind, given, from.starts_with('<') ? fs::path() : fs::path(from).parent_path());
  // An ending that both have makes no two names alike, so it is not compared.
  const std::string ending = is_text_file(given) ? fs::path(given).extension().string() : "";
  for (const bool has_ending : {true, false}) {
    const std::size_t left_out = has_ending ? ending.size() : 0;
    std::vector<std::string> words, writings;
    for (const auto& [word, written] : files)
      if (word.ends_with(ending) == has_ending) {
        words.push_back(word.substr(0, word.size() - left_out));
        writings.push_back(written);
      }
    if (const auto near = closest(given.substr(0, given.size() - left_out), words))
      return fmt::format("did you mean '{}'?", writings[std::find(words.begin(), words.end(), *near) - words.begin()]);
  }
  fs::path path(given);
  const std::string related = suggest(is_text_file(path) ? path.replace_extension().string() : given, file_names(kind));
  return related.starts_with("did you mean") ? related : "";
}

std::string scenario_file(const std::string& given) { return given_file(FileKind::Scenario, given, "scenarios"); }
std::string published_file(const std::string& given) {
  std::error_code error;
  const fs::path inside = fs::path(given) / "published.yaml";
  return is_file(inside) ? shown(inside) : given_file(FileKind::Published, given, "published");
}
std::string sweep_file(const std::string& given) { return given_file(FileKind::Sweep, given, "sweeps"); }

}  // namespace stagecraft
