// `rehearse doctor` answers on every machine, with a GPU or without.
#include "tests/support/shell.hpp"

namespace rehearse::doctor_test {
namespace {

TEST(DoctorCommand, SaysWhatThereIsAndWhatWorks) {
  const Outcome outcome = shell("$R doctor");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_TRUE(outcome.text.starts_with("driver    ")) << outcome.text;
  EXPECT_NE(outcome.text.find("\nNCCL      "), outcome.text.npos);
  EXPECT_TRUE(outcome.text.find("GPUs can be used") != outcome.text.npos ||
              outcome.text.find("no usable GPU: ") != outcome.text.npos);
}

}  // namespace
}  // namespace rehearse::doctor_test
