// Makes the list that a scalar stands for: a number is a count of equal entries (`nodes: 32`), or scales the counts of
// the list that it overrides; a single item may stand alone. Also says how to write such a list.

#include "sim/config/short_list.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "sim/config/walk.hpp"
#include "sim/core/text.hpp"

namespace stagecraft::config {
namespace {

Value list_of(std::vector<Value> items, const Value& written) {
  Value list;
  list.kind = Value::Kind::List;
  list.where = written.where;
  list.origin = written.origin;
  list.items = std::move(items);
  return list;
}

bool is_number(const Value& value) {
  std::string why;
  return parse_number(value.text, why).has_value();
}

void set_count(Value& entry, const std::string& key, Value count) {
  if (Value* member = entry.find(key)) {
    *member = std::move(count);
  } else {
    const Where where = count.where;
    entry.members.push_back({key, where, std::move(count)});
  }
}

/// The maps of a list, which may be written by name; nothing if an entry is not a map.
std::vector<Value> entries_of(const Value* list) {
  std::vector<Value> entries;
  if (!list) return entries;
  for (const Value& item : list->items) entries.push_back(item);
  for (const Member& member : list->members) {
    Value& entry = entries.emplace_back(member.value);
    if (entry.is_map() && !entry.has("name"))
      entry.members.insert(entry.members.begin(), {"name", member.where, Value::scalar(member.key, member.where)});
  }
  const bool maps = std::all_of(entries.begin(), entries.end(), [](const Value& entry) { return entry.is_map(); });
  return maps ? entries : std::vector<Value>{};
}

/// The count of each entry; nothing if one is not a whole number above 0, which check() reports.
std::vector<long long> counts_of(const std::vector<Value>& entries, const Field& count) {
  std::vector<long long> counts;
  for (const Value& entry : entries) {
    const Value* written = entry.find(count.name);
    const Value value = written ? *written : Value::scalar(count.default_text.value_or(""), entry.where);
    Problems unfit;
    if (value.is_scalar()) check_scalar(value, count, {}, unfit);
    if (!value.is_scalar() || !unfit.empty()) return {};
    counts.push_back(std::llround(as_real(value)));
  }
  return counts;
}

/// "a.h100-.count: 16", or "a[0].count: 16" for an entry without a name.
std::string assignment(const std::string& path, std::size_t index, const Value& entry, const std::string& key) {
  const Value* name = entry.find("name");
  return name && name->is_scalar() ? fmt::format("{}.{}.{}: 16", path, name->text, key)
                                   : fmt::format("{}[{}].{}: 16", path, index, key);
}

/// Shares `total` among entries in the proportions of their counts.
void scale_counts(std::vector<Value>& entries, const Field& count, const Value& total, const std::string& path,
                  Problems& problems) {
  const std::vector<long long> counts = counts_of(entries, count);
  if (counts.empty()) return;
  long long sum = 0, divisor = 0;
  for (const long long c : counts) sum += c, divisor = std::gcd(divisor, c);
  const long long step = sum / divisor, wanted = std::llround(as_real(total));
  if (wanted % step != 0) {
    std::vector<std::string> texts;
    for (const long long c : counts) texts.push_back(std::to_string(c / divisor));
    problems.add(total.where, path,
                 fmt::format("{} cannot be shared in the proportions of the {} entries, which are {}", total.text,
                             entries.size(), join(texts, " to ")),
                 fmt::format("write a multiple of {}, or the {} of each entry, such as {}", step, count.name,
                             assignment(path, 0, entries.front(), count.name)),
                 "count");
    return;
  }
  for (std::size_t i = 0; i < entries.size(); ++i)
    set_count(entries[i], count.name,
              Value::scalar(std::to_string(counts[i] / divisor * (wanted / step)), total.where, total.origin));
}

Value from_count(const Value& number, const Field& list, const Value* old, const std::string& path,
                 Problems& problems) {
  const Field& count = *list.item->map->find(list.count_key);
  const std::size_t before = problems.list().size();
  check_scalar(number, count, path, problems);
  std::vector<Value> entries = entries_of(old);
  if (entries.empty()) {
    Value& entry = entries.emplace_back();
    entry.kind = Value::Kind::Map;
    entry.where = number.where;
  }
  if (problems.list().size() == before && entries.size() == 1) set_count(entries.front(), count.name, number);
  if (problems.list().size() == before && entries.size() > 1) scale_counts(entries, count, number, path, problems);
  Value result = list_of(std::move(entries), number);
  result.unreadable = problems.list().size() > before;
  return result;
}

/// "[{name: ..., type: ...}]": an entry with its required fields.
std::string sample_of(const Field& list) {
  std::vector<std::string> fields;
  for (const Field& field : list.item->map->fields)
    if (field.required) fields.push_back(field.name + ": ...");
  return fields.empty() ? "" : fmt::format(", such as [{{{}}}]", join(fields));
}

}  // namespace

std::optional<Value> list_from_scalar(const Value& scalar, const Field& list, const Value* old, const std::string& path,
                                      Problems& problems) {
  if (!scalar.is_scalar()) return {};
  if (list.may_stand_alone) return list_of({scalar}, scalar);
  if (list.count_key.empty() || !is_number(scalar)) return {};
  return from_count(scalar, list, old, path, problems);
}

std::string how_to_write_list(const Field& list, const Value& written) {
  const Field& item = *list.item;
  if (!list.count_key.empty())
    return fmt::format("write a {}, or a list of maps{}", type_text(*item.map->find(list.count_key)), sample_of(list));
  if (item.kind == Field::Kind::Map) return "write a list of maps" + sample_of(list);
  if (!written.is_scalar() || item.kind == Field::Kind::List || item.kind == Field::Kind::Table) return {};
  Problems unfit;
  if (item.kind == Field::Kind::Variant) {
    const std::vector<std::string> words = names_of(item.variants());
    if (std::find(words.begin(), words.end(), written.text) == words.end()) return suggest(written.text, words);
  } else if (item.kind != Field::Kind::Any) {
    check_scalar(written, item, {}, unfit);
  }
  return unfit.empty() ? fmt::format("write [{}]", written.text) : "write a " + type_text(list);
}

}  // namespace stagecraft::config
