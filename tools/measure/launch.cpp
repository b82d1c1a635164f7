// mpirun has exit codes and paragraphs of its own (137 for a killed rank, 1 for Ctrl-C, 139 when it
// dies itself of being asked to end twice): they are read here, and told in a line. The code is the
// one that a rank says it leaves with.
//
//   Ctrl-C ─▶ SIGUSR1, which mpirun hands on ─▶ ranks end in order │ 6 s: SIGTERM │ 8 s: SIGKILL
#include "tools/measure/launch.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <regex>
#include <sstream>
#include <string_view>
#include <vector>

#include "kernels/host/processes.hpp"
#include "sim/base/error.hpp"
#include "sim/base/told_elsewhere.hpp"
#include "tools/measure/host_ranks.hpp"
#include "tools/measure/interrupt.hpp"

namespace rehearse {

namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* asks_for_code = "REHEARSE_TELL_EXIT_CODE";
constexpr std::string_view code_mark = "rehearse-exit-code ";

std::vector<std::string> own_words() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  std::error_code none;
  if (!words.empty()) words[0] = std::filesystem::read_symlink("/proc/self/exe", none).string();
  return words;
}

// Threads are never too many, so processes are not either; ranks choose processors themselves.
std::vector<std::string> mpirun_words(std::size_t processes, const std::string& more) {
  std::vector<std::string> words{"mpirun",          "-n",        std::to_string(processes),
                                 "--oversubscribe", "--bind-to", "none"};
  // A host that is cut off: its daemon and mpirun are to notice within seconds, not minutes.
  for (const char* word : {"oob_tcp_keepalive_time", "oob_tcp_keepalive_intvl"})
    words.insert(words.end(), {"--mca", word, "2"});
  words.insert(words.end(), {"--mca", "oob_tcp_keepalive_probes", "3", "-x", asks_for_code});
  std::istringstream given(more);
  for (std::string word; given >> word;) words.push_back(word);
  for (std::string& word : own_words()) words.push_back(std::move(word));
  return words;
}

/// mpirun's standard error, line by line: what ranks say goes on, its own paragraphs stay here.
class Listener {
 public:
  void take(std::string_view bytes) {
    for (const char byte : bytes) {
      line_ += byte;
      if (byte == '\n') end_line();
    }
  }
  void finish() {
    if (!line_.empty()) end_line();
  }

  bool has_told() const { return has_told_; }        // a rank has said what is wrong
  std::optional<int> code() const { return code_; }  // of the first that left
  const std::optional<std::string>& killed() const { return killed_; }
  const std::string& first_words() const { return first_words_; }

 private:
  void end_line() {
    const std::string line = std::exchange(line_, {});
    if (line.starts_with("----------")) {
      in_paragraph_ = !in_paragraph_;
      return;
    }
    if (line.starts_with(code_mark)) {
      if (!code_) code_ = std::atoi(line.c_str() + code_mark.size());
      return;
    }
    // "[host:42] …" and "[host][[…": what goes wrong inside MPI once a rank is gone, with lines
    // that follow, empty or behind a tab. Nor does anything matter that mpirun says while it is
    // being ended.
    const bool is_our_word = line.find("error: ") != std::string::npos;
    const bool follows = was_noise_ && (line == "\n" || line.starts_with("\t"));
    was_noise_ = follows || line.starts_with("[") || line.starts_with("mpirun: ") ||
                 (has_told_ && !is_our_word);
    if (!in_paragraph_ && !was_noise_) {
      has_told_ = has_told_ || is_our_word;
      fmt::print(stderr, "{}", line);
      return;
    }
    static const std::regex signal{
        R"(process rank (\d+) with PID \d+ on node (\S+) exited on signal (\d+) \(([^)]*)\))"};
    std::smatch found;
    if (std::regex_search(line, found, signal) && !killed_)
      killed_ = fmt::format("rank {} ({}) was ended by signal {} ({})", found[1].str(),
                            found[2].str(), found[3].str(), found[4].str());
    if (first_words_.empty()) first_words_ = line.substr(0, line.find_last_not_of(" \n") + 1);
  }

  std::string line_, first_words_;
  bool in_paragraph_ = false, has_told_ = false, was_noise_ = false;
  std::optional<std::string> killed_;
  std::optional<int> code_;
};

