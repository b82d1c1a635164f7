// Quantities as text: what is accepted, the exact message for what is not, and exact round trips.
#include "sim/base/quantity_text.hpp"

#include <gtest/gtest.h>

#include <random>

#include "sim/base/error.hpp"

namespace rehearse::quantity_text_test {
namespace {

template <class Parse>
std::string message_of(Parse parse, std::string_view text) {
  try {
    parse(text);
  } catch (const InputError& error) {
    return error.problems().front().message;
  }
  return "accepted";
}

TEST(QuantityText, ReadsUnits) {
  EXPECT_EQ(parse_bytes("64MiB"), 64_MiB);
  EXPECT_EQ(parse_bytes("80GB").count(), 80'000'000'000);
  EXPECT_EQ(parse_bytes("1.6 TB").count(), 1'600'000'000'000);
  EXPECT_EQ(parse_bytes("9007199254740993B").count(), 9007199254740993);  // beyond 2^53
  EXPECT_EQ(parse_time("2us"), 2_us);
  EXPECT_EQ(parse_time("0.85us"), 850_ns);
  EXPECT_EQ(parse_time("1e-3ms"), 1_us);
  EXPECT_EQ(parse_bandwidth("400Gbps"), 400.0_Gbps);
  EXPECT_EQ(parse_bandwidth("400Gbps").count(), 50e9);
  EXPECT_EQ(parse_bandwidth("450GBps"), parse_bandwidth("450GB/s"));
  EXPECT_EQ(parse_bandwidth("100Mbit/s").count(), 12.5e6);
  EXPECT_EQ(parse_bandwidth("1GiB/s").count(), 1073741824.0);
  EXPECT_EQ(parse_flops_rate("989TFLOPS").count(), 989e12);
  EXPECT_EQ(parse_flops_rate("1.5PFLOP/s").count(), 1.5e15);
}

TEST(QuantityText, SaysWhatIsWrong) {
  EXPECT_EQ(message_of(parse_bandwidth, "400"), "missing unit: \"400\"; write e.g. \"400Gbps\"");
  EXPECT_EQ(message_of(parse_bandwidth, "400gbps"),
            "unknown unit in \"400gbps\"; did you mean 'Gbps'?");
  EXPECT_EQ(message_of(parse_bandwidth, "400gBps"),
            "unknown unit in \"400gBps\"; did you mean 'GBps'?");
  EXPECT_EQ(message_of(parse_bandwidth, "fast"),
            "\"fast\" is not a bandwidth; write e.g. \"400Gbps\"");
  EXPECT_EQ(message_of(parse_bandwidth, ""), "\"\" is not a bandwidth; write e.g. \"400Gbps\"");
  EXPECT_EQ(message_of(parse_time, "-2us"), "\"-2us\" is negative");
  EXPECT_EQ(message_of(parse_time, "nan us"), "\"nan us\" is not a finite number");
  EXPECT_EQ(message_of(parse_time, "inf us"), "\"inf us\" is not a finite number");
  EXPECT_EQ(message_of(parse_time, "1e999us"), "\"1e999us\" is out of range");
  EXPECT_EQ(message_of(parse_time, "300000000s"), "\"300000000s\" is out of range");
  EXPECT_EQ(message_of(parse_time, "0.5ps"), "\"0.5ps\" is finer than one picosecond");
  EXPECT_EQ(message_of(parse_bytes, "0.3B"), "\"0.3B\" is finer than one byte");
  EXPECT_EQ(message_of(parse_bytes, "10000PiB"), "\"10000PiB\" is out of range");
  EXPECT_EQ(message_of(parse_bandwidth, "1e300PB/s"), "\"1e300PB/s\" is out of range");
}

TEST(QuantityText, ReadsNcclSizes) {
  EXPECT_EQ(parse_nccl_size("128M").count(), 1 << 27);
  EXPECT_EQ(parse_nccl_size("8").count(), 8);
  EXPECT_EQ(parse_nccl_size("8g").count(), std::int64_t{8} << 30);
  EXPECT_EQ(message_of(parse_nccl_size, "8MB"), "\"8MB\" is not a size; write e.g. \"128M\"");
  EXPECT_EQ(message_of(parse_nccl_size, "-8"), "\"-8\" is negative");
  EXPECT_EQ(message_of(parse_nccl_size, "99999999T"), "\"99999999T\" is out of range");
}

TEST(QuantityText, PrintsShortly) {
  EXPECT_EQ(to_text(64_MiB), "64MiB");
  EXPECT_EQ(to_text(Bytes{80'000'000'000}), "80GB");
  EXPECT_EQ(to_text(850_ns), "850ns");
  EXPECT_EQ(to_text(4400_ns), "4.4us");
  EXPECT_EQ(to_text(Bytes{3 << 29}), "1.5GiB");
  EXPECT_EQ(to_text(Time{}), "0s");
  EXPECT_EQ(to_text(400.0_Gbps), "50GB/s");
  EXPECT_EQ(to_text_bits(400.0_Gbps), "400Gbps");
  EXPECT_EQ(to_text(FlopsPerSecond{989e12}), "989TFLOPS");
}

TEST(QuantityText, RoundTripsExactly) {
  std::mt19937_64 random{1};
  for (int i = 0; i < 20000; ++i) {
    const auto whole = static_cast<std::int64_t>(random() >> (2 + random() % 60));
    ASSERT_EQ(parse_bytes(to_text(Bytes{whole})).count(), whole);
    ASSERT_EQ(parse_time(to_text(Time::picoseconds(whole))).ps(), whole);
    const double rate =
        std::ldexp(static_cast<double>(random() | 1), -static_cast<int>(random() % 40));
    ASSERT_EQ(parse_bandwidth(to_text(BytesPerSecond{rate})).count(), rate);
    ASSERT_EQ(parse_bandwidth(to_text_bits(BytesPerSecond{rate})).count(), rate);
    ASSERT_EQ(parse_flops_rate(to_text(FlopsPerSecond{rate})).count(), rate);
  }
}

}  // namespace
}  // namespace rehearse::quantity_text_test
