// Writes field tables as JSON Schemas, for `stagecraft schema`. A JSON Schema may take more than the reader does (it
// knows nothing of quotes), but never less.

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "sim/config/walk.hpp"
#include "sim/core/text.hpp"

namespace stagecraft::config {
namespace {

constexpr const char* kNumber = R"(\+?(0|[1-9][0-9]*|(?=\.[0-9]))(\.[0-9]*)?([eE][+-]?[0-9]+)?)";

Value plain(std::string text) { return Value::scalar(std::move(text), {}); }

Value word(std::string text) {
  Value value = plain(std::move(text));
  value.quoted = true;
  return value;
}

Value array(std::vector<Value> items) {
  Value value;
  value.kind = Value::Kind::List;
  value.items = std::move(items);
  return value;
}

Value words(const std::vector<std::string>& texts) {
  std::vector<Value> items;
  for (const std::string& text : texts) items.push_back(word(text));
  return array(std::move(items));
}

struct Entry {
  std::string key;
  Value value;
};

Value object(std::vector<Entry> entries = {}) {
  Value value;
  value.kind = Value::Kind::Map;
  for (Entry& entry : entries) value.members.push_back({std::move(entry.key), {}, std::move(entry.value)});
  return value;
}

void put(Value& map, std::string key, Value value) { map.members.push_back({std::move(key), {}, std::move(value)}); }

// A word such as "2" or "true" is a number or a boolean to a schema, so it is listed as both.
Value enumeration(const std::vector<std::string>& allowed) {
  std::vector<Value> items;
  for (const std::string& text : allowed) {
    items.push_back(word(text));
    if (to_json(plain(text)) != to_json(word(text))) items.push_back(plain(text));
  }
  return object({{"enum", array(std::move(items))}});
}

std::string escaped(const std::string& text) {
  std::string pattern;
  for (const char c : text)
    pattern += std::string_view("./+").find(c) != std::string_view::npos ? fmt::format("\\{}", c) : std::string(1, c);
  return pattern;
}

/// Writes a schema in two passes: the first counts how often each map and each unit stands in it, and the second writes
/// those that stand in it several times once, under `$defs`. A table that stands within itself is one of them.
class SchemaWriter {
 public:
  template <class Described>
  static Value write(const Described& described) {
    SchemaWriter writer;
    writer.whole(described);
    writer.counting_ = false;
    Value schema = writer.whole(described);
    if (!writer.definitions_.members.empty()) put(schema, "$defs", std::move(writer.definitions_));
    return schema;
  }

 private:
  /// A map, with or without its `name`; or a unit, which has no map.
  using SharedSchema = std::tuple<const MapSpec*, bool, std::string>;

  Value whole(const Field& field) { return schema_of(field); }
  Value whole(const MapSpec& spec) { return of_fields(fields_of(spec), false); }

  /// The schema that `make` writes, or a reference to `name` in `$defs` if the schema uses it several times.
  template <class Make>
  Value shared(const SharedSchema& part, std::string name, const Make& make) {
    if (counting_) {
      const bool first = ++uses_[part] == 1;
      return first ? make() : Value();
    }
    if (uses_[part] < 2) return make();
    const auto [entry, first] = names_.try_emplace(part);
    if (first) {
      if (name.empty()) name = "map";
      entry->second = name;
      for (int n = 2; definitions_.find(entry->second); ++n) entry->second = fmt::format("{}_{}", name, n);
      const std::string key = entry->second;
      put(definitions_, key, Value());  // Keeps the name while its schema is written.
      Value schema = make();
      *definitions_.find(key) = std::move(schema);
    }
    return object({{"$ref", word("#/$defs/" + names_.at(part))}});
  }

  static std::vector<const Field*> fields_of(const MapSpec& spec) {
    std::vector<const Field*> fields;
    for (const Field& field : spec.fields) fields.push_back(&field);
    return fields;
  }

