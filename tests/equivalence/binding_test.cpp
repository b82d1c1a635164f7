// What binding promises beyond the numbers: missing edges are found, what
// cannot be bound is told, and a checkpoint goes on with the same bits.
#include <gtest/gtest.h>

#include "sim/base/error.hpp"
#include "sim/program/program_text.hpp"
#include "strategies/binding/checkpoint.hpp"
#include "tests/equivalence/trainings.hpp"

namespace rehearse::binding_test {
namespace {

SmallTraining hybrid() {
  SmallTraining training{.model = small_llama(2), .ranks = 8};
  Scenario& s = training.scenario;
  s.training.precision = Precision::fp32;
  s.training.global_batch_size = 8;
  s.parallelism.tensor = s.parallelism.pipeline = 2;
  s.parallelism.sequence_parallel = true;
  s.parallelism.zero_stage = 1;
  s.parallelism.overlap_grad_reduce = s.parallelism.overlap_param_gather = true;
  s.parallelism.bucket_size = 2000_B;
  return training;
}

/// The op with this label on this rank that waits for an op of another stream.
OpId waiting(const Program& program, std::string_view name, WorkKind kind) {
  for (std::size_t i = 0; i < program.size(); ++i) {
    const auto id = static_cast<OpId>(i);
    if (program.names()[program[id].label.name] != name || program[id].kind != kind) continue;
    for (const OpId input : program.after(id))
      if (program[input].stream != program[id].stream) return id;
  }
  return no_op;
}

TEST(MissingEdge, IsFoundByVerify) {
  const Program whole = bound_step(hybrid()).program();
  ASSERT_FALSE(verify(whole));
  // A message that is not waited for, an exchange that begins before its input,
  // an optimizer that does not wait for gradients, a forward pass that does not
  // wait for parameters.
  for (const auto& [name, kind] : {std::pair{"SEND_F", WorkKind::transfer},
                                   {"SEND_B", WorkKind::transfer},
                                   {"attention.norm", WorkKind::compute},
                                   {"reduce_scatter", WorkKind::collective},
                                   {"attention.out.reduce_scatter", WorkKind::collective},
                                   {"attention.residual", WorkKind::compute},
                                   {"gradients.pack", WorkKind::compute},
                                   {"optimizer.adam", WorkKind::compute},
                                   {"embedding", WorkKind::compute}}) {
    const OpId id = waiting(whole, name, kind);
    ASSERT_NE(id, no_op) << name;
    Program broken = whole;
    broken.set_after(id, {});
    const std::optional<Race> race = verify(broken);
    ASSERT_TRUE(race) << name << ": " << whole.describe(id);
    EXPECT_TRUE(race->first == id || race->second == id) << describe(broken, *race);
  }
}

// Transfers combine in another order than the whole collective does: the same to rounding.
TEST(ExpandedProgram, TrainsAsTheWholeOneDoes) {
  SmallTraining training = hybrid();
  training.numbers.learning_rate = 0.001;
  const TrainingResult whole = train(training, 5);
  for (const std::string algorithm : {"ring", "auto"}) {
    const TrainingResult result = train_expanded(training, 5, algorithm);
    for (std::size_t s = 0; s < 5; ++s)
      EXPECT_NEAR(result.losses[s], whole.losses[s], 1e-5) << algorithm << " step " << s;
    EXPECT_LE(difference(result.parameters, whole.parameters), 1e-5) << algorithm;
  }
}

// Sums and maxima in other formats become transfers that say so.
TEST(ExpandedProgram, SumsFp16AsFp16) {
  SmallTraining training{.model = small_mlp(), .ranks = 4};
  training.scenario.training.precision = Precision::fp32;
  training.scenario.training.global_batch_size = 8;
  training.scenario.compression.method = CompressionKind::fp16;
  const TrainingResult whole = train(training, 5);
  const TrainingResult result = train_expanded(training, 5, "ring");
  EXPECT_LE(difference(result.parameters, whole.parameters), 5e-3);  // fp16 has 11 bits
  EXPECT_NEAR(result.losses.back(), whole.losses.back(), 1e-3);
}

TEST(BoundProgram, ComesBackFromItsText) {
  const Program program = bound_step(hybrid()).program();
  EXPECT_EQ(parse_program(to_text(program), "text"), program);
}

TEST(BindingProblems, AreToldAllAtOnce) {
  SmallTraining training{.model = small_gpt(2)};
  training.scenario.training.precision = Precision::tf32;
  training.model.transformer.window = 4;
  training.scenario.parallelism.bucket_size = 6_B;
  try {
    bound_step(training);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.problems().size(), 3u) << error.what();
  }
}

class Stopped {
 public:
  explicit Stopped(const SmallTraining& training)
      : training_{training},
        step_{bound_step(training)},
        interpreter_{step_.program()},
        memory_{[this](Rank rank, const Slice& slice) { return interpreter_.bytes(rank, slice); }} {
    fill_parameters(step_, training.numbers, memory_);
  }
  std::vector<double> run(std::uint64_t begin, std::uint64_t end) {
    std::vector<double> losses;
    for (std::uint64_t s = begin; s < end; ++s) {
      fill_batch(step_, training_.model, training_.numbers, s, memory_);
      interpreter_.run();
      losses.push_back(read_losses(step_, memory_)[0]);
    }
    return losses;
  }
  std::string save(std::uint64_t next) { return checkpoint_of(step_, next, memory_); }
  std::uint64_t resume(std::string_view bytes) { return restore(step_, bytes, "file", memory_); }
  std::vector<NamedTensor> parameters() { return read_parameters(step_, training_.model, memory_); }

