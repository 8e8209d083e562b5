// What traces of profilers, and times that frameworks write, become here.

#include <doctest/doctest.h>

#include <fmt/core.h>

#include <algorithm>

#include "sim/core/text.hpp"
#include "sim/interchange/imports/megatron_timing.hpp"
#include "sim/interchange/imports/stream_overlap.hpp"
#include "sim/interchange/imports/traces.hpp"
#include "tests/support/readers.hpp"

namespace stagecraft::trace_imports_test {

using test::mentions, test::refusal;

TEST_CASE("Slices of Stagecraft's own trace become its spans again") {
  const TraceSpans spans = read_stagecraft_trace(R"({"traceEvents":[
{"ph":"M","name":"process_name","pid":0,"args":{"name":"gpu, 0"}},
{"ph":"X","name":"0F0","cat":"compute","pid":0,"tid":1,"ts":1.5,"dur":2.25,"args":{"id":0,"iteration":0,"version":3,"stage":0,"micro_batch":7}},
{"ph":"X","name":"speed","cat":"change","pid":1,"tid":1,"ts":0,"dur":1}]})",
                                                 "t");
  CHECK(spans.csv ==
        "id,instruction,device,stage,micro_batch,iteration,version,bytes,start_ns,end_ns\n"
        "0,0F0,\"gpu, 0\",0,7,0,3,0,1500.000,3750.000\n");
  CHECK(mentions(spans.notes, "left out: 1 slice"));
  CHECK(refusal([] { read_stagecraft_trace("{\"traceEvents\":[]}", "t"); }).find("import kineto") != std::string::npos);
  CHECK(refusal([] { read_stagecraft_trace("{\"traceEvents\":[", "t"); }).find("cut off") != std::string::npos);
}

namespace {

/// Two layers; the first kernel of each is launched in forward, the second in backward; one kernel belongs to neither.
std::string kineto_trace() {
  std::string events;
  const auto event = [&](const std::string& category, const std::string& name, int thread, double start,
                         double duration, const std::string& arguments) {
    events += fmt::format(
        "{}{{\"ph\":\"X\",\"cat\":\"{}\",\"name\":\"{}\",\"pid\":1,\"tid\":{},\"ts\":{},\"dur\":{},\"args\":{{{}}}}}",
        events.empty() ? "" : ",\n", category, name, thread, start, duration, arguments);
  };
  for (int layer = 0; layer < 2; ++layer) {
    const double at = 100 * layer;
    event("python_function", fmt::format("nn.Module: Block_{}", layer), 1, at, 50, "");
    event("python_function", fmt::format("nn.Module: Linear_{}", layer), 1, at + 5, 30, "");
    event("cpu_op", "aten::linear", 1, at + 10, 10, fmt::format("\"Sequence number\":{}", 7 + layer));
    event("cuda_runtime", "cudaLaunchKernel", 1, at + 12, 2, fmt::format("\"correlation\":{}", 10 + layer));
    event("kernel", "gemm", 7, at + 20, 30 + layer, fmt::format("\"correlation\":{}", 10 + layer));
    event("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", 2, 500 - at, 20,
          fmt::format("\"Sequence number\":{},\"Fwd thread id\":1", 7 + layer));
    event("cuda_runtime", "cudaLaunchKernel", 2, 505 - at, 2, fmt::format("\"correlation\":{}", 20 + layer));
    event("kernel", "gemm", 7, 510 - at, 60 + layer, fmt::format("\"correlation\":{}", 20 + layer));
  }
  event("cuda_runtime", "cudaLaunchKernel", 1, 900, 2, "\"correlation\":30");
  event("kernel", "loss", 7, 910, 5, "\"correlation\":30");
  return "{\"traceEvents\":[" + events + "]}";
}

}  // namespace

