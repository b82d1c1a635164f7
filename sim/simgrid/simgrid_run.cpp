// SimGrid set to plain max-min sharing, and driven by what has just finished: only live transfers
// exist as SimGrid activities, and no actor is needed.
//
//   transfer ready ──latency (timer)──▶ Comm over exactly its links ──completion──▶ next ops ready
//   posted transfer: the Comm first ──▶ its stream is free ──latency (timer)──▶ the others ready
//   compute ready ──▶ timer, or Exec where kernels of several streams share a rank ──▶ …
//
// SimGrid's network models are TCP's: CM02 weights a flow by its round-trip time and LV08 adds
// correction factors. Plain max-min needs CM02 without factors, without a window (TCP-gamma),
// without acknowledgements on the way back (crosstraffic), and links without latency: a flow's
// weight is its route's latency. So the latency passes on a timer of SimGrid's before the flow
// begins. Not done: one actor per stream (a context switch for each op), and SimGrid's own DAG of
// activities (all two million of a large ring alive at once).
#include "sim/simgrid/simgrid_run.hpp"

#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "sim/engine/compute_units.hpp"
#include "sim/engine/served_queues.hpp"
#include "sim/simgrid/simgrid_waiting.hpp"

namespace rehearse {

namespace {

namespace sg = simgrid::s4u;

// Completions closer than surf/precision count as one moment: a picosecond, as on our own clock.
constexpr std::array settings{
    "network/model:CM02",     "network/bandwidth-factor:1", "network/latency-factor:1",
    "network/weight-S:0",     "network/TCP-gamma:0",        "network/crosstraffic:0",
    "network/loopback-lat:0", "surf/precision:1e-12",       "maxmin/precision:1e-9",
    "debug/verbose-exit:no",  "debug/clean-atexit:no"};

// What a rank computes in a second, in picoseconds of a kernel alone.
constexpr double unit_speed = 1e12;

/// The platform: each link of the Topology that is crossed, and for each different way one host
/// whose route to the common target is exactly that way. Multicasts need no special case.
class Platform {
 public:
  Platform(const Program& program, const Paths& paths, const Topology& topology,
           const ComputeUnits& slowing);
  /// nullptr where the connection crosses no link.
  sg::Host* source(ConnectionId id) const { return sources_[index(id)]; }
  /// nullptr where a rank's kernels neither meet others nor communication that slows them.
  sg::Host* unit(Rank rank) const {
    const auto found = units_.find(rank);
    return found == units_.end() ? nullptr : found->second;
  }
  sg::Host* target() const { return target_; }

 private:
  /// The links crossed, and the rate of a flow alone on them.
  using Way = std::pair<std::vector<LinkId>, double>;
  sg::Host* add_source(const Way& way, std::size_t number, const Topology& topology);
  void add_units(const Program& program, const Topology& topology, const ComputeUnits& slowing);
  sg::Link* link(LinkId id, const Topology& topology);

