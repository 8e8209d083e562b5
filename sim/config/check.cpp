// Checks a tree against its field table, reports every problem, with suggestions, and returns the normalized tree with
// its defaults. Each function returns its normalized value; after a problem it returns its argument, so that the rest
// is still checked.

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "sim/config/short_list.hpp"
#include "sim/config/synonyms.hpp"
#include "sim/config/walk.hpp"
#include "sim/core/text.hpp"

namespace stagecraft::config {
namespace {

constexpr std::size_t kMostPlaces = 3;
constexpr std::size_t kMostAdvised = 1000;  ///< Problems after which unknown keys get no advice, which takes a search.

std::string what_is(const Value& value) {
  switch (value.kind) {
    case Value::Kind::Null:
      return "nothing";
    case Value::Kind::Scalar:
      return fmt::format("'{}'", value.text);
    case Value::Kind::List:
      return "a list";
    case Value::Kind::Map:
      return "a map";
  }
  return {};
}

void mark_default(Value& value, const Where& where) {
  value.where = where;
  value.origin = "default";
  for (Value& item : value.items) mark_default(item, where);
  for (Member& member : value.members) member.where = where, mark_default(member.value, where);
}

/// The fields that may stand in one map. For a variant: which was chosen, and all there are.
struct Shape {
  std::vector<const Field*> fields;
  std::string chosen;
  std::vector<Variant> variants;

  void add(const MapSpec* spec) {
    if (!spec) return;
    for (const Field& field : spec->fields) fields.push_back(&field);
  }
  bool has(std::string_view name) const {
    return std::any_of(fields.begin(), fields.end(), [&](const Field* f) { return f->name == name; });
  }
  /// "write {share: 100 %, beside: true}": the first fields with their defaults.
  std::string sample() const {
    constexpr std::size_t kMost = 4;
    std::string text;
    for (std::size_t i = 0; i < std::min(kMost, fields.size()); ++i)
      text += fmt::format("{}{}: {}", i > 0 ? ", " : "", fields[i]->name, fields[i]->default_text.value_or("..."));
    return fields.empty() ? "" : fmt::format("write {{{}{}}}", text, fields.size() > kMost ? ", ..." : "");
  }
};

/// Whether a value of the field is a list or a map.
bool is_container(const Field& field) {
  return field.kind == Field::Kind::Map || field.kind == Field::Kind::List || field.kind == Field::Kind::Table;
}

class Checker {
 public:
  Checker(const MapSpec& root, const std::string& root_path, Problems& problems)
      : root_(root), root_path_(root_path), problems_(problems) {}

  Value run(const Value& value, const Field& field, const std::string& path) {
    Value checked = this->value(value, field, path);
    for (const Diagnostic& p : missing_)
      if (!excused_.contains(p.path)) problems_.add(p.where, p.path, p.message, p.help, p.code);
    return checked;
  }

 private:
  Value value(const Value& value, const Field& field, const std::string& path) {
    if (value.unreadable || field.kind == Field::Kind::Any) return value;
    if (value.kind == Value::Kind::Null && field.may_be_null) return value;
    if (value.kind == Value::Kind::Null) {
      problems_.add(value.where, path, "this is empty", "give it a value or take the line out", "wrong-type");
      return value;
    }
    switch (field.kind) {
      case Field::Kind::Map: {
        Shape shape;
        shape.add(field.map);
        return map(value, shape, path);
      }
      case Field::Kind::List:
        return list(value, field, path);
      case Field::Kind::Table:
        return table(value, field, path);
      case Field::Kind::Variant:
        return variant(value, field, path);
      case Field::Kind::Choice:
        if (value.is_list() && !field.list_words.empty())
          return list(value, config::list(field.name, choice(field.name, field.list_words)), path);
        break;
      default:
        break;
    }
    if (!value.is_scalar()) {
      problems_.add(value.where, path, what_is(value) + " cannot stand here", what_to_write(field), "wrong-type");
      return value;
    }
    check_scalar(value, field, path, problems_);
    Value checked = value;
    if (field.kind == Field::Kind::Text) checked.text = printable(checked.text);
    return checked;
  }

