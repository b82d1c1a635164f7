// Our schedules against the files that PyTorch wrote (schedules/README.md says which version).
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <string>

#include "strategies/schedules/schedule_csv.hpp"
#include "strategies/schedules/schedules.hpp"
#include "tests/support/places.hpp"
#include "topology/files/text_file.hpp"

namespace rehearse::schedules_test {
namespace {

struct Golden {
  std::string_view name;
  std::size_t ranks, microbatches, chunks;
  std::string file(std::string_view end) const {
    return fmt::format("{}/tests/golden/schedules/{}_p{}_m{}_v{}{}", REHEARSE_SOURCE_DIR, name,
                       ranks, microbatches, chunks, end);
  }
};

constexpr Golden goldens[]{
    {"GPipe", 4, 2, 1},
    {"Interleaved1F1B", 2, 4, 2},
    {"Interleaved1F1B", 4, 8, 3},
    {"LoopedBFS", 3, 4, 2},
    {"InterleavedZeroBubble", 4, 6, 1},
    {"InterleavedZeroBubble", 4, 10, 2},
    {"ZBVZeroBubble", 4, 3, 2},
    {"ZBVZeroBubble", 4, 9, 2},
    {"DualPipeV", 4, 10, 2},
};

Schedule without_idle_steps(Schedule schedule) {
  for (ScheduleRow& row : schedule.ranks) std::erase(row, std::nullopt);
  return schedule;
}

TEST(PyTorchsSchedules, HaveOurOrder) {
  for (const Golden& golden : goldens) {
    SCOPED_TRACE(golden.file(""));
    EXPECT_EQ(without_idle_steps(read_schedule_csv(golden.file(".csv"))),
              make_schedule(golden.name, golden.ranks, golden.microbatches, golden.chunks));
  }
}

TEST(PyTorchsSchedules, HaveOurOrderWithCommunicationToo) {
  for (const Golden& golden : goldens) {
    if (golden.name == "GPipe") continue;  // PyTorch lowers it by hand
    SCOPED_TRACE(golden.file(""));
    const Schedule ours =
        make_schedule(golden.name, golden.ranks, golden.microbatches, golden.chunks);
    EXPECT_EQ(read_schedule_csv(golden.file("_comms.csv")), ours);
    // PyTorch's pairs, OVERLAP_F_B, send after both of their actions; ours after each.
    if (golden.name == "DualPipeV") continue;
    EXPECT_EQ(write_schedule_csv(ours, CsvFormat::compute_comms),
              read_text_file(golden.file("_comms.csv")));
  }
}

// With one chunk a rank, PyTorch's InterleavedZeroBubble is ZB-H1.
TEST(PyTorchsSchedules, HoldZbH1) {
  EXPECT_EQ(make_schedule("ZBH1", 4, 6), make_schedule("InterleavedZeroBubble", 4, 6));
}

}  // namespace
}  // namespace rehearse::schedules_test