  Value schema_of(const Field& field) {
    Value schema = bare(field);
    if (!field.text_doc.empty()) put(schema, "description", word(field.text_doc));
    if (field.default_text) {
      Problems ignored;
      put(schema, "default", parse_yaml(*field.default_text, "default", ignored));
    }
    return schema;
  }

  // `by_key`: the key outside is the name, so the field may be absent.
  Value of_fields(const std::vector<const Field*>& fields, bool by_key) {
    Value properties = object();
    std::vector<std::string> required;
    const Field* replaceable = nullptr;
    for (const Field* field : fields) {
      put(properties, field->name, schema_of(*field));
      const bool named = by_key && field->name == "name";
      if (!field->required || field->default_text || named) continue;
      if (field->stand_in.empty())
        required.push_back(field->name);
      else
        replaceable = field;
    }
    Value schema = object({{"type", word("object")}, {"properties", std::move(properties)}});
    put(schema, "patternProperties", object({{"^x-", plain("true")}}));
    put(schema, "additionalProperties", plain("false"));
    if (!required.empty()) put(schema, "required", words(required));
    if (replaceable)
      put(schema, "anyOf",
          array({object({{"required", words({replaceable->name})}}),
                 object({{"required", words({replaceable->stand_in})}})}));
    return schema;
  }

  Value of_map(const MapSpec& spec, const std::string& name, bool by_key) {
    return shared({&spec, by_key, ""}, name, [&] { return of_fields(fields_of(spec), by_key); });
  }

  static Value of_number(const Field& field) {
    const bool whole = field.kind == Field::Kind::Integer;
    Value schema = object({{"type", words({whole ? "integer" : "number", "string"})}});
    if (std::isfinite(field.low)) put(schema, "minimum", plain(shortest(field.low)));
    if (std::isfinite(field.high)) put(schema, "maximum", plain(shortest(field.high)));
    // YAML 1.1 readers, such as Python's, take 1e3 for a text.
    put(schema, "pattern", word(R"(^[+-]?[0-9.]+[eE][+-]?[0-9]+$)"));
    return schema;
  }

  Value of_quantity(const Field& field) {
    std::string name(dimension_name(field.dimension));
    std::replace(name.begin(), name.end(), ' ', '_');
    return shared({nullptr, false, name}, name, [&] {
      std::vector<std::string> units = unit_names(field.dimension);
      for (std::string& unit : units) unit = escaped(unit);
      const std::string pattern = fmt::format("^{} ?({})$", kNumber, join(units, "|"));
      return object({{"anyOf", array({object({{"const", plain("0")}}),
                                      object({{"type", word("string")}, {"pattern", word(pattern)}})})}});
    });
  }

  Value of_item(const Field& item, bool by_key) {
    if (item.kind == Field::Kind::Map) return of_map(*item.map, item.name, by_key);
    if (item.kind == Field::Kind::Variant) return of_variant(item, by_key);
    return schema_of(item);
  }

  Value of_list(const Field& field) {
    const Field& item = *field.item;
    std::vector<Value> ways{object({{"type", word("array")}, {"items", of_item(item, false)}})};
    if (is_by_name(field))
      ways.push_back(object({{"type", word("object")}, {"additionalProperties", of_item(item, true)}}));
    if (!field.count_key.empty()) ways.push_back(of_number(*item.map->find(field.count_key)));
    if (field.may_stand_alone) ways.push_back(of_item(item, false));
    return ways.size() == 1 ? std::move(ways.front()) : object({{"anyOf", array(std::move(ways))}});
  }

