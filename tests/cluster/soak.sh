#!/usr/bin/env bash
# weft run for MINUTES with a fault every 20 s, each kind equally often, in an order drawn by SEED: a rank killed, a rank stopped, the
# disk full for 8 s, the disk slow for 10 s, a host's cable pulled for 3 s (every third time until its ranks have ended), a NaN or a
# flipped bit in a parameter. 4 ranks on 2 hosts, 2 replicas of 2 stages, with their folder on a separate disk. The run resumes within
# two minutes of each fault, ends with the bits of an undisturbed run, and spends at least 70 % of the time on steps that count.
# usage: soak.sh     (WEFT=build/weft MINUTES=20 SEED=1; needs root, e2fsprogs, a C compiler; half as long again for the quiet run)
hosts=2
. "$(dirname "$0")/cluster.bash"
minutes=${MINUTES:-20} every=20
RANDOM=${SEED:-1}
kinds='kill stop full slow cut nan flip'
throttle=/sys/fs/cgroup/blkio/blkio.throttle.write_bps_device
[ -w $throttle ] || { echo "soak.sh: without a slow disk: this machine has no $throttle (cgroup v1)"; kinds=${kinds/slow /}; }
${CC:-cc} -std=gnu17 -O2 -o poke "$cluster/poke.c"

# enough space for the output of each step on a fast machine
truncate -s 192M image
mkfs.ext4 -q -O ^has_journal image
mkdir /run/disk
mount -o loop image /run/disk
device=$(findmnt -no SOURCE /run/disk)
for host in $CLUSTER_HOSTS; do nsenter -t "$(cat "/run/hosts/$host")" --mount sh -c "mkdir -p /run/disk && mount $device /run/disk"; done
number=$(printf '%d:%d' 0x"$(stat -c %t "$device")" 0x"$(stat -c %T "$device")")
rate() { [ ! -w $throttle ] || echo "$number $1" >$throttle; }
trap 'rate 0; rm -rf "$dir"' EXIT

