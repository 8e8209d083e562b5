// The build runs this: embed_fonts OUT PLAIN BOLD writes C++ with both TrueType files, cut down to the characters of
// Windows-1252.

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "sim/output/fonts.hpp"

namespace stagecraft {
namespace {

void write_font(std::ofstream& out, const std::string& variable, const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  std::u32string characters;
  for (int byte = ' '; byte <= 0xFF; ++byte)
    if (const char32_t c = windows_1252_character(static_cast<unsigned char>(byte))) characters += c;
  out << "const unsigned char " << variable << "[] = {";
  for (const char c : font_subset(bytes, characters).bytes)
    out << static_cast<int>(static_cast<unsigned char>(c)) << ',';
  out << "};\n";
}

}  // namespace
}  // namespace stagecraft

int main(int count, char** words) try {
  if (count != 4) return 1;
  std::ofstream out(words[1]);
  out << "// Generated.\n#include \"sim/output/fonts.hpp\"\nnamespace stagecraft {\nnamespace {\n";
  stagecraft::write_font(out, "kPlain", words[2]);
  stagecraft::write_font(out, "kBold", words[3]);
  const auto name = [&](int n) { return std::filesystem::path(words[n]).stem().string(); };
  out << "}\nEmbeddedFont embedded_font(bool bold) {\n"
      << "  if (bold) return {\"" << name(3) << "\", {reinterpret_cast<const char*>(kBold), sizeof kBold}};\n"
      << "  return {\"" << name(2) << "\", {reinterpret_cast<const char*>(kPlain), sizeof kPlain}};\n}\n}\n";
  return out.flush() ? 0 : 1;
} catch (const std::exception& e) {
  std::cerr << e.what() << '\n';
  return 1;
}