  Value of_variant(const Field& field, bool by_key) {
    const std::vector<Variant> variants = field.variants();
    std::vector<Value> ways{field.by_reference ? object({{"type", word("string")}}) : enumeration(names_of(variants))};
    if (field.by_reference) ways.push_back(of_reference(field, by_key));
    for (const Variant& variant : variants) {
      std::vector<const Field*> fields;
      for (const MapSpec* spec : {field.map, variant.fields}) {
        if (!spec) continue;
        for (const Field& inner : spec->fields) fields.push_back(&inner);
      }
      Field selector = choice(field.selector, {variant.name}).doc(variant.summary);
      selector.required = !names_its_own_field(variant);
      fields.insert(fields.begin(), &selector);
      Value way = of_fields(fields, by_key);
      if (!selector.required) {
        put(way, "anyOf",
            array({object({{"required", words({field.selector})}}), object({{"required", words({variant.name})}})}));
      }
      ways.push_back(std::move(way));
    }
    // Editors complete from the ways that fit what is written so far, and a way that requires a further field does not
    // fit yet; so the names of all stand beside the ways, too.
    Value names = object({{field.selector, enumeration(names_of(variants))}});
    return object({{"properties", std::move(names)}, {"oneOf", array(std::move(ways))}});
  }

  Value of_reference(const Field& field, bool by_key) {
    const Value any = object();
    std::vector<const Field*> allowed_with_base;
    if (field.map)
      for (const Field& inner : field.map->fields)
        if (inner.with_base) allowed_with_base.push_back(&inner);
    Value way = of_fields(allowed_with_base, by_key);
    Value& properties = *way.find("properties");
    std::map<std::string, std::vector<Value>> of_variants;  // The base decides which of them a name means.
    for (const Variant& variant : field.variants())
      for (const Field& inner : variant.fields ? variant.fields->fields : std::vector<Field>())
        if (inner.with_base) of_variants[inner.name].push_back(bare(inner));
    for (auto& [name, ways] : of_variants) put(properties, name, object({{"anyOf", array(std::move(ways))}}));
    put(properties, "schema", any);
    put(properties, "name", any);
    put(properties, "base", object({{"type", word("string")}}));
    put(properties, "override", object({{"type", word("object")}}));
    put(way, "required", words({"base"}));
    return way;
  }

  Value bare(const Field& field) {
    if (field.may_be_null) {
      Field other = field;
      other.may_be_null = false;
      return object({{"anyOf", array({bare(other), object({{"type", word("null")}})})}});
    }
    switch (field.kind) {
      case Field::Kind::Text:
        return object({{"type", words({"string", "number", "boolean"})}});
      case Field::Kind::Choice: {
        if (field.list_words.empty()) return enumeration(field.choices());
        Value some = object({{"type", word("array")}, {"items", enumeration(field.list_words)}});
        return object({{"anyOf", array({enumeration(field.choices()), std::move(some)})}});
      }
      case Field::Kind::Integer:
      case Field::Kind::Real:
        return of_number(field);
      case Field::Kind::Boolean:
        return object({{"type", word("boolean")}});
      case Field::Kind::Quantity:
        return of_quantity(field);
      case Field::Kind::Map:
        return of_map(*field.map, field.name, false);
      case Field::Kind::List:
        return of_list(field);
      case Field::Kind::Table:
        return object({{"type", word("object")}, {"additionalProperties", of_item(*field.item, false)}});
      case Field::Kind::Variant:
        return of_variant(field, false);
      case Field::Kind::Any:
        break;
    }
    return object();
  }

  bool counting_ = true;
  std::map<SharedSchema, int> uses_;
  std::map<SharedSchema, std::string> names_;
  Value definitions_ = object();
};

std::string document(const std::string& kind, const std::string& about, Value body) {
  Value schema = object({{"$schema", word("https://json-schema.org/draft/2020-12/schema")},
                         {"title", word("stagecraft " + kind)},
                         {"description", word(about)}});
  for (Member& member : body.members) schema.members.push_back(std::move(member));
  return to_json(schema) + '\n';
}

}  // namespace

std::string json_schema(const MapSpec& spec, const std::string& kind) {
  return document(kind, spec.title, SchemaWriter::write(spec));
}

std::string json_schema(const Field& field, const std::string& kind) {
  Field bare = field;
  bare.text_doc.clear();
  return document(kind, field.text_doc, SchemaWriter::write(bare));
}

}  // namespace stagecraft::config