  Value map(const Value& value, const Shape& shape, const std::string& path) {
    if (!value.is_map()) return wrong_kind(value, "a map", path, value.is_scalar() ? shape.sample() : "");
    Value checked = value;
    checked.members.clear();
    report_unknown(value, shape, path);
    for (const Field* field : shape.fields) {
      const auto written = std::find_if(value.members.begin(), value.members.end(),
                                        [&](const Member& m) { return m.key == field->name; });
      const std::string inner = under(path, field->name);
      if (written != value.members.end()) {
        checked.members.push_back({field->name, written->where, this->value(written->value, *field, inner)});
      } else if (field->default_text) {
        checked.members.push_back({field->name, value.where, default_of(*field, value.where, inner)});
      } else if (field->required) {
        missing_.push_back({value.where, inner, "this field is missing", field->text_doc, "missing-field"});
      }
    }
    return checked;
  }

  Value wrong_kind(const Value& value, const std::string& needed, const std::string& path, std::string help = {}) {
    const std::size_t colon = value.text.find(':');
    if (needed == "a map" && value.is_scalar() && colon != std::string::npos) {
      help = fmt::format("put a space after the colon: '{}: {}'", value.text.substr(0, colon),
                         trim(std::string_view(value.text).substr(colon + 1)));
    }
    problems_.add(value.where, path, fmt::format("{} is needed here, not {}", needed, what_is(value)), help,
                  "wrong-type");
    Value stand_in = value;
    stand_in.unreadable = true;
    return stand_in;
  }

  Value default_of(const Field& field, const Where& where, const std::string& path) {
    Problems ours;
    Value written = parse_yaml(*field.default_text, "<the default of " + path + ">", ours);
    mark_default(written, where);
    Value checked = Checker(root_, root_path_, ours).run(written, field, path);
    if (!ours.empty()) throw InternalError("a default is wrong: " + render(ours.list()));
    mark_default(checked, where);
    return checked;
  }

  // Reports every key without a field, and excuses the missing field whose misspelling or misplacing it seems to be.
  void report_unknown(const Value& value, const Shape& shape, const std::string& path) {
    std::vector<std::string> field_names, absent;
    for (const Field* field : shape.fields) {
      field_names.push_back(field->name);
      if (!value.has(field->name)) absent.push_back(field->name);
    }
    for (const Member& member : value.members) {
      if (member.key.starts_with("x-") || shape.has(member.key)) continue;
      if (problems_.list().size() >= kMostAdvised) {
        problems_.add(member.where, under(path, member.key), "no such field", {}, "unknown-field");
        continue;
      }
      std::string help = glued(member, shape, path);
      std::optional<std::string> near = meant_field(member.key, path, field_names);
      if (help.empty() && !near) help = synonym_in_its_place(member.key);
      if (help.empty() && !near) help = place_elsewhere(member.key, shape);
      if (help.empty()) {
        if (!near) near = closest(member.key, absent);
        if (!near) near = closest(member.key, field_names);
        if (near) excused_.insert(under(path, *near));
        if (near) help = fmt::format("did you mean '{}'?", *near);
      }
      if (help.empty()) help = synonym_elsewhere(member.key, shape);
      if (help.empty()) help = suggest(member.key, field_names);
      problems_.add(member.where, under(path, member.key), "no such field", help, "unknown-field");
    }
  }

  // {schedule:1f1b} is a key without a value to YAML.
  std::string glued(const Member& member, const Shape& shape, const std::string& path) {
    const std::size_t colon = member.key.find(':');
    const std::string name = member.key.substr(0, colon);
    if (colon == std::string::npos || !shape.has(name)) return {};
    excused_.insert(under(path, name));
    return fmt::format("put a space after the colon: '{}: {}'", name, member.key.substr(colon + 1));
  }

  std::string place_elsewhere(const std::string& key, const Shape& shape) {
    std::vector<std::string> owners;
    for (const Variant& variant : shape.variants)
      if (variant.fields && variant.fields->find(key)) owners.push_back(variant.name);
    if (!owners.empty()) return fmt::format("'{}' is a field of {}, not of {}", key, join(owners), shape.chosen);
    std::vector<std::string> places = places_of(root_, root_path_, key);
    if (places.empty() || places.size() > kMostPlaces) return {};
    for (const std::string& place : places) excused_.insert(under(place, key));
    for (std::string& place : places) place = place.empty() ? "at the top of the file" : "under " + place;
    return fmt::format("'{}' belongs {}", key, join(places, " or "));
  }

  /// A word of another program for a field that belongs elsewhere: pp at the top means stages under plan.
  std::string synonym_elsewhere(const std::string& key, const Shape& shape) {
    for (const Meaning& meaning : meanings(key))
      if (std::string help = place_elsewhere(std::string(meaning.name), shape); !help.empty())
        return fmt::format("'{}' is called '{}' here; {}", key, meaning.name, help);
    return {};
  }

