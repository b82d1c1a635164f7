// What the communication of a schedule file must be, if it has any. A file of compute and
// reductions alone is as good as one with every send: PyTorch writes both.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "strategies/schedules/csv_rows.hpp"

namespace rehearse {

namespace {

using enum CsvWord;
constexpr std::uint32_t not_sent = 0;  // places in a row count from 1 in the notes

class CommunicationCheck {
 public:
  CommunicationCheck(const std::vector<CsvRow>& rows, const Schedule& schedule)
      : rows_{rows}, schedule_{schedule} {
    const std::size_t size = std::size_t{schedule.stages} * schedule.microbatches;
    for (std::size_t word = 0; word < csv_words; ++word)
      notes_[word].assign(has_microbatch(static_cast<CsvWord>(word)) ? size : schedule.stages,
                          not_sent);
  }

  std::vector<CsvMistake> run() && {
    for (std::size_t rank = 0; rank < rows_.size(); ++rank) {
      note_row(rank);
      check_shards(rank);
    }
    if (!mistakes_.empty()) return std::move(mistakes_);
    for (std::uint32_t stage = 0; stage < schedule_.stages; ++stage) {
      for (std::uint32_t i = 0; i < schedule_.microbatches; ++i) {
        check_transfer({stage, forward, i}, send_f, wait_send_f, stage + 1, recv_f);
        check_transfer(backward_of(stage, i), send_b, wait_send_b, stage - 1, recv_b);
      }
      check_reduction(stage);
    }
    std::stable_sort(mistakes_.begin(), mistakes_.end(), [](const auto& a, const auto& b) {
      return std::tie(a.rank, a.index) < std::tie(b.rank, b.index);
    });
    return std::move(mistakes_);
  }

 private:
  void note_row(std::size_t rank) {
    const std::vector<CsvAction>& actions = rows_[rank].actions;
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const CsvAction& action = actions[i];
      if (action.stage >= schedule_.stages || action.microbatch >= schedule_.microbatches) {
        report(rank, i, fmt::format("{}: nothing is computed there", to_string(action)));
      } else if (schedule_.rank_of[action.stage] != rank) {
        report(rank, i,
               fmt::format("{} is on rank {}, but stage {} is on rank {}", to_string(action), rank,
                           action.stage, schedule_.rank_of[action.stage]));
      } else if (action.word == unshard || action.word == reshard) {
        continue;  // as often as one likes
      } else if (note_of(action) != not_sent) {
        report(rank, i, fmt::format("{} for the second time", to_string(action)));
      } else {
        notes_[static_cast<std::size_t>(action.word)][place(action)] =
            static_cast<std::uint32_t>(i + 1);
        seen_[static_cast<std::size_t>(action.word)] = true;
      }
    }
  }

  // A stage that is ever gathered computes only between UNSHARD and RESHARD.
  void check_shards(std::size_t rank) {
    std::vector<std::uint32_t> gathered, ever;  // few: the stages of one rank
    const auto has = [](const auto& list, std::uint32_t stage) {
      return std::find(list.begin(), list.end(), stage) != list.end();
    };
    const std::vector<CsvAction>& actions = rows_[rank].actions;
    for (const CsvAction& action : actions)
      if (action.word == unshard && !has(ever, action.stage)) ever.push_back(action.stage);
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const auto [stage, word, microbatch] = actions[i];
      const bool there = has(gathered, stage);
      if (word == unshard && there)
        report(rank, i, fmt::format("{}UNSHARD, but it is unsharded already", stage));
      else if (word == reshard && !there)
        report(rank, i, fmt::format("{}RESHARD, but it is not unsharded", stage));
      else if (is_compute(word) && has(ever, stage) && !there)
        report(rank, i,
               fmt::format("{} while stage {} is not unsharded", to_string(actions[i]), stage));
      if (word == unshard && !there) gathered.push_back(stage);
      if (word == reshard) std::erase(gathered, stage);
    }
  }

