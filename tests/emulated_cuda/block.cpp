// The fibers and what they wait for.
//
// A fiber that ends a thread without having waited begins the next thread itself: kernels without
// barriers need one fiber for a whole block.
#include "tests/emulated_cuda/block.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <numeric>
#include <vector>

#include "tests/emulated_cuda/switching.hpp"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace emulated_cuda {

namespace {

// The sanitizer knows 8,000 threads, and each costs it time at every barrier.
constexpr std::size_t most_threads_of_stream = 512;
constexpr int most_streams_with_threads = 4;

enum class Wants : std::uint8_t { to_run, block_barrier, warp, nothing };

struct ThreadPlace {
  uint3 thread{}, block{};
  dim3 block_size, grid_size;
  unsigned linear = 0;  // in its block

  unsigned lane() const { return linear % 32; }
};

struct Fiber {
  Context context;
  Stack stack;
  std::unique_ptr<Actor> actor;  // null: acts as its stream
  bool is_started = false;
  Wants wants = Wants::to_run;
  ThreadPlace place;
  unsigned mask = 0;  // of the warp's exchange that it waits for
  const char* barrier_file = nullptr;
  unsigned barrier_line = 0;
};

using WarpValues = std::array<std::uint64_t, 32>;
struct Exchange {
  unsigned arrived = 0, mask = 0;
  std::size_t turn = 0;  // lanes that read the last values are not in the way of the next
  std::array<WarpValues, 2> values{};
  std::array<Token, 2> orders;
};

}  // namespace

// What runs one kernel's blocks. Where threads of a block end without having waited, one fiber is
// enough for all of them; where each is an actor, each has a fiber, and those of the block before
// rest: two blocks are not in one order.
class Crew {
 public:
  Crew(const Actor& stream, bool threads_apart) : actor{stream} {
    if (sees_races && threads_apart && streams_with_threads < most_streams_with_threads) {
      has_threads = true;
      ++streams_with_threads;
    }
  }
  ~Crew() {
    if (has_threads) --streams_with_threads;
  }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  Fiber& take() {
    const bool wants_more = has_threads && fibers.size() < most_threads_of_stream;
    if (idle.empty() || wants_more) {
      fibers.push_back(std::make_unique<Fiber>());
      if (has_threads) fibers.back()->actor = std::make_unique<Actor>();
      return *fibers.back();
    }
    Fiber& fiber = has_threads ? *idle.front() : *idle.back();
    has_threads ? idle.pop_front() : idle.pop_back();
    return fiber;
  }
  // After an error fibers are in the middle of threads that will never end.
  void drop() {
    idle.clear();
    for (const auto& fiber : fibers) {
      fiber->is_started = false;
      fiber->wants = Wants::nothing;
      idle.push_back(fiber.get());
    }
  }
  const Actor& actor_of(const Fiber& fiber) const { return fiber.actor ? *fiber.actor : actor; }

  const Actor& actor;  // the stream
  bool has_threads = false;
  std::unique_ptr<Token> begin, end;                 // of the kernel
  std::vector<std::unique_ptr<std::byte[]>> shared;  // of the kernel's blocks
  std::deque<Fiber*> idle;

 private:
  std::vector<std::unique_ptr<Fiber>> fibers;
  static inline int streams_with_threads = 0;
};