TEST_CASE("Kernels of a PyTorch profile belong to the layer that launched them, in backward by the sequence number") {
  const KinetoModel read = read_kineto(kineto_trace(), "k.json", {"Block"}, 2);
  REQUIRE(read.model.layers.size() == 2);
  for (const LayerId l : read.model.layers.ids()) {
    const Layer& layer = read.model.layers[l];
    CHECK(layer.name == fmt::format("Block_{}", l.value));
    // Microseconds of a batch of two samples.
    CHECK(layer.times->forward.value == doctest::Approx((30 + l.value) / 2e6).epsilon(1e-12));
    CHECK(layer.times->input_gradient.value == doctest::Approx((60 + l.value) / 4e6).epsilon(1e-12));
  }
  CHECK(mentions(read.notes, "4 of 5 kernels belong to layers: 0.182 of 0.187 ms"));
}

namespace {

/// The trace above as another profiler writes it: each category and each word of a pair is replaced.
std::string kineto_trace_as(std::vector<std::pair<std::string, std::string>> words) {
  std::string text = kineto_trace();
  for (const auto& [now, then] : words)
    for (std::size_t at = 0; (at = text.find(now, at)) != std::string::npos; at += then.size())
      text.replace(at, now.size(), then);
  return text;
}

}  // namespace

TEST_CASE("Older and other categories of Kineto mean the same") {
  const auto times = [](const std::string& text, const char* layer) {
    std::vector<double> values;
    for (const Layer& l : read_kineto(text, "k.json", {layer}, 2).model.layers)
      values.insert(values.end(), {l.times->forward.value, l.times->input_gradient.value});
    return values;
  };
  const std::vector<double> today = times(kineto_trace(), "Block");
  for (const char* runtime : {"cuda_driver", "xpu_runtime", "privateuse1_runtime"})
    CHECK(times(kineto_trace_as({{"cuda_runtime", runtime}}), "Block") == today);
  // As PyTorch 1.9: other names, text for threads, streams with a word, and ranges that are operators.
  const std::string old = kineto_trace_as({{"nn.Module: Block_", "block_"},
                                           {"nn.Module: Linear_", "linear_"},
                                           {"python_function", "Operator"},
                                           {"cpu_op", "Operator"},
                                           {"cuda_runtime", "Runtime"},
                                           {"\"kernel\"", "\"Kernel\""},
                                           {"\"tid\":1,", "\"tid\":\"1\","},
                                           {"\"tid\":2,", "\"tid\":\"2\","},
                                           {"\"tid\":7,", "\"tid\":\"stream 7\","}});
  CHECK(times(old, "block") == today);
  CHECK(stream_overlap_csv(old, "k.json") == stream_overlap_csv(kineto_trace(), "k.json"));
}

TEST_CASE("Around the events of Kineto's writer are headers, metadata, arrows and spans without work") {
  const std::string text =
      R"trace({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100", "numSms": 132}],
"cuda_runtime_version": 12090, "displayTimeUnit": "ms", "baseTimeNanoseconds": 1775078550000000000, "traceEvents": [
{"name": "process_labels", "ph": "M", "ts": 88511388202.755, "pid": 0, "tid": 0, "args": {"labels": "GPU 0"}},
{"ph": "X", "cat": "user_annotation", "name": "layer_0", "pid": 514683, "tid": 514683, "ts": 88511388202.755,
 "dur": 0.060, "args": {"External id": 1}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 514683, "tid": 514683, "ts": 88511388202.765,
 "dur": 0.010, "args": {"cbid": 211, "correlation": 1}},
{"ph": "s", "id": 1, "pid": 514683, "tid": 514683, "ts": 88511388202.765, "cat": "ac2g", "name": "ac2g"},
{"ph": "X", "cat": "gpu_user_annotation", "name": "layer_0", "pid": 0, "tid": 1, "ts": 88511388202.785, "dur": 0.02},
{"ph": "X", "cat": "kernel", "name": "Kernel", "pid": 0, "tid": 1, "ts": 88511388202.785, "dur": 0.020,
 "args": {"device": 0, "stream": 1, "correlation": 1, "grid": [1, 1, 1], "graph id": 0}},
{"ph": "f", "id": 1, "pid": 0, "tid": 1, "ts": 88511388202.785, "cat": "ac2g", "name": "ac2g", "bp": "e"},
{"ph": "X", "cat": "cuda_sync", "name": "Event Sync", "pid": 0, "tid": 1, "ts": 88511388202.875, "dur": 0.020,
 "args": {"stream": -1, "correlation": 300}},
{"ph": "X", "cat": "Trace", "ts": 88511388202.755, "dur": 0.300, "pid": "Spans", "tid": "Test trace",
 "name": "Test trace (0)", "args": {"Op count": 4}},
{"name": "Record Window End", "ph": "i", "s": "g", "pid": "", "tid": "", "ts": 88511388203.055}],
"traceName": "trace.json"})trace";
  const KinetoModel read = read_kineto(text, "k.json", {"layer"}, 1);
  REQUIRE(read.model.layers.size() == 1);
  CHECK(read.model.layers[LayerId{0}].times->forward.value == doctest::Approx(0.02e-6).epsilon(1e-9));
  CHECK(mentions(read.notes, "1 of 1 kernel"));
}

