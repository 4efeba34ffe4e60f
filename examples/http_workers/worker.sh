#!/usr/bin/env bash
# A whole worker over HTTP, with curl and jq: it doubles numbers. TENURE_URL and TENURE_TOKEN say
# where and who. Each job is short here; one that is not renews in the background, as shown.
set -euo pipefail
session=null
trap 'stopping=1' TERM

say() { # verb, body
    curl --silent --show-error --fail-with-body --max-time 20 \
        --header "Authorization: Bearer $TENURE_TOKEN" --header 'Content-Type: application/json' \
        --data "$2" "$TENURE_URL/v1/leases:$1"
}

keep() { # lease, seconds: renews until the shell that started it ends it
    while sleep "$2"; do say renew "$(jq -nc --arg l "$1" '{leases: [$l]}')" >/dev/null || true; done
}

while [ -z "${stopping:-}" ]; do
    asked=$(jq -nc --argjson s "$session" --arg n "bash-$$" \
        '{queues: ["numbers"], worker: {name: $n, language: "bash"}, session: $s, holding: 0, wait: 5}')
    got=$(say acquire "$asked") || { sleep 0.5; continue; }
    session=$(jq -c .session <<<"$got")
    job=$(jq -c '.jobs[0] // empty' <<<"$got")
    [ -n "$job" ] || continue
    lease=$(jq -r .lease <<<"$job")
    keep "$lease" "$(jq .renew_in_ms/1000 <<<"$job")" &
    keeper=$!
    if result=$(jq '.args.number * 2' <<<"$job"); then
        say complete "$(jq -nc --arg l "$lease" --argjson r "$result" '{lease: $l, result: $r}')" || true
    else
        say fail "$(jq -nc --arg l "$lease" '{lease: $l, error: {type: "BadNumber"}}')" || true
    fi >/dev/null
    kill "$keeper" 2>/dev/null || true
done
