#pragma once

#include <string>

namespace stagecraft::playground {

/// Answers a request of the page, JSON text both; the README has the members of each. `file` is what the edited
/// scenario is called, and what its references are relative to; it is there, but its text comes with the request.
/// Whatever goes wrong is an answer with `error` and `text`.
std::string answer(const std::string& request, const std::string& file);

}  // namespace stagecraft::playground
