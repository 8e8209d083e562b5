// libcudnn.so.9 for emulated GPUs: graphs of operations on bfloat16 as the manual of the backend API describes them. It
// refuses attributes, types, counts and sizes that do not fit, and offers what cuDNN offers for attention: engines for
// heads of a multiple of eight numbers, of which the first does not promise equal bits.
#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>

#include "tests/support/emulated_gpu/device/cudnn_objects.hpp"
#include "tests/support/emulated_gpu/streams.hpp"

using namespace stagecraft::emulated_gpu;
using namespace stagecraft::emulated_gpu::dnn;

namespace {

constexpr Status kBadParameter = 2000, kNotSupported = 3000, kNotInitialized = 1001;
constexpr std::int64_t kWorkspace = 4096;

std::string& last_error() {
  static std::string text;
  return text;
}

Status guarded(const std::function<void()>& call) {
  try {
    call();
    return kSuccess;
  } catch (const Refused& refused) {
    last_error() = refused.what();
    return kBadParameter;
  }
}

Object& object(Descriptor descriptor) { return *static_cast<Object*>(descriptor); }

/// A configuration and an engine have this number.
constexpr auto kEngineNumber = static_cast<Attribute>(-1);

void put(Object& to, Attribute name, const auto& value) {
  const char* const bytes = reinterpret_cast<const char*>(&value);
  to.values[name] = {bytes, bytes + sizeof value};
}

/// Whether the engines know the graph: products of rows by heads of whole groups of eight numbers.
bool is_supported(const Object& graph) {
  const auto is_product = [](const Object* operation) { return operation->type == MatmulOperation; };
  const auto operations = operations_of(graph);
  const bool is_backward = std::count_if(operations.begin(), operations.end(), is_product) > 2;
  if (machine().refuses_attention || (is_backward && machine().refuses_attention_backward)) return false;
  for (const Object* const operation : operations_of(graph))
    if (operation->type == MatmulOperation)
      for (const TensorInfo& x : inputs_of(*operation))
        if (!x.is_virtual && x.sizes[x.strides[3] == 1 ? 3 : 2] % 8 != 0) return false;
  return true;
}

/// What a configuration and a plan keep: descriptors of the graph may go before they do.
struct CompiledGraph {
  std::vector<std::unique_ptr<Object>> owned;
  std::vector<const Object*> operations;
  std::map<std::int64_t, TensorInfo> tensors;
  bool deterministic = true;
};

/// A copy that does not need the descriptors that the program made.
const Object* copy_of(const Object& from, CompiledGraph& to) {
  Object& copy = *to.owned.emplace_back(std::make_unique<Object>(from));
  for (const Attribute name : {PointwiseRuleOf, PointwiseX, PointwiseB, PointwiseT, PointwiseY, MatmulRuleOf, MatmulA,
                               MatmulB, MatmulC, ReductionRuleOf, ReductionX, ReductionY, ReshapeX, ReshapeY})
    if (copy.has(name)) put(copy, name, static_cast<Descriptor>(const_cast<Object*>(copy_of(from.object(name), to))));
  return &copy;
}

std::map<const Object*, std::shared_ptr<const CompiledGraph>>& compiled() {
  static std::map<const Object*, std::shared_ptr<const CompiledGraph>> graphs;
  return graphs;
}

std::shared_ptr<CompiledGraph> compile(const Object& graph) {
  auto result = std::make_shared<CompiledGraph>();
  for (const Object* const operation : operations_of(graph)) result->operations.push_back(copy_of(*operation, *result));
  result->tensors = tensors_of(graph);
  return result;
}

Status get_results(const Object& heuristics, std::int64_t wanted, std::int64_t* count, void* values) {
  constexpr std::int64_t kEngines = 2;
  *count = kEngines;
  if (!is_supported(heuristics.object(HeuristicsGraph))) return kSuccess;
  for (std::int64_t i = 0; i < std::min(wanted, kEngines); ++i) {
    Object& configuration = object(static_cast<Descriptor*>(values)[i]);
    put(configuration, kEngineNumber, static_cast<int>(i));
    const auto graph = compile(heuristics.object(HeuristicsGraph));
    graph->deterministic = i > 0;
    compiled()[&configuration] = graph;
    configuration.complete = true;
  }
  return kSuccess;
}

Status get_engine(const Object& configuration, std::int64_t* count, void* values) {
  last_error() = "status";
  if (!configuration.complete) return kNotInitialized;
  put(object(*static_cast<Descriptor*>(values)), kEngineNumber, configuration.one<int>(kEngineNumber));
  *count = 1;
  return kSuccess;
}

Status get_notes(const Object& engine, std::int64_t* count, void* values) {
  *count = engine.one<int>(kEngineNumber) == 0 ? 1 : 0;
  if (*count > 0) std::memcpy(values, &kNotDeterministic, sizeof kNotDeterministic);
  return kSuccess;
}

std::size_t width_of(DataType type) { return type == DataType::Bfloat16 ? 2 : 4; }

template <class Function>
void each_place(const TensorInfo& t, char* data, Function&& function) {
  std::size_t at = 0;
  for (std::int64_t a = 0; a < t.sizes[0]; ++a)
    for (std::int64_t b = 0; b < t.sizes[1]; ++b)
      for (std::int64_t c = 0; c < t.sizes[2]; ++c)
        for (std::int64_t d = 0; d < t.sizes[3]; ++d)
          function(at++, data + static_cast<std::size_t>(a * t.strides[0] + b * t.strides[1] + c * t.strides[2] +
                                                         d * t.strides[3]) *
                                    width_of(t.type));
}

std::vector<float> load(const TensorInfo& t, char* data) {
  std::vector<float> numbers(static_cast<std::size_t>(t.numbers()));
  each_place(t, data, [&](std::size_t at, const char* place) {
    std::uint32_t bits = 0;  // A bfloat16 is the upper half of a float.
    std::memcpy(reinterpret_cast<char*>(&bits) + (4 - width_of(t.type)), place, width_of(t.type));
    std::memcpy(&numbers[at], &bits, sizeof bits);
  });
  return numbers;
}

void store(const TensorInfo& t, const std::vector<float>& numbers, char* data) {
  each_place(t, data, [&](std::size_t at, char* place) {
    std::memcpy(place, reinterpret_cast<const char*>(&numbers[at]) + (4 - width_of(t.type)), width_of(t.type));
  });
}

/// Everything that an execution needs, taken when it is called.
struct Execution {
  std::shared_ptr<const CompiledGraph> graph;
  std::map<std::int64_t, char*> places;
  Numbers values;
  char* workspace = nullptr;