  sg::NetZone* zone_ = sg::create_star_zone("machine");
  sg::Host* target_ = zone_->create_host("target", 1.0);
  std::vector<sg::Host*> sources_;
  std::map<LinkId, sg::Link*> links_;
  std::map<Rank, sg::Host*> units_;
};

Platform::Platform(const Program& program, const Paths& paths, const Topology& topology,
                   const ComputeUnits& slowing) {
  zone_->add_route(nullptr, target_->get_netpoint(), nullptr, nullptr,
                   std::vector<sg::LinkInRoute>{}, false);
  std::map<Way, sg::Host*> hosts;
  for (std::size_t c = 0; c < program.connections().size(); ++c) {
    const auto connection = static_cast<ConnectionId>(c);
    Way way{{}, paths.rate_alone(connection).count()};
    for (const Paths::Crossing& crossing : paths.crossings(connection)) {
      ASSERT(crossing.weight == 1);
      way.first.push_back(crossing.link);
    }
    const auto [found, is_new] = hosts.try_emplace(way, nullptr);
    if (is_new && !way.first.empty()) found->second = add_source(way, hosts.size(), topology);
    sources_.push_back(found->second);
  }
  add_units(program, topology, slowing);
  zone_->seal();
}

void Platform::add_units(const Program& program, const Topology& topology,
                         const ComputeUnits& slowing) {
  std::map<Rank, Stream> stream_of;
  for (const Program::Op& op : program.ops()) {
    if (op.kind != WorkKind::compute) continue;
    const auto [first, is_new] = stream_of.try_emplace(op.rank, op.stream);
    if (is_new || first->second == op.stream || units_.contains(op.rank)) continue;
    units_[op.rank] = zone_->create_host("unit " + std::to_string(index(op.rank)), unit_speed);
  }
  // A second speed for the time in which communication takes its share.
  for (std::uint32_t r = 0; r < topology.rank_count(); ++r) {
    const auto rank = static_cast<Rank>(r);
    const std::vector<double> speeds{unit_speed, unit_speed * slowing.kept(rank)};
    if (slowing.slows(rank)) units_[rank] = zone_->create_host("unit " + std::to_string(r), speeds);
  }
}

sg::Host* Platform::add_source(const Way& way, std::size_t number, const Topology& topology) {
  const auto& [links, rate] = way;
  std::vector<sg::LinkInRoute> route;
  double narrowest = std::numeric_limits<double>::infinity();
  for (const LinkId id : links) {
    route.emplace_back(link(id, topology));
    narrowest = std::min(narrowest, topology[id].bandwidth.count());
  }
  // A fat pipe bounds each flow by itself. Comm::set_rate() is silently ignored between hosts.
  if (rate < narrowest) {
    sg::Link* const limit = zone_->create_link("limit " + std::to_string(number), rate);
    limit->set_sharing_policy(sg::Link::SharingPolicy::FATPIPE)->set_latency(0.0)->seal();
    route.emplace_back(limit);
  }
  sg::Host* const host = zone_->create_host("source " + std::to_string(number), 1.0);
  zone_->add_route(host->get_netpoint(), nullptr, nullptr, nullptr, route, false);
  return host;
}

sg::Link* Platform::link(LinkId id, const Topology& topology) {
  sg::Link*& made = links_[id];
  if (made == nullptr) {
    made = zone_->create_link("link " + std::to_string(index(id)), topology[id].bandwidth.count());
    made->set_sharing_policy(sg::Link::SharingPolicy::SHARED)->set_latency(0.0)->seal();
  }
  return made;
}

class Run {
 public:
  Run(const Program& program, const Paths& paths, const Topology& topology,
      std::span<const Time> durations, std::span<Timeline::Span> spans)
      : program_{program},
        paths_{paths},
        durations_{durations},
        spans_{spans},
        waiting_{program},
        queues_{program},
        slowing_{program, topology},
        platform_{program, paths, topology, slowing_} {}

  std::size_t go(const sg::Engine& engine);

 private:
  void begin(OpId id);
  void begin_compute(OpId id, const Program::Op& op);
  void begin_transfer(OpId id);
  void move_bytes(OpId id);
  Time now() const;
  template <class Action>
  void after(Time delay, Action action);
  void track(OpId id, sg::ActivityPtr activity);
  void work_done_after(OpId id, Time delay);
  void work_done(OpId id);
  void free_stream(OpId id);
  void finish(OpId id, Time end);
  void release(OpId id, OpId blocker);
  void make_ready(OpId id, OpId blocker);
  void begin_ready();
  void serve_queues();

