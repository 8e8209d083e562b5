// Columns of CSV files and members of rows in JSON, each with a type and a meaning, for writers and `stagecraft
// schema`.

#include "sim/config/columns.hpp"

#include "sim/core/json.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

FileColumn column(config::Field field, std::string doc) {
  field.doc(std::move(doc));
  return {std::move(field)};
}

const char* type_of(const config::Field& field) {
  using Kind = config::Field::Kind;
  if (field.kind == Kind::Integer) return "integer";
  if (field.kind == Kind::Real) return "number";
  return field.kind == Kind::Boolean ? "boolean" : "string";
}

Json column_json(const FileColumn& c) {
  Json json = JsonObject{{"name", c.name()}, {"type", type_of(c.field)}, {"description", c.field.text_doc}};
  if (!c.unit.empty()) json["unit"] = c.unit;
  if (!c.presence.empty()) json["presence"] = c.presence;
  if (c.field.kind == config::Field::Kind::Boolean) {
    json["trueValues"] = JsonArray{"1"};
    json["falseValues"] = JsonArray{"0"};
  }
  return json;
}

}  // namespace

FileColumn word_column(std::string name, std::string doc) {
  return column(config::text(std::move(name)), std::move(doc));
}
FileColumn whole_column(std::string name, std::string doc) {
  return column(config::integer(std::move(name), -kInfinity, kInfinity), std::move(doc));
}
FileColumn number_column(std::string name, std::string unit, std::string doc) {
  FileColumn result = column(config::real(std::move(name), -kInfinity, kInfinity), std::move(doc));
  result.unit = std::move(unit);
  return result;
}
FileColumn yes_column(std::string name, std::string doc) {
  return column(config::boolean(std::move(name)), std::move(doc));
}
FileColumn nested_column(config::Field field, std::string doc) { return column(std::move(field), std::move(doc)); }

FileColumn only(FileColumn c, std::string presence) {
  c.presence = std::move(presence);
  c.field.optional();
  return c;
}

FileColumn or_null(FileColumn c) {
  c.field.nullable();
  return c;
}

std::string csv_header(const std::vector<FileColumn>& columns) {
  std::vector<std::string> names;
  for (const FileColumn& c : columns) names.push_back(csv_cell(c.name()));
  return join(names, ",") + '\n';
}

std::string table_schema(const std::string& title, const std::string& description,
                         const std::vector<FileColumn>& columns) {
  JsonArray fields;
  for (const FileColumn& c : columns) fields.push_back(column_json(c));
  return Json(JsonObject{{"$schema", "https://datapackage.org/profiles/2.0/tableschema.json"},
                         {"title", "stagecraft " + title},
                         {"description", description},
                         {"fields", std::move(fields)},
                         {"missingValues", JsonArray{""}}})
             .dump(2) +
         '\n';
}

}  // namespace stagecraft
