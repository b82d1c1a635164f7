// A link is never short when all streams that use it, each sending as fast as it could alone, do
// not fill it. Such a link is left out of the solving and cannot change an answer.
#include "sim/engine/sharing.hpp"

#include <algorithm>
#include <limits>

namespace rehearse {

namespace {

constexpr double rounding = 1 + 1e-12;  // shares of a link may add up to a last bit more

std::uint64_t stream_key(const Program::Op& op) {
  return static_cast<std::uint64_t>(index(op.rank)) << 16 | index(op.stream);
}

// The stream whose transfers use each connection; a connection of several streams is as bad as one
// of its own each.
std::vector<std::uint64_t> connection_streams(const Program& program) {
  std::vector<std::uint64_t> stream(program.connections().size(), no_stream);
  for (const Program::Op& op : program.ops()) {
    if (op.kind != WorkKind::transfer) continue;
    std::uint64_t& seen = stream[index(program.transfer(op).connection)];
    const std::uint64_t key = stream_key(op);
    if (seen == no_stream) seen = key;
    if (seen != key) seen = several_streams;
  }
  return stream;
}

}  // namespace

std::vector<bool> short_links(const Paths& paths, const CrossedLinks& crossed,
                              std::span<const std::uint64_t> streams, const Topology& topology) {
  std::vector<std::uint32_t> order;
  for (std::uint32_t c = 0; c < streams.size(); ++c)
    if (streams[c] != no_stream) order.push_back(c);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return streams[a] < streams[b]; });

  // Per link: the demand of the streams before, and the greatest of the present stream, whose
  // transfers come one after another. A connection of several streams has no bound.
  struct Demand {
    std::uint64_t stream = no_stream;
    double before = 0, present = 0;
  };
  std::vector<Demand> demands(crossed.size());
  for (const std::uint32_t c : order) {
    const auto id = static_cast<ConnectionId>(c);
    for (const Paths::Crossing& crossing : paths.crossings(id)) {
      Demand& demand = demands[crossed.number(crossing.link)];
      if (demand.stream != streams[c]) {
        demand.before += demand.present;
        demand.present = 0;
        demand.stream = streams[c];
      }
      double wanted = paths.rate_alone(id).count() * crossing.weight;
      if (streams[c] == several_streams) wanted = std::numeric_limits<double>::infinity();
      demand.present = std::max(demand.present, wanted);
    }
  }
  std::vector<bool> is_short;
  for (std::size_t l = 0; l < demands.size(); ++l) {
    const double capacity = topology[crossed[l]].bandwidth.count();
    is_short.push_back(demands[l].before + demands[l].present > capacity * rounding);
  }
  return is_short;
}

namespace {

// Links that the same connections cross, each as often, fill up together: the narrowest holds them
// all, the first one where they are equally wide, and the others never matter. A server's way in is
// several such links one behind the other.
void leave_out_followers(const Paths& paths, const CrossedLinks& crossed, const Topology& topology,
                         std::vector<bool>& is_short) {
  if (std::find(is_short.begin(), is_short.end(), true) == is_short.end()) return;
  using User = std::pair<std::uint32_t, std::uint32_t>;  // connection, weight
  std::vector<std::vector<User>> users(is_short.size());
  for (std::uint32_t c = 0; c < paths.size(); ++c)
    for (const Paths::Crossing& crossing : paths.crossings(static_cast<ConnectionId>(c)))
      if (const std::uint32_t l = crossed.number(crossing.link); is_short[l])
        users[l].emplace_back(c, crossing.weight);
  const auto width = [&](std::size_t l) { return topology[crossed[l]].bandwidth; };
  // Whoever has the same users has the same first user, so few are compared.
  std::vector<std::vector<std::uint32_t>> narrowest(paths.size());  // by first user
  for (std::uint32_t l = 0; l < users.size(); ++l) {
    if (users[l].empty()) continue;
    std::vector<std::uint32_t>& known = narrowest[users[l].front().first];
    const auto twin = std::find_if(known.begin(), known.end(),
                                   [&](std::uint32_t other) { return users[other] == users[l]; });
    if (twin == known.end()) {
      known.push_back(l);
      continue;
    }
    const bool follows = width(l) >= width(*twin);
    is_short[follows ? l : *twin] = false;
    if (!follows) *twin = l;
  }
}

}  // namespace

Sharing::Sharing(const Program& program, const Paths& paths, const Topology& topology) {
  find_short_links(program, paths, topology);
  find_busy_units(program);
}

void Sharing::find_short_links(const Program& program, const Paths& paths,
                               const Topology& topology) {
  const CrossedLinks crossed(paths, topology);
  std::vector<bool> is_short = short_links(paths, crossed, connection_streams(program), topology);
  leave_out_followers(paths, crossed, topology, is_short);
  std::vector<std::uint32_t> resource(is_short.size(), no_unit);
  for (std::size_t l = 0; l < is_short.size(); ++l) {
    if (!is_short[l]) continue;
    resource[l] = static_cast<std::uint32_t>(capacities_.size());
    capacities_.push_back(topology[crossed[l]].bandwidth.count());
    links_.push_back(crossed[l]);
  }

  for (std::size_t c = 0; c < paths.size(); ++c) {
    const auto id = static_cast<ConnectionId>(c);
    double among_shared = std::numeric_limits<double>::infinity();
    for (const Paths::Crossing& crossing : paths.crossings(id)) {
      const std::uint32_t shared = resource[crossed.number(crossing.link)];
      if (shared == no_unit) continue;
      crossings_.push_back({shared, crossing.weight});
      among_shared =
          std::min(among_shared, topology[crossing.link].bandwidth.count() / crossing.weight);
    }
    longest_ = std::max(longest_, crossings_.size() - begin_.back());
    begin_.push_back(static_cast<std::uint32_t>(crossings_.size()));
    const double alone = paths.rate_alone(id).count();
    limits_.push_back(alone < among_shared ? alone : std::numeric_limits<double>::infinity());
  }
}

void Sharing::find_busy_units(const Program& program) {
  std::vector<std::uint64_t> stream;  // of a rank's kernels, by rank
  for (const Program::Op& op : program.ops()) {
    if (op.kind != WorkKind::compute) continue;
    if (index(op.rank) >= stream.size()) stream.resize(index(op.rank) + 1, no_stream);
    std::uint64_t& seen = stream[index(op.rank)];
    if (seen == no_stream) seen = stream_key(op);
    if (seen != stream_key(op)) seen = several_streams;
  }
  units_.assign(stream.size(), {no_unit, 1});
  for (std::size_t r = 0; r < stream.size(); ++r) {
    if (stream[r] != several_streams) continue;
    units_[r].resource = static_cast<std::uint32_t>(capacities_.size());
    capacities_.push_back(1);
    links_.push_back(no_link);
  }
}

}  // namespace rehearse
