#!/bin/sh
# build.sh PROJECT: builds the playground with emscripten. 77 with the reason where that is not installed.
cd "$1" || exit 1
for needed in em++:emscripten node:nodejs; do
  command -v "${needed%%:*}" >/dev/null || { echo "SKIPPED: there is no ${needed%%:*}; tools/setup wasm installs ${needed##*:}"; exit 77; }
done
[ -e build/wasm-sources/fmt/src/format.cc ] && [ -e build/wasm-sources/yaml-cpp/src/parser.cpp ] ||
  { echo "SKIPPED: there are no sources of fmt and yaml-cpp; tools/setup wasm gets them"; exit 77; }
cmake --preset wasm && cmake --build --preset wasm
