#include "tools/stagecraft/gzip.hpp"

#include "sim/core/diagnostic.hpp"

#ifdef STAGECRAFT_HAS_ZLIB
#include <zlib.h>
#endif

namespace stagecraft {

#ifdef STAGECRAFT_HAS_ZLIB

void check_gzip() {}

std::string gzip(std::string_view text) {
  constexpr int kWindowBits = 15, kGzipHeader = 16, kMemoryLevel = 8;
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kWindowBits + kGzipHeader, kMemoryLevel,
                   Z_DEFAULT_STRATEGY) != Z_OK)
    throw InternalError("zlib does not start");
  std::string compressed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));  // zlib does not write to it.
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(compressed.data());
  stream.avail_out = static_cast<uInt>(compressed.size());
  const int status = deflate(&stream, Z_FINISH);
  compressed.resize(stream.total_out);
  deflateEnd(&stream);
  if (status != Z_STREAM_END) throw InternalError("zlib does not compress a whole text");
  return compressed;
}

#else

void check_gzip() { throw InputError("this build has no zlib, which .gz needs", "a name that ends in .json"); }

std::string gzip(std::string_view) { throw InternalError("gzip() in a build without zlib"); }

#endif

}  // namespace stagecraft