  /// As synonym_elsewhere(), for a field with one place in files of this kind, whatever other maps have its name.
  std::string synonym_in_its_place(const std::string& key) {
    for (const Meaning& meaning : meanings(key)) {
      const std::string name(meaning.name), place(meaning.place);
      const std::vector<std::string> places = places_of(root_, root_path_, name);
      if (place.empty() || std::find(places.begin(), places.end(), place) == places.end()) continue;
      excused_.insert(under(place, name));
      return fmt::format("'{}' is called '{}' here; '{}' belongs under {}", key, name, name, place);
    }
    return {};
  }

  Value table(const Value& value, const Field& field, const std::string& path) {
    if (!value.is_map()) return wrong_kind(value, "a map", path);
    Value checked = value;
    for (Member& member : checked.members) {
      member.value = this->value(member.value, *field.item, under(path, member.key));
      member.key = printable(member.key);
    }
    return checked;
  }

  Value list(const Value& value, const Field& field, const std::string& path) {
    if (value.is_map() && is_by_name(field)) return list_from_map(value, field, path);
    if (const auto meant = list_from_scalar(value, field, nullptr, path, problems_))
      return meant->unreadable ? *meant : list(*meant, field, path);
    if (!value.is_list()) return wrong_kind(value, "a list", path, how_to_write_list(field, value));
    Value checked = value;
    std::map<std::string, Where> names;
    for (std::size_t i = 0; i < value.items.size(); ++i) {
      const std::string inner = fmt::format("{}[{}]", path, i);
      Value& item = checked.items[i] = this->value(value.items[i], *field.item, inner);
      const Value* name = is_by_name(field) ? item.find("name") : nullptr;
      if (!name || !name->is_scalar()) continue;
      const auto [first, fresh] = names.emplace(name->text, name->where);
      if (fresh) continue;
      problems_.add(name->where, under(inner, "name"), fmt::format("the name '{}' is taken", name->text),
                    fmt::format("it is already on line {}", first->second.line), "duplicate-name");
    }
    return checked;
  }

  Value list_from_map(const Value& value, const Field& field, const std::string& path) {
    Value checked = value;
    checked.kind = Value::Kind::List;
    checked.members.clear();
    for (const Member& member : value.members) {
      const std::string inner = under(path, member.key);
      checked.items.push_back(this->value(with_name(member, *field.item, inner), *field.item, inner));
    }
    return checked;
  }

  // The item of a by-name map with its key as its `name`.
  Value with_name(const Member& member, const Field& item, const std::string& path) {
    Value named = member.value;
    if (named.is_scalar() && item.kind == Field::Kind::Variant) {
      named = Value{};
      named.kind = Value::Kind::Map;
      named.where = member.value.where;
      named.members.push_back({item.selector, member.value.where, member.value});
    }
    if (!named.is_map()) return named;
    if (const Value* name = named.find("name"); name && !(name->is_scalar() && name->text == member.key)) {
      problems_.add(name->where, under(path, "name"), fmt::format("the key already names it '{}'", member.key),
                    "take this line out", "duplicate-name");
    }
    if (!named.has("name")) {
      named.members.insert(named.members.begin(), {"name", member.where, Value::scalar(member.key, member.where)});
    }
    return named;
  }

  Value variant(const Value& value, const Field& field, const std::string& path) {
    Shape shape;
    shape.variants = field.variants();
    const std::vector<std::string> names = names_of(shape.variants);
    Value spelt = value;
    if (value.is_scalar()) {
      spelt = Value{};
      spelt.kind = Value::Kind::Map;
      spelt.where = value.where;
      spelt.origin = value.origin;
      spelt.members.push_back({field.selector, value.where, value});
    } else if (!value.is_map()) {
      return wrong_kind(value, "a word or a map", path);
    } else if (const Variant* meant = meant_by_key(value, shape.variants); meant && !value.has(field.selector)) {
      spelt.members.insert(spelt.members.begin(),
                           {field.selector, value.where, Value::scalar(meant->name, value.where, "computed")});
    }
    const Field selector = choice(field.selector, names).doc("Which one it is: " + join(names) + ".");
    const Value* word = spelt.find(field.selector);
    const auto chosen = std::find_if(shape.variants.begin(), shape.variants.end(), [&](const Variant& v) {
      return word && word->is_scalar() && v.name == word->text;
    });
    shape.fields.push_back(&selector);
    if (chosen == shape.variants.end()) return without_variant(value, spelt, selector, field, path);
    shape.chosen = chosen->name;
    shape.add(field.map);
    shape.add(chosen->fields);
    return map(spelt, shape, path);
  }

