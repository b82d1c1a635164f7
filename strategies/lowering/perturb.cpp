// Kernels are numbered rank by rank in their order, so the draws are the same for kernels and
// blocks, folded or not.
#include "strategies/lowering/perturb.hpp"

#include <span>
#include <unordered_map>

namespace rehearse {

namespace {

class Perturbation {
 public:
  Perturbation(StepProgram& step, const Imperfections& imperfections, const Accelerator& device,
               const CostModel& cost)
      : step_{step}, imperfections_{imperfections}, device_{device}, cost_{cost} {}

  void run() {
    for (std::size_t i = 0; i < step_.program.size(); ++i) {
      const auto id = static_cast<OpId>(i);
      const Program::Op op = step_.program[id];
      if (op.kind != WorkKind::compute || !imperfections_.perturbs(op.rank)) continue;
      const Time planned = duration_of(step_.program.compute(op), device_, cost_);
      const MergedOp* const merged = merged_at(id);
      step_.program.set_compute(
          id, {.fixed = merged == nullptr ? taken(op.rank, planned, {&planned, 1})
                                          : taken(op.rank, planned, merged->kernels)});
    }
  }

 private:
  struct Progress {
    std::uint64_t kernels = 0;  // so far
    Time worked;                // in them
  };

  /// How long an op takes whose kernels take these times in all of its planned one.
  Time taken(Rank rank, Time planned, std::span<const Time> kernels) {
    Progress& so_far = progress_[rank];
    Time as_planned, taken;
    for (const Time kernel : kernels) {
      as_planned += kernel;
      taken += imperfections_.kernel(rank, so_far.kernels++, kernel);
    }
    const Time before = so_far.worked;
    so_far.worked += taken;
    return planned - as_planned + taken + imperfections_.pauses(rank, before, so_far.worked);
  }

  const MergedOp* merged_at(OpId id) {
    while (next_ < step_.merged.size() && step_.merged[next_].op < id) ++next_;
    const bool is_merged = next_ < step_.merged.size() && step_.merged[next_].op == id;
    return is_merged ? &step_.merged[next_] : nullptr;
  }

  StepProgram& step_;
  const Imperfections& imperfections_;
  const Accelerator& device_;
  const CostModel& cost_;
  std::unordered_map<Rank, Progress> progress_;
  std::size_t next_ = 0;  // of the merged ops
};

}  // namespace

void perturb_kernels(StepProgram& step, const Imperfections& imperfections,
                     const Accelerator& device, const CostModel& cost) {
  if (imperfections.perturbs_kernels()) Perturbation(step, imperfections, device, cost).run();
}

}  // namespace rehearse
