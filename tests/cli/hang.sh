#!/usr/bin/env bash
# A rank that is stopped ends the job within seconds. The message names its last action and the ranks that wait for it; no process is
# left, and the same command resumes from the checkpoint. A job that is suspended as a whole continues afterwards.
# cores: 0.1
. "$(dirname "$0")/common.bash"

seq 1 20000 >text
"$WEFT" data import text text -o tokens.h5 >/dev/null
cat >job.yaml <<Y
run: {name: stopped}
model: {name: gpt2, layers: 2, width: 32, heads: 2, context: 32}
data: {train: tokens.h5}
train: {steps: 1000000, batch: 8, micro_batch: 2, threads: 1, log_every: 10}
checkpoint: {every_s: 1}
grid: {pp: 2}
Y
lines() { wc -l <runs/stopped/metrics.jsonl 2>/dev/null || echo 0; }
trains() { [ "$(lines)" -gt "$1" ] && ls runs/stopped/checkpoints/step-*.h5; } >/dev/null 2>&1
nobody() { [ -z "$(rank_pids job.yaml)" ]; }
start() { background out timeout -k 5 200 mpirun --oversubscribe --bind-to none -n 4 "$WEFT" train job.yaml; job=$!; }

start
soon trains 3
victim=$(rank_pid job.yaml 2)
kill -STOP "$victim"
code=0; wait $job || code=$?
cat out >both
holds "exit code 75, not $code" [ $code = 75 ]
holds "the stopped rank is named" grep -q "rank 2 on $(hostname) (process $victim) has been stopped by a signal for" out
holds "and what another is at" grep -qE "rank [013] on $(hostname) (waits for|is at) .*, since [0-9.]+ s" out
holds "what all ranks did last is there" [ "$(grep -c '^rank [0-3], process' "runs/stopped/hang-$(hostname).txt")" = 4 ]
last() { sed 's/.*step \([0-9,]*\)\/.*/\1/; s/,//g' | tail -n 1; }
holds "no line is lost: metrics.jsonl ends with $(tail -n 1 runs/stopped/metrics.jsonl)" \
    grep -q "^{\"step\":$(grep '^epoch.*loss' out | last)," <(tail -n 1 runs/stopped/metrics.jsonl)
holds "no rank is left" soon nobody

before=$(lines)
start
soon trains "$((before + 3))"
holds "goes on" grep -q "^resuming from .*step-" out
all=$(rank_pids job.yaml | cut -d' ' -f2)
kill -STOP $all
sleep 7
kill -CONT $all
before=$(lines)
holds "a job that was suspended goes on" soon trains "$((before + 3))"
kill -USR1 $all
code=0; wait $job || code=$?
holds "and ends as usual, not with $code" [ $code = 75 ]
holds "without a word about the pause" sh -c '! grep -q "step .* has taken\|stopped by a signal" out'

# Servers, which sleep without requests, are watched like all other ranks: the job ends long before train.hang_s (300) and this time
# limit.
"$WEFT" data make criteo-like -o clicks.h5 --samples 192 --threads 1 >/dev/null
cat >served.yaml <<Y
run: {name: served}
model: {name: wide_deep, width: 4, hidden: [8]}
data: {train: clicks.h5}
train: {steps: 1000000, batch: 48, micro_batch: 6, threads: 1, log_every: 10, loss: sigmoid}
optim: {name: sgd, lr: 0.001}
checkpoint: {every_s: 1}
grid: {servers: 1, geo_steps: 10}
Y
for mode in sync geo; do
    rm -rf runs/served
    background out timeout -k 5 100 mpirun --oversubscribe --bind-to none -n 3 "$WEFT" train served.yaml grid.mode=$mode
    job=$!
    soon sh -c 'ls runs/served/checkpoints/step-*.h5' >/dev/null 2>&1
    victim=$(rank_pid served.yaml 2)
    kill -STOP "$victim"
    code=0; wait $job || code=$?
    cat out >both
    holds "$mode: exit code 75, not $code" [ $code = 75 ]
    holds "$mode: the stopped server is named" grep -q "rank 2 on $(hostname) (process $victim), a server, has been stopped by a signal for" out
    # a rank that is about to save is in no step
    holds "$mode: and who waits for it" grep -qE "rank [01] on $(hostname) waits for (messages of other ranks(, step [0-9]+)?|sums over replicas \([0-9]+\), step [0-9]+), since [0-9.]+ s" out
    holds "$mode: what it did last is there" grep -q '^rank 2, process' "runs/served/hang-$(hostname).txt"
done
finish