  // Without a known selector it is unknown which other fields are right, so only the selector and what no variant has
  // is reported.
  Value without_variant(const Value& written, const Value& spelt, const Field& selector, const Field& field,
                        const std::string& path) {
    const std::string inner = under(path, selector.name);
    std::string reported;
    if (const Value* word = spelt.find(selector.name)) {
      value(*word, selector, written.is_scalar() ? path : inner);
    } else {
      const auto near = std::find_if(spelt.members.begin(), spelt.members.end(), [&](const Member& m) {
        return closest(m.key, std::vector<std::string>{selector.name}).has_value();
      });
      const auto [synonym, meant] = synonym_with_value(spelt, selector);
      if (near != spelt.members.end()) {
        reported = near->key;
        problems_.add(near->where, under(path, near->key), "no such field",
                      fmt::format("did you mean '{}'?", selector.name), "unknown-field");
      } else if (synonym) {
        reported = synonym->key;
        problems_.add(synonym->where, under(path, synonym->key), "no such field",
                      fmt::format("did you mean '{}: {}'?", selector.name, meant), "unknown-field");
      } else {
        problems_.add(written.where, inner, "this field is missing", selector_help(spelt, selector, field),
                      "missing-field");
      }
    }
    report_in_no_variant(spelt, selector, field, reported, path);
    Value stand_in = written;
    stand_in.unreadable = true;
    return stand_in;
  }

  /// The variants that have every field which is written and not common to all, if they are few; else all.
  static std::string selector_help(const Value& spelt, const Field& selector, const Field& field) {
    constexpr std::size_t kMostVariants = 4;
    const std::vector<Variant> variants = field.variants();
    const auto takes = [](const Variant& v, const Member& member) {
      const Field* inner = v.fields ? v.fields->find(member.key) : nullptr;
      const bool takes_both = inner && (inner->kind == Field::Kind::Any || inner->kind == Field::Kind::Variant);
      return inner && (takes_both || member.value.is_scalar() != is_container(*inner));
    };
    std::vector<const Member*> taken;
    std::vector<std::string> keys, owners;
    for (const Member& member : spelt.members)
      if (!(field.map && field.map->find(member.key)) &&
          std::any_of(variants.begin(), variants.end(), [&](const Variant& v) { return takes(v, member); }))
        taken.push_back(&member), keys.push_back(member.key);
    for (const Variant& v : variants)
      if (std::all_of(taken.begin(), taken.end(), [&](const Member* member) { return takes(v, *member); }))
        owners.push_back(v.name);
    if (keys.empty() || owners.empty() || owners.size() > kMostVariants) return selector.text_doc;
    const std::string last = owners.back();
    owners.pop_back();
    return fmt::format("write {}: {}{}{}, which {} '{}'", selector.name, join(owners), owners.empty() ? "" : " or ",
                       last, owners.empty() ? "has" : "have", join(keys, "', '"));
  }

  /// Reports the keys that no variant has, but for `reported`.
  void report_in_no_variant(const Value& spelt, const Field& selector, const Field& field, const std::string& reported,
                            const std::string& path) {
    const std::vector<Variant> variants = field.variants();
    Shape any;
    any.fields.push_back(&selector);
    any.add(field.map);
    for (const Variant& variant : variants) any.add(variant.fields);
    Value others = spelt;
    std::erase_if(others.members, [&](const Member& m) {
      const bool refers = field.by_reference && (m.key == "base" || m.key == "override" || m.key == "schema");
      return m.key == reported || refers;
    });
    report_unknown(others, any, path);
  }

  /// The key that with its value is another name of a value of `selector`, as `zero: 1`, and that value.
  static std::pair<const Member*, std::string> synonym_with_value(const Value& map, const Field& selector) {
    for (const Member& member : map.members)
      if (member.value.is_scalar())
        if (auto meant = meant_value(member.key + member.value.text, selector.choices())) return {&member, *meant};
    return {nullptr, {}};
  }

  const MapSpec& root_;
  const std::string& root_path_;
  Problems& problems_;
  std::vector<Diagnostic> missing_;  ///< Reported at the end, when all that excuses them is known.
  std::set<std::string> excused_;    ///< Paths of fields whose misspelt or misplaced key is reported already.
};

}  // namespace

Value check(const Value& value, const MapSpec& spec, const std::string& path, Problems& problems) {
  return Checker(spec, path, problems).run(value, map(path, spec), path);
}

}  // namespace stagecraft::config
