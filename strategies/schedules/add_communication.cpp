// Communication as PyTorch 2.15 adds it to a schedule, pass by pass, in its order and with its
// defaults (torch/distributed/pipelining/schedules.py, _prepare_schedule_with_comms): parameters of
// three stages gathered at a time, gradients reduced after a stage's last backward, each send right
// after what it sends, its receive at the end of what the other rank has done by then.
#include <algorithm>

#include "sim/base/assert.hpp"
#include "strategies/schedules/csv_rows.hpp"

namespace rehearse {

namespace {

using enum CsvWord;
using Row = std::vector<CsvAction>;

constexpr std::size_t most_gathered = 3;  // stages of a rank

bool has(const std::vector<std::uint32_t>& stages, std::uint32_t stage) {
  return std::find(stages.begin(), stages.end(), stage) != stages.end();
}

// For each action: the next three stages that this rank computes, from there on. Backwards, so that
// it costs one pass.
std::vector<std::vector<std::uint32_t>> next_stages(const Row& compute) {
  std::vector<std::vector<std::uint32_t>> next(compute.size());
  std::vector<std::uint32_t> coming;
  for (std::size_t i = compute.size(); i-- > 0;) {
    std::erase(coming, compute[i].stage);
    coming.insert(coming.begin(), compute[i].stage);
    next[i].assign(coming.begin(), coming.begin() + static_cast<std::ptrdiff_t>(
                                                        std::min(most_gathered, coming.size())));
  }
  return next;
}

Row with_shards(const Row& compute) {
  Row row;
  std::vector<std::uint32_t> gathered;  // in the order of their gathering
  const auto next = next_stages(compute);
  for (std::size_t i = 0; i < compute.size(); ++i) {
    for (const std::uint32_t stage : gathered)
      if (!has(next[i], stage)) row.push_back({stage, reshard});
    std::erase_if(gathered, [&](std::uint32_t stage) { return !has(next[i], stage); });
    for (const std::uint32_t stage : next[i]) {
      if (has(gathered, stage)) continue;
      gathered.push_back(stage);
      row.push_back({stage, unshard});
    }
    row.push_back(compute[i]);
  }
  for (const std::uint32_t stage : gathered) row.push_back({stage, reshard});
  return row;
}

Row with_reductions(const Row& before, const Schedule& schedule) {
  Row row;
  std::vector<std::uint32_t> backwards(schedule.stages, 0);
  for (const CsvAction& action : before) {
    row.push_back(action);
    if (action.word != backward && action.word != backward_weight) continue;
    if (++backwards[action.stage] < schedule.microbatches) continue;
    row.push_back({action.stage, reduce_grad});
    row.push_back({action.stage, wait_reduce_grad});
  }
  return row;
}

// Ranks take turns, one action each; what another rank's output has not reached yet passes.
class Transfers {
 public:
  Transfers(const Schedule& schedule, std::vector<Row> before)
      : schedule_{schedule}, before_{std::move(before)}, rows_(before_.size()) {
    for (auto& there : arrived_)
      there.assign(std::size_t{schedule.stages} * schedule.microbatches, false);
  }

  std::vector<Row> run() && {
    std::vector<std::size_t> done(before_.size(), 0);
    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t rank = 0; rank < before_.size(); ++rank) {
        if (done[rank] == before_[rank].size()) continue;
        const CsvAction& action = before_[rank][done[rank]];
        if (!is_ready(action)) continue;
        rows_[rank].push_back(action);
        hand_over(rank, action);
        ++done[rank];
        progress = true;
      }
    }
    for (std::size_t rank = 0; rank < before_.size(); ++rank)
      ASSERT(done[rank] == before_[rank].size());
    return std::move(rows_);
  }

 private:
  bool is_ready(const CsvAction& action) const {
    const std::size_t own = place(action.stage, action.microbatch);
    if (action.word == forward) return action.stage == 0 || arrived_[0][own];
    if (action.word == backward || action.word == backward_input)
      return action.stage + 1 == schedule_.stages || arrived_[1][own];
    return true;
  }

  void hand_over(std::size_t rank, const CsvAction& action) {
    if (action.word == forward && action.stage + 1 < schedule_.stages)
      hand_over(rank, action, action.stage + 1, send_f, recv_f);
    if ((action.word == backward || action.word == backward_input) && action.stage > 0)
      hand_over(rank, action, action.stage - 1, send_b, recv_b);
  }

  void hand_over(std::size_t rank, const CsvAction& action, std::uint32_t to, CsvWord send,
                 CsvWord receive) {
    arrived_[send == send_f ? 0 : 1][place(to, action.microbatch)] = true;
    const std::size_t target = schedule_.rank_of[to];
    if (target == rank) return;
    rows_[rank].push_back({action.stage, send, action.microbatch});
    rows_[target].push_back({to, receive, action.microbatch});
  }

  std::size_t place(std::size_t stage, std::size_t microbatch) const {
    return stage * schedule_.microbatches + microbatch;
  }

  const Schedule& schedule_;
  std::vector<Row> before_, rows_;
  std::vector<bool> arrived_[2];  // activations, gradients: by stage and micro-batch
};

// A forward's send is waited for after the same micro-batch's backward; a backward's at the end.
Row with_waits(const Row& before) {
  Row row, pending;
  for (const CsvAction& action : before) {
    row.push_back(action);
    if (action.word == send_f || action.word == send_b) pending.push_back(action);
    if (action.word != backward && action.word != backward_input) continue;
    const auto sent = std::find(pending.begin(), pending.end(),
                                CsvAction{action.stage, send_f, action.microbatch});
    if (sent == pending.end()) continue;
    pending.erase(sent);
    row.push_back({action.stage, wait_send_f, action.microbatch});
  }
  for (const CsvAction& send : pending)
    row.push_back({send.stage, send.word == send_f ? wait_send_f : wait_send_b, send.microbatch});
  return row;
}

}  // namespace

std::vector<Row> with_communication(const Schedule& schedule) {
  std::vector<Row> rows;
  for (const ScheduleRow& cells : schedule.ranks) {
    Row& row = rows.emplace_back();
    for (const std::optional<Action>& cell : cells)
      if (cell) row.push_back(csv_action(*cell));
    row = with_reductions(with_shards(row), schedule);
  }
  rows = Transfers(schedule, std::move(rows)).run();
  for (Row& row : rows) row = with_waits(row);
  return rows;
}

}  // namespace rehearse
