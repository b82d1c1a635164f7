// Draws by counter (Philox): sample k of seed s is the same whoever asks for
// it.
#include "strategies/binding/training_data.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "kernels/math/number_formats.hpp"
#include "kernels/math/philox.hpp"
#include "kernels/math/step_state.hpp"
#include "sim/base/assert.hpp"

namespace rehearse {

namespace {

// Streams of random words: parameters, then samples and what labels them.
constexpr std::uint64_t parameter_stream = 0, sample_stream = 1ull << 40, task_stream = 1ull << 41;

// Of a sample by its label: more would take longer to label than to train on.
constexpr std::int64_t most_looked_at = 64;

double even(std::uint32_t word) { return (static_cast<double>(word) + 0.5) * 0x1p-31 - 1; }

template <class Number>
std::span<Number> numbers_in(std::span<std::byte> bytes) {
  return {reinterpret_cast<Number*>(bytes.data()), bytes.size() / sizeof(Number)};
}

// Rounded to nearest where it is narrow.
void store(std::span<const float> numbers, Precision format, std::span<std::byte> bytes) {
  if (format == Precision::fp16)
    cast(numbers, numbers_in<Fp16>(bytes));
  else if (format == Precision::bf16)
    cast(numbers, numbers_in<Bf16>(bytes));
  else
    std::copy(numbers.begin(), numbers.end(), numbers_in<float>(bytes).begin());
}

}  // namespace

void fill_parameters(const BoundStep& step, const TrainingNumbers& numbers,
                     const RankMemory& memory) {
  for (const ParameterPart& part : step.copies) {
    const ParameterTensor& tensor = step.layout.tensors(part.layer)[part.tensor];
    // A tied table begins as the embedding's on both ends.
    const bool is_table = tensor.name == "table" && step.layout.is_tied();
    const std::uint64_t stream =
        parameter_stream + 64 * (is_table ? 0 : part.layer) + (is_table ? 0 : part.tensor);
    const std::span<std::byte> bytes = memory(part.rank, part.slice);
    if (bytes.empty()) continue;
    std::vector<float> whole(static_cast<std::size_t>(tensor.size()));
    initialize(tensor, numbers.seed, stream, part.tensor_place, whole);
    const auto each = static_cast<std::size_t>(bytes_of(part.stored).count());
    store(std::span{whole}.subspan(static_cast<std::size_t>(part.first), bytes.size() / each),
          part.stored, bytes);
  }
  const StepState first{.loss_scale = step.scales_loss ? numbers.loss_scale : 1};
  for (const auto& [rank, slice] : step.states)
    if (const std::span<std::byte> bytes = memory(rank, slice); !bytes.empty())
      numbers_in<StepState>(bytes)[0] = first;
}

VectorTask::VectorTask(std::uint64_t seed, std::int64_t width, std::int64_t classes)
    : seed_{seed},
      width_{static_cast<std::size_t>(width)},
      looked_at_{static_cast<std::size_t>(std::min(width, most_looked_at))},
      weights_(looked_at_ * static_cast<std::size_t>(classes)) {
  const RandomWords task{seed, task_stream};
  for (std::size_t w = 0; w < weights_.size(); ++w) weights_[w] = even(task.word(w));
}

std::vector<float> VectorTask::vector(std::uint64_t number) const {
  const RandomWords words{seed_, sample_stream + number};
  std::vector<float> x(width_);
  for (std::size_t i = 0; i < width_; ++i) x[i] = static_cast<float>(even(words.word(i)));
  return x;
}

std::int32_t VectorTask::label(std::span<const float> x) const {
  std::size_t best_class = 0;
  double best = 0;
  for (std::size_t c = 0; c * looked_at_ < weights_.size(); ++c) {
    const double* weights = weights_.data() + c * looked_at_;
    const double sum = std::inner_product(weights, weights + looked_at_, x.begin(), 0.0);
    if (c > 0 && sum <= best) continue;
    best = sum;
    best_class = c;
  }
  return static_cast<std::int32_t>(best_class);
}

VectorSample VectorTask::sample(std::uint64_t number) const {
  VectorSample sample{.x = vector(number)};
  sample.label = label(sample.x);
  return sample;
}

std::vector<std::int32_t> draw_sequence(std::uint64_t seed, std::uint64_t number,
                                        std::int64_t length, std::int64_t words) {
  const RandomWords draws{seed, sample_stream + number};
  const auto count = static_cast<std::uint64_t>(words);
  // Multiplying by a number that shares no factor with the vocabulary is a
  // permutation.
  std::uint64_t factor = std::max<std::uint64_t>(2, count / 3);
  while (std::gcd(factor, count) != 1) ++factor;
  std::vector<std::int32_t> tokens;
  std::uint64_t token = draws.word(0) % count;
  for (std::int64_t i = 0; i <= length; ++i) {
    tokens.push_back(static_cast<std::int32_t>(token));
    const std::uint32_t draw = draws.word(static_cast<std::uint64_t>(i) + 1);
    token = draw % 8 == 0 ? draw / 8 % count : (token * factor + 1) % count;
  }
  return tokens;
}

void fill_batch(const BoundStep& step, const Workload& workload, const TrainingNumbers& numbers,
                std::uint64_t number, const RankMemory& memory) {
  const bool has_sequences = workload.sample == SampleKind::sequence;
  std::optional<VectorTask> task;
  if (!has_sequences)
    task.emplace(numbers.seed, std::get<Dense>(workload.layers.front().shape).inputs,
                 std::get<Dense>(workload.layers.back().shape).outputs);
  const std::int64_t global = step.loss_count / (has_sequences ? step.feeds.front().width : 1);
  for (const Feed& feed : step.feeds) {
    const std::span<std::byte> bytes = memory(feed.rank, feed.slice);
    if (bytes.empty()) continue;
    for (std::int64_t i = 0; i < feed.samples; ++i) {
      const std::uint64_t sample = (number + feed.step) * static_cast<std::uint64_t>(global) +
                                   static_cast<std::uint64_t>(feed.first_sample + i);
      if (has_sequences) {
        const auto tokens =
            draw_sequence(numbers.seed, sample, feed.width, workload.transformer.vocabulary);
        const std::span<std::int32_t> target = numbers_in<std::int32_t>(bytes);
        std::copy_n(tokens.begin() + (feed.kind == FeedKind::targets ? 1 : 0), feed.width,
                    target.begin() + i * feed.width);
      } else {
        const std::vector<float> x = task->vector(sample);
        const auto size = static_cast<std::size_t>(feed.width * bytes_of(feed.stored).count());
        if (feed.kind == FeedKind::vectors)
          store(x, feed.stored, bytes.subspan(static_cast<std::size_t>(i) * size, size));
        else
          numbers_in<std::int32_t>(bytes)[static_cast<std::size_t>(i)] = task->label(x);
      }
    }
  }
}

std::vector<double> read_losses(const BoundStep& step, const RankMemory& memory) {
  std::vector<double> means(step.steps);
  for (const BoundStep::LossSlot& slot : step.losses)
    if (const std::span<std::byte> bytes = memory(slot.rank, slot.slice); !bytes.empty())
      means[slot.step] += numbers_in<double>(bytes)[0] / static_cast<double>(step.loss_count);
  return means;
}

std::optional<ScaledLoss> read_scaled_loss(const BoundStep& step, const RankMemory& memory) {
  if (!step.scales_loss) return {};
  for (const auto& [rank, slice] : step.states)
    if (const std::span<std::byte> bytes = memory(rank, slice); !bytes.empty()) {
      const StepState& state = numbers_in<StepState>(bytes)[0];
      return ScaledLoss{state.last_scale, state.finite == 0};
    }
  return {};
}

std::vector<NamedTensor> read_parameters(const BoundStep& step, const Workload& workload,
                                         const RankMemory& memory) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, NamedTensor> tensors;
  for (const ParameterPart& part : step.owned) {
    const ParameterTensor& tensor = step.layout.tensors(part.layer)[part.tensor];
    NamedTensor& whole = tensors[{part.layer, part.tensor}];
    whole.name = workload.layers[part.layer].name + " " + tensor.name;
    whole.values.resize(static_cast<std::size_t>(tensor.rows * tensor.columns));
    const std::span<const float> values = numbers_in<float>(memory(part.rank, part.slice));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::int64_t at =
          whole_index(tensor, part.tensor_place, part.first + static_cast<std::int64_t>(i));
      if (at >= 0) whole.values[static_cast<std::size_t>(at)] = values[i];
    }
  }
  std::vector<NamedTensor> list;
  for (auto& [key, tensor] : tensors) list.push_back(std::move(tensor));
  return list;
}

}  // namespace rehearse
