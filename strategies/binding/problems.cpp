// What cannot be run with numbers yet, and why; the reasons are also in
// strategies/DECISIONS.md.
#include <fmt/format.h>

#include "strategies/binding/bind.hpp"
#include "strategies/methods/gradient_compression.hpp"

namespace rehearse {

namespace {

class Problems {
 public:
  void add(bool is_wrong, std::string_view message) {
    if (is_wrong) list_.emplace_back(message);
  }
  std::vector<std::string> take() { return std::move(list_); }

 private:
  std::vector<std::string> list_;
};

void check_model(const StepPlan& plan, const Workload& workload, Problems& problems) {
  const Transformer& m = workload.transformer;
  const auto tensor = static_cast<std::int64_t>(plan.scenario.parallelism.tensor);
  problems.add(workload.sample == SampleKind::image,
               "there are no kernels for convolutions; train an MLP or a transformer");
  problems.add(workload.sample == SampleKind::vector && plan.scenario.training.dropout > 0,
               "an MLP of ours has no dropout between its layers; set dropout to 0");
  if (workload.sample != SampleKind::sequence) return;
  problems.add(m.experts > 0, "there are no kernels for routers and experts");
  problems.add(m.norm_after || m.pretraining_heads || m.token_types > 0,
               "encoders (norms behind the sums, heads for pre-training) are "
               "not run with numbers; "
               "train a decoder");
  problems.add(m.window > 0, "there is no attention kernel with a window");
  problems.add(!m.gated && !m.mlp_bias, "the GELU kernel adds a bias; set mlp_bias");
  problems.add(m.kv_heads % tensor != 0,
               "key-value heads on several tensor ranks need a sum of their "
               "gradients, which the "
               "step leaves out; set tp to a divisor of num_key_value_heads");
}

void check_training(const StepPlan& plan, const Workload& workload, Problems& problems) {
  const Scenario& scenario = plan.scenario;
  const Training& training = scenario.training;
  const bool is_narrow =
      training.precision == Precision::fp16 || training.precision == Precision::bf16;
  problems.add(training.precision != Precision::fp32 && !is_narrow,
               fmt::format("numbers are run in fp32, fp16 or bf16, not in {}; set dtype",
                           to_string(training.precision)));
  if (!is_narrow) return;
  problems.add(scenario.parameter_server.servers > 0,
               "servers add and apply gradients in fp32; set dtype to fp32");
  problems.add(scenario.local_sgd.interval > 0 && !training.autocast,
               "local SGD averages the 16-bit copies of parameters, and their masters would stay "
               "apart; set autocast, or dtype to fp32");
  problems.add(scenario.local_sgd.interval > 0 && training.loss_scaling == LossScaling::dynamic,
               "local replicas would scale their losses each by itself; take bf16, or leave "
               "loss_scaling out");
  problems.add(scenario.compression.method == CompressionKind::dgc &&
                   training.loss_scaling == LossScaling::dynamic,
               "what dgc keeps of scaled gradients would outlast a change of the scale; take bf16, "
               "or leave loss_scaling out");
  const auto tensor = static_cast<std::int64_t>(scenario.parallelism.tensor);
  if (workload.sample != SampleKind::vector || tensor == 1) return;
  const auto* last = std::get_if<Dense>(&workload.layers.back().shape);
  problems.add(
      last != nullptr && !last->row &&
          static_cast<std::int64_t>(training.micro_batch_size) * last->outputs / tensor % 2 != 0,
      "16-bit logits are gathered in whole words of 32 bits; make the classes of a tensor "
      "rank even");
}

void check_parallelism(const StepPlan& plan, Problems& problems) {
  const Scenario& scenario = plan.scenario;
  const Parallelism& p = scenario.parallelism;
  problems.add(p.context > 1,
               "keys and values of context ranks are not bound to buffers; set cp 1");
  problems.add(p.expert > 1, "experts are not bound to buffers; set ep to 1");
  const bool cuts = p.zero_stage > 0 && plan.size(Family::shards) > 1;
  problems.add(cuts && plan.tied_copy > 0,
               "ZeRO cuts a tied embedding differently on the first and the "
               "last stage, so their "
               "gradients cannot be added; untie it, or set zero_stage to 0");
  problems.add(cuts && p.zero_stage > 1 && p.sequence_parallel && p.tensor > 1,
               "from ZeRO stage 2 on, the sum of norms' gradients over tensor "
               "ranks is of a share "
               "that no rank's shards make up; set zero_stage to 1");
  problems.add(
      cuts && p.zero_stage > 1 && plan.size(Family::copies) > 1 && plan.schedule.microbatches > 1,
      "copies of shards are averaged when the last micro-batch's "
      "gradients have been "
      "reduced, and those of the others lie elsewhere; set "
      "zero_shard_ranks to all, or "
      "one micro-batch");
  problems.add(cuts && p.broadcast_parameters && (p.zero_stage == 3 || p.overlap_param_gather),
               "the first broadcast would run in every step, before what ZeRO has updated is "
               "gathered; leave broadcast_parameters out");
  const OptimizerKind optimizer = scenario.training.optimizer;
  problems.add((cuts || p.tensor > 1) &&
                   (optimizer == OptimizerKind::lars || optimizer == OptimizerKind::lamb),
               "LARS and LAMB need the norms of whole layers, and the step has "
               "no exchange for "
               "layers that are cut; set tp to 1 and zero_stage to 0");
  problems.add(p.bucket_size.count() % 4 != 0 || p.first_bucket_size.count() % 4 != 0,
               "a bucket must hold whole fp32 numbers; make its size a "
               "multiple of 4 bytes");
  problems.add(
      scenario.compression.method == CompressionKind::int8 && plan.size(Family::replicas) > 127,
      "the sum of one code of each rank has 8 bits for up to 127 replicas; compress to "
      "fp16, or by dgc");
  problems.add(scenario.compression.method == CompressionKind::int8 &&
                   scenario.training.loss_scaling == LossScaling::dynamic,
               "an overflow has no 8-bit code; take bf16, or leave loss_scaling out");
  problems.add(scenario.compression.method == CompressionKind::dgc &&
                   optimizer != OptimizerKind::sgd && !corrects_momentum(scenario),
               "sparse gradients keep what is not sent where the optimizer has "
               "its moments; take "
               "sgd, or momentum with momentum_correction");
}

// The simulated server has no exchange for these, so a real one may not have them either.
void check_servers(const Scenario& scenario, Problems& problems) {
  const ParameterServer& how = scenario.parameter_server;
  if (how.servers == 0) return;
  const OptimizerKind optimizer = scenario.training.optimizer;
  problems.add(optimizer == OptimizerKind::lars || optimizer == OptimizerKind::lamb,
               "LARS and LAMB need the norms of whole layers, and a server has a part of each; "
               "take sgd, momentum or adam");
  problems.add(scenario.training.clip_grad.value_or(0) > 0,
               "servers apply gradients as they come, and nobody knows the norm of all of them; "
               "leave clip_grad out, or set it to 0");
  problems.add(how.sparsity > 0,
               "sparse updates of servers are not run with numbers; set "
               "update_sparsity to 0");
}

}  // namespace

std::vector<std::string> binding_problems(const StepPlan& plan, const Workload& workload) {
  Problems problems;
  check_model(plan, workload, problems);
  check_training(plan, workload, problems);
  check_parallelism(plan, problems);
  check_servers(plan.scenario, problems);
  return problems.take();
}

}  // namespace rehearse
