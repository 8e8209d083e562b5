#pragma once

#include <string>

#include "sim/config/library.hpp"
#include "sim/config/value.hpp"

namespace stagecraft {

/// Replaces a name, a file or `base` + `override` by what it stands for, until none is left. `path` is where the value
/// stands in its file, for messages.
void expand_reference(config::Value& value, FileKind kind, const std::string& path, config::Problems& problems);

/// Takes out what is published of a model (`expect`), which no longer holds when the model is changed.
void drop_facts(config::Value& model);

/// Says so when `schema:` at the top of a file is missing or names another kind or a newer version. False then.
bool check_schema_line(const config::Value& root, const std::string& kind, config::Problems& problems);

}  // namespace stagecraft
