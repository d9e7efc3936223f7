#!/usr/bin/env bash
# Runs those tests that have just failed beside others once more, one after the other and with the machine to
# themselves. What passes then is named: it has a race, or less patience than a busy machine asks for.
set -euo pipefail
cd "$(dirname "$0")/.."
kept=.pytest_cache/v/cache/lastfailed
# More than a handful do not fail for want of a core.
most=20
failed=$(.venv/bin/python -c 'import json, sys; print(*json.load(open(sys.argv[1])), sep="\n")' "$kept")
count=$(grep -c . <<<"$failed") || true
if [ "$count" -gt "$most" ]; then
    echo "$count tests have failed; only up to $most are tried again alone."
    exit 1
fi
printf '\n##### %s tests have failed beside others; now they run alone: #####\n' "$count"
.venv/bin/pytest --last-failed
printf '\n##### PASSED ONLY ALONE, and to be mended: #####\n%s\n' "$failed"
