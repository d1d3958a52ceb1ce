#!/usr/bin/env bash
# Tests mode async: a replay of a run's order of requests gives the same bits, whatever the times were; a run resumes with another
# number of servers; invalid combinations are refused.
# usage: async.sh     (WEFT=build/weft)
. "$(dirname "$0")/common.bash"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

check 0 'wrote clicks.h5' "$WEFT" data make criteo-like -o clicks.h5 --samples 480 --test test.h5 --test-samples 40 --threads 1
cat >job.yaml <<'Y'
run: {seed: 1}
model: {name: wide_deep, width: 4, hidden: [8]}
data: {train: clicks.h5, test: test.h5}
train: {steps: 40, batch: 48, micro_batch: 6, threads: 1, loss: sigmoid}
optim: {name: adam, lr: 0.01}
grid: {servers: 1, mode: async, geo_steps: 10}
checkpoint: {best: false, keep: 0, every_steps: 20}
Y

# ---- the order of requests determines the result ----
check 0 'done after' mpi 3 train job.yaml run.name=one run.order_log=order1
check 0 'done after' mpi 3 train --replay order1 job.yaml run.name=again
same 40 one again
check 0 'done after' mpi 5 train job.yaml run.name=two grid.servers=2 optim.name=adagrad run.order_log=order2
check 0 'done after' mpi 5 train --replay order2 job.yaml run.name=again2 grid.servers=2 optim.name=adagrad
counted 40 5 grid.servers=2 optim.name=adagrad
same 40 two again2
head=$((48 + $(od -An -t d8 -j 40 -N 8 order1/server-0.order))) # and what decides the run's bits, in words
holds 'an order is a byte a request' test "$(stat -c %s order1/server-0.order)" -lt $((head + 2000))

# ranks that are suspended from time to time
sed 's/steps: 40,/steps: 400,/' job.yaml >slow.yaml
background uneven mpi 4 train slow.yaml run.name=uneven run.order_log=order3 checkpoint.every_steps=200
job=$!
code=0; stop_in_turn $job slow.yaml || code=$?
holds "a rank that stands still is waited for where all meet (exit $code)" test $code = 0
check 0 'done after' mpi 4 train --replay order3 slow.yaml run.name=even checkpoint.every_steps=200
same 400 uneven even

