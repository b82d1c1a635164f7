// What calibration is made of: lines through measurements, logs of nccl-tests, profiles with links.
#include <gtest/gtest.h>

#include <fstream>

#include "sim/base/error.hpp"
#include "sim/engine/cost_model.hpp"
#include "sim/engine/fast_simulator.hpp"
#include "sim/scenario/calibration.hpp"
#include "strategies/collectives/choose.hpp"
#include "tools/calibrate/calibrate.hpp"
#include "tools/calibrate/nccl_log.hpp"
#include "tools/measure/line_fit.hpp"
#include "topology/formats/cluster.hpp"

namespace rehearse::fits_test {
namespace {

TEST(LineFit, FindsTheLineDespiteAnOutlier) {
  std::vector<Sample> samples;
  for (double x = 4; x < 1e7; x *= 4) samples.push_back({"", x, 2e-6 + x / 5e9});
  samples[5].y *= 3;  // somebody else used the machine
  const LineFit fit = fit_line(samples);
  EXPECT_NEAR(fit.intercept, 2e-6, 2e-8);
  EXPECT_NEAR(1 / fit.slope, 5e9, 5e7);
  EXPECT_EQ(fit.outliers, 1u);
  EXPECT_NEAR(fit.worst_error, 2.0 / 3, 0.02);
}

TEST(LineFit, HasNoNegativeLatency) {
  const LineFit fit = fit_line({{"", 1, 0.5}, {"", 2, 2}, {"", 4, 8}});
  EXPECT_EQ(fit.intercept, 0);
  EXPECT_GT(fit.slope, 0);
}

constexpr const char* log_text =
    R"(# nccl-tests version 2.17.6 nccl-headers=22809 nccl-library=22809
#  size  count  type  redop  root  time  algbw  busbw  #wrong  time
 1048576  262144  float  sum  -1   45.21  23.19  43.49    0   44.9  23.3  43.7    0
 4194304 1048576  float  sum  -1  123.4   33.99  63.73  N/A  122.0  34.3  64.4  N/A
# Avg bus bandwidth    : 53.6
)";

TEST(NcclLog, ReadsTextAndJson) {
  const NcclLog text = parse_nccl_log(log_text, "log.txt");
  ASSERT_EQ(text.rows.size(), 2u);
  EXPECT_EQ(text.rows[1].size, 4_MiB);
  EXPECT_DOUBLE_EQ(text.rows[1].time.count(), 123.4e-6);
  EXPECT_EQ(text.version.substr(0, 6), "2.17.6");
  const NcclLog json = parse_nccl_log(
      R"({"version": 1, "results": [{"size": 8, "count": 2, "out_of_place": {"time": 9.5},
          "in_place": {"time": 9.1}},
          {"size": 16, "out_of_place": null, "in_place": {"time": 9}}]})",
      "log.json");
  ASSERT_EQ(json.rows.size(), 2u);
  EXPECT_DOUBLE_EQ(json.rows[0].time.count(), 9.5e-6);
  EXPECT_DOUBLE_EQ(json.rows[1].time.count(), 9e-6);
}

TEST(NcclLog, RefusesWhatIsNone) {
  for (const char* text : {"", "hello\n", "{\"results\": []}", "{"})
    EXPECT_THROW(parse_nccl_log(text, "log"), InputError) << text;
  EXPECT_THROW(parse_nccl_log("8 2 float sum -1 oops 1 1 0\n", "log"), InputError);
}

TEST(Calibration, ReadsWritesAndAppliesLinks) {
  const Calibration read = parse_calibration(
      "schema = 1\nname = \"n\"\nsource = \"s\"\nerror = 0.1\n[[link]]\nkind = \"network\"\n"
      "bandwidth_share = 0.5\nlatency = \"7us\"\n",
      "p.toml");
  ASSERT_EQ(read.links.size(), 1u);
  EXPECT_EQ(parse_calibration(to_toml(read), "again.toml"), read);
  const Topology before = load_cluster("dgx-h100", {2, std::nullopt});
  const Topology after = apply(read, before);
  std::size_t changed = 0;
  for (std::size_t i = 0; i < before.links().size(); ++i) {
    const Link &was = before.links()[i], &is = after.links()[i];
    const bool is_network = was.kind == LinkKind::network;
    changed += is_network;
    EXPECT_EQ(is.bandwidth.count(), was.bandwidth.count() * (is_network ? 0.5 : 1));
    EXPECT_EQ(is.latency, is_network ? 7_us : was.latency);
  }
  EXPECT_GT(changed, 0u);
  EXPECT_THROW(apply(read, load_cluster("ring-8", {})), InputError);
}

TEST(Calibration, RefusesWrongLinks) {
  const std::string head = "schema = 1\nname = \"n\"\nsource = \"s\"\nerror = 0.1\n";
  for (const char* link : {"[[link]]\nkind = \"cable\"\n", "[[link]]\nbandwidth_share = 1.0\n",
                           "[[link]]\nkind = \"network\"\nbandwidth_share = 0.0\n",
                           "[[link]]\nkind = \"pcie\"\n[[link]]\nkind = \"pcie\"\n"})
    EXPECT_THROW(parse_calibration(head + link, "p.toml"), InputError) << link;
}

// A log of a machine whose network is slower than the catalog says: the fit finds by how much.
TEST(CalibrateFromLogs, FindsHowMuchSlowerTheLinksAre) {
  const Topology nominal = load_cluster("dgx-h100", {4, std::nullopt});
  Calibration truth{.name = "t", .source = "t"};
  truth.links = {{LinkKind::network, 0.6, 9_us}};
  const Topology machine = apply(truth, nominal);
  Routing routing(machine);
  CollectiveShape shape{.kind = CollectiveKind::all_reduce};
  for (std::size_t r = 0; r < machine.rank_count(); ++r)
    shape.group.push_back(static_cast<Rank>(r));
  const Roofline cost;
  FastSimulator engine(routing, cost);
  CollectiveChooser chooser(shape, routing, {});
  const std::string file = testing::TempDir() + "/nccl.log";
  {
    std::ofstream out(file);
    for (Bytes size = 1_MiB; size <= 4_GiB; size = Bytes{4 * size.count()})
      out << size.count() << " " << size.count() / 4 << " float sum -1 "
          << chooser.best(size, engine).result.time.seconds().count() * 1e6 << " 1 1 0\n";
  }
  Profile profile = calibrate_from_logs({nominal, {file}, "all_reduce", true});
  profile.calibration.name = "from a log";
  ASSERT_EQ(profile.calibration.links.size(), 1u);
  EXPECT_EQ(profile.calibration.links[0].kind, LinkKind::network);
  EXPECT_NEAR(profile.calibration.links[0].bandwidth_share, 0.6, 0.06);
  for (const ProfileRow& row : profile.rows) EXPECT_LT(std::abs(row.error()), 0.25) << row.what;
  const std::string text = profile_text(profile);
  EXPECT_NE(text.find("worst"), std::string::npos);
  EXPECT_EQ(parse_calibration(text, "p.toml").links, profile.calibration.links);
}

}  // namespace
}  // namespace rehearse::fits_test