namespace {

struct Block {
  Crew* crew = nullptr;
  std::vector<Fiber*> of_thread;  // null: not begun, or ended
  std::vector<unsigned> order;    // of threads to begin
  std::size_t begun = 0, ended = 0;
  std::vector<Exchange> warps;
  std::array<Token, 2> barriers;  // in turn: who is late at one must not see the next
  std::size_t passed = 0;
  const std::function<void()>* body = nullptr;
  ThreadPlace first;  // of thread 0
  int votes = 0, last_votes = 0;
  std::byte* shared = nullptr;
  std::string error;
  Context scheduler;
  Fiber* running = nullptr;
  long long clock = 0;
};

// Kernels run one at a time, under the machine's lock.
Block& block() {
  static Block all;
  return all;
}

void become(const ThreadPlace& place) {
  threadIdx = place.thread;
  blockIdx = place.block;
  blockDim = place.block_size;
  gridDim = place.grid_size;
}

ThreadPlace place_of(unsigned linear) {
  ThreadPlace place = block().first;
  const dim3 size = place.block_size;
  place.linear = linear;
  place.thread = {linear % size.x, linear / size.x % size.y, linear / size.x / size.y};
  return place;
}

void run_body(const Fiber& self) {
  const Block& all = block();
  const As turn{all.crew->actor_of(self)};
  acquire(all.crew->begin->place());
  (*all.body)();
  release(all.crew->end->place());
}

void run_threads() {
  Block& all = block();
  arrive();
  for (;;) {
    Fiber& self = *all.running;
    while (all.begun < all.order.size() && all.error.empty()) {
      self.place = place_of(all.order[all.begun++]);
      all.of_thread[self.place.linear] = &self;
      become(self.place);
      run_body(self);
      all.of_thread[self.place.linear] = nullptr;
      ++all.ended;
      if (self.actor != nullptr) break;
    }
    self.wants = Wants::nothing;
    all.crew->idle.push_back(&self);
    switch_between(self.context, all.scheduler);
  }
}

void resume(Fiber& fiber) {
  Block& all = block();
  all.running = &fiber;
  if (!fiber.is_started) {
    fiber.is_started = true;
    prepare(fiber.context, fiber.stack.begin(), fiber.stack.bytes(), run_threads);
  }
  switch_between(all.scheduler, fiber.context);
  all.running = nullptr;
}

void wait_for(Wants what) {
  Fiber& self = *block().running;
  self.wants = what;
  switch_between(self.context, block().scheduler);
  become(self.place);
}

std::string count_text(std::size_t count, std::size_t of) {
  return std::to_string(count) + " of " + std::to_string(of) + " threads";
}

// All threads there, at the same line: on. Returns whether anyone may go on.
bool pass_barrier() {
  Block& all = block();
  const Fiber* first = nullptr;
  std::size_t waiting = 0;
  for (const Fiber* fiber : all.of_thread) {
    if (fiber == nullptr || fiber->wants != Wants::block_barrier) continue;
    if (first == nullptr) first = fiber;
    ++waiting;
    if (fiber->barrier_line != first->barrier_line ||
        std::strcmp(fiber->barrier_file, first->barrier_file) != 0)
      all.error = "threads of one block wait at different barriers, lines " +
                  std::to_string(first->barrier_line) + " and " +
                  std::to_string(fiber->barrier_line);
  }
  if (waiting == 0 || waiting + all.ended < all.order.size() || !all.error.empty()) return false;
  if (all.ended > 0) {
    all.error = "a barrier (line " + std::to_string(first->barrier_line) + ") is reached by " +
                count_text(waiting, all.order.size()) + ", the others have left the kernel";
    return false;
  }
  all.last_votes = all.votes;
  all.votes = 0;
  ++all.passed;
  for (Fiber* fiber : all.of_thread) fiber->wants = Wants::to_run;
  return true;
}

unsigned lanes_there(std::size_t warp) {
  const std::size_t left = block().order.size() - 32 * warp;
  return left >= 32 ? 0xffffffffU : (1U << left) - 1;
}

bool pass_warps() {
  Block& all = block();
  bool any = false;
  for (std::size_t w = 0; w < all.warps.size(); ++w) {
    Exchange& exchange = all.warps[w];
    if (exchange.arrived == 0 || exchange.arrived != (exchange.mask & lanes_there(w))) continue;
    for (unsigned lane = 0; lane < 32; ++lane)
      if ((exchange.arrived >> lane & 1) != 0) all.of_thread[32 * w + lane]->wants = Wants::to_run;
    exchange.arrived = 0;
    ++exchange.turn;
    any = true;
  }
  return any;
}

// Memory of its own for every block of a kernel, which is nobody's before; all ones are no number.
void make_shared_memory(std::size_t bytes) {
  Crew& crew = *block().crew;
  if (!sees_races) crew.shared.clear();
  const As turn{crew.actor};
  crew.shared.push_back(std::make_unique_for_overwrite<std::byte[]>(bytes));
  block().shared = crew.shared.back().get();
  std::memset(block().shared, 0xff, bytes);
  release(crew.begin->place());
}

void begin(const std::function<void()>& body, const BlockShape& shape, uint3 number,
           std::mt19937_64& order) {
  Block& all = block();
  const std::size_t threads = std::size_t{shape.block.x} * shape.block.y * shape.block.z;
  all.body = &body;
  all.first = {{}, number, shape.block, shape.grid, 0};
  all.order.resize(threads);
  std::iota(all.order.begin(), all.order.end(), 0U);
  std::shuffle(all.order.begin(), all.order.end(), order);
  all.of_thread.assign(threads, nullptr);
  all.warps.clear();
  all.warps.resize((threads + 31) / 32);
  all.barriers = {};
  all.passed = 0;
  all.begun = all.ended = 0;
  all.votes = 0;
  all.error.clear();
  forget_shared();
  if (shape.shared_bytes > 0) make_shared_memory(shape.shared_bytes);
}

// Good until the next exchange.
const WarpValues& exchange_with_warp(unsigned mask, std::uint64_t value, bool orders_memory) {
  Block& all = block();
  const ThreadPlace place = all.running->place;
  Exchange& exchange = all.warps[place.linear / 32];
  const std::size_t turn = exchange.turn % 2;
  const void* order = exchange.orders[turn].place();
  if (orders_memory) release(order);
  {
    const AsHost pause;
    const unsigned bit = 1U << place.lane();
    if ((mask & bit) == 0)
      all.error = "a lane that is not in its own mask";
    else if (exchange.arrived != 0 && exchange.mask != mask)
      all.error = "lanes of one warp wait with different masks";
    exchange.mask = mask;
    exchange.arrived |= bit;
    exchange.values[turn][place.lane()] = value;
    wait_for(Wants::warp);
  }
  if (orders_memory) acquire(order);
  return exchange.values[turn];
}

}  // namespace

