#include <doctest/doctest.h>

#include "sim/core/sha256.hpp"

using namespace stagecraft;

TEST_CASE("digests follow FIPS 180-4, with and without the instructions of the processor") {
  for (const auto& digest : {sha256, portable_sha256}) {
    CHECK(digest("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK(digest("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK(digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    CHECK(digest(std::string(1000000, 'a')) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  }
}

TEST_CASE("digests of all lengths around a block are equal both ways") {
  std::string text;
  for (int length = 0; length < 200; ++length) {
    CHECK(sha256(text) == portable_sha256(text));
    text += static_cast<char>(17 * length + 3);
  }
}