TEST_CASE("Kernels that no layer launched are no times of layers") {
  CHECK(refusal([] {
          read_kineto(kineto_trace_as({{"cuda_runtime", "overhead"}}), "k", {"Block"}, 1);
        }).find("5 kernels in the trace, none launched by a chosen layer") != std::string::npos);
}

TEST_CASE("A PyTorch profile without chosen or known modules is refused with the classes that it has") {
  CHECK(refusal([] { read_kineto(kineto_trace(), "k", {}, 1); }).find("one of: Block (2), Linear (2)") !=
        std::string::npos);
  CHECK(refusal([] { read_kineto(kineto_trace(), "k", {"Layer"}, 1); }).find("no module has the class 'Layer'") !=
        std::string::npos);
  CHECK(refusal([] { read_kineto("[]", "k", {"Layer"}, 1); }).find("with_modules=True") != std::string::npos);
  CHECK(refusal([] { read_kineto("\x1f\x8b", "k", {}, 1); }).find("gunzip") != std::string::npos);
}

TEST_CASE("Events that the profiler never saw end are left out of layers and named; busy times are refused with them") {
  const std::string unfinished = R"({"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":990},)";
  std::string text = kineto_trace();
  text.insert(text.find('[') + 1, unfinished + unfinished);
  const KinetoModel read = read_kineto(text, "k.json", {"Block"}, 2);
  CHECK(read.model.layers[LayerId{0}].times->forward.value == doctest::Approx(30 / 2e6).epsilon(1e-12));
  CHECK(mentions(read.notes, "2 events without a duration are left out; the first is event 1, 'aten::mm'"));
  CHECK(refusal([&] { stream_overlap_csv(text, "k.json"); }).find("event 1, 'aten::mm', has no duration") !=
        std::string::npos);
}

namespace {

struct TimedTask {
  int rank, chunk, micro_batch;
  bool forward;
  double milliseconds() const {
    // A forward needs 1 to 4 ms by its place in the model, a backward twice that; the second micro-batch 2 ms more.
    return (forward ? 1 : 2) * (1 + rank + 2 * chunk) + 2 * micro_batch;
  }
};

/// All tasks of two ranks with two chunks each and two micro-batches.
std::vector<TimedTask> timed_tasks() {
  std::vector<TimedTask> tasks;
  for (const bool forward : {true, false})
    for (int m = 0; m < 2; ++m)
      for (int c = 0; c < 2; ++c)
        for (int r = 0; r < 2; ++r) tasks.push_back({r, c, m, forward});
  return tasks;
}

std::string fields_of(const TimedTask& t, const char* duration) {
  return fmt::format("{{\"pp_rank\":{},\"microbatch_id\":{},\"model_chunk_id\":{},\"task_type\":\"{}\",\"{}\":{}}}",
                     t.rank, t.micro_batch, t.chunk, t.forward ? "forward" : "backward", duration, t.milliseconds());
}

/// As task_durations.json.
std::string durations_of(const std::vector<TimedTask>& tasks) {
  std::string text;
  for (const TimedTask& t : tasks)
    text += fmt::format("{}\"pp_{}-mbs_{}-model_chunk_{}-task_type_{}\":{}", text.empty() ? "{" : ",\n", t.rank,
                        t.micro_batch, t.chunk, t.forward ? "forward" : "backward", fields_of(t, "duration_ms"));
  return text + "}";
}

/// As finished_tasks.json.
std::string finished_of(const std::vector<TimedTask>& tasks) {
  std::string ranks[2];
  for (const TimedTask& t : tasks) ranks[t.rank] += (ranks[t.rank].empty() ? "" : ",") + fields_of(t, "duration");
  return fmt::format("{{\"0\":[{}],\"1\":[{}]}}", ranks[0], ranks[1]);
}

}  // namespace

