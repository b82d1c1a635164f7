# What tools/quickstart and tools/test share: the list of Debian packages, and how to get them.
# Sourced from the project's root, never run by itself.

# Without these nothing builds. The rest is optional, and the build says what it left out: ccache,
# and a library for each module (sim/base/module.hpp).
needed_packages=(build-essential cmake ninja-build libboost-dev libfmt-dev
  libtomlplusplus-dev nlohmann-json3-dev libpugixml-dev libcli11-dev zlib1g-dev)
optional_packages=(ccache libsimgrid-dev libopenblas-dev libhwloc-dev libopenmpi-dev openmpi-bin
  libcpp-httplib-dev)
# Tests need GoogleTest; clang is quicker with sanitizers than g++ and fuzzes the readers,
# clang-format and Python keep the code tidy.
test_packages=(libgtest-dev)
# emscripten and esbuild make the lab's page (1 GB unpacked).
optional_test_packages=(python3 python3-pip libbenchmark-dev clang libclang-rt-dev clang-format
  chromium fonts-dejavu-core emscripten esbuild)
# Pages are looked at in Chromium, which playwright drives (124 MB and 47 MB to fetch).
python_packages=(playwright)
# HolisticTraceAnalysis reads our traces (14 s and 260 MB to unpack). It names JupyterLab as a need,
# which would be as much again and which it does not import: it comes without what it names.
trace_packages=('numpy<3' 'pandas<4' 'networkx<4' 'plotly<8' 'pydot<5' 'psutil<8'
  'pyyaml<7')
trace_analysis='HolisticTraceAnalysis==0.5.0'

# A newer nvvm than its nvcc does not work: the toolkit is pinned as a whole.
cuda_wheels=('cuda-toolkit[nvcc,cudart,cublas,cccl,crt,nvvm,nvtx,cupti]==13.0.*'
  'nvidia-nccl-cu13==2.28.*')

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

# fetch_python WHAT PIP-ARGUMENT...: into a folder of their own; without them tests are skipped.
fetch_python() {
  local what=$1 log
  shift
  if ! python3 -m pip --version >/dev/null 2>&1; then
    say "no pip here: tests that need $what are skipped"
    return 1
  fi
  log=$(mktemp)
  if ! python3 -m pip install --quiet --target build-python "$@" >"$log" 2>&1; then
    tail -n 2 "$log" >&2
    rm -f "$log"
    say "could not fetch Python packages: tests that need $what are skipped"
    return 1
  fi
  rm -f "$log"
}

ensure_python_packages() {
  if ! PYTHONPATH=build-python python3 -c "import $(IFS=,; echo "$*")" 2>/dev/null; then
    say "fetching Python packages: $*"
    fetch_python "$*" "$@" || true
  fi
}

ensure_trace_analysis() {
  PYTHONPATH=build-python python3 -c 'import hta.trace_analysis' 2>/dev/null && return 0
  say "fetching $trace_analysis"
  fetch_python "$trace_analysis" "${trace_packages[@]}" || return 0
  fetch_python "$trace_analysis" --no-deps "$trace_analysis" || true
}

# Where there is no CUDA toolkit, nvcc, cuBLAS and NCCL come as wheels into build/cuda-toolkit: for
# the kernels, and for the headers of the emulated devices. Optional: goes on without.
ensure_cuda() {
  local target=build/cuda-toolkit wheels=build/cuda-wheels log library
  local -a pip=(python3 -m pip)
  if { command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ]; } &&
    { [ -f /usr/local/cuda/include/nccl.h ] || [ -f /usr/include/nccl.h ]; }; then
    return 0
  fi
  [ ! -x "$target/bin/nvcc" ] || return 0
  if ! "${pip[@]}" --version >/dev/null 2>&1; then
    say "no CUDA toolkit and no pip here: CUDA is left out"
    return 0
  fi
  say "fetching the CUDA toolkit and NCCL as wheels (1.3 GB)"
  log=$(mktemp)
  mkdir -p build
  rm -rf "$wheels" "$target"
  if ! "${pip[@]}" install --quiet --target "$wheels" "${cuda_wheels[@]}" >"$log" 2>&1; then
    tail -n 3 "$log" >&2
    say "could not fetch the CUDA toolkit: CUDA is left out"
    rm -rf "$wheels" "$log"
    return 0
  fi
  rm -f "$log"
  mv "$wheels/nvidia/cu13" "$target"
  cp "$wheels"/nvidia/nccl/include/*.h "$target/include/"
  cp "$wheels"/nvidia/nccl/lib/* "$target/lib/"
  rm -rf "$wheels"
  # Wheels have libcudart.so.13 only; linkers look for libcudart.so, and CMake in lib64.
  ln -s lib "$target/lib64"
  for library in "$target"/lib/*.so.*; do
    ln -sf "${library##*/}" "${library%%.so.*}.so"
  done
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
  say "building ($preset), ${SECONDS} s after the start"
  cmake --build --preset "$preset" --parallel "$(nproc)" "$@" -- --quiet
}
