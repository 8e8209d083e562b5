#pragma once

#include <string>

#include "tools/stagecraft/command.hpp"

namespace stagecraft {

/// --replay of commands that rank on a backend. `when`: words before what it does.
Argument replay_argument(const std::string& usual, const std::string& when = {});

/// The rows that --replay asks for, or `usual`: a number or all. Rows that were ranked on another backend than ideal
/// are not played again; InputError where that is asked for.
int replay_rows(const Arguments&, const std::string& backend, const std::string& usual);

}  // namespace stagecraft