make_images
# Tensors that do not change, so that the test finds them in memory.
cat >lenet.yaml <<'YAML'
run:   {dir: /run/disk/runs}
model: {name: lenet}
data:  {train: images.h5}
train: {steps: 1000000, batch: 32, micro_batch: 4, threads: 1, log_every: 1, on_bad: rollback}
optim: {lr: 0.005, momentum: 0.9, groups: [{match: [conv1.weight, fc2.weight], lr: 1e-30}]}
checkpoint: {every_s: 2}
YAML
for host in $CLUSTER_HOSTS; do echo "$host slots=2"; done >hosts
folder=/run/disk/runs/lenet
newest_file() { ls $folder/checkpoints/step-*.h5 2>/dev/null | tail -n 1; }
newest_step() { tail -n 2 $folder/metrics.jsonl 2>/dev/null | sed -n 's/^{"step":\([0-9]*\),.*}$/\1/p' | tail -n 1; }
saved() { [ -n "$(newest_file)" ]; }
past() { [ "$(newest_step)" -gt "$1" ] 2>/dev/null; }
ranks() { pgrep -x weft | grep -vx "$run" || true; }
a_rank() { local all=($(ranks)); [ ${#all[@]} = 0 ] || echo "${all[RANDOM % ${#all[@]}]}"; }

fault_kill() { kill -KILL "$(a_rank)"; }
fault_stop() { kill -STOP "$(a_rank)"; }
fault_full() {
    dd if=/dev/zero of=/run/disk/filler bs=64K 2>/dev/null || true
    sleep 8
    rm /run/disk/filler
}
fault_slow() { rate 300000; sleep 10; rate 0; }
cuts=0 alone=
fault_cut() {
    "$cluster/hosts.sh" cut n2
    if [ $((cuts += 1)) -lt 3 ]; then sleep 3; else
        cuts=0 alone=yes
        soon grep -q "start $((starts + 1)): " err || true
    fi
    "$cluster/hosts.sh" mend n2
}
# Flips a bit in the rank that has one of the two tensors, whose numbers are stored in blocks of outputs.
fault_poke() {
    local pid
    for pid in $(ranks | shuf -n 99 --random-source=<(yes $RANDOM)); do
        ! timeout 20 ./poke "$pid" conv1.raw 9 "$1" 2>>poked || return 0
        ! timeout 20 ./poke "$pid" fc2.raw 128 "$1" 2>>poked || return 0
    done
    return 1
}
fault_nan() { fault_poke nan; }
fault_flip() { fault_poke flip; }

"$WEFT" run --hostfile hosts --nnodes 2 --nproc-per-node 2 --max-restarts 1000 -- weft train lenet.yaml \
    grid.dp=2 grid.pp=2 grid.transport=mpi >out 2>err </dev/null & run=$!
soon past 100
soon saved
begin=$EPOCHREALTIME
for tensor in conv1 fc2; do h5dump -d /params/$tensor.weight -b LE -o $tensor.raw "$(newest_file)" >/dev/null; done
count() { grep -c "$1" err || true; }
seconds() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.1f", b - a }'; }
faults=0 kind_of=()
while [ "$(seconds "$begin" "$EPOCHREALTIME" | cut -d. -f1)" -lt $((minutes * 60 - every)) ]; do
    [ ${#kind_of[@]} -gt 0 ] || kind_of=($(shuf -e $kinds --random-source=<(yes $RANDOM)))
    kind=${kind_of[0]}
    if [ "$alone" ]; then kind=kill alone=; else kind_of=("${kind_of[@]:1}"); fi
    faults=$((faults + 1))
    sleep "$(awk -v b="$begin" -v k=$faults -v e=$every -v now="$EPOCHREALTIME" 'BEGIN { s = b + k * e - now; print (s > 0 ? s : 0) }')"
    at=$(newest_step) starts=$(count ': start [0-9]*: [0-9]* rank') backs=$(count 'going back') moment=$EPOCHREALTIME
    holds "fault $faults, $kind, can be made" "fault_$kind"
    soon past "$at" || { failed=$((failed + 1)); echo "FAILED: no step is made after $kind"; break; }
    printf '%4d s  %-5s at step %-7d past it after %5s s\n' "$(seconds "$begin" "$moment" | cut -d. -f1)" $kind "$at" "$(seconds "$moment" "$EPOCHREALTIME")"
done
sleep $every
end=$EPOCHREALTIME
kill -TERM $run || true
rc=0
wait $run || rc=$?
holds "it ends with 75, not $rc" [ $rc = 75 ]
steps=$(newest_step)
wall=$(seconds "$begin" "$end")
step=$(sed -n 's/.*"samples_per_s":\([0-9.e+]*\).*/\1/p' $folder/metrics.jsonl | sort -g | awk '{ a[NR] = $1 } END { print 32 / a[int((NR + 1) / 2)] }')
share=$(awk -v n="$steps" -v s="$step" -v w="$wall" 'BEGIN { printf "%.0f", 100 * n * s / w }')
echo "$faults faults in $wall s; $(count ': start [0-9]*: [0-9]* rank') starts, $(count 'going back') times back; $steps steps of $step s (median): $share % of the time"
holds "at least 70 % of the time on steps that count, not $share %" [ "$share" -ge 70 ]
each_once() { [ "$(sed -n 's/^{"step":\([0-9]*\),.*/\1/p' $folder/metrics.jsonl | awk '$1 != NR' | wc -l)" = 0 ]; }
holds "each step is in metrics.jsonl once" each_once
holds "no checkpoint is left half written" test -z "$(find /run/disk -name '*.part')"
check 0 '' timeout $((minutes * 60)) "$WEFT" train -n 2 lenet.yaml run.dir=quiet grid.dp=2 train.steps="$steps" checkpoint.every_s=600
check 0 'to the bit' "$WEFT" ckpt diff "$(newest_file)" "quiet/lenet/checkpoints/step-$(printf %08d "$steps").h5"
[ $failed = 0 ] || { cat poked; tail -n 60 err; }
finish
