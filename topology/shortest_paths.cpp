// Boost.Graph's Dijkstra on the reversed graph, one run per target, remembered. Next hops need no
// lists of their own: an arc is on a shortest path exactly when the distances at its ends say so.
//
// Twins, vertices with the same neighbours at the same costs, need one run between them: swapping
// two twins changes nothing else in the graph. All leaves of a leaf-spine fabric are twins, and so
// are those of one pod of a fat tree.
#include "topology/shortest_paths.hpp"

#include <algorithm>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/dijkstra_shortest_paths_no_color_map.hpp>
#include <boost/property_map/function_property_map.hpp>
#include <map>
#include <span>
#include <tuple>
#include <utility>

#include "sim/base/assert.hpp"

namespace rehearse {

namespace {

struct Weight {
  Cost cost;
  std::uint32_t arc = 0;
};
using Reversed =
    boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, Weight,
                                       boost::no_property, std::uint32_t, std::uint32_t>;
using Edge = boost::graph_traits<Reversed>::edge_descriptor;

// An arc as its source sees it.
struct Hop {
  std::uint32_t target, arc;
  Cost cost;
};

// Everything about one target, by vertex: how far, through which arc, and how many arcs tie.
struct Row {
  std::vector<Cost> distance;
  std::vector<std::uint32_t> arc, ties;
  std::vector<std::vector<std::uint32_t>> tied;  // the arcs, where several tie; once asked for
};

// Counts ties while Dijkstra runs: a spine has hundreds of links and one way down, and must not be
// scanned for it at each question.
template <class WeightOf>
class TieCounter : public boost::dijkstra_visitor<> {
 public:
  TieCounter(Row& row, WeightOf weight) : row_{&row}, weight_{weight} {}

  void edge_relaxed(Edge e, const Reversed& g) {
    row_->arc[boost::target(e, g)] = g[e].arc;
    row_->ties[boost::target(e, g)] = 1;
  }
  void edge_not_relaxed(Edge e, const Reversed& g) {
    const Cost near = row_->distance[boost::source(e, g)];
    if (near + weight_(e) == row_->distance[boost::target(e, g)]) ++row_->ties[boost::target(e, g)];
  }

 private:
  Row* row_;
  WeightOf weight_;
};

// The row of a target as told by the row of its twin.
struct View {
  Row& row;
  std::uint32_t target, twin;

  std::uint32_t swapped(std::uint32_t v) const {
    return v == target ? twin : v == twin ? target : v;
  }
  Cost distance(std::uint32_t v) const { return row.distance[swapped(v)]; }
};

// 256 MiB of rows; a torus of thousands asked for all pairs would otherwise fill the memory.
constexpr std::size_t most_remembered = (std::size_t{256} << 20) / (sizeof(Cost) + 32);

}  // namespace

struct ShortestPaths::State {
  std::vector<Arc> arcs;
  std::vector<bool> closed;
  std::vector<std::uint32_t> begin;
  std::vector<Hop> hops;  // by source, then target, then arc
  Reversed reversed;
  std::vector<std::uint32_t> twin;         // the lowest vertex that is a twin of this one
  std::vector<std::unique_ptr<Row>> rows;  // by target, of lowest twins only
  std::size_t remembered = 0;

