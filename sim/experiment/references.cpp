// Replaces what a scenario refers to as its model and cluster (a name, a file, `base` with `override`, a config.json,
// an ONNX file) by what it stands for, and checks the line `schema`.

#include "sim/experiment/references.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/core.h>

#include "sim/cluster/generator.hpp"
#include "sim/config/override.hpp"
#include "sim/core/text.hpp"
#include "sim/experiment/scenario.hpp"
#include "sim/experiment/sized_cluster.hpp"
#include "sim/model/builder.hpp"
#include "sim/model/configuration.hpp"

namespace stagecraft {
namespace {

using config::Problems;
using config::Value;

constexpr int kDeepest = 10;
/// Fields of all clusters, which may stand next to `base`.
constexpr std::string_view kFieldsOfClusters[] = {"changes", "jitter", "collectives", "collective_systems", "host"};

std::string kind_word(FileKind kind) {
  return kind == FileKind::Model ? "model" : kind == FileKind::Cluster ? "cluster" : "scenario";
}

std::vector<std::string> entries(FileKind kind) {
  return kind == FileKind::Model ? names_of(model_builders::catalog()) : names_of(topology_generators::catalog());
}

const config::Field& field_of(FileKind kind) {
  return (kind == FileKind::Model ? model_fields() : cluster_fields()).fields.front();
}

/// "did you mean one of 'a-gb200', 'gb200-x2'?": names that have a word with a digit in common with this one.
std::string with_shared_word(const std::string& name, const std::vector<std::string>& names) {
  std::vector<std::string> alike;
  for (const std::string& word : split(name, '-')) {
    const bool names_a_type = word.find_first_of("0123456789") > 0 && word.find_first_of("0123456789") != word.npos;
    if (!names_a_type || word.find_first_not_of("x0123456789") == word.npos) continue;
    for (const std::string& other : names) {
      const std::vector<std::string> words = split(other, '-');
      if (std::find(words.begin(), words.end(), word) != words.end()) alike.push_back(other);
    }
  }
  if (alike.empty()) return {};
  return fmt::format("did you mean {}'{}'? With -xN at its end, a name has N nodes", alike.size() > 1 ? "one of " : "",
                     join(alike, "', '"));
}

class Expander {
 public:
  Expander(FileKind kind, Problems& problems) : kind_(kind), problems_(problems) {}

  void expand(Value& value, const std::string& path, int depth) {
    if (depth > kDeepest)
      return problems_.add(value.where, path, "this refers to itself through other files",
                           "a base must lead to a builder or a full description", "reference");
    if (value.is_scalar()) return follow_name(value, path, depth);
    if (kind_ == FileKind::Model && value.is_map() && value.has("config")) return follow_configuration(value, path);
    if (kind_ == FileKind::Model && value.is_map() && value.has("onnx")) return locate_onnx(value, path);
    if (!value.is_map() || !value.has("base")) return;
    Value base = *value.find("base");
    for (const auto& m : value.members)
      if (!stands_beside_base(m.key))
        problems_.add(m.where, path + "." + m.key, fmt::format("'{}' cannot be next to 'base'", m.key),
                      fmt::format("write it under override: {{{}: ...}}", m.key), "beside-base");
    expand(base, path + ".base", depth + 1);
    if (const Value* overrides = value.find("override"); overrides && base.is_map()) {
      drop_facts(base);
      config::apply_overrides(base, field_of(kind_), *overrides, path + ".override", problems_);
    }
    for (const auto& m : value.members)
      if (is_of_generator(m.key) && base.is_map()) override_field(base, m, path);
    if (const Value* name = value.find("name"); name && base.is_map()) set_name(base, name->text, true);
    for (const std::string_view key : kFieldsOfClusters)
      if (const Value* addition = value.find(key); addition && base.is_map()) add_to(base, key, *addition);
    value = std::move(base);
  }

