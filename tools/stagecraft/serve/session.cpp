// The loop of `serve`: receives a request, calls the answer_*() of its method, sends the result or the error, and sends
// progress while it works.

#include "tools/stagecraft/serve/session.hpp"

#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <new>
#include <thread>
#include <vector>

#include "backends/backend.hpp"
#include "sim/core/activity.hpp"
#include "sim/core/threads.hpp"
#include "sim/experiment/version.hpp"
#include "tools/stagecraft/command.hpp"
#include "tools/stagecraft/explanation.hpp"

namespace stagecraft::serve {
namespace {

constexpr std::chrono::milliseconds kBetweenNews{200};

/// Sends what the program does now, whenever that changes, while a request is answered. Ends the process when the
/// program that asked has ended: no one waits for the answer.
class ActivityNews {
 public:
  explicit ActivityNews(Connection& connection)
      : connection_(connection), thread_(thread_if_possible([this] { watch(); })) {}
  ~ActivityNews() {
    {
      const std::scoped_lock lock(mutex_);
      ended_ = true;
    }
    ended_condition_.notify_one();
  }

 private:
  void watch() try {
    std::string last;
    std::unique_lock lock(mutex_);
    while (!ended_condition_.wait_for(lock, kBetweenNews, [this] { return ended_; })) {
      if (getppid() != parent_) std::_Exit(kNoReader);
      const std::string doing = current_activity();
      if (doing.empty() || doing == last) continue;
      connection_.send(JsonObject{{"progress", doing}});
      last = doing;
    }
  } catch (const std::exception&) {
    // The other program has gone, which the answer will find out, or there is no memory for news.
  }

  static constexpr int kNoReader = 4;
  Connection& connection_;
  const pid_t parent_ = getppid();
  std::mutex mutex_;
  std::condition_variable ended_condition_;
  bool ended_ = false;
  std::jthread thread_;  ///< Absent where the system has no more threads: there is no news then.
};

Json answer_version(Session&, const Parameters&) {
  JsonArray backends;
  for (const BackendDef* def : backends::catalog())
    backends.push_back(JsonObject{{"name", def->name}, {"unavailable", def->why_not()}});
  return JsonObject{{"protocol", 1}, {"version", version()}, {"backends", std::move(backends)}};
}

Json answer_explain(Session&, const Parameters& p) { return JsonObject{{"text", explanation(p.text("path"))}}; }

Json answer_release(Session& session, const Parameters& p) {
  std::vector<int> runs;
  for (const Json& run : p.items("runs")) runs.push_back(whole_number(run, "runs", 0, kLargestWhole));
  for (const int run : runs) session.runs.erase(run);
  return JsonObject{};
}

using Answer = Json (*)(Session&, const Parameters&);

Answer answer_to(const std::string& method) {
  static constexpr std::pair<const char*, Answer> kAnswers[] = {{"version", answer_version},
                                                                {"load", answer_load},
                                                                {"check", answer_check},
                                                                {"run", answer_run},
                                                                {"schedule", answer_schedule},
                                                                {"draw", answer_draw},
                                                                {"compare", answer_compare},
                                                                {"plan", answer_plan},
                                                                {"search", answer_search},
                                                                {"sweep", answer_sweep},
                                                                {"explain", answer_explain},
                                                                {"release", answer_release},
                                                                {"search_task", answer_search_task}};
  for (const auto& [name, answer] : kAnswers)
    if (method == name) return answer;
  throw InputError("there is no request '" + method + "'", "the other program may be of another version");
}

Json error(const char* type, const std::string& text, const std::vector<Diagnostic>& problems = {}) {
  return JsonObject{{"error", JsonObject{{"type", type}, {"text", text}, {"problems", problems_list(problems)}}}};
}

Json no_memory() { return error("backend", "this machine has not enough memory for it"); }

/// The answer to the next request, or what is wrong, by the exit codes of the command line. Nothing at the end.
std::optional<Json> answer_next(Session& session) try {
  static const Json none = JsonObject{};
  const std::optional<Json> request = session.connection.receive();
  if (!request) return {};
  const Parameters top(*request, "request");
  session.shared = OpenFile();
  const Json* given = top.find("params");
  const ActivityNews news(session.connection);
  return JsonObject{{"result", answer_to(top.text("method"))(session, Parameters(given ? *given : none, "params"))}};
} catch (const InputError& e) {
  return error("input", e.what(), e.problems());
} catch (const Infeasible& e) {
  return error("infeasible", e.problem().where.line > 0 ? render(e.problem()) : std::string(e.what()), {e.problem()});
} catch (const BackendError& e) {
  return error("backend", e.what());
} catch (const FunctionFailed&) {
  return error("function", "the function has failed");
} catch (const std::bad_alloc&) {
  return no_memory();
} catch (const std::exception& e) {
  return error("internal", e.what());
}

void send_answer(Connection& connection, const Json& answer) try {
  connection.send(answer);
} catch (const std::bad_alloc&) {
  connection.send(no_memory());
}

}  // namespace

void serve() {
  Connection connection;
  Session session{connection};
  while (const std::optional<Json> answer = answer_next(session)) send_answer(connection, *answer);
}

}  // namespace stagecraft::serve
