// Questions about a Timeline: why an op waited, what the run hung on, and a hash to compare runs
// by.
#include "sim/program/timeline.hpp"

#include <algorithm>

namespace rehearse {

Wait wait_of(const Program& program, const Timeline& timeline, OpId id) {
  const OpId blocker = timeline.spans.at(index(id)).blocker;
  if (blocker == no_op) return Wait::nothing;
  const std::span<const OpId> inputs = program.after(id);
  const bool is_input = std::find(inputs.begin(), inputs.end(), blocker) != inputs.end();
  return is_input ? Wait::input : Wait::stream;
}

std::vector<OpId> critical_path(const Timeline& timeline) {
  if (timeline.spans.empty()) return {};
  // The first of those that end last: max_element keeps the earlier one, so ties break by OpId.
  const auto last = std::max_element(
      timeline.spans.begin(), timeline.spans.end(),
      [](const Timeline::Span& a, const Timeline::Span& b) { return a.end < b.end; });
  std::vector<OpId> path;
  for (auto at = static_cast<OpId>(last - timeline.spans.begin()); at != no_op;
       at = timeline.spans[index(at)].blocker) {
    ASSERT(index(at) < timeline.spans.size() && path.size() < timeline.spans.size());
    path.push_back(at);
  }
  std::reverse(path.begin(), path.end());
  return path;
}

namespace {

// FNV-1a over little-endian bytes, whatever the machine's own order is.
class Hash {
 public:
  void add(std::uint64_t value) {
    for (int byte = 0; byte < 8; ++byte) {
      state_ ^= (value >> (8 * byte)) & 0xff;
      state_ *= 0x100000001b3ULL;
    }
  }
  std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325ULL;
};

}  // namespace

std::uint64_t fingerprint(const Timeline& timeline) {
  Hash hash;
  hash.add(timeline.spans.size());
  for (const Timeline::Span& span : timeline.spans) {
    hash.add(static_cast<std::uint64_t>(span.begin.ps()));
    hash.add(static_cast<std::uint64_t>(span.end.ps()));
    hash.add(index(span.blocker));
  }
  hash.add(static_cast<std::uint64_t>(timeline.makespan.ps()));
  return hash.value();
}

}  // namespace rehearse