 private:
  const SmallTraining training_;
  BoundStep step_;
  TrainingInterpreter interpreter_;
  RankMemory memory_;
};

TEST(Checkpoint, GoesOnWithTheSameBits) {
  for (const OptimizerKind optimizer : {OptimizerKind::adam, OptimizerKind::momentum}) {
    SmallTraining training = hybrid();
    training.scenario.training.optimizer = optimizer;
    Stopped whole{training}, first{training}, second{training};
    const std::vector<double> losses = whole.run(0, 6);
    first.run(0, 3);
    ASSERT_EQ(second.resume(first.save(3)), 3u);
    const std::vector<double> rest = second.run(3, 6);
    EXPECT_TRUE(std::equal(rest.begin(), rest.end(), losses.begin() + 3));
    EXPECT_EQ(second.parameters(), whole.parameters());
    EXPECT_EQ(second.save(6), whole.save(6));
  }
}

// Masters, 16-bit copies, and how large the scale is after steps that overflowed.
TEST(Checkpoint, CarriesTheLossScale) {
  SmallTraining training = hybrid();
  training.scenario.training.precision = Precision::fp16;
  training.scenario.training.loss_scaling = LossScaling::dynamic;
  training.scenario.training.loss_scale_window = 2;
  training.numbers.loss_scale = 0x1p+24;
  Stopped whole{training}, first{training}, second{training}, anew{training};
  whole.run(0, 10);
  first.run(0, 5);
  ASSERT_EQ(second.resume(first.save(5)), 5u);
  second.run(5, 10);
  EXPECT_EQ(second.parameters(), whole.parameters());
  EXPECT_EQ(second.save(10), whole.save(10));
  // With the first scale instead these would be other steps.
  anew.run(5, 10);
  EXPECT_NE(anew.save(10), whole.save(10));
}

TEST(Checkpoint, RefusesWhatIsNotItsOwn) {
  Stopped training{hybrid()};
  const std::string good = training.save(1), before = training.save(0);
  EXPECT_THROW(training.resume("rehearse program 1\n"), InputError);
  EXPECT_THROW(training.resume(good.substr(0, good.size() - 1)), InputError);
  EXPECT_THROW(training.resume(good.substr(0, 30)), InputError);
  std::string damaged = good;
  damaged[good.size() / 2] ^= 1;
  EXPECT_THROW(training.resume(damaged), InputError);
  SmallTraining other = hybrid();
  other.numbers.learning_rate = 1;
  EXPECT_THROW(training.resume(Stopped{other}.save(1)), InputError);
  EXPECT_EQ(training.save(0), before);  // nothing was changed
}

}  // namespace
}  // namespace rehearse::binding_test
