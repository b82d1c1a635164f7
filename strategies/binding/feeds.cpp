// Feeds by what the first and the last layer read.
#include "strategies/binding/feeds.hpp"

namespace rehearse {

std::int64_t sample_length(const BindingModel& model) {
  return model.workload.sample == SampleKind::sequence ? model.how.seq_length : 1;
}

void add_feed(BindingModel& model, const FeedPlace& at, bool first, BoundStep& bound) {
  const std::uint32_t layer = first ? 0 : model.layout.layers() - 1;
  const std::int64_t samples = model.how.micro_batch;
  PieceSite piece{model, {at.rank, at.tensor_place, layer, at.microbatch}};
  Feed feed{.rank = at.rank,
            .first_sample = at.first_sample,
            .samples = samples,
            .width = sample_length(model),
            .step = at.step};
  if (model.workload.sample == SampleKind::sequence) {
    feed.kind = first ? FeedKind::tokens : FeedKind::targets;
    feed.slice = piece.fed(first ? "tokens" : "targets", samples * feed.width);
  } else if (first) {
    feed.kind = FeedKind::vectors;
    feed.width = std::get<Dense>(piece.layer().shape).inputs;
    feed.slice = piece.stream(0, samples * feed.width);
    feed.stored = model.buffers.stored().layers;
  } else {
    feed.kind = FeedKind::labels;
    feed.width = std::get<Dense>(piece.layer().shape).outputs;
    feed.slice = piece.fed("labels", samples);
  }
  bound.feeds.push_back(feed);
  if (!first && at.tensor_place == 0)
    bound.losses.push_back({at.rank, piece.bytes("loss", 8), at.step});
}

}  // namespace rehearse
