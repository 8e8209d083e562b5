#pragma once

#include <functional>
#include <string>
#include <vector>

namespace stagecraft {

/// A kind of file that stagecraft reads or writes.
struct FileSchema {
  std::string name;   ///< The kind of an input, such as "scenario", or the name of an output file, such as "spans.csv".
  std::string about;  ///< One line: what it is, and which command writes it.
  bool read;          ///< Otherwise written.
  std::function<std::string()> text;  ///< A JSON Schema, or for CSV a JSON Table Schema.
};

const std::vector<FileSchema>& file_schemas();

/// By name; the ending may be left out where no other name begins so. InputError otherwise.
const FileSchema& file_schema(const std::string& name);

}  // namespace stagecraft
