// Fills the HTML pages of tools/report with data, style and script under a Content-Security-Policy that permits nothing
// else.

#include "sim/output/html_page.hpp"

#include <map>

#include <fmt/core.h>

#include "sim/core/sha256.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

/// Text between script tags: no name can end it, begin a comment, or reverse the direction of writing.
std::string json_block(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : replace_unprintable(text)) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
  return out;
}

/// What a Content-Security-Policy calls a script or style.
std::string fingerprint(std::string_view text) {
  constexpr const char* kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const std::string hex = sha256(text) + "00";  // 256 bits and two more, in 43 digits of six bits
  std::string out;
  for (std::size_t i = 0; i + 3 <= hex.size(); i += 3) {
    const auto bits = std::stoul(hex.substr(i, 3), nullptr, 16);
    out += kBase64[bits >> 6];
    out += kBase64[bits & 63];
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
                      std::span<const std::string> parts, const std::string& picture, const std::string& more_policy) {
  std::string blocks;
  for (std::size_t k = 0; k < parts.size(); ++k)
    blocks += fmt::format("<script type=\"application/json\" id=\"part{}\">{}</script>\n", k, json_block(parts[k]));
  return filled(source.page, {{"policy", policy(source) + more_policy},
                              {"title", xml_escape(title)},
                              {"style", std::string(source.style)},
                              {"data", json_block(json)},
                              {"parts", std::move(blocks)},
                              {"picture", picture},
                              {"script", std::string(source.script)}});
}

std::string html_content_page(const html::Source& source, const std::string& title, const std::string& content) {
  return filled(source.page, {{"policy", policy(source)},
                              {"title", xml_escape(title)},
                              {"style", std::string(source.style)},
                              {"content", content},
                              {"script", std::string(source.script)}});
}

}  // namespace stagecraft
