#pragma once

#include <string>

#include "sim/model/builder.hpp"
#include "tests/support/checked.hpp"

namespace stagecraft::test {

/// The tree of a YAML file, as it is written.
inline config::Value file_tree(const std::string& file) {
  config::Problems problems;
  config::Value tree = config::parse_yaml_file(file, problems);
  problems.throw_if_any();
  return tree;
}

/// The model that a file of models/ describes.
inline ModelGraph model_of(const config::Value& tree) {
  const ModelBuilder& def = get_from(model_builders::catalog(), "builder", tree.at("builder").text);
  config::Problems problems;
  const config::Value bare = without(tree, {"schema", "title", "builder", "expect"});
  const config::Value map = config::check(bare, *def.fields, "", problems);
  problems.throw_if_any();
  return def.build(map);
}

}  // namespace stagecraft::test
