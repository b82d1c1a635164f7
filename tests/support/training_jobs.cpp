// The table of jobs, and how random ones are drawn.
#include "tests/support/training_jobs.hpp"

namespace rehearse {

Workload shortened(std::string_view name, std::size_t blocks) {
  const Workload whole = preset(name);
  Transformer shape = whole.transformer;
  shape.layers = static_cast<std::int64_t>(blocks);
  Workload model = transformer_workload(std::string{name}, whole.family, shape);
  model.seq_length = whole.seq_length;
  return model;
}

namespace {

struct Row {
  std::string_view machine;
  std::size_t nodes;
  std::string_view model;
  std::size_t blocks;  // of a transformer; 0: all layers of another model
  std::size_t tp, pp;
  std::string_view schedule;
  std::size_t microbatches;
  std::size_t zero = 0;
  std::function<void(Scenario&)> more = {};
};

void overlapped(Scenario& s) {
  s.parallelism.overlap_grad_reduce = true;
  s.parallelism.overlap_param_gather = s.parallelism.zero_stage > 0;
}
void in_ring(Scenario& s, std::size_t ranks) {
  s.parallelism.context = ranks;
  s.parallelism.context_exchange = ContextExchange::ring;
}
void in_order(Scenario& s, std::string order) { s.parallelism.order = std::move(order); }

// clang-format off
const std::vector<Row>& rows() {
  static const std::vector<Row> table{
    {"dgx-h100", 1, "gpt2", 4, 1, 1, "1F1B", 2},
    {"dgx-h100", 2, "gpt2", 4, 1, 1, "1F1B", 1, 0, overlapped},
    {"dgx-h100", 2, "gpt2", 4, 2, 2, "1F1B", 4, 0, overlapped},
    {"dgx-h100", 2, "gpt2", 4, 4, 1, "1F1B", 2, 1},
    {"dgx-h100", 2, "gpt2", 4, 1, 4, "GPipe", 4, 1, overlapped},
    {"dgx-h100", 8, "llama-3-8b", 4, 8, 2, "1F1B", 3, 1, [](Scenario& s) {
       overlapped(s); s.parallelism.sequence_parallel = true; }},
    {"dgx-h100", 8, "llama-3-8b", 2, 1, 1, "1F1B", 1, 3, overlapped},
    {"dgx-h100", 4, "llama-3-8b", 2, 1, 1, "1F1B", 2, 3, [](Scenario& s) {
       overlapped(s); s.parallelism.zero_shard_ranks = 8; }},
    {"dgx-h100", 2, "llama-3-8b", 4, 2, 2, "1F1B", 2, 2, [](Scenario& s) {
       s.parallelism.zero_shard_ranks = 2; }},
    {"dgx-h100", 2, "gpt2", 4, 2, 4, "1F1B", 4, 0, [](Scenario& s) { in_order(s, "tp-pp-dp"); }},
    {"dgx-h100", 2, "gpt2", 4, 2, 4, "ZBH1", 5, 0, [](Scenario& s) {
       in_order(s, "pp-tp-dp"); overlapped(s); }},
    {"dgx-h100", 2, "gpt2", 4, 4, 2, "Interleaved1F1B", 4, 0, [](Scenario& s) {
       s.parallelism.virtual_pipeline = 2; in_order(s, "dp-tp-pp"); }},
    {"dgx-h100", 2, "gpt2", 8, 2, 4, "InterleavedZeroBubble", 8, 1, [](Scenario& s) {
       s.parallelism.virtual_pipeline = 2; overlapped(s); }},
    {"dgx-h100", 2, "gpt2", 8, 2, 4, "ZBVZeroBubble", 8, 0, overlapped},
    {"dgx-h100", 2, "gpt2", 8, 2, 4, "DualPipeV", 8, 1, overlapped},
    {"dgx-h100", 2, "gpt2", 4, 4, 2, "LoopedBFS", 3, 2, [](Scenario& s) {
       s.parallelism.virtual_pipeline = 2; }},
    {"dgx-h100", 4, "gpt2", 4, 4, 4, "none", 2},
    {"dgx-h100", 2, "gpt2", 5, 2, 2, "1F1B", 3, 0, [](Scenario& s) {
       s.parallelism.layers_per_stage = {2, 3}; s.parallelism.recompute = Recompute::full; }},
    {"dgx-h100", 4, "llama-3-8b", 3, 16, 1, "1F1B", 2},  // over two nodes
    {"dgx-a100", 2, "bert-large", 4, 4, 2, "1F1B", 4, 0, [](Scenario& s) {
       overlapped(s); s.training.precision = Precision::fp16; }},
    {"dgx-a100", 4, "gpt2", 2, 1, 2, "GPipe", 3, 3, overlapped},
    {"dgx-a100", 2, "resnet-50", 0, 1, 1, "1F1B", 1, 0, [](Scenario& s) {
       overlapped(s); s.training.micro_batch_size = 8;
       s.training.optimizer = OptimizerKind::lars; }},
    {"dgx-a100", 1, "resnet-50", 0, 1, 4, "1F1B", 4, 0, [](Scenario& s) {
       s.training.micro_batch_size = 4; }},
    {"dgx-1", 1, "gpt2", 4, 2, 2, "1F1B", 3, 0, overlapped},
    {"dgx-1", 1, "gpt2", 2, 4, 1, "1F1B", 2, 1, overlapped},
    {"dgx-1", 1, "mlp", 0, 1, 1, "1F1B", 2, 2},
    {"dgx-1", 2, "mlp", 0, 1, 2, "1F1B", 4, 0, overlapped},
    {"p40-8", 1, "bert-large", 2, 2, 1, "1F1B", 2, 0, [](Scenario& s) {
       overlapped(s); s.training.precision = Precision::fp32; }},
    {"p40-8", 1, "gpt2", 4, 1, 4, "1F1B", 4, 0, [](Scenario& s) {
       overlapped(s); in_order(s, "pp-dp-tp"); s.training.precision = Precision::fp32; }},
    {"l40s-8", 1, "gpt2", 4, 2, 2, "1F1B", 4, 1, overlapped},
    {"l40s-8", 1, "gpt2", 4, 1, 1, "1F1B", 2, 3, overlapped},
    {"ethernet-cpu", 8, "mlp", 0, 1, 1, "1F1B", 1, 0, [](Scenario& s) {
       overlapped(s); s.training.precision = Precision::fp32; }},
    {"summit", 4, "gpt2", 2, 1, 1, "1F1B", 1, 0, [](Scenario& s) {
       overlapped(s); s.training.precision = Precision::fp16; }},
    {"summit", 5, "gpt2", 6, 2, 3, "1F1B", 4, 1, [](Scenario& s) {
       overlapped(s); s.training.precision = Precision::fp16; }},
    {"summit", 3, "gpt2", 6, 1, 6, "1F1B", 6, 0, [](Scenario& s) {
       overlapped(s); in_order(s, "dp-pp"); s.training.precision = Precision::fp16; }},
    {"summit", 7, "mlp", 0, 1, 1, "1F1B", 1, 3, [](Scenario& s) {
       overlapped(s); s.training.precision = Precision::fp16; }},
    {"dgx-h100", 1, "llama-3-8b", 2, 1, 1, "1F1B", 2, 1, [](Scenario& s) { in_ring(s, 4); }},
    {"dgx-h100", 2, "llama-3-8b", 2, 2, 2, "1F1B", 3, 0, [](Scenario& s) {
       overlapped(s); in_ring(s, 2); s.parallelism.sequence_parallel = true;
       s.parallelism.recompute = Recompute::selective; }},
    {"dgx-a100", 2, "gpt2", 4, 2, 2, "ZBH1", 3, 2, [](Scenario& s) {
       s.parallelism.sequence_parallel = true; s.parallelism.context = 2;
       s.parallelism.broadcast_parameters = true; }},
    {"dgx-h100", 2, "mixtral-8x7b", 2, 1, 1, "1F1B", 2, 1, [](Scenario& s) {
       overlapped(s); s.parallelism.expert = 8; }},
    {"dgx-h100", 2, "mixtral-8x7b", 4, 2, 2, "ZBH1", 3, 0, [](Scenario& s) {
       s.parallelism.sequence_parallel = true; s.parallelism.expert = 4;
       s.parallelism.expert_imbalance = 1.3; }},
    {"dgx-h100", 2, "mixtral-8x7b", 2, 2, 1, "1F1B", 1, 2, [](Scenario& s) {
       overlapped(s); in_ring(s, 2); s.parallelism.sequence_parallel = true;
       s.parallelism.expert = 8; s.parallelism.expert_capacity = 1.25; }},
  };
  return table;
}
// clang-format on

TrainingJob job_of(const Row& row) {
  TrainingJob job{.name = {},
                  .machine = std::string{row.machine},
                  .nodes = row.nodes,
                  .model = row.blocks > 0 ? shortened(row.model, row.blocks) : preset(row.model),
                  .scenario = {}};
  job.scenario.parallelism.tensor = row.tp;
  job.scenario.parallelism.pipeline = row.pp;
  job.scenario.parallelism.schedule = row.schedule;
  job.scenario.parallelism.zero_stage = row.zero;
  job.scenario.training.scaling = Scaling::weak;
  if (job.model.sample == SampleKind::sequence) job.scenario.training.seq_length = 128;
  if (row.more) row.more(job.scenario);
  job.scenario.training.global_batch_size =
      row.microbatches * job.scenario.training.micro_batch_size;
  job.name = std::string{row.model} + " on " + std::to_string(row.nodes) + " " + job.machine +
             ", tp " + std::to_string(row.tp) + ", pp " + std::to_string(row.pp) + ", " +
             std::string{row.schedule} + ", zero " + std::to_string(row.zero);
  return job;
}

}  // namespace

std::vector<TrainingJob> training_jobs() {
  std::vector<TrainingJob> jobs;
  for (const Row& row : rows()) jobs.push_back(job_of(row));
  return jobs;
}

TrainingJob random_job(Draw& draw) {
  static const Workload model = shortened("gpt2", 8);
  static const std::vector<std::string> schedules{"1F1B",
                                                  "1F1B",
                                                  "1F1B",
                                                  "GPipe",
                                                  "none",
                                                  "ZBH1",
                                                  "Interleaved1F1B",
                                                  "LoopedBFS",
                                                  "InterleavedZeroBubble",
                                                  "ZBVZeroBubble",
                                                  "DualPipeV"};
  static const std::vector<std::string> orders{"tp-cp-ep-dp-pp", "tp-pp-dp", "pp-tp-dp", "dp-tp-pp",
                                               "pp-dp-tp"};
  static const std::vector<std::string> machines{"dgx-h100", "dgx-a100", "dgx-1"};
  TrainingJob job{.name = {}, .machine = draw.of(machines), .nodes = 2, .model = model};
  Parallelism& how = job.scenario.parallelism;
  how.tensor = std::size_t{1} << draw.below(3);
  how.pipeline = std::size_t{1} << draw.below(3);
  how.schedule = how.pipeline == 1 ? "1F1B" : draw.of(schedules);
  how.order = draw.of(orders);
  how.sequence_parallel = how.tensor > 1 && draw.once_in(2);
  how.recompute = draw.of(std::vector{Recompute::none, Recompute::selective, Recompute::full});
  how.zero_stage = draw.below(4);
  how.overlap_grad_reduce = draw.once_in(2);
  how.overlap_param_gather = how.zero_stage > 0 && draw.once_in(2);
  how.prefetch_layers = draw.below(3);
  const bool in_chunks = how.schedule.starts_with("Inter") || how.schedule == "LoopedBFS";
  if (in_chunks) how.virtual_pipeline = 2;
  const std::size_t data = 16 / (how.tensor * how.pipeline);
  if (how.zero_stage > 0 && data > 1 && draw.once_in(3)) how.zero_shard_ranks = data / 2;
  job.scenario.training.seq_length = 64;
  // Rounds divide micro-batches, and a V needs 2p of them.
  const std::size_t rounds = draw.of(std::vector<std::size_t>{1, 2, 3, 9, 12});
  std::size_t microbatches = rounds * (in_chunks ? how.pipeline : 1);
  if (how.schedule == "DualPipeV" || how.schedule == "ZBVZeroBubble")
    microbatches += 2 * how.pipeline;
  job.scenario.training.global_batch_size = microbatches * data;
  job.name = job.machine + ", tp " + std::to_string(how.tensor) + ", pp " +
             std::to_string(how.pipeline) + ", " + how.schedule + " of " +
             std::to_string(microbatches) + ", order " + how.order + ", zero " +
             std::to_string(how.zero_stage) + " over " + std::to_string(how.zero_shard_ranks) +
             (how.overlap_grad_reduce ? ", overlap" : "") +
             (how.overlap_param_gather ? ", gather overlap" : "") +
             (how.sequence_parallel ? ", sequence parallel" : "");
  return job;
}

}  // namespace rehearse
