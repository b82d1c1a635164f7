// The fibers and what they wait for.
//
// A fiber that ends a thread without having waited begins the next thread itself: kernels without
// barriers need one fiber for a whole block.
#include "tests/emulated_cuda/block.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "tests/emulated_cuda/switching.hpp"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace emulated_cuda {

namespace {

constexpr std::size_t stack_bytes = 128 << 10;

enum class Wants : std::uint8_t { to_run, block_barrier, warp, nothing };

struct Fiber {
  Context context;
  std::unique_ptr<char[]> stack = std::make_unique<char[]>(stack_bytes);
  bool is_started = false;
  Wants wants = Wants::to_run;
  ThreadPlace place;
  unsigned mask = 0;  // of the warp's exchange that it waits for
  const char* barrier_file = nullptr;
  unsigned barrier_line = 0;
};

struct Exchange {
  unsigned arrived = 0, mask = 0;
  std::size_t turn = 0;  // lanes that read the last values are not in the way of the next
  std::array<WarpValues, 2> values{};
};

struct Block {
  std::vector<std::unique_ptr<Fiber>> fibers;  // kept from block to block
  std::vector<Fiber*> idle;
  std::vector<Fiber*> of_thread;  // null: not begun, or ended
  std::vector<unsigned> order;    // of threads to begin
  std::size_t begun = 0, ended = 0;
  std::vector<Exchange> warps;
  const std::function<void()>* body = nullptr;
  ThreadPlace first;  // of thread 0
  int votes = 0, last_votes = 0;
  std::vector<double> shared;  // doubles for their alignment
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

void run_threads() {
  Block& all = block();
  arrive();
  for (;;) {
    Fiber& self = *all.running;
    while (all.begun < all.order.size() && all.error.empty()) {
      self.place = place_of(all.order[all.begun++]);
      all.of_thread[self.place.linear] = &self;
      become(self.place);
      (*all.body)();
      all.of_thread[self.place.linear] = nullptr;
      ++all.ended;
    }
    self.wants = Wants::nothing;
    all.idle.push_back(&self);
    switch_between(self.context, all.scheduler);
  }
}

void resume(Fiber& fiber) {
  Block& all = block();
  all.running = &fiber;
  if (!fiber.is_started) {
    fiber.is_started = true;
    prepare(fiber.context, fiber.stack.get(), stack_bytes, run_threads);
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

// A fiber that was left in the middle of a thread begins anew.
Fiber& idle_fiber() {
  Block& all = block();
  if (all.idle.empty())
    all.idle.push_back(all.fibers.emplace_back(std::make_unique<Fiber>()).get());
  Fiber& fiber = *all.idle.back();
  all.idle.pop_back();
  return fiber;
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
  all.warps.assign((threads + 31) / 32, {});
  all.begun = all.ended = 0;
  all.votes = 0;
  all.error.clear();
  all.shared.assign((shape.shared_bytes + 7) / 8, std::bit_cast<double>(~std::uint64_t{0}));
}

// After an error fibers are in the middle of threads that will never end.
void drop_fibers() {
  block().idle.clear();
  for (const auto& fiber : block().fibers) {
    fiber->is_started = false;
    fiber->wants = Wants::nothing;
    block().idle.push_back(fiber.get());
  }
}

}  // namespace

const ThreadPlace& current_thread() { return block().running->place; }
void* dynamic_shared() { return block().shared.data(); }
long long next_clock() { return block().clock += 100; }

int block_barrier(int vote, std::source_location place) {
  Block& all = block();
  all.votes += vote;
  all.running->barrier_file = place.file_name();
  all.running->barrier_line = place.line();
  wait_for(Wants::block_barrier);
  return all.last_votes;
}

const WarpValues& warp_exchange(unsigned mask, std::uint64_t value) {
  Block& all = block();
  const ThreadPlace place = all.running->place;
  Exchange& exchange = all.warps[place.linear / 32];
  const unsigned bit = 1U << place.lane();
  if ((mask & bit) == 0)
    all.error = "a lane that is not in its own mask";
  else if (exchange.arrived != 0 && exchange.mask != mask)
    all.error = "lanes of one warp wait with different masks";
  exchange.mask = mask;
  exchange.arrived |= bit;
  const std::size_t turn = exchange.turn % 2;
  exchange.values[turn][place.lane()] = value;
  wait_for(Wants::warp);
  return all.warps[place.linear / 32].values[turn];
}

std::string run_block(const std::function<void()>& body, const BlockShape& shape, uint3 number,
                      std::mt19937_64& order) {
  Block& all = block();
  begin(body, shape, number, order);
  while (all.ended < all.order.size() && all.error.empty()) {
    std::vector<Fiber*> ready;
    for (Fiber* fiber : all.of_thread)
      if (fiber != nullptr && fiber->wants == Wants::to_run) ready.push_back(fiber);
    std::shuffle(ready.begin(), ready.end(), order);
    for (std::size_t i = 0; i < ready.size() && all.error.empty(); ++i) resume(*ready[i]);
    while (all.begun < all.order.size() && all.error.empty()) resume(idle_fiber());
    if (!all.error.empty() || all.ended == all.order.size()) break;
    const bool warps_go_on = pass_warps();
    if (!warps_go_on && !pass_barrier() && ready.empty() && all.error.empty())
      all.error = "the block hangs: " + count_text(all.ended, all.order.size()) +
                  " have left, the others wait for them";
  }
  if (!all.error.empty()) drop_fibers();
  return all.error;
}

bool abandon_block(const std::string& message) {
  Block& all = block();
  if (all.running == nullptr) return false;
  all.error = message;
  abandon_for(all.scheduler);
}

}  // namespace emulated_cuda
