// One cell of PyTorch's schedule files: [stage][action][microbatch], "2F0", "1UNSHARD", "3SEND_F1".
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/schedules/schedule.hpp"

namespace rehearse {

/// The four of ActionKind first, in its order; the others are communication.
enum class CsvWord : std::uint8_t {
  forward,
  backward,
  backward_input,
  backward_weight,
  send_f,  // activations to the next stage, gradients to the one before
  recv_f,
  send_b,
  recv_b,
  wait_send_f,  // since PyTorch 2.15: the buffer of a send may be used again
  wait_send_b,
  unshard,  // parameters gathered, and given up (FSDP)
  reshard,
  reduce_grad,
  wait_reduce_grad,
};
inline constexpr std::size_t csv_words = 14;

constexpr bool is_compute(CsvWord word) { return word <= CsvWord::backward_weight; }
/// The others concern a stage's parameters and name no micro-batch.
constexpr bool has_microbatch(CsvWord word) { return word <= CsvWord::wait_send_b; }

struct CsvAction {
  std::uint32_t stage = 0;
  CsvWord word{};
  std::uint32_t microbatch = 0;  // 0 where there is none
  friend bool operator==(const CsvAction&, const CsvAction&) = default;
  friend auto operator<=>(const CsvAction&, const CsvAction&) = default;
};

CsvAction csv_action(const Action&);
std::string to_string(const CsvAction&);

/// What a cell says, or in `mistake` why it says nothing. The pair "(0F3;3B1)OVERLAP_F_B" is its
/// actions one after the other; an empty cell has none.
struct CsvCell {
  std::vector<CsvAction> actions;
  std::string mistake;
};
CsvCell parse_csv_cell(std::string_view);

}  // namespace rehearse
