// Boost.Graph's Dijkstra on the reversed graph, one run per target, remembered. Next hops need no
// list of their own: an arc is on a shortest path exactly when the distances at its ends say so.
#include "topology/shortest_paths.hpp"

#include <algorithm>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/dijkstra_shortest_paths_no_color_map.hpp>
#include <boost/property_map/function_property_map.hpp>
#include <utility>

#include "sim/assert.hpp"

namespace rehearse {

namespace {

struct ArcNumber {
  std::uint32_t arc = 0;
};
using Reversed =
    boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, ArcNumber,
                                       boost::no_property, std::uint32_t, std::uint32_t>;
using Edge = boost::graph_traits<Reversed>::edge_descriptor;

// Everything about one target, by vertex: how far, through which arc, and how many arcs tie.
struct Row {
  std::vector<Cost> distance;
  std::vector<std::uint32_t> arc, ties;
};

// Counts ties while Dijkstra runs: a spine has hundreds of links and one way down, and must not be
// scanned for it at each question.
template <class Weight>
class TieCounter : public boost::dijkstra_visitor<> {
 public:
  TieCounter(Row& row, Weight weight) : row_{&row}, weight_{weight} {}

  void edge_relaxed(Edge e, const Reversed& g) {
    row_->arc[boost::target(e, g)] = g[e].arc;
    row_->ties[boost::target(e, g)] = 1;
  }
  void edge_not_relaxed(Edge e, const Reversed& g) {
    const Cost near = row_->distance[boost::source(e, g)],
               far = row_->distance[boost::target(e, g)];
    if (near + weight_(e) == far) ++row_->ties[boost::target(e, g)];
  }

 private:
  Row* row_;
  Weight weight_;
};

// 256 MiB of rows; a torus of thousands asked for all pairs would otherwise fill the memory.
constexpr std::size_t most_remembered = (std::size_t{256} << 20) / (sizeof(Cost) + 8);

}  // namespace

struct ShortestPaths::State {
  std::vector<Arc> arcs;
  std::vector<bool> closed;
  std::vector<std::uint32_t> begin, outgoing;  // arcs by source, in the order they were given
  Reversed reversed;
  std::vector<std::unique_ptr<Row>> rows;  // by target
  std::size_t remembered = 0;