  void run() {
    std::memset(workspace, 0xff, kWorkspace);
    Numbers numbers = values;
    for (const auto& [id, place] : places) {
      const TensorInfo& t = graph->tensors.at(id);
      if (!on_device(place, static_cast<std::size_t>(t.last() + 1) * width_of(t.type)))
        throw Misuse("an attention goes beyond the memory of tensor " + std::to_string(id));
    }
    for (const Object* const operation : graph->operations) {
      for (const TensorInfo& x : inputs_of(*operation))
        if (!numbers.contains(x.id)) numbers[x.id] = load(x, places.at(x.id));
      compute(*operation, numbers);
      const TensorInfo y = result_of(*operation);
      if (!y.is_virtual) store(y, numbers.at(y.id), places.at(y.id));
    }
  }
};

Execution prepared(const Object& plan, const Object& pack) {
  Execution e;
  e.graph = compiled().at(&plan);
  if (!e.graph->deterministic) throw Misuse("an engine that does not promise equal bits is executed");
  const auto ids = pack.list_of<std::int64_t>(PackIds);
  const auto pointers = pack.list_of<char*>(PackPointers);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto it = e.graph->tensors.find(ids[i]);
    if (it == e.graph->tensors.end() || it->second.is_virtual) throw Refused("a pointer for no tensor of the plan");
    if (it->second.is_value)
      std::memcpy(&e.values[ids[i]].emplace_back(), pointers[i], sizeof(float));
    else if (reinterpret_cast<std::uintptr_t>(pointers[i]) % static_cast<std::uintptr_t>(it->second.alignment) != 0)
      throw Refused("tensor " + std::to_string(ids[i]) + " is misaligned");
    else
      e.places[ids[i]] = pointers[i];
  }
  for (const auto& [id, t] : e.graph->tensors)
    if (!t.is_virtual && !e.places.contains(id) && !e.values.contains(id))
      throw Refused("tensor " + std::to_string(id) + " has no pointer");
  e.workspace = pack.one<char*>(PackWorkspace);
  if (!on_device(e.workspace, kWorkspace) || reinterpret_cast<std::uintptr_t>(e.workspace) % 16 != 0)
    throw Refused("a workspace that is too small or misaligned");
  return e;
}

