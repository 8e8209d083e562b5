#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/config/units.hpp"
#include "sim/config/value.hpp"
#include "sim/core/numbers.hpp"

namespace stagecraft::config {

struct MapSpec;

/// One way to fill a variant field: the catalogue entry's name, its line of help and the fields it adds.
struct Variant {
  std::string name;
  std::string summary;
  const MapSpec* fields = nullptr;  ///< May be null: no fields of its own.
};

/// One row of a field table. The reader, the JSON Schema, `explain` and the reference text all come from it.
struct Field {
  enum class Kind {
    Text,      ///< Any scalar.
    Choice,    ///< One word of `choices()`, or a list of `list_words`.
    Integer,   ///< A whole number in [low, high]; 1e3 counts as whole.
    Real,      ///< A bare number in [low, high].
    Boolean,   ///< true or false, nothing else.
    Quantity,  ///< A number with a unit of `dimension`; only 0 may be bare.
    Map,       ///< A map of `map`.
    List,      ///< A list of `item`; when that is a map with a `name`, also a map from name to item.
    Table,     ///< A map from free names to `item`.
    Variant,   ///< A map whose key `selector` picks one of `variants()`, which adds its fields to `map`'s. A bare word
               ///< is short for the selector alone; {csv: x} picks the variant `csv` if that has a field `csv`.
    Any,       ///< Anything: checked elsewhere.
  };

  std::string name;
  Kind kind = Kind::Any;
  std::string text_doc;  ///< One sentence.
  bool required = true;
  bool may_be_null = false;
  bool by_position = false;                 ///< List: names of its items may repeat, and it cannot be a map by name.
  std::string count_key;                    ///< List of maps: the field of an item that says how many equal entries it
                                            ///< stands for, so that a number may stand for the list.
  bool may_stand_alone = false;             ///< List: a scalar stands for the list of this one item.
  std::string stand_in;                     ///< A field that may be given in place of this one, from which it follows.
  std::optional<std::string> default_text;  ///< The default in YAML.
  double low = -kInfinity;
  double high = kInfinity;
  Dimension dimension = Dimension::Time;
  std::function<std::vector<std::string>()> choices;
  std::vector<std::string> list_words;  ///< Choice: a list of these words may stand for one word.
  const MapSpec* map = nullptr;
  std::shared_ptr<Field> item;
  std::string selector;
  std::function<std::vector<Variant>()> variants;
  bool by_reference = false;  ///< Variant: a name, a file, or `base` and `override` may stand for it.
  bool with_base = false;     ///< The field may stand next to `base` in such a variant.

  Field& doc(std::string sentence) { return text_doc = std::move(sentence), *this; }
  Field& fallback(std::string text) { return default_text = std::move(text), required = false, *this; }
  Field& reference() { return by_reference = true, *this; }
  Field& beside_base() { return with_base = true, *this; }
  Field& nullable() { return may_be_null = true, *this; }
  Field& positional() { return by_position = true, *this; }
  Field& counted_by(std::string key) { return count_key = std::move(key), *this; }
  Field& or_alone() { return may_stand_alone = true, *this; }
  Field& or_list_of(std::vector<std::string> words) { return list_words = std::move(words), *this; }
  Field& or_field(std::string other) { return stand_in = std::move(other), *this; }
  Field& optional() { return required = false, *this; }
};

struct MapSpec {
  std::string title;  ///< One sentence: what this map describes.
  std::vector<Field> fields;
  const Field* find(std::string_view name) const;
};

Field text(std::string name);
Field choice(std::string name, std::function<std::vector<std::string>()> words);
Field choice(std::string name, std::vector<std::string> words);
Field integer(std::string name, double low, double high);
Field real(std::string name, double low, double high);
Field boolean(std::string name);
Field quantity(std::string name, Dimension dimension);
Field map(std::string name, const MapSpec& spec);
Field list(std::string name, Field item);
Field table(std::string name, Field item);
Field variant(std::string name, std::string selector, std::function<std::vector<Variant>()> variants,
              const MapSpec* common = nullptr);
Field any(std::string name);

/// Whether a list may be written as a map from name to item.
bool is_by_name(const Field&);
/// What may be written in a field: "whole number from 1 to 8".
std::string type_text(const Field&);
std::vector<std::string> names_of(const std::vector<Variant>&);

/// Checks a tree against a table and returns it normalized: fields in the order of the table, defaults filled in
/// (origin "default"), variants as maps, by-name maps as lists, notes (`x-...`) removed, quantities kept as text, names
/// and other texts printable. Unknown keys get a suggestion, or the place where the key belongs.
Value check(const Value&, const MapSpec&, const std::string& path, Problems&);

/// JSON Schema (draft 2020-12) of a file kind: of a map, or of a variant that is a file of its own.
std::string json_schema(const MapSpec&, const std::string& kind);
std::string json_schema(const Field&, const std::string& kind);
/// The help text of the field at a dotted path ("run.schedule"), or of the whole map for "".
std::string explain(const MapSpec&, const std::string& path);
/// The whole table as Markdown.
std::string reference(const MapSpec&, const std::string& title);

/// Typed reading of a checked tree. These never fail on what a user wrote: check() has already passed.
int as_int(const Value&);
double as_real(const Value&);
bool as_bool(const Value&);
double as_quantity(const Value&, Dimension);  ///< In base units.
Seconds as_seconds(const Value&);
Bytes as_bytes(const Value&);
Flops as_flops(const Value&);
Bandwidth as_bandwidth(const Value&);
FlopRate as_flop_rate(const Value&);
Watts as_watts(const Value&);
double as_share(const Value&);  ///< 0.5 for "50 %".

}  // namespace stagecraft::config
