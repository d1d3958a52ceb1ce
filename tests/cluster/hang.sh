#!/usr/bin/env bash
# A host whose cable is pulled, and one that dies: the others notice, name it and end within half a minute, even if mpirun or MPI_Abort
# would wait. A rank that is stopped on another host is named with its host, and with the local ranks that wait for it.
# usage: hang.sh     (WEFT=build/weft; needs root; three minutes)
hosts=2
. "$(dirname "$0")/cluster.bash"
make_text
cat >gpt2.yaml <<'YAML'
model: {name: gpt2, layers: 2, width: 32, heads: 2, context: 32}
data:  {train: text.h5}
train: {steps: 1000000, batch: 16, micro_batch: 2, threads: 1, log_every: 10}
checkpoint: {every_s: 2}
grid: {pp: 2}
YAML
lines() { wc -l <"runs/$1/metrics.jsonl" 2>/dev/null || echo 0; }
trains() { [ "$(lines "$1")" -gt 3 ] && ls "runs/$1"/checkpoints/step-*.h5; } >/dev/null 2>&1
on_host() { "$cluster/hosts.sh" on "$@"; }
ranks_on() { on_host "$1" "pgrep -f 'weft [t]rain gpt2.yaml'"; }
nobody_on() { [ -z "$(ranks_on "$1")" ]; }
start() {
    across 2 2 slot "$WEFT" train gpt2.yaml run.name="$1" >"$1.out" 2>&1 & job=$!
    soon trains "$1" || { echo "FAILED: $1 does not get going:"; sed 's/^/  | /' "$1.out"; exit 1; }
}
# mpirun may stay after a host is lost, so the test does not wait for its end
named() { soon grep -q "$2" "$1.out"; cp "$1.out" both; }
stop_mpirun() { pkill -KILL -P $job 2>/dev/null; kill -KILL $job 2>/dev/null; wait $job 2>/dev/null; } || true

start stopped
victim=$(ranks_on n2 | tail -1)
on_host n2 kill -STOP "$victim"
holds "a stopped rank of n2 is named" named stopped "rank [23] on n2 (process $victim) has been stopped by a signal"
holds "no rank is left on n1" soon nobody_on n1
holds "no rank is left on n2" soon nobody_on n2
holds "n1 wrote what its ranks did last, too" soon test -s runs/stopped/hang-n1.txt
stop_mpirun || true

start cut
"$cluster/hosts.sh" cut n2
begin=$SECONDS
holds "a host that is cut off is named" named cut "no message has arrived from n2 for"
holds "its ranks end, and the others" soon nobody_on n1
holds "on both sides" soon nobody_on n2
holds "within 90 s, not $((SECONDS - begin))" [ $((SECONDS - begin)) -le 90 ]
"$cluster/hosts.sh" mend n2
stop_mpirun || true

start short
"$cluster/hosts.sh" cut n2
sleep 3
"$cluster/hosts.sh" mend n2
before=$(lines short)
holds "a cable that was out for three seconds ends nothing" soon sh -c "[ \$(wc -l <runs/short/metrics.jsonl) -gt $((before + 3)) ]"
on_host n2 "pkill -USR1 -f 'weft [t]rain gpt2.yaml'"
code=0; wait $job || code=$?
cp short.out both
holds "and the run ends as asked, not with $code" [ $code = 75 ]

start dead
"$cluster/hosts.sh" cut n2 # so that no message about its end arrives
"$cluster/hosts.sh" kill n2
holds "a host that dies is named" named dead "no message has arrived from n2 for"
holds "and the others' ranks end" soon nobody_on n1
stop_mpirun || true
finish
