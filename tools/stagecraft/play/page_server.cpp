// Serves the page of the playground on this machine: the page, answers of the native engine, and the scenario's file,
// which is read again and saved when the page asks for it.

#include "tools/stagecraft/play/page_server.hpp"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <list>
#include <memory>

#include <fmt/core.h>

#include "sim/core/child_process.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/file.hpp"
#include "sim/core/json.hpp"
#include "sim/core/output.hpp"
#include "sim/core/sha256.hpp"
#include "sim/output/html_page.hpp"
#include "tools/playground/answers.hpp"
#include "tools/stagecraft/play/http.hpp"

namespace stagecraft::play {
namespace {

constexpr unsigned kLongestAnswer = 60;  // Seconds; the page itself waits for less.
constexpr std::size_t kMostRequests = 16;
constexpr int kBetweenLooksMs = 200;

std::string page_of(const Served& served) {
  const Json data = JsonObject{{"token", served.token}};
  return html_page(html::playground, served.file, data.dump(), {}, {}, "; connect-src 'self'");
}

Json failure(const std::string& why) { return JsonObject{{"error", why}}; }

Json read_again(const Served& served, const Json& request) {
  const std::string text = read_output(served.file);
  Json answer = JsonObject{{"hash", sha256(text)}};
  if (!request.find("only_hash")) answer["text"] = text;
  return answer;
}

/// Writes the text, unless the file has changed since the page read it: `hash` is of what it read, or empty.
Json save(const Served& served, const Json& request) {
  if (!served.may_save) return failure("this is an example of Stagecraft itself; copy it to a file of your own");
  const std::string &text = request.at("text").text(), &hash = request.at("hash").text();
  if (!hash.empty() && sha256(read_output(served.file)) != hash) return JsonObject{{"changed", true}};
  allow_saving(served.file);
  write_output(served.file, text, Overwrite::Anything);
  return JsonObject{{"hash", sha256(text)}};
}

std::string json_answer(const Served& served, const Request& request) try {
  if (request.path == "/answer") return playground::answer(request.body, served.file);
  const Json asked = Json::parse(request.body).value_or(Json());
  return (request.path == "/file" ? read_again(served, asked) : save(served, asked)).dump();
} catch (const std::exception& e) {
  return failure(e.what()).dump();
}

/// Other pages of the browser may send requests here too, under another name of this machine, but know no token.
bool is_permitted(const Request& request, const Served& served, int port) {
  const std::string host = fmt::format("127.0.0.1:{}", port);
  return request.token == served.token && request.host == host &&
         (request.origin.empty() || request.origin == "http://" + host);
}

void answer_connection(int socket, const Served& served, int port) {
  alarm(kLongestAnswer);
  const std::optional<Request> request = receive_request(socket);
  if (!request) return;
  const bool is_page = request->method == "GET" && request->path == "/";
  const bool asks =
      request->method == "POST" && (request->path == "/answer" || request->path == "/file" || request->path == "/save");
  if (!is_permitted(*request, served, port))
    return send_response(socket, 403, "text/plain",
                         "Open the whole address that stagecraft play has printed, with its token.\n");
  if (!is_page && !asks) return send_response(socket, 404, "text/plain", "There is nothing here.\n");
  if (request->path == "/answer") end_with_connection(socket);
  if (is_page) return send_response(socket, 200, "text/html", page_of(served));
  send_response(socket, 200, "application/json", json_answer(served, *request));
}

}  // namespace

std::string new_token() {
  std::array<std::uint64_t, 2> words{};
  if (getrandom(words.data(), sizeof words, 0) != sizeof words) throw BackendError("the system has no random numbers");
  return fmt::format("{:016x}{:016x}", words[0], words[1]);
}

void serve_page(const Served& served, int listening) {
  const int port = port_of(listening);
  std::list<std::unique_ptr<ChildProcess>> answering;
  for (;;) {
    answering.remove_if([](const auto& child) { return child->wait(Seconds{1e-6}); });
    pollfd waiting{listening, POLLIN, 0};
    if (poll(&waiting, 1, kBetweenLooksMs) <= 0 || answering.size() >= kMostRequests) continue;
    const OpenFile connection(accept4(listening, nullptr, nullptr, SOCK_CLOEXEC));
    if (connection.number() < 0) continue;
    answering.push_back(std::make_unique<ChildProcess>(
        ChildOptions{}, [&](MessageSocket&) { answer_connection(connection.number(), served, port); }));
  }
}

}  // namespace stagecraft::play
