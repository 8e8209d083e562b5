#include "sim/report/html_page.hpp"

#include <map>

#include <fmt/format.h>

#include "sim/core/escape.hpp"
#include "sim/core/sha256.hpp"

namespace stagecraft {
namespace {

/// Text between script tags: no name can end it, or begin a comment.
std::string json_block(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
  return out;
}

/// What a Content-Security-Policy calls a script or style.
std::string fingerprint(std::string_view text) {
  constexpr const char* kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const std::string hex = sha256(text) + "00";  // 256 bits and two more, in 43 digits of six bits
  std::string out;
  for (std::size_t i = 0; i + 3 <= hex.size(); i += 3) {
    const auto bits = std::stoul(hex.substr(i, 3), nullptr, 16);
    out += kDigits[bits >> 6];
    out += kDigits[bits & 63];
  }
  return "'sha256-" + out.substr(0, 43) + "='";
}

std::string policy(const html::Source& source) {
  return fmt::format("default-src 'none'; base-uri 'none'; form-action 'none'; style-src {}; script-src {}",
                     fingerprint(source.style), fingerprint(source.script));
}

/// The page with what its places {{name}} stand for.
std::string filled(std::string_view page, const std::map<std::string_view, std::string>& places) {
  std::string out;
  for (auto open = page.find("{{"); open != page.npos; open = page.find("{{")) {
    const auto close = page.find("}}", open);
    out += page.substr(0, open);
    out += places.at(page.substr(open + 2, close - open - 2));
    page.remove_prefix(close + 2);
  }
  return out += page;
}

}  // namespace

std::string html_page(const html::Source& source, const std::string& title, std::string_view json,
                      std::span<const std::string> parts) {
  std::string blocks;
  for (std::size_t k = 0; k < parts.size(); ++k)
    blocks += fmt::format("<script type=\"application/json\" id=\"part{}\">{}</script>\n", k, json_block(parts[k]));
  return filled(source.page, {{"policy", policy(source)},
                              {"title", xml_escape(title)},
                              {"style", std::string(source.style)},
                              {"data", json_block(json)},
                              {"parts", std::move(blocks)},
                              {"script", std::string(source.script)}});
}

}  // namespace stagecraft