  const Program& program_;
  const Paths& paths_;
  std::span<const Time> durations_;
  std::span<Timeline::Span> spans_;
  Waiting waiting_;
  ServedQueues queues_;
  bool is_to_serve_ = false;
  ComputeUnits slowing_;
  Platform platform_;
  std::map<Rank, std::uint32_t> taken_;  // transfers by kernels under way at a rank
  std::vector<OpId> ready_;
  bool is_beginning_ = false;
  std::size_t finished_ = 0;
  Time told_;
  struct Live {
    OpId op{};
    sg::ActivityPtr activity;
  };
  std::vector<Live> live_;
  std::vector<std::size_t> free_;  // slots of live_
  // SimGrid still reads an activity after it has told that it is complete: let go later.
  std::vector<sg::ActivityPtr> complete_;
};

// SimGrid's clock is a double and ours whole picoseconds. Rounding both ends of a kernel may lose
// one, so our clock never runs behind what it has already told.
Time Run::now() const { return std::max(told_, Time::round(Seconds{sg::Engine::get_clock()})); }

std::size_t Run::go(const sg::Engine& engine) {
  for (Timeline::Span& span : spans_) span = {Time::never(), Time::never(), no_op};
  sg::Activity::on_completion_cb([this](const sg::Activity& activity) {
    const auto slot = reinterpret_cast<std::size_t>(activity.get_data<void>());
    complete_.push_back(std::move(live_[slot].activity));
    free_.push_back(slot);
    work_done(live_[slot].op);
    begin_ready();
  });
  sg::Engine::on_time_advance_cb([this](double) { complete_.clear(); });
  for (std::size_t i = 0; i < program_.size(); ++i)
    if (waiting_.pending[i] == 0) make_ready(static_cast<OpId>(i), no_op);
  begin_ready();
  engine.run();
  return finished_;
}

// A loop, not a recursion: a chain of a million markers ends at one moment.
void Run::begin_ready() {
  if (is_beginning_) return;
  is_beginning_ = true;
  for (std::size_t i = 0; i < ready_.size(); ++i) begin(ready_[i]);
  ready_.clear();
  is_beginning_ = false;
  if (queues_.may_serve()) serve_queues();
}

// Who is next on a queue is decided when the picosecond is over, as in our own engine: SimGrid may
// come to two ends of one picosecond one after the other. Less than half of one later is early
// enough to have the same name.
void Run::serve_queues() {
  if (std::exchange(is_to_serve_, true)) return;
  constexpr double late = 0.4e-12;
  const double when = std::max(now().seconds().count() + late, sg::Engine::get_clock());
  simgrid::kernel::timer::Timer::set(when, [this] {
    is_to_serve_ = false;
    queues_.serve(now(), [this](OpId id, OpId blocker) {
      spans_[index(id)].blocker = blocker;
      ready_.push_back(id);
    });
    begin_ready();
  });
}

void Run::begin(OpId id) {
  const Program::Op& op = program_[id];
  spans_[index(id)].begin = now();
  switch (op.kind) {
    case WorkKind::marker:
      return work_done(id);
    case WorkKind::compute:
      return begin_compute(id, op);
    case WorkKind::transfer:
      return begin_transfer(id);
    case WorkKind::collective:
      ASSERT(!"collectives are expanded before a simulator sees them");
  }
}

void Run::begin_compute(OpId id, const Program::Op& op) {
  const Time alone = durations_[op.work];
  sg::Host* const unit = platform_.unit(op.rank);
  if (unit == nullptr || alone == Time{}) return work_done_after(id, alone);
  const sg::ExecPtr exec = sg::Exec::init();
  exec->set_flops_amount(static_cast<double>(alone.ps()));
  track(id, exec);
  exec->set_host(unit);
  exec->start();
}

void Run::begin_transfer(OpId id) {
  for (const Rank rank : slowing_.slowed(program_.transfer(program_[id]).connection))
    if (taken_[rank]++ == 0) platform_.unit(rank)->set_pstate(1);
  const Time lead = paths_.lead(program_.transfer(program_[id]).connection);
  if (lead == Time{}) return move_bytes(id);
  after(lead, [this, id] { move_bytes(id); });
}

void Run::move_bytes(OpId id) {
  const Transfer& transfer = program_.transfer(program_[id]);
  if (transfer.wire == Bytes{0}) return work_done(id);
  const BytesPerSecond alone = paths_.rate_alone(transfer.connection);
  sg::Host* const source = platform_.source(transfer.connection);
  if (source == nullptr) {  // a rank to itself: no link, at most a protocol's limit
    if (std::isinf(alone.count())) return work_done(id);
    return work_done_after(id, Time::round(transfer.wire / alone));
  }
  const sg::CommPtr comm = sg::Comm::sendto_init();
  comm->set_payload_size(static_cast<std::uint64_t>(transfer.wire.count()));
  track(id, comm);
  // In 3.32 a Comm starts by itself as soon as both its ends are known, so they come last.
  comm->set_source(source)->set_destination(platform_.target());
}

void Run::track(OpId id, sg::ActivityPtr activity) {
  if (free_.empty()) {
    free_.push_back(live_.size());
    live_.emplace_back();
  }
  const std::size_t slot = free_.back();
  free_.pop_back();
  activity->set_data(reinterpret_cast<void*>(slot));
  live_[slot] = {id, std::move(activity)};
}

void Run::work_done_after(OpId id, Time delay) {
  if (delay == Time{}) return work_done(id);
  after(delay, [this, id] { work_done(id); });
}

// Kernels have run, bytes have left; what is posted arrives later, exactly a latency after the
// moment at which the next op may begin.
void Run::work_done(OpId id) {
  const Program::Op& op = program_[id];
  const Time least = op.kind == WorkKind::compute ? durations_[op.work] : Time{};
  told_ = std::max(now(), spans_[index(id)].begin + least);
  free_stream(id);
  const Time flight = flight_of(program_, paths_, op), end = told_ + flight;
  if (flight == Time{}) return finish(id, end);
  after(flight, [this, id, end] { finish(id, end); });
}

// On a whole picosecond, so that what only waits ends exactly when it should.
template <class Action>
void Run::after(Time delay, Action action) {
  simgrid::kernel::timer::Timer::set((now() + delay).seconds().count(), [this, action] {
    action();
    begin_ready();
  });
}

void Run::free_stream(OpId id) {
  if (program_[id].kind == WorkKind::transfer)
    for (const Rank rank : slowing_.slowed(program_.transfer(program_[id]).connection))
      if (--taken_[rank] == 0) platform_.unit(rank)->set_pstate(0);
  if (is_queue(program_[id].stream)) return queues_.free(program_[id], id);
  const OpId behind = waiting_.behind[index(id)];
  if (behind != no_op) release(behind, id);
}

void Run::finish(OpId id, Time end) {
  spans_[index(id)].end = end;
  told_ = std::max(told_, end);
  ++finished_;
  for (const OpId next : waiting_.successors(id)) release(next, id);
}

void Run::release(OpId id, OpId blocker) {
  if (--waiting_.pending[index(id)] == 0) make_ready(id, blocker);
}

void Run::make_ready(OpId id, OpId blocker) {
  if (is_queue(program_[id].stream)) return queues_.add(program_[id], id, now(), blocker);
  spans_[index(id)].blocker = blocker;
  ready_.push_back(id);
}

}  // namespace

std::size_t run_on_simgrid(const Program& program, const Paths& paths, const Topology& topology,
                           std::span<const Time> durations, std::span<Timeline::Span> spans) {
  ASSERT(spans.size() == program.size() && !sg::Engine::has_instance());
  std::vector<std::string> words{"rehearse", "--log=root.thres:error"};
  for (const char* const setting : settings) words.push_back(std::string{"--cfg="} + setting);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  auto count = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);
  const sg::Engine engine{&count, arguments.data()};
  return Run{program, paths, topology, durations, spans}.go(engine);
}

}  // namespace rehearse