  std::size_t size() const { return closed.size(); }
  std::span<const Hop> hops_of(std::uint32_t v) const {
    return std::span{hops}.subspan(begin[v], begin[v + 1] - begin[v]);
  }
  void sort_hops();
  void find_twins();
  View view(std::uint32_t target);
  std::unique_ptr<Row> search(std::uint32_t target) const;
  bool is_tight(const View& view, std::uint32_t source, const Hop& hop) const;
  std::vector<std::uint32_t> tight_hops(const View& view, std::uint32_t v,
                                        std::span<const Hop> among) const;
  std::uint32_t next(const View& view, std::uint32_t v, RouteSpread& spread) const;
  bool step_to_neighbour(std::uint32_t source, std::uint32_t target, RouteSpread& spread,
                         std::vector<std::uint32_t>& path) const;
};

ShortestPaths::ShortestPaths(std::vector<Arc> arcs, std::vector<bool> closed)
    : state_{std::make_unique<State>()} {
  State& s = *state_;
  s.arcs = std::move(arcs);
  s.closed = std::move(closed);
  s.rows.resize(s.size());
  s.sort_hops();
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
  std::vector<Weight> weights;
  for (std::uint32_t a = 0; a < s.arcs.size(); ++a) {
    edges.emplace_back(s.arcs[a].target, s.arcs[a].source);
    weights.push_back({s.arcs[a].cost, a});
  }
  s.reversed = Reversed(boost::edges_are_unsorted_multi_pass, edges.begin(), edges.end(),
                        weights.begin(), static_cast<std::uint32_t>(s.size()));
  s.find_twins();
}

ShortestPaths::~ShortestPaths() = default;
ShortestPaths::ShortestPaths(ShortestPaths&&) noexcept = default;

void ShortestPaths::State::sort_hops() {
  begin.assign(size() + 1, 0);
  for (const Arc& arc : arcs) {
    ASSERT(arc.source < size() && arc.target < size() && arc.cost.hops > 0);
    ++begin[arc.source + 1];
  }
  for (std::size_t v = 0; v < size(); ++v) begin[v + 1] += begin[v];
  hops.resize(arcs.size());
  std::vector<std::uint32_t> place{begin.begin(), begin.end() - 1};
  for (std::uint32_t a = 0; a < arcs.size(); ++a)
    hops[place[arcs[a].source]++] = {arcs[a].target, a, arcs[a].cost};
  for (std::size_t v = 0; v < size(); ++v)
    std::sort(hops.begin() + begin[v], hops.begin() + begin[v + 1], [](const Hop& a, const Hop& b) {
      return std::tie(a.target, a.arc) < std::tie(b.target, b.arc);
    });
}

void ShortestPaths::State::find_twins() {
  using Neighbour = std::pair<std::uint32_t, Cost>;
  std::map<std::tuple<bool, std::vector<Neighbour>, std::vector<Neighbour>>, std::uint32_t> known;
  for (std::uint32_t v = 0; v < size(); ++v) {
    std::vector<Neighbour> out, in;
    for (const Hop& hop : hops_of(v)) out.emplace_back(hop.target, hop.cost);
    const auto [first, last] = boost::out_edges(v, reversed);
    for (auto e = first; e != last; ++e)
      in.emplace_back(boost::target(*e, reversed), reversed[*e].cost);
    std::sort(out.begin(), out.end());
    std::sort(in.begin(), in.end());
    const auto at = known.try_emplace({closed[v], std::move(out), std::move(in)}, v).first;
    twin.push_back(at->second);
  }
}

std::unique_ptr<Row> ShortestPaths::State::search(std::uint32_t target) const {
  auto row = std::make_unique<Row>();
  row->distance.resize(size());
  row->arc.resize(size());
  row->ties.resize(size());
  row->tied.resize(size());
  const auto weight = [&](Edge e) {
    const std::uint32_t nearer = boost::source(e, reversed);
    return closed[nearer] && nearer != target ? Cost::infinite() : reversed[e].cost;
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

View ShortestPaths::State::view(std::uint32_t target) {
  const std::uint32_t first = twin[target];
  if (rows[first]) return {*rows[first], target, first};
  if (remembered + size() > most_remembered) {
    for (std::unique_ptr<Row>& old : rows) old.reset();
    remembered = 0;
  }
  remembered += size();
  rows[first] = search(first);
  return {*rows[first], target, first};
}

bool ShortestPaths::State::is_tight(const View& view, std::uint32_t source, const Hop& hop) const {
  if (closed[hop.target] && hop.target != view.target) return false;
  return view.distance(hop.target) + hop.cost == view.distance(source);
}

std::vector<std::uint32_t> ShortestPaths::State::tight_hops(const View& view, std::uint32_t v,
                                                            std::span<const Hop> among) const {
  std::vector<std::uint32_t> tight;
  for (const Hop& hop : among)
    if (is_tight(view, v, hop)) tight.push_back(hop.arc);
  ASSERT(tight.size() == view.row.ties[view.swapped(v)]);
  return tight;
}

std::uint32_t ShortestPaths::State::next(const View& view, std::uint32_t v,
                                         RouteSpread& spread) const {
  const auto choose = [&](const std::vector<std::uint32_t>& from) {
    return from[from.size() == 1 ? 0 : spread.pick(from.size())];
  };
  // The row tells the arcs out of the target where we need those out of its twin.
  if (v == view.twin) return choose(tight_hops(view, v, hops_of(v)));
  const std::uint32_t any = view.row.arc[v];
  if (arcs[any].target == view.twin) {
    // The last hop, to the target instead of its twin: among hundreds of ports, so by halving.
    // Equal paths have equally many hops, so all that tie here are last hops.
    const std::span<const Hop> hops_here = hops_of(v);
    const auto [first, last] =
        std::equal_range(hops_here.begin(), hops_here.end(), Hop{view.target, 0, {}},
                         [](const Hop& a, const Hop& b) { return a.target < b.target; });
    if (last - first == 1) return first->arc;
    return choose(tight_hops(view, v, {first, last}));
  }
  if (view.row.ties[v] == 1) return any;
  std::vector<std::uint32_t>& tied = view.row.tied[v];
  if (tied.empty()) tied = tight_hops(view, v, hops_of(v));
  return tied[spread.pick(tied.size())];
}

// When the cheapest arc out of `source` ends at `target`, no detour can be cheaper. It spares
// tori and rings, asked for neighbours only, a whole search per target.
bool ShortestPaths::State::step_to_neighbour(std::uint32_t source, std::uint32_t target,
                                             RouteSpread& spread,
                                             std::vector<std::uint32_t>& path) const {
  Cost cheapest = Cost::infinite();
  for (const Hop& hop : hops_of(source)) cheapest = std::min(cheapest, hop.cost);
  std::vector<std::uint32_t> direct;
  for (const Hop& hop : hops_of(source))
    if (hop.target == target && hop.cost == cheapest) direct.push_back(hop.arc);
  if (direct.empty()) return false;
  path.push_back(direct[direct.size() == 1 ? 0 : spread.pick(direct.size())]);
  return true;
}

Cost ShortestPaths::distance(std::uint32_t source, std::uint32_t target) {
  return state_->view(target).distance(source);
}

bool ShortestPaths::walk(std::uint32_t source, std::uint32_t target, RouteSpread spread,
                         std::vector<std::uint32_t>& path) {
  const State& s = *state_;
  if (source == target) return true;
  if (!s.rows[s.twin[target]] && s.step_to_neighbour(source, target, spread, path)) return true;
  const View view = state_->view(target);
  if (view.distance(source) == Cost::infinite()) return false;
  for (std::uint32_t v = source; v != target; v = s.arcs[path.back()].target)
    path.push_back(s.next(view, v, spread));
  return true;
}

std::vector<std::vector<std::uint32_t>> ShortestPaths::all(std::uint32_t source,
                                                           std::uint32_t target, std::size_t most) {
  const State& s = *state_;
  const View view = state_->view(target);
  std::vector<std::vector<std::uint32_t>> found;
  if (view.distance(source) == Cost::infinite()) return found;
  std::vector<std::vector<std::uint32_t>> open{{}};  // a stack; the lowest links come out first
  while (!open.empty() && found.size() < most) {
    const std::vector<std::uint32_t> path = std::move(open.back());
    open.pop_back();
    const std::uint32_t at = path.empty() ? source : s.arcs[path.back()].target;
    if (at == target) {
      found.push_back(path);
      continue;
    }
    const std::span<const Hop> hops = s.hops_of(at);
    for (auto hop = hops.rbegin(); hop != hops.rend(); ++hop) {
      if (!s.is_tight(view, at, *hop)) continue;
      open.push_back(path);
      open.back().push_back(hop->arc);
    }
  }
  return found;
}

}  // namespace rehearse