 private:
  void follow_name(Value& value, const std::string& path, int depth) {
    const std::string file = find_file(kind_, value.text, value.where.file);
    if (file.empty() && kind_ == FileKind::Cluster && follow_sized(value, path, depth)) return;
    if (file.empty()) {
      const auto words = entries(kind_);
      if (std::find(words.begin(), words.end(), value.text) != words.end())
        return;  // Short for a builder with its defaults.
      auto names = words;
      for (std::string& name : file_names(kind_)) names.push_back(std::move(name));
      const bool is_path = value.text.ends_with(".yaml") || value.text.ends_with(".json");
      std::string help = is_path ? suggest_file(kind_, value.text, value.where.file) : suggest(value.text, names);
      if (kind_ == FileKind::Cluster && !is_path && help.empty()) help = with_shared_word(value.text, names);
      if (help.empty())
        help =
            fmt::format("stagecraft list {} shows what there is", kind_ == FileKind::Model ? "models" : "topologies");
      problems_.add(value.where, path, fmt::format("there is no {} '{}'", kind_word(kind_), value.text), help,
                    "reference");
      value.unreadable = true;
      return;
    }
    Value loaded = config::parse_yaml_file(file, problems_);
    if (kind_ == FileKind::Model && file.ends_with(".json") && !loaded.unreadable && !loaded.has("schema")) {
      value = read_model(loaded, file);
      return;
    }
    if (loaded.unreadable || !check_schema_line(loaded, kind_word(kind_), problems_)) {
      value.unreadable = true;
      return;
    }
    set_name(loaded, std::filesystem::path(file).stem().string(), false);
    expand(loaded, path, depth + 1);
    value = std::move(loaded);
  }

  /// A cluster of the library with another number of nodes. False for a name that means none.
  bool follow_sized(Value& value, const std::string& path, int depth) {
    const std::optional<SizedCluster> sized = sized_cluster(value.text);
    if (!sized) return false;
    Value base = Value::scalar(sized->base, value.where);
    expand(base, path, depth + 1);
    const int each = devices_of_each_node(base);
    if (each == 0) return false;
    if (!sized->counts_nodes && sized->count % each != 0) {
      const int nodes = sized->count / each + 1;
      const std::string stem = value.text.substr(0, value.text.rfind('-'));
      problems_.add(value.where, path, fmt::format("there is no cluster '{}'", value.text),
                    fmt::format("nodes of {} have {}: {}-{}, or {}-x{} for {}", sized->base, pluralize(each, "device"),
                                stem, nodes * each, stem, nodes, pluralize(nodes, "node")),
                    "reference");
      value.unreadable = true;
      return true;
    }
    const int nodes = sized->counts_nodes ? sized->count : sized->count / each;
    override_field(base, {"nodes", value.where, Value::scalar(fmt::format("{}", nodes), value.where)}, path);
    std::erase_if(base.members, [](const config::Member& m) { return m.key == "title"; });  // It has the base's size.
    set_name(base, value.text, true);
    value = std::move(base);
    return true;
  }

  /// A configuration has no name, but its folder has: llama-3-8b/config.json.
  Value read_model(const Value& configuration, const std::string& file) {
    Value model = read_configuration(configuration, problems_);
    const std::filesystem::path path(file);
    const std::string folder = path.parent_path().filename().string(), stem = path.stem().string();
    if (!model.unreadable) set_name(model, stem == "config" && !folder.empty() ? folder : stem, false);
    return model;
  }

  /// {config: path, sequence: 4096}: the model of the configuration, with the fields next to it in place of its own.
  void follow_configuration(Value& value, const std::string& path) {
    const Value name = *value.find("config");
    const std::string file = name.is_scalar() ? find_file(kind_, name.text, name.where.file) : std::string();
    if (file.empty())
      problems_.add(name.where, path + ".config",
                    name.is_scalar() ? fmt::format("there is no file '{}'", name.text)
                                     : "the path of a config.json is needed here",
                    "paths begin at the folder of this file", "reference");
    Value loaded;
    if (!file.empty()) loaded = config::parse_yaml_file(file, problems_);
    if (file.empty() || loaded.unreadable) {
      value.unreadable = true;
      return;
    }
    Value model = read_model(loaded, file);
    for (const auto& member : value.members) stand_beside_configuration(member, path, model);
    value = std::move(model);
  }

  /// {onnx: path, sizes: {sequence: 128}}: the path gets its folder, so that a resolved scenario works in any.
  void locate_onnx(Value& value, const std::string& path) {
    Value& name = *value.find("onnx");
    if (!name.is_scalar()) return;
    const std::filesystem::path folder =
        name.where.file.starts_with('<') ? "" : std::filesystem::path(name.where.file).parent_path();
    const std::filesystem::path file = std::filesystem::absolute(folder / name.text).lexically_normal();
    if (!std::filesystem::exists(file)) {
      problems_.add(name.where, path + ".onnx", fmt::format("there is no file '{}'", name.text),
                    "paths begin at the folder of this file", "reference");
      value.unreadable = true;
      return;
    }
    name.text = file.string();
    set_name(value, file.stem().string(), false);
  }