void* dynamic_shared() { return block().shared; }
long long next_clock() { return block().clock += 100; }

int block_barrier(int vote, Place place) {
  Block& all = block();
  const void* order = all.barriers[all.passed % 2].place();
  release(order);
  {
    const AsHost pause;
    all.votes += vote;
    all.running->barrier_file = place.file;
    all.running->barrier_line = place.line;
    wait_for(Wants::block_barrier);
  }
  acquire(order);
  return all.last_votes;
}

std::uint64_t warp_shuffle_xor(unsigned mask, std::uint64_t value, unsigned lane_mask) {
  const unsigned lane = block().running->place.lane();
  return exchange_with_warp(mask, value, false)[(lane ^ lane_mask) % 32];
}

unsigned warp_ballot(unsigned mask, bool vote) {
  const WarpValues& all = exchange_with_warp(mask, vote ? 1 : 0, false);
  unsigned votes = 0;
  for (unsigned lane = 0; lane < 32; ++lane)
    if ((mask >> lane & 1) != 0 && all[lane] != 0) votes |= 1U << lane;
  return votes;
}

void warp_barrier(unsigned mask) { exchange_with_warp(mask, 0, true); }

std::shared_ptr<Crew> make_crew(const Actor& stream, bool threads_apart) {
  if (sees_races) return std::make_shared<Crew>(stream, threads_apart);
  static const auto all = std::make_shared<Crew>(stream, false);
  return all;
}

bool keeps_threads_apart(const Crew& crew) { return crew.has_threads; }

void begin_kernel(Crew& crew) {
  crew.begin = std::make_unique<Token>();
  crew.end = std::make_unique<Token>();
  const As turn{crew.actor};
  release(crew.begin->place());
}

void end_kernel(Crew& crew) {
  const As turn{crew.actor};
  acquire(crew.end->place());
  crew.shared.clear();
}

std::string run_block(const std::function<void()>& body, const BlockShape& shape, uint3 number,
                      std::mt19937_64& order, Crew& crew) {
  Block& all = block();
  all.crew = &crew;
  begin(body, shape, number, order);
  while (all.ended < all.order.size() && all.error.empty()) {
    std::vector<Fiber*> ready;
    for (Fiber* fiber : all.of_thread)
      if (fiber != nullptr && fiber->wants == Wants::to_run) ready.push_back(fiber);
    std::shuffle(ready.begin(), ready.end(), order);
    for (std::size_t i = 0; i < ready.size() && all.error.empty(); ++i) resume(*ready[i]);
    while (all.begun < all.order.size() && all.error.empty()) resume(crew.take());
    if (!all.error.empty() || all.ended == all.order.size()) break;
    const bool warps_go_on = pass_warps();
    if (!warps_go_on && !pass_barrier() && ready.empty() && all.error.empty())
      all.error = "the block hangs: " + count_text(all.ended, all.order.size()) +
                  " have left, the others wait for them";
  }
  if (!all.error.empty()) crew.drop();
  return all.error;
}

bool abandon_block(const std::string& message) {
  Block& all = block();
  if (all.running == nullptr) return false;
  all.error = message;
  abandon_for(all.scheduler);
}

}  // namespace emulated_cuda
