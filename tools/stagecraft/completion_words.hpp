#pragma once

#include <string>
#include <vector>

#include "tools/stagecraft/command.hpp"

namespace stagecraft {

/// What may stand for an argument, as far as it has names: those of a catalogue, of files that are found by name, or of
/// what its line of `--help` lists and nothing else. `--set` has whole assignments. Empty where anything may stand.
std::vector<std::string> words_of(const Command&, const Argument&);

/// -o and --out of "-o,--out".
std::vector<std::string> flags_of(const Argument&);

}  // namespace stagecraft
