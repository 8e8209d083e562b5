// The text of `stagecraft explain` and of the reference pages about fields, from their tables.

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "sim/config/walk.hpp"
#include "sim/core/text.hpp"

namespace stagecraft::config {
namespace {

std::string need_text(const Field& field) {
  if (field.default_text) return "default " + *field.default_text;
  return field.required ? "required" : "optional";
}

std::vector<const Field*> fields_in(const Field& field) {
  std::vector<const Field*> fields;
  for (const MapSpec* spec : tables_in(field))
    for (const Field& inner : spec->fields) fields.push_back(&inner);
  return fields;
}

std::vector<const Field*> fields_of(const MapSpec* spec) {
  std::vector<const Field*> fields;
  if (!spec) return fields;
  for (const Field& field : spec->fields) fields.push_back(&field);
  return fields;
}

std::string list_fields(const std::vector<const Field*>& fields, const std::string& indent) {
  std::size_t width = 0;
  for (const Field* field : fields) width = std::max(width, field->name.size());
  std::string text;
  for (const Field* field : fields) {
    text += fmt::format("{}{:<{}}  {}; {}\n", indent, field->name, width, type_text(*field), need_text(*field));
    if (!field->text_doc.empty()) text += fmt::format("{}{:<{}}  {}\n", indent, "", width, field->text_doc);
  }
  return text;
}

std::string list_variants(const Field& field) {
  std::string text;
  for (const Variant& variant : field.variants()) {
    text += fmt::format("  {}: {}: {}\n", field.selector, variant.name, variant.summary);
    text += list_fields(fields_of(variant.fields), "    ");
  }
  if (field.map) text += fmt::format("  with each of them\n{}", list_fields(fields_of(field.map), "    "));
  return text;
}

std::string explain_field(const Field& field, const std::string& path) {
  std::string text = fmt::format("{}\n", path);
  if (!field.text_doc.empty()) text += fmt::format("  {}\n", field.text_doc);
  text += fmt::format("  {}; {}\n", type_text(field), need_text(field));
  const Field& inner = innermost(field);
  if (inner.kind == Field::Kind::Variant) return text + '\n' + list_variants(inner);
  if (inner.map) text += fmt::format("\n{}", list_fields(fields_of(inner.map), "  "));
  return text;
}

std::string explain_variant(const Variant& variant, const Field& field, const std::string& path) {
  return fmt::format("{}\n  {}\n\n{}{}", path, variant.summary, list_fields(fields_of(variant.fields), "  "),
                     list_fields(fields_of(field.map), "  "));
}

// Variants may each have a field of that name.
std::vector<const Field*> fields_called(const std::vector<const Field*>& fields, std::string_view name) {
  std::vector<const Field*> matches;
  for (const Field* field : fields)
    if (field->name == name) matches.push_back(field);
  return matches;
}

[[noreturn]] void refuse(const MapSpec& root, const std::string& path, const std::string& step,
                         const std::vector<const Field*>& fields) {
  std::vector<std::string> names, places = places_of(root, "", step);
  for (const Field* field : fields)
    if (std::find(names.begin(), names.end(), field->name) == names.end()) names.push_back(field->name);
  std::string help = suggest(step, names);
  for (std::string& place : places) place = under(place, step);
  if (!closest(step, names) && !places.empty()) help = "it may be " + join(places, " or ");
  throw InputError(fmt::format("'{}' is not a field", path), help);
}

std::string without_index(const std::string& step) { return step.substr(0, step.find('[')); }

std::string cell(std::string text) {
  for (std::size_t at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2)) text.insert(at, "\\");
  return text;
}

class ReferenceWriter {
 public:
  std::string write(const MapSpec& spec) {
    section(fields_of(&spec), "", "At the top");
    return std::move(text_);
  }

 private:
  void section(const std::vector<const Field*>& fields, const std::string& path, const std::string& heading) {
    if (fields.empty()) return;
    text_ += fmt::format("\n## {}\n\n| field | what it takes | default | meaning |\n|---|---|---|---|\n", heading);
    for (const Field* field : fields) {
      text_ += fmt::format("| `{}` | {} | {} | {} |\n", field->name, cell(type_text(*field)),
                           field->default_text ? '`' + cell(*field->default_text) + '`' : need_text(*field),
                           cell(field->text_doc));
    }
    for (const Field* field : fields) below(*field, under(path, field->name));
  }