  std::size_t size() const { return closed.size(); }
  const Row& row(std::uint32_t target);
  std::unique_ptr<Row> search(std::uint32_t target) const;
  bool is_tight(const Row& row, std::uint32_t arc, std::uint32_t target) const;
  std::uint32_t next(const Row& row, std::uint32_t vertex, std::uint32_t target,
                     Spread& spread) const;
  bool step_to_neighbour(std::uint32_t source, std::uint32_t target, Spread& spread,
                         std::vector<std::uint32_t>& path) const;
};

ShortestPaths::ShortestPaths(std::vector<Arc> arcs, std::vector<bool> closed)
    : state_{std::make_unique<State>()} {
  State& s = *state_;
  s.arcs = std::move(arcs);
  s.closed = std::move(closed);
  s.rows.resize(s.size());
  s.begin.assign(s.size() + 1, 0);
  for (const Arc& arc : s.arcs) {
    ASSERT(arc.source < s.size() && arc.target < s.size() && arc.cost.hops > 0);
    ++s.begin[arc.source + 1];
  }
  for (std::size_t v = 0; v < s.size(); ++v) s.begin[v + 1] += s.begin[v];
  s.outgoing.resize(s.arcs.size());
  std::vector<std::uint32_t> place{s.begin.begin(), s.begin.end() - 1};
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
  std::vector<ArcNumber> numbers;
  for (std::uint32_t a = 0; a < s.arcs.size(); ++a) {
    s.outgoing[place[s.arcs[a].source]++] = a;
    edges.emplace_back(s.arcs[a].target, s.arcs[a].source);
    numbers.push_back({a});
  }
  s.reversed = Reversed(boost::edges_are_unsorted_multi_pass, edges.begin(), edges.end(),
                        numbers.begin(), static_cast<std::uint32_t>(s.size()));
}

ShortestPaths::~ShortestPaths() = default;
ShortestPaths::ShortestPaths(ShortestPaths&&) noexcept = default;

std::unique_ptr<Row> ShortestPaths::State::search(std::uint32_t target) const {
  auto row = std::make_unique<Row>();
  row->distance.resize(size());
  row->arc.resize(size());
  row->ties.resize(size());
  const auto weight = [&](Edge e) {
    const std::uint32_t nearer = boost::source(e, reversed);
    return closed[nearer] && nearer != target ? Cost::infinite() : arcs[reversed[e].arc].cost;
  };
  boost::dijkstra_shortest_paths_no_color_map(
      reversed, target,
      boost::weight_map(boost::make_function_property_map<Edge>(weight))
          .distance_map(boost::make_iterator_property_map(
              row->distance.begin(), boost::get(boost::vertex_index, reversed)))
          .distance_compare(std::less<Cost>{})
          .distance_combine(std::plus<Cost>{})
          .distance_inf(Cost::infinite())
          .distance_zero(Cost{})
          .visitor(TieCounter{*row, weight}));
  return row;
}

const Row& ShortestPaths::State::row(std::uint32_t target) {
  if (rows[target]) return *rows[target];
  if (remembered + size() > most_remembered) {
    for (std::unique_ptr<Row>& old : rows) old.reset();
    remembered = 0;
  }
  remembered += size();
  rows[target] = search(target);
  return *rows[target];
}

bool ShortestPaths::State::is_tight(const Row& row, std::uint32_t arc, std::uint32_t target) const {
  const Arc& a = arcs[arc];
  if (closed[a.target] && a.target != target) return false;
  return row.distance[a.target] + a.cost == row.distance[a.source];
}

std::uint32_t ShortestPaths::State::next(const Row& row, std::uint32_t vertex, std::uint32_t target,
                                         Spread& spread) const {
  if (row.ties[vertex] == 1) return row.arc[vertex];
  std::size_t left = spread.pick(row.ties[vertex]);
  for (std::uint32_t i = begin[vertex]; i < begin[vertex + 1]; ++i)
    if (is_tight(row, outgoing[i], target) && left-- == 0) return outgoing[i];
  ASSERT(!"fewer ties than counted");
  return 0;
}

// When the cheapest arc out of `source` ends at `target`, no detour can be cheaper. It spares
// tori and rings, asked for neighbours only, a whole search per target.
bool ShortestPaths::State::step_to_neighbour(std::uint32_t source, std::uint32_t target,
                                             Spread& spread,
                                             std::vector<std::uint32_t>& path) const {
  Cost cheapest = Cost::infinite();
  for (std::uint32_t i = begin[source]; i < begin[source + 1]; ++i)
    cheapest = std::min(cheapest, arcs[outgoing[i]].cost);
  std::vector<std::uint32_t> direct;
  for (std::uint32_t i = begin[source]; i < begin[source + 1]; ++i) {
    const Arc& arc = arcs[outgoing[i]];
    if (arc.target == target && arc.cost == cheapest) direct.push_back(outgoing[i]);
  }
  if (direct.empty()) return false;
  path.push_back(direct[direct.size() == 1 ? 0 : spread.pick(direct.size())]);
  return true;
}

Cost ShortestPaths::distance(std::uint32_t source, std::uint32_t target) {
  return state_->row(target).distance[source];
}

bool ShortestPaths::walk(std::uint32_t source, std::uint32_t target, Spread spread,
                         std::vector<std::uint32_t>& path) {
  const State& s = *state_;
  if (source == target) return true;
  if (!s.rows[target] && s.step_to_neighbour(source, target, spread, path)) return true;
  const Row& row = state_->row(target);
  if (row.distance[source] == Cost::infinite()) return false;
  for (std::uint32_t v = source; v != target; v = s.arcs[path.back()].target)
    path.push_back(s.next(row, v, target, spread));
  return true;
}

std::vector<std::vector<std::uint32_t>> ShortestPaths::all(std::uint32_t source,
                                                           std::uint32_t target, std::size_t most) {
  const State& s = *state_;
  const Row& row = state_->row(target);
  std::vector<std::vector<std::uint32_t>> found;
  if (row.distance[source] == Cost::infinite()) return found;
  std::vector<std::vector<std::uint32_t>> open{{}};  // a stack; the lowest links come out first
  while (!open.empty() && found.size() < most) {
    const std::vector<std::uint32_t> path = std::move(open.back());
    open.pop_back();
    const std::uint32_t at = path.empty() ? source : s.arcs[path.back()].target;
    if (at == target) {
      found.push_back(path);
      continue;
    }
    for (std::uint32_t i = s.begin[at + 1]; i-- > s.begin[at];) {
      if (!s.is_tight(row, s.outgoing[i], target)) continue;
      open.push_back(path);
      open.back().push_back(s.outgoing[i]);
    }
  }
  return found;
}

}  // namespace rehearse
