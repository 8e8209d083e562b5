#pragma once

#include <string>
#include <vector>

namespace stagecraft {

/// A kind of file that is found by name.
enum class FileKind { Model, Cluster, Scenario, Profile, Sweep, Published, Device, Curves, Predictions };

struct NamedFile {
  std::string name, path;
};

/// Folders that are searched for a kind; the first one that has a name counts. STAGECRAFT_PATH names the
/// first of them; then come the installation that the program is part of or, for a program that was not installed, the
/// project that it was built in.
std::vector<std::string> folders(FileKind);

/// Every file of a kind that has a name there.
std::vector<NamedFile> named_files(FileKind);
/// The names alone. named_files() also finds the path that people would type for each file, which takes longer.
std::vector<std::string> file_names(FileKind);

/// The file that `name` means in the file `from`: first next to `from`, then in the folders. A name with a `/` or
/// ending in `.yaml` is a path relative to `from`. Empty when there is none.
std::string find_file(FileKind, const std::string& name, const std::string& from);

/// The file with a name in the folders. Empty when there is none, and for paths.
std::string library_file(FileKind, const std::string& name);

/// "did you mean 'x'?" for a name or a path in the file `from` where find_file() finds nothing: files next to it, and
/// files of the folders. Empty where nothing is near.
std::string suggest_file(FileKind, const std::string& given, const std::string& from);

/// The scenario, or the sweep, that a command is given: a file, or the name of one as `stagecraft list scenarios` shows
/// it. InputError with a suggestion when there is neither.
std::string scenario_file(const std::string& given);
std::string sweep_file(const std::string& given);
/// The file of a publication, from a path or from the name of its folder in scenarios/papers.
std::string published_file(const std::string& given);

}  // namespace stagecraft
