// Finds and sets the value at a path such as "run.micro_batches" in a tree, for `--set`, sweeps and `override:`, and
// writes a value as `--set` takes it.

#include "sim/config/override.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "sim/config/short_list.hpp"
#include "sim/config/synonyms.hpp"
#include "sim/config/walk.hpp"
#include "sim/core/from_chars.hpp"
#include "sim/core/text.hpp"

namespace stagecraft::config {
namespace {

int characters(std::string_view text) {
  return static_cast<int>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

/// The text of an assignment that messages show. Each value in it has a copy of its source, so the whole text would be
/// gigabytes where it names 16,384 devices.
std::string shown_text(const std::string& assignment) {
  constexpr std::size_t kMost = 4000;
  if (assignment.size() <= kMost) return assignment;
  std::size_t end = kMost;
  while (end > 0 && (static_cast<unsigned char>(assignment[end]) & 0xC0U) == 0x80U) --end;
  return assignment.substr(0, end) + "...";
}

bool ends_step(std::string_view rest, std::size_t at) {
  return at == rest.size() || rest[at] == '.' || rest[at] == '[';
}

std::string_view first_step(std::string_view rest) {
  if (rest.starts_with('[')) return rest.substr(0, std::min(rest.find(']'), rest.size() - 1) + 1);
  return rest.substr(0, rest.find_first_of(".["));
}

std::optional<std::size_t> index_of(std::string_view step) {
  if (step.size() < 3 || step.front() != '[' || step.back() != ']') return {};
  std::size_t index = 0;
  const auto [end, error] = from_chars(step.data() + 1, step.data() + step.size() - 1, index);
  return error == std::errc{} && end == step.data() + step.size() - 1 ? std::optional(index) : std::nullopt;
}

std::string name_of(const Value& item) {
  const Value* name = item.find("name");
  return name && name->is_scalar() ? name->text : "";
}

std::vector<std::string> steps_from(const Value& value) {
  std::vector<std::string> steps;
  for (const Member& member : value.members) steps.push_back(member.key);
  for (const Value& item : value.items)
    if (const std::string name = name_of(item); !name.empty()) steps.push_back(name);
  return steps;
}

struct Hit {
  const Value* value = nullptr;
  std::size_t length = 0;  ///< Characters of the path that the step has.
};

// Names may hold dots ("gpt-1.3b"), so the longest name that the path goes on with is taken.
Hit next(const Value& from, std::string_view rest) {
  if (rest.starts_with('[')) {
    const std::string_view step = first_step(rest);
    const auto index = index_of(step);
    if (!from.is_list() || !index || *index >= from.items.size()) return {};
    return {&from.items[*index], step.size()};
  }
  Hit best;
  const auto try_name = [&](const std::string& name, const Value& value) {
    const bool fits = !name.empty() && rest.starts_with(name) && ends_step(rest, name.size());
    if (fits && name.size() > best.length) best = {&value, name.size()};
  };
  for (const Member& member : from.members) try_name(member.key, member.value);
  for (const Value& item : from.items) try_name(name_of(item), item);
  return best;
}

struct PathCursor {
  const Value* at;             ///< The last value on the path that exists.
  std::size_t done = 0;        ///< Characters of the path up to that value.
  std::size_t last_start = 0;  ///< Offset in the path at which its last step begins.
  const Value* parent = nullptr;
};

PathCursor follow(const Value& root, std::string_view path) {
  PathCursor cursor{&root};
  while (cursor.done < path.size()) {
    const std::size_t start = cursor.done + (cursor.done > 0 && path[cursor.done] == '.' ? 1 : 0);
    const Hit hit = next(*cursor.at, path.substr(start));
    if (!hit.value) {
      cursor.last_start = start;
      return cursor;
    }
    cursor.parent = cursor.at;
    cursor.at = hit.value;
    cursor.last_start = start;
    cursor.done = start + hit.length;
  }
  return cursor;
}

void report_step(const PathCursor& cursor, std::string_view path, const Where& where, Problems& problems) {
  const std::string_view step = first_step(path.substr(cursor.last_start));
  const std::string shown(path.substr(0, cursor.last_start + step.size()));
  const std::string before(path.substr(0, cursor.done));
  std::string message = "no such field", help = suggest_field(step, before, steps_from(*cursor.at));
  if (step.empty()) {
    message = "a step of this path is empty";
  } else if (step.front() == '[' && !index_of(step)) {
    message = fmt::format("'{}' is not an index", step);
    help = "write a whole number in brackets, such as [0]";
  } else if (step.front() == '[' && cursor.at->is_list()) {
    message = fmt::format("there is no item {}", step);
    help = fmt::format("the list has {}, counted from 0", cursor.at->items.size());
  } else if (step.front() == '[') {
    message = fmt::format("'{}' is not a list", before);
  } else if (cursor.at->is_map() && path.substr(shown.size()).starts_with('[') && !help.starts_with("did you mean")) {
    message = "there is no such list in the file";
    help = fmt::format("if it is a field, set all of it, such as {}=[...]", shown);
  } else if (!cursor.at->is_map() && !cursor.at->is_list()) {
    message = fmt::format("'{}' is {}, so nothing lies below it", before,
                          cursor.at->is_scalar() ? fmt::format("'{}'", cursor.at->text) : "empty");
    help = fmt::format("set '{}' to a map, such as {{{}: ...}}", before, step);
  }
  problems.add(where, shown, message, help, "unknown-path");
}

/// Whether these steps are names of fields, and no index.
bool are_names(std::string_view steps) {
  return !steps.empty() && steps.find_first_of("[]") == steps.npos && steps.front() != '.' && steps.back() != '.' &&
         steps.find("..") == steps.npos;
}

/// Whether the first of several steps below `path` is nearly the name of a field that is there.
bool is_misspelled(const Value& map, std::string_view path, std::string_view steps) {
  const std::string_view step = first_step(steps);
  return step.size() < steps.size() && suggest_field(step, path, steps_from(map)).starts_with("did you mean");
}

/// Adds the maps that these steps name, and the value in the last one. The tables of fields find a wrong name.
void add_below(Value& map, std::string_view steps, Value value, const Where& place) {
  const std::size_t length = first_step(steps).size();
  Member member{std::string(steps.substr(0, length)), place, {}};
  if (length == steps.size()) {
    member.value = std::move(value);
  } else {
    member.value.kind = Value::Kind::Map;
    member.value.where = place;
    Where below = place;
    below.column += characters(steps.substr(0, length)) + 1;
    add_below(member.value, steps.substr(length + 1), std::move(value), below);
  }
  map.members.push_back(std::move(member));
}

/// The field of a map or variant that has this name. `value` picks the variant.
const Field* field_in(const Field& field, const Value* value, std::string_view name) {
  if (field.map)
    if (const Field* common = field.map->find(name)) return common;
  if (field.kind != Field::Kind::Variant || !value) return nullptr;
  const std::vector<Variant> variants = field.variants();
  const Value* word = value->is_scalar() ? value : value->find(field.selector);
  const Variant* chosen = value->is_map() && !word ? meant_by_key(*value, variants) : nullptr;
  for (const Variant& variant : variants)
    if (word && word->is_scalar() && word->text == variant.name) chosen = &variant;
  return chosen && chosen->fields ? chosen->fields->find(name) : nullptr;
}

}  // namespace

void set_path(Value& root, std::string_view path, Value value, const Where& where, Problems& problems) {
  const PathCursor cursor = follow(root, path);
  Where place = where;
  place.column += characters(path.substr(0, cursor.last_start));
  const std::string_view last = path.substr(cursor.last_start);
  if (!path.empty() && cursor.done == path.size()) {
    // An item that is replaced whole keeps its name, by which others may call it.
    const Value* name = cursor.parent->is_list() ? cursor.at->find("name") : nullptr;
    if (name && value.is_map() && !value.has("name"))
      value.members.insert(value.members.begin(), {"name", place, *name});
    *const_cast<Value*>(cursor.at) = std::move(value);
  } else if (cursor.at->is_map() && are_names(last) && !is_misspelled(*cursor.at, path.substr(0, cursor.done), last)) {
    add_below(*const_cast<Value*>(cursor.at), last, std::move(value), place);
  } else {
    report_step(cursor, path, place, problems);
  }
}

std::optional<Member> read_assignment(const std::string& option, const std::string& assignment, Problems& problems) {
  const std::string file = fmt::format("<{} {}>", option, shown_text(assignment));
  const std::size_t equals = assignment.find('=');
  const std::string path = assignment.substr(0, equals);
  if (equals == std::string::npos || trim(assignment.substr(equals + 1)).empty()) {
    problems.add({file, 1, characters(assignment) + 1}, path, "a value is missing", "write path=value", "syntax");
    return {};
  }
  // Spaces in the place of the path keep the columns of the value right.
  const std::string padding(characters(path) + 1, ' ');
  Value value = parse_yaml(padding + assignment.substr(equals + 1), file, problems);
  return Member{path, {file, 1, 1}, std::move(value)};
}

void apply_set(Value& root, const std::string& assignment, Problems& problems) {
  if (auto set = read_assignment("--set", assignment, problems))
    set_path(root, set->key, std::move(set->value), set->where, problems);
}

void apply_overrides(Value& root, const Field& field, const Value& overrides, const std::string& path,
                     Problems& problems) {
  if (overrides.unreadable) return;
  if (!overrides.is_map()) {
    problems.add(overrides.where, path, "a map from paths to values is needed here", "write 'links.a.latency: 2 us'",
                 "wrong-type");
    return;
  }
  Problems override_problems;
  for (const Member& member : overrides.members) {
    if (member.key.starts_with("x-")) continue;
    const Field* at = field_at(field, root, member.key);
    Value value = list_if_needed(member.value, at, root, member.key, override_problems);
    set_path(root, member.key, std::move(value), member.where, override_problems);
  }
  for (const Diagnostic& p : override_problems.list())
    problems.add(p.where, under(path, p.path), p.message, p.help, p.code);
}

const Field* field_at(const MapSpec& spec, const Value& root, std::string_view path) {
  return field_at(map("", spec), root, path);
}

const Field* field_at(const Field& top, const Value& root, std::string_view path) {
  const Field* field = &top;
  const Value* value = &root;
  for (std::size_t done = 0; done < path.size();) {
    const std::size_t start = done + (done > 0 && path[done] == '.' ? 1 : 0);
    const std::string_view rest = path.substr(start);
    const Hit hit = value ? next(*value, rest) : Hit{};
    const std::size_t length = hit.value ? hit.length : first_step(rest).size();
    if (length == 0) return nullptr;
    const bool is_item = field->kind == Field::Kind::List || field->kind == Field::Kind::Table;
    field = is_item ? field->item.get() : field_in(*field, value, rest.substr(0, length));
    if (!field) return nullptr;
    value = hit.value;
    done = start + length;
  }
  return path.empty() ? nullptr : field;
}

Value list_if_needed(Value value, const Field* field, const Value& root, const std::string& path, Problems& problems) {
  if (!value.is_scalar() || !field || field->kind != Field::Kind::List) return value;
  if (auto meant = list_from_scalar(value, *field, get_path(root, path), path, problems)) return std::move(*meant);
  const Field& item = *field->item;
  if (item.map || item.item || item.kind == Field::Kind::Variant) return value;  // check() says what an item is.
  Value list;
  list.kind = Value::Kind::List;
  list.where = value.where;
  list.origin = value.origin;
  list.items.push_back(std::move(value));
  return list;
}

const Value* get_path(const Value& root, std::string_view path) {
  const PathCursor cursor = follow(root, path);
  return cursor.done == path.size() ? cursor.at : nullptr;
}

std::string to_set_text(const Value& value) {
  if (!value.is_map() && !value.is_list()) {
    const bool is_word = !value.text.empty() && std::all_of(value.text.begin(), value.text.end(), [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.' || c == '/';
    });
    return value.quoted || !is_word ? to_json(value) : value.text;
  }
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  for (const Member& m : value.members) add(m.key + ": " + to_set_text(m.value));
  for (const Value& item : value.items) add(to_set_text(item));
  return value.is_map() ? '{' + text + '}' : '[' + text + ']';
}

}  // namespace stagecraft::config
