#!/usr/bin/env bash
# The ledger: fractions of the time in each line of metrics.jsonl, parts that add up, and goodput over starts of which one is killed. A
# rank that is held up shows as imbalance of the other, and slow reads show as waiting for data.
. "$(dirname "$0")/common.bash"

{ printf '\0\0\010\003\0\0\0\074\0\0\0\010\0\0\0\010'; head -c $((60 * 64)) "$WEFT"; } >x.idx
{ printf '\0\0\010\001\0\0\0\074'; for i in $(seq 60); do printf "\\00$((i % 3))"; done; } >y.idx
check 0 '' "$WEFT" data import idx x.idx y.idx -o data.h5
cat >job.yaml <<'YAML'
model: {layers: [flatten, dense: {width: 24}, relu, dense: {width: 24}, relu, dense: {width: 3}]}
data: {train: data.h5}
train: {steps: 10, batch: 32, micro_batch: 8, threads: 1, log_every: 1}
checkpoint: {every_steps: 4, background: false}
YAML
train() { timeout 240 "$WEFT" train "$@"; }
# fractions RUN : the smallest and the largest sum of the fractions in a line.
fractions() {
    grep -o '"time_[a-rt-z].*' "runs/$1/metrics.jsonl" | sed 's/"time_[a-z]*"://g; s/}//' |
        awk -F, '{ s = 0; for (i = 1; i <= NF; ++i) s += $i; if (NR == 1 || s < a) a = s; if (s > b) b = s } END { print NR, a, b }'
}
for grid in '-n 1' '-n 2' '-n 2 grid.pp=2' '-n 2 grid.tp=2'; do
    name=run$(echo "$grid" | tr -dc 'a-z0-9')
    check 0 'done after' train ${grid%% grid*} job.yaml ${grid#-n ?} run.name="$name"
    read -r lines least most <<<"$(fractions "$name")"
    holds "$grid: $lines lines, whose fractions add up to $least to $most" awk -v l="$lines" -v a="$least" -v b="$most" 'BEGIN { exit !(l == 9 && a > 0.999 && b < 1.001) }'
done
holds 'the first line has no time before it' test "$(head -n 1 runs/runn2/metrics.jsonl | grep -c time_)" = 0
same 10 runn1 runn2gridpp2

# The parts of the run, of its critical path, and of its ranks in the mean are the same time.
parts() { grep -o "\"$1\":{[^}]*" runs/runn2gridpp2/ledger.jsonl | grep -o ':[0-9][-+.e0-9]*' | tr -d : | awk '{ s += $1 } END { print s }'; }
of_ranks=$(sed -n 's/.*"rank":\[//p' runs/runn2gridpp2/ledger.jsonl | sed 's/"rank":[0-9]*,"stage":[0-9]*//g' | grep -o ':[0-9][-+.e0-9]*' | tr -d : | awk '{ s += $1 } END { print s / 2 }')
holds "a step: parts $(parts measured) s, path $(parts path) s, ranks $of_ranks s" awk -v a="$(parts measured)" -v b="$(parts path)" -v c="$of_ranks" \
    'BEGIN { exit !(a > 0 && b / a > 0.999 && b / a < 1.001 && c / a > 0.999 && c / a < 1.001) }'
holds 'the summary names the critical path' grep -Eq '^  critical     stage [01] [0-9.]+ %, stage [01] [0-9.]+ %' runs/runn2gridpp2/log.txt

# The first start is killed after step 6, of which 4 are saved.
cat >kill.sh <<'SH'
read -r line
case $line in *'"step": 6,'*) kill -9 $PPID ;; esac
SH
check 137 '' train job.yaml run.name=killed run.hook='exec sh kill.sh' 'run.hook_on=[epoch]' run.hook_wait=true
check 0 'resuming from' train job.yaml run.name=killed
holds "the time over all starts: $(grep starts out)" grep -Eq '^  starts       2, of which 1 had no end, in 0:0[0-9]: steps [0-9.]+ %, lost steps \(2\) [0-9.]+ %, start-up ' out
sum=$(grep '^  starts' out | grep -o '[0-9.]* %' | awk '{ s += $1 } END { print s }')
holds "the parts are $sum % of the time" awk -v s="$sum" 'BEGIN { exit !(s > 99 && s < 101) }'
same 10 killed runn1
check 0 '' "$WEFT" report runs/killed -o page.html
holds 'the page has both starts' test "$(grep -c '<td>none: crashed or killed</td>\|<td>by itself</td>' page.html)" = 2

# of_rank RUN RANK PART : this part's fraction of the rank's time.
of_rank() {
    sed -n 's/.*"rank":\[//p' "runs/$1/ledger.jsonl" | tr '{' '\n' | grep "\"rank\":$2," | sed 's/"rank":[0-9]*,"stage":[0-9]*//' | tr -d '"}]' | tr ',' '\n' |
        awk -F: -v part="$3" 'NF == 2 { all += $2; if ($1 == part) it = $2 } END { print (all > 0 ? it / all : 0) }'
}
above() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > b) }'; }

# Rank 1 is stopped for three quarters of the time, mostly while it computes; so rank 0 waits for it. Many short stops find it at work
# even where other programs take the processor. All stops together are shorter than the 4 s after which the watchdog would end the run.
rm -f out
sed 's/width: 24/width: 1024/g; s/every_steps: 4/every_steps: 0/' job.yaml >held.yaml
background out,err "$WEFT" train -n 2 held.yaml run.name=held train.steps=100000000; run=$!
soon grep -q '^epoch.*step' out
held=$(rank_pid ".*run.name=held( |\$)" 1)
for _ in $(seq 80); do
    kill -STOP "$held"
    sleep 0.03
    kill -CONT "$held"
    sleep 0.01
done
kill -TERM $run
rc=0
wait $run || rc=$?
holds "the run stops: $rc" test $rc = 75
waits=$(of_rank held 0 imbalance) own=$(of_rank held 1 imbalance)
holds "rank 0 waits $waits of the time for rank 1, which waits $own" above "$waits" 0.03
holds "rank 1 waits less: $own" above "$waits" "$own"

# Each read of a sample of 90 kB is delayed by 20 ms.
if strace -f -o /dev/null true 2>/dev/null; then
    { printf '\0\0\010\003\0\0\0\050\0\0\001\054\0\0\001\054'; head -c $((40 * 90000)) /dev/zero; } >x.idx
    { printf '\0\0\010\001\0\0\0\050'; for i in $(seq 40); do printf "\\00$((i % 3))"; done; } >y.idx
    check 0 '' "$WEFT" data import idx x.idx y.idx -o slow.h5
    sed 's/data.h5/slow.h5/; s/log_every: 1/log_every: 4/' job.yaml >slow.yaml
    check 0 'done after' timeout 240 strace -f -o /dev/null -P "$PWD/slow.h5" -e trace=pread64 -e inject=pread64:delay_exit=20000 \
        "$WEFT" train slow.yaml run.name=slow train.steps=8
    data=$(of_rank slow 0 data)
    holds "slow reads are $data of the time" above "$data" 0.3
    live=$(grep -o '"time_data":[0-9.]*' runs/slow/metrics.jsonl | tail -n 1 | cut -d: -f2)
    holds "and $live while the run goes on" above "$live" 0.3
else echo '  skipped: slow reads: strace is not there or may not trace'; fi
finish