TEST_CASE("Chunks of Megatron-LM are layers in the order of the model, with means over the micro-batches") {
  for (const std::string& text : {durations_of(timed_tasks()), finished_of(timed_tasks())}) {
    const MegatronTiming read = read_megatron_timing(text, "t.json", 4);
    REQUIRE(read.model.layers.size() == 4);
    for (const LayerId l : read.model.layers.ids()) {
      const Layer& layer = read.model.layers[l];
      CHECK(layer.name == fmt::format("chunk{}_rank{}", l.value / 2, l.value % 2));
      // Place l + 1 and half of 2 ms; milliseconds of four samples; half of the backward is each gradient.
      CHECK(layer.times->forward.value == doctest::Approx((l.value + 1 + 1) * 1e-3 / 4).epsilon(1e-12));
      CHECK(layer.times->input_gradient.value == doctest::Approx((2 * (l.value + 1) + 1) * 1e-3 / 8).epsilon(1e-12));
      CHECK(layer.times->weight_gradient.value == layer.times->input_gradient.value);
    }
    CHECK(mentions(read.notes, "taken: 2 chunks of 2 micro-batches each on 2 pipeline ranks, 16 tasks"));
    CHECK(mentions(read.notes, "differ from them by up to 50 %"));  // 1 and 3 ms have the mean 2 ms.
  }
}

TEST_CASE("Times of Megatron-LM are refused where a task is missing, twice, or without a time") {
  const auto problem = [](const std::string& text) {
    return refusal([&] { read_megatron_timing(text, "t.json", 1); });
  };
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  std::vector<TimedTask> tasks = timed_tasks();
  tasks.pop_back();
  CHECK(has(problem(durations_of(tasks)),
            "the backward of chunk 1 of pipeline rank 1 is there for 1 of 2 micro-batches"));
  std::erase_if(tasks, [](const TimedTask& t) { return t.rank == 0 && t.chunk == 1; });
  CHECK(has(problem(durations_of(tasks)), "chunk 1 of pipeline rank 0 has no task"));
  tasks = timed_tasks();
  tasks.push_back(tasks.front());
  CHECK(has(problem(finished_of(tasks)), "the forward of chunk 0 of pipeline rank 0 is there twice for micro-batch 0"));
  CHECK(has(problem("{}"), "no task"));
  CHECK(has(problem("[1]"), "no object"));
  CHECK(has(problem("{\"a\""), "cut off"));
  const std::string first = fields_of(timed_tasks().front(), "duration_ms");
  const auto changed = [&](std::string from, const char* to) {
    std::string text = first;
    text.replace(text.find(from), from.size(), to);
    return problem("{\"a\":" + text + "}");
  };
  CHECK(has(changed("\"duration_ms\":1", "\"duration_ms\":null"), "has no 'duration_ms' for micro-batch 0"));
  CHECK(has(changed("\"duration_ms\":1", "\"duration_ms\":-1"), "has no 'duration_ms' for micro-batch 0"));
  CHECK(has(changed("\"duration_ms\":1", "\"duration_ms\":1e308"), "has no 'duration_ms' for micro-batch 0"));
  CHECK(has(changed("\"pp_rank\":0", "\"pp_rank\":-1"), "task 1: 'pp_rank' is no whole number"));
  CHECK(has(changed("forward", "send"), "'task_type' is neither forward nor backward"));
}

}  // namespace stagecraft::trace_imports_test
