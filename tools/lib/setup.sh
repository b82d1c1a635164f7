# What tools/quickstart and tools/test share: the list of Debian packages, and how to get them.
# Sourced from the project's root, never run by itself.

# Without these nothing builds. The rest is optional, and the build says what it left out.
needed_packages=(build-essential cmake ninja-build libboost-graph-dev libfmt-dev
  libtomlplusplus-dev nlohmann-json3-dev libpugixml-dev libcli11-dev zlib1g-dev)
optional_packages=(ccache libsimgrid-dev libopenblas-dev)
# Tests need GoogleTest; clang fuzzes the readers, clang-format and Python keep the code tidy.
test_packages=(libgtest-dev)
optional_test_packages=(python3 libbenchmark-dev clang libclang-rt-dev clang-format
  chromium fonts-dejavu-core python3-venv)
# Pages are looked at in Chromium, which playwright drives (124 MB and 47 MB to fetch).
python_packages=(playwright)

script_name=${0##*/}
say() { printf '%s: %s\n' "$script_name" "$*"; }

missing_of() {
  local package
  for package in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] ||
      printf '%s ' "$package"
  done
}

# Runs apt-get as root; false where that is not possible.
apt_as_root() {
  local -a command=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 "$@")
  if [ "$(id -u)" = 0 ]; then
    "${command[@]}"
  elif [ -t 0 ]; then
    sudo "${command[@]}"  # may ask for the password
  else
    sudo -n "${command[@]}"
  fi
}

can_install() {
  command -v apt-get >/dev/null || return 1
  [ "$(id -u)" = 0 ] || { command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; }
}

# The lists of packages are fetched only when installing without them fails.
install() {
  local log
  log=$(mktemp)
  if apt_as_root install -y --no-install-recommends "$@" >"$log" 2>&1 ||
    { apt_as_root update >"$log" 2>&1 &&
      apt_as_root install -y --no-install-recommends "$@" >"$log" 2>&1; }; then
    rm -f "$log"
    return 0
  fi
  tail -n 5 "$log" >&2
  rm -f "$log"
  return 1
}

# Installs what is missing: first argument "needed" or "optional", then the packages. Goes on in any
# case: what is missing may be there in another way, and the build is the judge of that.
ensure_packages() {
  local kind=$1 missing
  shift
  missing=$(missing_of "$@")
  missing=${missing% }
  [ -n "$missing" ] || return 0
  if ! can_install; then
    say "cannot install $kind packages here; ask the administrator for:" \
      "apt-get install $missing"
    return 0
  fi
  say "installing $missing"
  # shellcheck disable=SC2086  # a list of words
  install $missing || say "could not install the $kind packages: $missing"
}

# Python packages for the tests, in a folder of their own; without them those tests are skipped.
ensure_python_packages() {
  local folder=build-python log
  if "$folder/bin/python3" -c "import $(IFS=,; echo "$*")" 2>/dev/null; then return 0; fi
  command -v python3 >/dev/null || return 0
  say "installing Python packages: $*"
  log=$(mktemp)
  { python3 -m venv "$folder" && "$folder/bin/pip" install --quiet "$@"; } >"$log" 2>&1 ||
    { tail -n 2 "$log" >&2; say "could not install the optional Python packages: $*"; }
  rm -f "$log"
}

# configure PRESET [OPTION...]; the log is shown only when something is wrong.
configure() {
  local preset=$1 log
  shift
  if ! command -v cmake >/dev/null; then
    say "there is no cmake; needed: ${needed_packages[*]}" >&2
    exit 1
  fi
  log=$(mktemp)
  if ! cmake --preset "$preset" "$@" >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    say "cannot configure the build; needed: ${needed_packages[*]}" >&2
    exit 1
  fi
  grep -E 'not found|left out' "$log" | sed 's/^-- /  /' || true
  rm -f "$log"
}

build() {
  local preset=$1
  shift
  say "building ($preset)"
  cmake --build --preset "$preset" --parallel "$(nproc)" "$@" -- --quiet
}
