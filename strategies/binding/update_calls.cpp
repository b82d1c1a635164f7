// Ownership, and the kernels of the end of a step.
#include "strategies/binding/update_calls.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/math/loss_scale.hpp"
#include "sim/base/assert.hpp"
#include "sim/base/error.hpp"
#include "strategies/layers/optimizer.hpp"
#include "strategies/methods/shared_gradients.hpp"

namespace rehearse {

Run overlap(const Run& run, const Run& other) {
  const std::int64_t begin = std::max(run.begin, other.begin);
  const std::int64_t end = std::min(run.begin + run.size, other.begin + other.size);
  if (run.group != other.group || end <= begin) return {run.group, begin, 0};
  return {run.group, begin, end - begin};
}

bool is_partial(const BindingModel& model, std::uint32_t layer, std::size_t tensor) {
  const LayerKind kind = model.workload.layers[layer].kind;
  return model.how.sequence_parallel &&
         model.layout.tensors(layer)[tensor].cut == TensorCut::whole &&
         (kind == LayerKind::block || kind == LayerKind::final_norm);
}

namespace {

// Collectives cut data at whole words of 32 bits: gradients and parameters of another width come
// apart at other numbers, unless all parts are alike.
void check_cut(Bytes gradients, std::size_t ranks, const StateFormat& format) {
  if (format.gradient == format.parameter) return;
  const std::int64_t unit =
      4 / format.parameter.count() * format.gradient.count() * static_cast<std::int64_t>(ranks);
  if (gradients.count() % unit == 0) return;
  throw InputError(
      fmt::format("ZeRO cuts {} bytes of gradients in fp32 and their parameters in 16 bits among "
                  "{} ranks, which only comes out alike for multiples of {} bytes; make "
                  "bucket_size and the layers' parameters such, or leave gradients in 16 bits",
                  gradients.count(), ranks, unit));
}

}  // namespace

Ownership::Ownership(const StepPlan& plan, const StepProgram& step, const ModelLayout& layout) {
  for (std::size_t i = 0; i < step.program.size(); ++i) {
    const Program::Op& op = step.program.ops()[i];
    if (op.kind != WorkKind::collective || step.notes[i].purpose != Purpose::reduce) continue;
    const Collective& work = step.program.collective(op);
    if (work.kind != CollectiveKind::reduce_scatter) continue;
    is_cut_ = true;
    const std::uint32_t stage = step.notes[i].stage;
    const Run whole = layout.run(stage);
    const StateFormat format = state_format(plan.scenario.training);
    const std::int64_t each = format.gradient.count();
    const Cut parts{{Buffer{}, step.notes[i].begin, work.data.size}, work.group.size()};
    check_cut(work.data.size, work.group.size(), format);
    for (std::size_t place = 0; place < work.group.size(); ++place) {
      std::vector<Run>& runs = runs_[{work.group[place], stage}];
      const Run run{whole.group, whole.begin + parts[place].offset.count() / each,
                    parts[place].size.count() / each};
      // Stages 2 and 3 reduce the same bucket for every micro-batch.
      const bool is_new = std::none_of(runs.begin(), runs.end(),
                                       [&](const Run& known) { return known.begin == run.begin; });
      if (is_new && run.size > 0) runs.push_back(run);
    }
  }
  for (std::size_t rank = 0; rank < plan.placement.world() && !is_cut_; ++rank)
    for (std::uint32_t s = 0; s < plan.schedule.stages; ++s)
      runs_[{static_cast<Rank>(rank), s}] = {layout.run(s)};
}

const std::vector<Run>& Ownership::runs(Rank rank, std::uint32_t stage) const {
  static const std::vector<Run> none;
  const auto found = runs_.find({rank, stage});
  return found == runs_.end() ? none : found->second;
}

std::vector<std::uint32_t> UpdateSite::stages() const {
  std::vector<std::uint32_t> list;
  for (std::uint32_t s = 0; s < plan_.schedule.stages; ++s)
    if (plan_.schedule.rank_of[s] == pipeline_rank_) list.push_back(s);
  return list;
}

template <class Visit>
void UpdateSite::for_each_tensor(Visit visit) const {
  const ModelLayout& layout = model_.layout;
  for (const std::uint32_t s : stages())
    for (std::uint32_t l = layout.first_layer(s); l < layout.layers() && layout.stage_of(l) == s;
         ++l)
      for (std::size_t t = 0; t < layout.tensors(l).size(); ++t) visit(s, l, t);
}

void UpdateSite::sum_microbatches() {
  if (!model_.gradients_apart) return;
  for (const std::uint32_t s : stages())
    for (const Run& run : ownership_.runs(rank_, s))
      for (std::uint32_t m = 1; m < plan_.schedule.microbatches; ++m)
        calls.add(Kernel::add_into, {model_.buffers.state(StateKind::gradients, run, m),
                                     model_.buffers.state(StateKind::gradients, run)});
}

Slice UpdateSite::partial() {
  std::int64_t numbers = 0;
  for_each_tensor([&](std::uint32_t, std::uint32_t l, std::size_t t) {
    if (is_partial(model_, l, t)) numbers += model_.layout.tensors(l)[t].size();
  });
  return model_.buffers.of_rank("partial of " + std::to_string(pipeline_rank_),
                                numbers * bytes_of(model_.buffers.stored().gradients));
}

void UpdateSite::copy_partial(bool back) {
  Slice there = partial();
  for_each_tensor([&](std::uint32_t, std::uint32_t l, std::size_t t) {
    if (!is_partial(model_, l, t)) return;
    const Slice here = slice(StateKind::gradients, model_.layout.run(l, t));
    there.size = here.size;
    calls.add(Kernel::copy, {back ? there : here, back ? here : there});
    there.offset += here.size;
  });
}

// Weights that several tensor ranks hold count once in all, and so does the
// table at both ends of a pipeline.
void UpdateSite::take_norm() {
  const Slice sum = model_.buffers.of_rank("squares", Bytes{8});
  calls.add(Kernel::zero, {sum});
  for_each_tensor([&](std::uint32_t s, std::uint32_t l, std::size_t t) {
    const bool is_copy = plan_.tied_copy > 0 && l + 1 == model_.layout.layers();
    if (is_copy) return;
    const bool is_whole = model_.layout.tensors(l)[t].cut == TensorCut::whole;
    const double weight = is_whole ? 1.0 / static_cast<double>(model_.how.tensor) : 1.0;
    for (const Run& run : ownership_.runs(rank_, s)) {
      const Run part = overlap(model_.layout.run(l, t), run);
      if (part.size > 0)
        calls.add(Kernel::add_squares, {slice(StateKind::gradients, part), sum}, {}, {weight});
    }
  });
  calls.add(Kernel::round_sum, {sum, norm()});
}

// Gradients stay as they are: what they are divided by is a power of two, and the optimizer
// multiplies by its inverse.
void UpdateSite::look_for_overflow() {
  calls.add(Kernel::zero, {overflow()});
  for (const std::uint32_t s : stages())
    for (const Run& run : ownership_.runs(rank_, s))
      calls.add(Kernel::find_not_finite, {slice(StateKind::gradients, run), overflow()});
}

void UpdateSite::begin_update() {
  if (scales_loss()) calls.add(Kernel::take_finite, {overflow(), state()});
  if (!clips_gradients(plan_)) return;
  calls.add(Kernel::gradient_factor, {norm(), state()}, {},
            {plan_.scenario.training.clip_grad.value_or(1)});
}

void UpdateSite::elementwise(std::string_view piece) {
  using enum StateKind;
  begin_update();
  for (const std::uint32_t s : stages())
    for (const Run& run : ownership_.runs(rank_, s)) {
      const Slice w = weights(run), g = slice(gradients, run);
      if (piece == "optimizer.sgd")
        calls.add(Kernel::sgd, {w, g, state()}, {}, {numbers_.learning_rate});
      else if (piece == "optimizer.momentum")
        calls.add(Kernel::momentum, {w, g, slice(first_moment, run), state()}, {},
                  {numbers_.learning_rate, numbers_.momentum});
      else
        calls.add(Kernel::adam,
                  {w, g, slice(first_moment, run), slice(second_moment, run), state()}, {},
                  {numbers_.learning_rate, numbers_.beta1, numbers_.beta2, numbers_.epsilon});
    }
  end_update();
}

// The sum over replicas is the mean of what they have, each divided by their
// number before.
void UpdateSite::end_update() {
  calls.add(Kernel::count_step, {state()});
  if (scales_loss()) {
    const LossScale how;
    calls.add(Kernel::adjust_loss_scale, {state()},
              {static_cast<std::int64_t>(plan_.scenario.training.loss_scale_window)},
              {how.growth, how.backoff, how.least, how.largest});
  }
  for (const std::uint32_t s : stages())
    for (const Run& run : ownership_.runs(rank_, s))
      if (model_.buffers.stored().has_masters())
        calls.add(Kernel::scale, {weights(run), slice(StateKind::parameters, run)}, {}, {1});
  if (!averages_) return;
  const double share = 1.0 / static_cast<double>(plan_.size(Family::replicas));
  for (const std::uint32_t s : stages()) {
    const Slice w = slice(StateKind::parameters, model_.layout.run(s));
    calls.add(Kernel::scale, {w, w}, {}, {share});
  }
}

// Tensor by tensor: each has a rate of its own.
void UpdateSite::layerwise(std::string_view piece) {
  using enum StateKind;
  const bool lars = plan_.scenario.training.optimizer == OptimizerKind::lars;
  if ((lars && piece == "optimizer.norms") || piece == "optimizer.lamb_update") begin_update();
  for_each_tensor([&](std::uint32_t, std::uint32_t l, std::size_t t) {
    const Run run = model_.layout.run(l, t);
    const Slice w = weights(run), g = slice(gradients, run);
    const Slice norms = model_.buffers.of_rank(
        "norms of " + std::to_string(l) + " " + std::to_string(t), Bytes{16});
    if (lars && piece == "optimizer.norms")
      calls.add(Kernel::lars_squares, {w, g, state(), norms});
    else if (piece == "optimizer.lars")
      calls.add(Kernel::lars, {w, g, slice(first_moment, run), norms, state()}, {},
                {numbers_.learning_rate, numbers_.momentum, numbers_.trust});
    else if (piece == "optimizer.lamb_update")
      calls.add(
          Kernel::lamb_update,
          {w, g, slice(first_moment, run), slice(second_moment, run), state(), slice(update, run)},
          {}, {numbers_.beta1, numbers_.beta2, numbers_.epsilon});
    else if (piece == "optimizer.norms")
      calls.add(Kernel::layer_squares, {w, slice(update, run), norms});
    else
      calls.add(Kernel::lamb_apply, {w, slice(update, run), norms, state()}, {},
                {numbers_.learning_rate});
  });
  if (piece == "optimizer.lars" || piece == "optimizer.lamb_apply") end_update();
}

void UpdateSite::bind(std::string_view piece) {
  if (piece == "gradients.pack" || piece == "gradients.unpack")
    copy_partial(piece == "gradients.unpack");
  else if (piece == "gradients.norm")
    take_norm();
  else if (piece == "loss.unscale_check")
    look_for_overflow();
  else if (piece == "optimizer.sgd" || piece == "optimizer.momentum" || piece == "optimizer.adam")
    elementwise(piece);
  else
    layerwise(piece);
}

}  // namespace rehearse