  void stand_beside_configuration(const config::Member& member, const std::string& path, Value& model) {
    const std::string& key = member.key;
    if (key == "config" || key == "builder" || key.starts_with("x-") || model.unreadable) return;
    if (key == "name") return set_name(model, member.value.text, true);
    for (const char* field : {"schema", "title", "expect", "sequence", "precision", "flash_attention"}) {
      if (key != field) continue;
      std::erase_if(model.members, [&](const config::Member& m) { return m.key == key; });
      model.members.push_back(member);
      return;
    }
    problems_.add(member.where, path + "." + key, fmt::format("'{}' cannot be next to 'config'", key),
                  fmt::format("write {{base: {{config: ...}}, override: {{{}: ...}}}}", key), "beside-config");
  }

  bool stands_beside_base(const std::string& key) const {
    const auto* const end = std::end(kFieldsOfClusters);
    const bool of_clusters = std::find(std::begin(kFieldsOfClusters), end, key) != end;
    return key == "base" || key == "override" || key == "schema" || key == "name" || key.starts_with("x-") ||
           (of_clusters && kind_ == FileKind::Cluster) || is_of_generator(key);
  }

  /// Whether the field of a builder or generator may stand beside `base`, such as `nodes`.
  bool is_of_generator(const std::string& key) const {
    for (const config::Variant& v : field_of(kind_).variants())
      if (const config::Field* f = v.fields ? v.fields->find(key) : nullptr; f && f->with_base) return true;
    return false;
  }

  /// As under `override`.
  void override_field(Value& base, const config::Member& member, const std::string& path) {
    drop_facts(base);
    Value overrides;
    overrides.kind = Value::Kind::Map;
    overrides.where = member.where;
    overrides.members.push_back(member);
    config::apply_overrides(base, field_of(kind_), overrides, path, problems_);
  }

  /// Appends changes to the changes of the base; another value replaces the value of the base.
  static void add_to(Value& base, std::string_view key, const Value& addition) {
    Value* old = base.find(key);
    if (old && key == "changes" && old->is_list() && addition.is_list())
      old->items.insert(old->items.end(), addition.items.begin(), addition.items.end());
    else if (old)
      *old = addition;
    else
      base.members.push_back({std::string(key), addition.where, addition});
  }

  static void set_name(Value& map, const std::string& name, bool replace) {
    if (Value* old = map.find("name")) {
      if (replace) old->text = name;
      return;
    }
    map.members.push_back({"name", map.where, Value::scalar(name, map.where, "computed")});
  }

  FileKind kind_;
  Problems& problems_;
};

}  // namespace

namespace {

/// What the first line of a new file of this kind says.
std::string newest_version(const std::string& kind) { return kind + (kind == "scenario" ? "/2" : "/1"); }

}  // namespace

void drop_facts(Value& model) {
  std::erase_if(model.members, [](const config::Member& m) { return m.key == "expect"; });
}

void expand_reference(Value& value, FileKind kind, const std::string& path, Problems& problems) {
  Expander(kind, problems).expand(value, path, 0);
}

namespace {

/// The command for a file that another command was given.
std::string command_for(const std::string& kind, const std::string& expected, const std::string& file) {
  if (kind == "sweep" && expected == "scenario") return fmt::format("stagecraft sweep {} runs its points", file);
  if (kind == "scenario" && expected == "sweep") return fmt::format("stagecraft run {} runs it", file);
  return {};
}

}  // namespace

bool check_schema_line(const Value& root, const std::string& kind, Problems& problems) {
  const Value* line = root.is_map() ? root.find("schema") : nullptr;
  if (!line) {
    const bool is_huggingface = root.is_map() && root.find("model_type");
    problems.add(root.where, "schema", "the first line must say what kind of file this is",
                 is_huggingface
                     ? "a config.json of Hugging Face: stagecraft import huggingface makes a model file of it"
                     : fmt::format("write schema: {}", newest_version(kind)),
                 "schema");
    return false;
  }
  const std::string expected = kind + "/1";
  const std::string second = newest_version(kind);
  if (line->text == expected || line->text == second) return true;
  const auto slash = line->text.find('/');
  const std::string other = line->text.substr(0, slash);
  const std::vector<std::string> kinds = {"scenario", "model", "cluster", "sweep", "profile", "collectives"};
  if (other != kind && std::find(kinds.begin(), kinds.end(), other) != kinds.end())
    problems.add(line->where, "schema", fmt::format("this is a {} file; a {} file was expected here", other, kind),
                 command_for(other, kind, line->where.file), "schema");
  else if (other == kind)
    problems.add(line->where, "schema",
                 fmt::format("version '{}' is not known to this stagecraft, which reads {}", line->text,
                             second == expected ? expected : expected + " and " + second),
                 {}, "schema");
  else
    problems.add(line->where, "schema", fmt::format("'{}' is not a kind of file", line->text),
                 fmt::format("write {}", second), "schema");
  return false;
}

}  // namespace stagecraft