# ---- a run in several starts ---- One start is killed, the next one stops for a signal that only its server receives, the third runs
# to the end. Each start has a separate order, and the same command with --replay stops at the same steps.
newest() { find "runs/$1/checkpoints" -name 'step-*.h5' 2>/dev/null | sort | tail -n 1 | tr -dc 0-9 | tail -c 9 | head -c 8; } # RUN
server() { rank_pid "$1" 2 2>/dev/null; } # CONFIG
# At step 30 a start waits while the file `held` exists, if the file `hold` existed.
cat >hold.sh <<'SH'
case $(tr -d ' ') in *'"step":30,'*) ;; *) exit 0 ;; esac
[ -e hold ] || exit 0
mv hold held
while [ -e held ]; do sleep 0.05; done
SH
sed "s/steps: 40,/steps: 200,/; s/^run: {/&hook: sh hold.sh, hook_on: [epoch], hook_wait: true, /" job.yaml >parts.yaml
part() { mpi 3 train parts.yaml run.name=parts run.order_log=parts; }
signal_server() { soon test -e held; kill "$1" "$(server parts.yaml)"; rm held; }
touch hold
signal_server -KILL &
holds 'a run is killed' eval '! part >killed 2>&1'
wait $!
first=$(newest parts)
holds "which has saved at step $first" test "$first" = 00000020
touch hold
signal_server -USR1 &
check 75 'start the same command again' part
wait $!
second=$(newest parts)
holds "stopped at a sync point, step $second" test $((10#$second % 10)) = 0 -a $((10#$second)) -gt $((10#$first)) -a $((10#$second)) -lt 200
check 0 'resuming from' part
holds 'three orders' test -e parts/server-0.order -a -e "parts/server-0.step-$first.order" -a -e "parts/server-0.step-$second.order"
again() { mpi 3 train --replay parts parts.yaml run.name=parts2; }
check 75 "the order of requests stops at step $((10#$first))" again
check 75 "the order of requests stops at step $((10#$second))" again
check 0 'resuming from' again
same 200 parts parts2
check 0 'resuming from' mpi 3 train --replay parts parts.yaml run.name=parts3 "checkpoint.resume=$(at parts $((10#$second)))"
same 200 parts parts3
cp "$(at parts2 100)" far.h5
cp "parts/server-0.step-$second.order" parts/server-0.step-00000100.order
check 65 'start from the checkpoint from which the recorded run started' mpi 3 train --replay parts parts.yaml run.name=bad checkpoint.resume=far.h5
rm parts/server-0.step-00000100.order
# a start from the same checkpoint as an earlier one loses nothing
rm -f $(find runs/parts/checkpoints -name 'step-*.h5' | sort | sed "1,/$second/d")
check 0 'renamed 1 file of an earlier start' part
holds 'both orders' test -s "parts/server-0.step-$second.order.1" -a -s "parts/server-0.step-$second.order"

# ---- steps belong to ranks ---- with a learning rate that changes nothing, rank 0 has the losses of its share of each batch, as in
# mode geo, and not those of the whole batch
losses() { sed -n 's/.*"loss": *\([0-9.]*\).*/\1/p' "runs/$1/metrics.jsonl" | cut -c1-6; } # RUN
own=(job.yaml optim.name=sgd optim.lr=1e-9 train.steps=4 train.log_every=1)
for mode in sync geo async; do check 0 'done after' mpi 3 train "${own[@]}" run.name=own-$mode grid.mode=$mode; done
# geo_steps in the file applies to another mode
check 0 'this run is complete' mpi 3 train "${own[@]}" run.name=own-sync grid.mode=sync
holds 'four losses' test "$(losses own-async | wc -l)" = 4
holds "a rank's own losses" test "$(losses own-async)" = "$(losses own-geo)"
holds "not the batch's" test "$(losses own-async)" != "$(losses own-sync)"

# ---- resuming ----
check 0 'resuming from' mpi 5 train job.yaml run.name=moved grid.servers=3 "checkpoint.resume=$(at one 20)"
check 0 'loss' "$WEFT" eval job.yaml run.name=one

# ---- a signal that only a server receives ----
sed 's/steps: 40,/steps: 100000,/' job.yaml >endless.yaml
for mode in sync stale geo; do
    (soon test -s runs/signal-$mode/metrics.jsonl; kill -TERM "$(server endless.yaml)") &
    check 75 'start the same command again' mpi 3 train endless.yaml run.name=signal-$mode grid.mode=$mode optim.name=sgd train.log_every=1
    wait $!
done

# ---- refusals ----
check 78 '2 workers and 1 servers, this run has 1 and 1' mpi 2 train --replay order1 job.yaml run.name=bad
check 66 'none/server-0.order' mpi 3 train --replay none job.yaml run.name=bad
check 64 'order1/server-0.order exists and belongs to another run' mpi 3 train job.yaml run.name=bad run.order_log=order1 run.seed=2
check 65 'has `run.seed: 1`, this run `run.seed: 2`' mpi 3 train --replay order1 job.yaml run.name=bad run.seed=2
check 65 'has `optim.lr: 0.01`, this run `optim.lr: 0.02`' mpi 3 train --replay order1 job.yaml run.name=bad optim.lr=0.02
check 65 'has `held.data.train: ' mpi 3 train --replay order1 job.yaml run.name=bad data.train=test.h5
cp -r order1 long && printf '\0\1' >>long/server-0.order
check 65 'has 2 requests more than this run' mpi 3 train --replay long job.yaml run.name=bad-long
cp -r order1 short && truncate -s -50 short/server-0.order
check 65 'ends before the run does' mpi 3 train --replay short job.yaml run.name=bad-short
check 78 'run.replay is given twice' mpi 3 train --replay order1 job.yaml run.name=bad run.replay=order2
check 78 'run.order_log is set, too' mpi 3 train --replay order1 job.yaml run.name=bad run.order_log=order9
check 78 'only grid.mode: async has an order of requests' mpi 3 train --replay order1 job.yaml run.name=bad grid.mode=sync
check 78 'sgd with momentum cannot' mpi 3 train job.yaml run.name=bad optim.name=sgd optim.momentum=0.9 'optim.groups=[{roles: table, name: sgd, momentum: 0, lr: 0.1}]'
check 78 'optim.clip' mpi 3 train job.yaml run.name=bad optim.clip=1
check 78 'checkpoint.every_steps' mpi 3 train job.yaml run.name=bad checkpoint.every_steps=7
# without a micro-batch each rank gets one; otherwise the message has the number
sed 's/batch: 48, micro_batch: 6, /batch: 10, /; s/steps: 40/steps: 4/' job.yaml >ten.yaml
for mode in geo async; do
    words=(grid.mode=$mode grid.geo_steps=4 checkpoint.every_steps=4 optim.name=sgd optim.momentum=0)
    check 0 'batch 10 in micro-batches of 5' mpi 3 train ten.yaml "${words[@]}" run.name=ten-$mode
    check 0 'in micro-batches of 2' mpi 4 train ten.yaml "${words[@]}" run.name=four-$mode
    check 78 'is 10, so a batch of 10 has 1 for 2 ranks, each of which needs one: set it to 5' mpi 3 train ten.yaml "${words[@]}" run.name=ten-$mode train.micro_batch=10
    check 78 'train.batch=1: is 1, but each of 2 ranks needs a sample of each batch: set it to 2 or more' mpi 3 train ten.yaml "${words[@]}" run.name=ten-$mode train.batch=1
done
check 0 'in micro-batches of 10' mpi 3 train ten.yaml run.name=ten-sync grid.mode=sync checkpoint.every_steps=4
check 78 'needs servers' mpi 3 train job.yaml run.name=bad grid.servers=0
finish
