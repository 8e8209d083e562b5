// Packs and unpacks gzip in memory with zlib, or refuses it in a build without zlib, for `run --trace X.json.gz` and
// for traces that `import` reads.

#include "tools/stagecraft/gzip.hpp"

#include <algorithm>
#include <memory>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"

#ifdef STAGECRAFT_HAS_ZLIB
#include <zlib.h>
#endif

namespace stagecraft {

namespace {

[[noreturn]] void refuse(const std::string& file, std::string message) {
  throw InputError({{{file, 0, 0}, {}, std::move(message), fmt::format("gunzip --keep {}", file), "gzip"}});
}

}  // namespace

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

#ifdef STAGECRAFT_HAS_ZLIB

bool has_gzip() { return true; }
void check_gzip() {}

std::string gunzip(std::string_view bytes, const std::string& file) {
  constexpr int kWindowBits = 15, kGzipHeader = 16;
  // Traces are compressed to a tenth or a thirtieth; a file that is made to fill the memory, to a thousandth.
  constexpr std::size_t kLeastPiece = 1 << 12, kMostPiece = 1 << 20, kMostTimes = 100;
  constexpr std::size_t kAlwaysUnpacked = std::size_t{64} << 20, kMostUnpacked = std::size_t{4} << 30;
  const std::size_t piece = std::clamp(4 * bytes.size(), kLeastPiece, kMostPiece);  // A short file needs no megabyte.
  z_stream stream{};
  if (inflateInit2(&stream, kWindowBits + kGzipHeader) != Z_OK) throw InternalError("zlib does not start");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, inflateEnd);
  std::string text;
  std::size_t read = 0;
  bool complete = false;  // A file may have several members, one after the other.
  while (read < bytes.size() || !complete) {
    const std::size_t here = std::min(bytes.size() - read, piece);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data() + read));  // zlib does not write to it.
    stream.avail_in = static_cast<uInt>(here);
    const std::size_t size = text.size();
    text.resize(size + piece);
    stream.next_out = reinterpret_cast<Bytef*>(text.data() + size);
    stream.avail_out = static_cast<uInt>(piece);
    const int status = inflate(&stream, Z_NO_FLUSH);
    read += here - stream.avail_in;
    text.resize(size + piece - stream.avail_out);
    complete = status == Z_STREAM_END;
    if (status == Z_BUF_ERROR) refuse(file, "the compressed file is cut off");
    if (status != Z_OK && !complete) refuse(file, "the compressed file is damaged");
    if (complete) inflateReset(&stream);
    if (text.size() > kMostUnpacked) refuse(file, "the compressed file has more than 4 GiB inside");
    if (text.size() > std::max(kAlwaysUnpacked, kMostTimes * bytes.size()))
      refuse(file, fmt::format("the compressed file has more than 64 MiB and {} times its size inside", kMostTimes));
  }
  return text;
}

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

std::string gunzip(std::string_view, const std::string& file) {
  refuse(file, "the file is compressed, and this build has no zlib");
}

bool has_gzip() { return false; }
void check_gzip() { throw InputError("this build has no zlib, which .gz needs", "a name that ends in .json"); }

std::string gzip(std::string_view) { throw InternalError("gzip() in a build without zlib"); }

#endif

}  // namespace stagecraft