struct Session {
  cudaStream_t stream{};
};

}  // namespace

extern "C" {

std::size_t cudnnGetVersion() { return machine().cudnn_version; }
const char* cudnnGetErrorString(Status status) {
  return status == kSuccess        ? "CUDNN_STATUS_SUCCESS"
         : status == kBadParameter ? "CUDNN_STATUS_BAD_PARAM"
         : status == kNotSupported ? "CUDNN_STATUS_NOT_SUPPORTED"
                                   : "CUDNN_STATUS_NOT_INITIALIZED";
}
void cudnnGetLastErrorString(char* message, std::size_t size) {
  std::strncpy(message, (last_error() + ", emulated").c_str(), size - 1);
}
Status cudnnCreate(Handle* handle) {
  *handle = new Session;
  return kSuccess;
}
Status cudnnSetStream(Handle handle, cudaStream_t stream) {
  static_cast<Session*>(handle)->stream = stream;
  return kSuccess;
}
Status cudnnBackendCreateDescriptor(DescriptorType type, Descriptor* descriptor) {
  *descriptor = new Object{type, false, {}};
  return kSuccess;
}
Status cudnnBackendDestroyDescriptor(Descriptor descriptor) {
  compiled().erase(&object(descriptor));
  delete &object(descriptor);
  return kSuccess;
}
Status cudnnBackendSetAttribute(Descriptor descriptor, Attribute name, AttributeType type, std::int64_t count,
                                const void* values) {
  return guarded([&] { object(descriptor).set(name, type, count, values); });
}
Status cudnnBackendFinalize(Descriptor descriptor) {
  return guarded([&] {
    object(descriptor).finish();
    if (object(descriptor).type == Plan)
      compiled()[&object(descriptor)] = compiled().at(&object(descriptor).object(PlanConfiguration));
  });
}
Status cudnnBackendGetAttribute(Descriptor descriptor, Attribute name, AttributeType, std::int64_t wanted,
                                std::int64_t* count, void* values) {
  const Object& from = object(descriptor);
  if (from.type == EngineHeuristics && name == HeuristicsResults) return get_results(from, wanted, count, values);
  if (from.type == EngineConfiguration && name == ConfigurationEngine) return get_engine(from, count, values);
  if (from.type == Engine && name == EngineNumericalNotes) return get_notes(from, count, values);
  if (from.type != Plan || name != PlanWorkspace || !from.complete) return kNotSupported;
  std::memcpy(values, &kWorkspace, sizeof kWorkspace);
  *count = 1;
  return kSuccess;
}
Status cudnnBackendExecute(Handle handle, Descriptor plan, Descriptor pack) {
  return guarded([&] {
    if (!object(plan).complete || !object(pack).complete) throw Refused("a descriptor that was not finished");
    enqueue(static_cast<Session*>(handle)->stream, [e = prepared(object(plan), object(pack))]() mutable { e.run(); });
    count_attention();
  });
}

}  // extern "C"
