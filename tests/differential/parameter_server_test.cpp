// Runs with parameter servers in our engine and in SimGrid. Times are drawn so that no two requests
// arrive within a rounding of each other unless they are exactly alike.
#include <gtest/gtest.h>

#include "tests/differential/engines.hpp"
#include "tests/support/random_program.hpp"
#include "tests/support/servers.hpp"

namespace rehearse::parameter_server_test {
namespace {

TEST(ParameterServerEngines, AgreeOnSmallRuns) {
  for (const ServerMode mode :
       {ServerMode::synchronous, ServerMode::asynchronous, ServerMode::bounded})
    for (const ServerProtocol protocol :
         {ServerProtocol::request_response, ServerProtocol::pipelined})
      for (const std::size_t servers : {1, 3}) {
        ParameterServer how{
            .servers = servers, .protocol = protocol, .mode = mode, .staleness = {}, .steps = 6};
        if (mode == ServerMode::bounded) how.staleness = 2;
        const Topology machine = hosts(5 + servers, {1.0_GBps, 2_us}, 2);
        const ServerAnswer answer = serve(served(how), machine, false);
        Routing routing{machine};
        const Difference difference = compare_engines(answer.lowered.program, routing);
        EXPECT_LE(difference.relative, engines_agree_within)
            << difference.where << ", mode " << static_cast<int>(mode) << ", " << servers
            << " servers";
      }
}

}  // namespace
}  // namespace rehearse::parameter_server_test
