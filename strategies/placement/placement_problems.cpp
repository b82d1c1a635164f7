// Every number that must divide another, and every key that needs another one: the arithmetic is in
// the message, and one mistake is told once.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "sim/base/error.hpp"
#include "strategies/placement/placement.hpp"
#include "strategies/schedules/schedules.hpp"

namespace rehearse {

namespace {

constexpr const char *tp_key = "tensor_model_parallel_size",
                     *pp_key = "pipeline_model_parallel_size", *cp_key = "context_parallel_size",
                     *ep_key = "expert_model_parallel_size", *dp_key = "data_parallel_size",
                     *vpp_key = "virtual_pipeline_model_parallel_size",
                     *stages_key = "layers_per_stage", *shards_key = "zero_shard_ranks";

// How many stages a rank holds: one; two; or as many as vpp says (0). Nothing for a name that is
// in no table.
std::optional<std::size_t> chunks_of(const std::string& schedule) {
  try {
    return schedule_kind(schedule).chunks;
  } catch (const InputError&) {
    return {};
  }
}

std::vector<std::string> interleaved_names() {
  std::vector<std::string> names;
  for (const ScheduleKind& kind : schedules())
    if (kind.chunks == 0 && kind.name != "none") names.emplace_back(kind.name);
  return names;
}

class Complaints {
 public:
  template <class... Arguments>
  void add(std::vector<std::string> keys, fmt::format_string<Arguments...> text,
           Arguments&&... arguments) {
    found_.push_back({std::move(keys), fmt::format(text, std::forward<Arguments>(arguments)...)});
  }
  bool empty() const { return found_.empty(); }
  std::vector<KeyProblem> take() { return std::move(found_); }

