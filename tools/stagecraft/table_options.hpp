#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/output/table.hpp"
#include "tools/stagecraft/command.hpp"

namespace stagecraft {

/// --wide, --columns and --color of commands that print tables.
std::vector<Argument> table_arguments();
/// The arguments, followed by table_arguments().
std::vector<Argument> with_table_arguments(std::vector<Argument>);
/// --wide and --color of commands whose tables always have the same columns.
std::vector<Argument> with_width_arguments(std::vector<Argument>);

/// --details of commands whose text shows the answer first. `what` it adds.
Argument details_argument(const std::string& what);

/// --label PATH=TEXT, by path. `example` follows --label in the help of an error.
std::map<std::string, std::string> labels_of(const Arguments&, const std::string& example);

/// The layout that the user asked for. The width is that of COLUMNS in the environment, else that of the terminal that
/// stdout is. Without either, or with --wide, there is no limit.
TextLayout layout_of(const Arguments&);

/// The width of text for people: that of COLUMNS in the environment, else of the terminal that stdout is; 0: no limit.
int text_width();

/// Refuses --format and --columns that do not belong together.
void check_table_format(const Arguments&, const std::vector<std::string>& formats);

/// The rows in a format that needs nothing but the table: csv or markdown, with the columns that the user chose.
std::string table_in_format(const Table&, const std::string& format, const TextLayout&);

/// print() for text that may have the sequences of `text_color`, which then reach the terminal.
void print_text(std::string_view text, const TextLayout&);

}  // namespace stagecraft