class Job {
 public:
  explicit Job(const std::vector<std::string>& words) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0)
      throw DeviceError(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    const pid_t parent = ::getpid();
    process_ = ::fork();
    if (process_ == 0) become(arguments, ends[1], parent);
    ::close(ends[1]);
    errors_ = ends[0];
    if (process_ < 0)
      throw DeviceError(fmt::format("cannot start mpirun: {}", std::strerror(errno)));
  }
  ~Job() {
    if (errors_ >= 0) ::close(errors_);
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  void send(int signal) const { ::kill(process_, signal); }
  void end_all() const { ::kill(-process_, SIGKILL); }
  std::vector<std::int64_t> ranks_here() const { return children_of(process_); }

  /// What came on its standard error within a tenth of a second; nullopt when it has ended.
  std::optional<std::string> hear() {
    pollfd ready{.fd = errors_, .events = POLLIN, .revents = 0};
    if (errors_ < 0 || ::poll(&ready, 1, 100) <= 0) return has_ended() ? std::nullopt : said("");
    std::array<char, 4096> buffer{};
    const ssize_t count = ::read(errors_, buffer.data(), buffer.size());
    if (count > 0) return said({buffer.data(), static_cast<std::size_t>(count)});
    ::close(std::exchange(errors_, -1));
    while (!has_ended(true)) {
    }
    return std::nullopt;
  }
  int status() const { return status_; }

 private:
  static std::optional<std::string> said(std::string_view text) { return std::string{text}; }

  // A group of its own: Ctrl-C is heard here, and passed on in our way.
  [[noreturn]] static void become(const std::vector<char*>& arguments, int errors, pid_t parent) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(127);
    const int nothing = ::open("/dev/null", O_RDONLY);
    ::dup2(nothing, STDIN_FILENO);
    ::dup2(errors, STDERR_FILENO);
    for (const int each : {SIGINT, SIGTERM, SIGUSR1, SIGPIPE}) ::signal(each, SIG_DFL);
    // Whoever starts this as root means it.
    ::setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    ::setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    ::setenv(asks_for_code, "1", 1);
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }

  bool has_ended(bool waits = false) {
    return ::waitpid(process_, &status_, waits ? 0 : WNOHANG) == process_;
  }

  pid_t process_ = -1;
  int errors_ = -1, status_ = 0;
};

/// When to become less polite.
class Deadlines {
 public:
  /// From now on all is to end; within so many seconds before it is asked to, once more.
  void begin(std::chrono::milliseconds grace) {
    const auto last = Clock::now() + grace;
    if (!last_ || last < *last_) last_ = last;
  }
  void keep(const Job& job) {
    if (!last_) return;
    if (Clock::now() > *last_ + std::chrono::seconds(1)) return job.end_all();
    if (Clock::now() > *last_ && !std::exchange(asked_, true)) job.send(SIGTERM);
  }

 private:
  std::optional<Clock::time_point> last_;
  bool asked_ = false;
};

/// Ranks look after one another once MPI has begun. Until then a rank that is stopped keeps all
/// waiting without a word, and it is seen from here; later, too, by somebody who is slower than
/// they.
class StoppedRanks {
 public:
  /// Whom to name. Ends that rank: mpirun then ends the others.
  std::optional<std::string> look(const Job& job) {
    const auto now = Clock::now();
    if (now - last_look_ < std::chrono::seconds(1)) return {};
    last_look_ = now;
    for (const std::int64_t rank : job.ranks_here()) {
      if (state_of(rank) != 'T') {
        since_.erase(rank);
      } else if (now - since_.try_emplace(rank, now).first->second > patience) {
        const std::string number = started_with(rank, "OMPI_COMM_WORLD_RANK");
        ::kill(static_cast<pid_t>(rank), SIGKILL);
        return fmt::format("rank {} (process {} here) is stopped", number.empty() ? "?" : number,
                           rank);
      }
    }
    return {};
  }

 private:
  static constexpr auto patience = std::chrono::seconds(6);  // ranks wait for 5
  std::map<std::int64_t, Clock::time_point> since_;
  Clock::time_point last_look_ = Clock::now();
};

void tell_end(const Listener& listener, int status, bool interrupted,
              const std::optional<std::string>& stopped) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && !interrupted) return;
  if (listener.has_told()) throw ToldElsewhere(listener.code().value_or(3));
  if (stopped) throw DeviceError(*stopped);
  if (interrupted) throw DeviceError("stopped before the end");
  if (listener.killed()) throw DeviceError(*listener.killed());
  if (listener.code()) throw ToldElsewhere(*listener.code());
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (code == 127)
    throw NothingToRunOn("mpirun cannot be started; install openmpi-bin, or leave --processes out");
  throw DeviceError(
      fmt::format("mpirun ended with code {}: {}", code,
                  listener.first_words().empty() ? "it did not say why" : listener.first_words()));
}

}  // namespace

void tell_launcher(int exit_code) {
  if (exit_code != 0 && is_a_process() && std::getenv(asks_for_code) != nullptr)
    fmt::print(stderr, "{}{}\n", code_mark, exit_code);
}

bool start_under_mpirun(std::size_t processes, const std::string& more_words) {
  if (is_a_process()) return false;
  const InterruptGuard interrupt;
  Job job(mpirun_words(processes, more_words));
  Listener listener;
  Deadlines deadlines;
  StoppedRanks stopped_ranks;
  std::optional<std::string> stopped;
  bool interrupted = false;
  while (const std::optional<std::string> text = job.hear()) {
    listener.take(*text);
    // The others have seen the same, or mpirun ends them; but it waits for a host that is cut off.
    if (!stopped) stopped = stopped_ranks.look(job);
    if (listener.has_told() || stopped) deadlines.begin(std::chrono::milliseconds(1500));
    if (interrupt.was_interrupted() && !std::exchange(interrupted, true)) {
      deadlines.begin(std::chrono::seconds(6));  // a step may come to its end
      job.send(SIGUSR1);
    }
    deadlines.keep(job);
  }
  listener.finish();
  tell_end(listener, job.status(), interrupted, stopped);
  return true;
}

}  // namespace rehearse
