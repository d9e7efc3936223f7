# Sourced by what installs clients, in the root of the checkout: an environment in .tools for each locked list.
: "${UV:?is named by make}" "${PYTHON:?is named by make}"

environment() { # folder list python [option...]: that of tests/FOLDER/requirements-LIST.txt
    local list="tests/$1/requirements-$2.txt" python="$3"
    # Named after what is in it, so that another list makes another environment.
    local folder
    folder=".tools/$1-$2-$(sha256sum <"$list" | cut -c1-12)"
    [ -e "$folder/complete" ] && return
    rm -rf ".tools/$1-$2"-*
    "$UV" venv --quiet --python "$python" "${@:4}" "$folder"
    # Compiled once here, and not by each program that a test starts.
    "$UV" pip sync --quiet --compile-bytecode --python "$folder/bin/python" "$list"
    touch "$folder/complete"
}