 private:
  std::vector<KeyProblem> found_;
};

void check_order(const Parallelism& p, std::optional<std::size_t> data, Complaints& complaints) {
  struct Part {
    std::string_view name;
    std::size_t size;
    std::size_t mentions = 0;
  };
  std::array<Part, dimension_count> parts{{{"tp", p.tensor},
                                           {"cp", p.context},
                                           {"ep", p.expert},
                                           {"dp", data.value_or(1)},
                                           {"pp", p.pipeline}}};
  std::string_view left = p.order;
  while (true) {
    const std::size_t length = std::min(left.find('-'), left.size());
    const std::string_view word = left.substr(0, length);
    const auto part = std::find_if(parts.begin(), parts.end(),
                                   [&](const Part& known) { return known.name == word; });
    if (part == parts.end())
      return complaints.add({"order"},
                            "order '{}': unknown dimension '{}'; write e.g. \"tp-cp-ep-dp-pp\"",
                            p.order, word);
    ++part->mentions;
    if (length == left.size()) break;
    left.remove_prefix(length + 1);
  }
  for (const Part& part : parts) {
    if (part.mentions > 1)
      complaints.add({"order"}, "order '{}' names {} {} times", p.order, part.name, part.mentions);
    if (part.mentions == 0 && part.size > 1)
      complaints.add({"order"}, "order '{}' leaves out {}, which is {}", p.order, part.name,
                     part.size);
  }
}

// The sizes against the world; gives dp when there is one.
std::optional<std::size_t> check_sizes(const Parallelism& p, std::size_t world,
                                       Complaints& complaints) {
  // Nothing below 1 or above the world divides it, and products of what is left cannot overflow.
  const std::size_t inner = p.tensor * p.pipeline;
  const std::size_t product = inner * p.context;
  if (product == 0 || world % product != 0) {
    complaints.add({tp_key, pp_key, cp_key}, "tp {} × pp {} × cp {} = {} does not divide world {}",
                   p.tensor, p.pipeline, p.context, product, world);
    return {};
  }
  const std::size_t data = world / product;
  if (p.data && *p.data != data)
    complaints.add({dp_key}, "dp {} given, but world {} / (tp {} × pp {} × cp {}) = {}", *p.data,
                   world, p.tensor, p.pipeline, p.context, data);
  const std::size_t replicas = data * p.context;
  if (p.expert == 0 || replicas % p.expert != 0)
    complaints.add({ep_key}, "ep {} does not divide dp {} × cp {} = {}", p.expert, data, p.context,
                   replicas);
  if (p.zero_shard_ranks > 0 && replicas % p.zero_shard_ranks != 0)
    complaints.add({shards_key}, "zero_shard_ranks {} does not divide dp {} × cp {} = {}",
                   p.zero_shard_ranks, data, p.context, replicas);
  return data;
}

void check_zero(const Parallelism& p, Complaints& complaints) {
  if (p.zero_stage > 3)
    complaints.add({"zero_stage"}, "zero_stage is 0, 1, 2 or 3, not {}", p.zero_stage);
  if (p.zero_stage > 0) return;
  if (p.zero_shard_ranks > 0)
    complaints.add({shards_key}, "zero_shard_ranks {} needs zero_stage 1, 2 or 3, not 0",
                   p.zero_shard_ranks);
  if (p.overlap_param_gather)
    complaints.add({"overlap_param_gather"},
                   "overlap_param_gather needs use_distributed_optimizer or zero_stage 1, 2 or 3: "
                   "without it every rank keeps all parameters");
}

void check_schedule(const Parallelism& p, Complaints& complaints) {
  if (p.virtual_pipeline == 0) return complaints.add({vpp_key}, "vpp is at least 1");
  if (!p.schedule_csv.empty()) return;  // the file says who holds what
  const std::optional<std::size_t> chunks = chunks_of(p.schedule);
  if (!chunks) {
    std::vector<std::string> names;
    for (const ScheduleKind& kind : schedules()) names.emplace_back(kind.name);
    const std::string hint = did_you_mean(p.schedule, names);
    return complaints.add({"schedule"}, "unknown schedule '{}'{}", p.schedule,
                          hint.empty() ? fmt::format("; one of {}", fmt::join(names, ", ")) : hint);
  }
  if (*chunks == 1 && p.virtual_pipeline > 1)
    complaints.add({vpp_key, "schedule"}, "vpp {} needs an interleaved schedule ({}), not {}",
                   p.virtual_pipeline, fmt::join(interleaved_names(), ", "), p.schedule);
  if (*chunks == 2 && p.virtual_pipeline != 1 && p.virtual_pipeline != 2)
    complaints.add({vpp_key, "schedule"}, "{} has 2 stages on each rank, not vpp {}", p.schedule,
                   p.virtual_pipeline);
}

// "pp 4 × vpp 2 = 8 stages"
std::string stages_text(const Parallelism& p) {
  const std::size_t stages = stage_count(p);
  return fmt::format("pp {} × vpp {} = {} stages", p.pipeline, stages / p.pipeline, stages);
}

}  // namespace

std::size_t stage_count(const Parallelism& p) {
  const std::size_t chunks = p.schedule_csv.empty() ? chunks_of(p.schedule).value_or(0) : 0;
  return p.pipeline * (chunks == 0 ? p.virtual_pipeline : chunks);
}

std::vector<KeyProblem> placement_problems(const Parallelism& p, std::size_t world) {
  Complaints complaints;
  const std::size_t largest = std::max({p.tensor, p.pipeline, p.context});
  if (largest > std::size_t{1} << 20) {  // beyond it the products below could overflow
    complaints.add({tp_key, pp_key, cp_key}, "tp {} × pp {} × cp {} does not divide world {}",
                   p.tensor, p.pipeline, p.context, world);
    return complaints.take();
  }
  const std::optional<std::size_t> data = check_sizes(p, world, complaints);
  check_order(p, data, complaints);
  if (p.sequence_parallel && p.tensor == 1)
    complaints.add({"sequence_parallel"},
                   "sequence_parallel splits activations over the tensor-parallel ranks: it needs "
                   "tp 2 or more, not 1");
  check_zero(p, complaints);
  check_schedule(p, complaints);
  if (!p.layers_per_stage.empty() && p.layers_per_stage.size() != stage_count(p))
    complaints.add({stages_key}, "layers_per_stage has {} entries for {}",
                   p.layers_per_stage.size(), stages_text(p));
  return complaints.take();
}

std::vector<KeyProblem> batch_problems(const Training& t, std::size_t data) {
  Complaints complaints;
  if (t.micro_batch_size == 0) complaints.add({"micro_batch_size"}, "mbs is at least 1");
  if (!complaints.empty() || t.global_batch_size == 0) return complaints.take();
  const std::vector<std::string> keys{"global_batch_size", "micro_batch_size"};
  if (t.scaling == Scaling::weak) {
    if (t.global_batch_size % t.micro_batch_size != 0)
      complaints.add(keys,
                     "gbs {} of each data-parallel rank (scaling is weak) is no multiple of "
                     "mbs {}",
                     t.global_batch_size, t.micro_batch_size);
    return complaints.take();
  }
  const std::size_t step = t.micro_batch_size * data;
  if (t.global_batch_size % step != 0)
    complaints.add(keys, "gbs {} is no multiple of mbs {} × dp {} = {}", t.global_batch_size,
                   t.micro_batch_size, data, step);
  return complaints.take();
}

namespace {

void check_layers(const Parallelism& p, std::size_t layers, Complaints& complaints) {
  if (p.layers_per_stage.empty()) {
    if (layers % stage_count(p) != 0)
      complaints.add({pp_key, vpp_key},
                     "{} layers do not divide over {}; say how many each gets: layers_per_stage",
                     layers, stages_text(p));
    return;
  }
  const std::size_t sum =
      std::accumulate(p.layers_per_stage.begin(), p.layers_per_stage.end(), std::size_t{0});
  if (sum != layers)
    complaints.add({stages_key}, "layers_per_stage adds up to {}, but the model has {} layers", sum,
                   layers);
}

}  // namespace

std::vector<KeyProblem> model_problems(const Parallelism& p, const SplitNumbers& model) {
  Complaints complaints;
  if (p.tensor == 0 || p.pipeline == 0 || p.context == 0 || p.expert == 0) return {};
  const auto divides = [&](std::size_t part, const char* key, std::string_view name,
                           std::size_t whole, std::string_view what) {
    if (whole % part != 0)
      complaints.add({key}, "{} {} do not divide by {} {}", whole, what, name, part);
  };
  if (model.layers > 0 && stage_count(p) > 0) check_layers(p, model.layers, complaints);
  divides(p.tensor, tp_key, "tp", model.heads, "attention heads");
  // With fewer heads than ranks each is kept by several of them, as Megatron does.
  const std::size_t pair = std::max(model.kv_heads, p.tensor);
  if (model.kv_heads > 0 && model.kv_heads != model.heads &&
      pair % std::min(model.kv_heads, p.tensor) != 0)
    complaints.add({tp_key}, "{} key-value heads and tp {}: neither divides the other",
                   model.kv_heads, p.tensor);
  divides(p.tensor, tp_key, "tp", model.intermediate, "columns of the MLP (intermediate_size)");
  if (p.expert > 1 && model.experts == 0)
    complaints.add({ep_key}, "ep {}, but the model has no experts", p.expert);
  divides(p.expert, ep_key, "ep", model.experts, "experts");
  if (p.sequence_parallel)
    divides(p.tensor, tp_key, "tp", model.seq_length / p.context, "tokens of a sequence");
  // Causal attention gives each rank a part of the front and one of the back (Megatron, cp).
  if (p.context > 1 && model.seq_length % (2 * p.context) != 0)
    complaints.add({"seq_length", cp_key}, "seq_length {} does not divide by 2 × cp {} = {}",
                   model.seq_length, p.context, 2 * p.context);
  return complaints.take();
}

}  // namespace rehearse