  // `made` is sent to the same micro-batch of stage `to`, which computes after it was received.
  void check_transfer(const CsvAction& made, CsvWord sends, CsvWord waits, std::uint32_t to,
                      CsvWord receives) {
    const CsvAction send{made.stage, sends, made.microbatch},
        wait{made.stage, waits, made.microbatch};
    const bool leaves = to < schedule_.stages &&  // below stage 0 it is huge
                        schedule_.rank_of[to] != schedule_.rank_of[made.stage];
    if (!leaves) {
      if (has(send)) report_at(send, "to nobody: no other rank needs it");
      return;
    }
    const CsvAction receive{to, receives, made.microbatch};
    const CsvAction used = sends == send_f ? CsvAction{to, forward, made.microbatch}
                                           : backward_of(to, made.microbatch);
    if (!any(send_f) && !any(recv_f) && !any(send_b) && !any(recv_b)) return;
    if (!has(send)) report_at(made, fmt::format("without {} after it", to_string(send)));
    if (!has(receive)) report_at(used, fmt::format("without {} before it", to_string(receive)));
    check_before(made, send);
    if (has(receive) && note_of(used) < note_of(receive))
      report_at(receive, fmt::format("after {}", to_string(used)));
    if (has(wait)) {
      check_before(send, wait);
    } else if (any(wait_send_f) || any(wait_send_b)) {
      report_at(has(send) ? send : made, fmt::format("without {}", to_string(wait)));
    }
  }

  void check_reduction(std::uint32_t stage) {
    const CsvAction reduce{stage, reduce_grad}, wait{stage, wait_reduce_grad};
    if (has(wait) && !has(reduce))
      report_at(wait, fmt::format("without {} before it", to_string(reduce)));
    if (!has(reduce)) return;
    for (std::uint32_t i = 0; i < schedule_.microbatches; ++i) {
      const CsvAction whole{stage, backward, i}, half{stage, backward_weight, i};
      check_before(has(whole) ? whole : half, reduce);
    }
    if (has(wait))
      check_before(reduce, wait);
    else if (any(wait_reduce_grad))
      report_at(reduce, fmt::format("without {}", to_string(wait)));
  }

  CsvAction backward_of(std::uint32_t stage, std::uint32_t microbatch) const {
    const CsvAction whole{stage, backward, microbatch};
    return has(whole) ? whole : CsvAction{stage, backward_input, microbatch};
  }

  void check_before(const CsvAction& first, const CsvAction& second) {
    if (has(first) && has(second) && note_of(second) < note_of(first))
      report_at(second, fmt::format("before {}", to_string(first)));
  }

  std::size_t place(const CsvAction& action) const {
    if (!has_microbatch(action.word)) return action.stage;
    return std::size_t{action.stage} * schedule_.microbatches + action.microbatch;
  }
  std::uint32_t note_of(const CsvAction& action) const {
    return notes_[static_cast<std::size_t>(action.word)][place(action)];
  }
  bool has(const CsvAction& action) const { return note_of(action) != not_sent; }
  bool any(CsvWord word) const { return seen_[static_cast<std::size_t>(word)]; }

  void report_at(const CsvAction& action, std::string_view what) {
    report(schedule_.rank_of[action.stage], note_of(action) - 1,
           fmt::format("{} {}", to_string(action), what));
  }
  void report(std::size_t rank, std::size_t index, std::string message) {
    mistakes_.push_back({rank, index, std::move(message)});
  }

  const std::vector<CsvRow>& rows_;
  const Schedule& schedule_;
  std::array<std::vector<std::uint32_t>, csv_words> notes_;  // by word, then stage and micro-batch
  std::array<bool, csv_words> seen_{};
  std::vector<CsvMistake> mistakes_;
};

}  // namespace

std::vector<CsvMistake> communication_mistakes(const std::vector<CsvRow>& rows,
                                               const Schedule& schedule) {
  return CommunicationCheck(rows, schedule).run();
}

}  // namespace rehearse
