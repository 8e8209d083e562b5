// Any bytes as a file of gzip: unpacked, and then packed and unpacked again it is the same; or refused. The bytes as a
// text come back, too, and two files one after the other are one text.

#include <cstdint>
#include <cstdlib>
#include <string>

#include "sim/core/diagnostic.hpp"
#include "tools/stagecraft/gzip.hpp"

using namespace stagecraft;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (size % 8 == 0) {  // Packing takes longer than everything else.
    const std::string packed = gzip(bytes), text(bytes);
    require(is_gzip(packed) && gunzip(packed, "f") == text && gunzip(packed + packed, "f") == text + text);
  }
  try {
    const std::string text = gunzip(bytes, "f");
    require(gunzip(gzip(text), "f") == text);
  } catch (const InputError& error) {
    if (error.problems().empty() || render(error.problems()).empty()) std::abort();
  }
  return 0;
}
