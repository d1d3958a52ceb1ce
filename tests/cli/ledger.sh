#!/usr/bin/env bash
# The ledger: fractions of the time in each line of metrics.jsonl, parts that add up, and goodput over starts of which one is killed.
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
holds 'the page has both starts' test "$(grep -c '<td>none: killed</td>\|<td>by itself</td>' page.html)" = 2
finish