  void below(const Field& field, const std::string& path) {
    const Field& inner = innermost(field);
    if (inner.map && seen_.insert(inner.map).second) section(fields_of(inner.map), path, '`' + path + '`');
    if (inner.kind != Field::Kind::Variant) return;
    text_ += fmt::format("\n## The choices of `{}`\n\n| `{}` | meaning |\n|---|---|\n", path, inner.selector);
    const std::vector<Variant> variants = inner.variants();
    for (const Variant& v : variants) text_ += fmt::format("| `{}` | {} |\n", cell(v.name), cell(v.summary));
    for (const Variant& v : variants) {
      if (!v.fields || !seen_.insert(v.fields).second) continue;
      section(fields_of(v.fields), path, fmt::format("`{}` with `{}: {}`", path, inner.selector, v.name));
    }
  }

  std::string text_;
  std::set<const MapSpec*> seen_;
};

/// The variants of the parents that have this field, such as {"planner", {"balanced", "spp"}}. No names where all of
/// them have it.
std::pair<std::string, std::vector<std::string>> owners_of(const Field& field,
                                                           const std::vector<const Field*>& parents) {
  for (const Field* parent : parents) {
    const Field& variants = innermost(*parent);
    if (variants.kind != Field::Kind::Variant) continue;
    std::vector<std::string> names;
    for (const Variant& v : variants.variants()) {
      const std::vector<const Field*> fields = fields_of(v.fields);
      if (std::find(fields.begin(), fields.end(), &field) != fields.end()) names.push_back(v.name);
    }
    if (!names.empty()) return {variants.selector, names};
  }
  return {};
}

/// Fields of one name that differ come with the variants that have them.
std::string explain_all(const std::vector<const Field*>& meant, const std::vector<const Field*>& parents,
                        const std::string& path) {
  struct Block {
    std::string text, selector;
    std::vector<std::string> owners;
  };
  std::vector<Block> blocks;
  for (const Field* f : meant) {
    const std::string text = explain_field(*f, "");
    auto block = std::find_if(blocks.begin(), blocks.end(), [&](const Block& b) { return b.text == text; });
    if (block == blocks.end()) block = blocks.insert(blocks.end(), {text, {}, {}});
    auto [selector, owners] = owners_of(*f, parents);
    block->selector = selector;
    for (const std::string& owner : owners)
      if (std::find(block->owners.begin(), block->owners.end(), owner) == block->owners.end())
        block->owners.push_back(owner);
  }
  std::vector<std::string> texts;
  for (const Block& b : blocks) {
    const bool several = blocks.size() > 1 && !b.owners.empty();
    texts.push_back(path + (several ? fmt::format(" with {}: {}", b.selector, join(b.owners, ", ")) : "") + b.text);
  }
  return join(texts, "\n");
}

}  // namespace

std::string explain(const MapSpec& spec, const std::string& path) {
  std::vector<const Field*> fields = fields_of(&spec);
  if (path.empty()) return fmt::format("{}\n\n{}", spec.title, list_fields(fields, "  "));
  const Field* field = nullptr;
  std::vector<const Field*> meant, parents;
  bool may_be_name = false;  // After a list or table, any word may be the name of an item.
  const std::vector<std::string> steps = split(path, '.');
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::string &written = steps[i], step = without_index(written);
    if (step.empty() && field && written != step) continue;
    if (std::vector<const Field*> matches = fields_called(fields, step); !matches.empty()) {
      parents = std::exchange(meant, std::move(matches));
      field = meant.front();
      fields.clear();
      may_be_name = false;
      for (const Field* f : meant) {
        for (const Field* inner : fields_in(*f)) fields.push_back(inner);
        may_be_name = may_be_name || (&innermost(*f) != f && written == step);
      }
      continue;
    }
    if (field && innermost(*field).kind == Field::Kind::Variant) {
      const Field& inner = innermost(*field);
      const std::vector<Variant> variants = inner.variants();
      const bool at_selector = step == inner.selector;  // As in cluster.generator.wan.
      if (at_selector && i + 1 == steps.size()) return explain_field(*field, path);
      const std::string& name = at_selector ? steps[++i] : step;
      const auto chosen =
          std::find_if(variants.begin(), variants.end(), [&](const Variant& v) { return v.name == name; });
      if (at_selector && chosen == variants.end()) {
        std::vector<std::string> names;
        for (const Variant& v : variants) names.push_back(v.name);
        throw InputError(fmt::format("'{}' is not a field", path), suggest(name, names));
      }
      if (chosen != variants.end()) {
        if (i + 1 == steps.size()) return explain_variant(*chosen, inner, path);
        fields = fields_of(inner.map);
        for (const Field* variant_field : fields_of(chosen->fields)) fields.push_back(variant_field);
        may_be_name = false;
        continue;
      }
    }
    if (!may_be_name) refuse(spec, path, step, fields);
    may_be_name = false;
  }
  return explain_all(meant, parents, path);
}

std::string reference(const MapSpec& spec, const std::string& title) {
  return fmt::format("# {}\n\n{}\n{}", title, spec.title, ReferenceWriter().write(spec));
}

}  // namespace stagecraft::config
