#!/usr/bin/env bash
# weft bench machine writes times; weft plan --machine forecasts a step from them. The forecast is checked with times that are set
# by hand, so that it does not depend on this machine's load; broken files are refused with their line.
. "$(dirname "$0")/common.bash"

{ printf '\0\0\010\003\0\0\0\074\0\0\0\010\0\0\0\010'; head -c $((60 * 64)) "$WEFT"; } >x.idx
{ printf '\0\0\010\001\0\0\0\074'; for i in $(seq 60); do printf "\\00$((i % 3))"; done; } >y.idx
check 0 '' "$WEFT" data import idx x.idx y.idx -o data.h5
cat >job.yaml <<'YAML'
model: {layers: [flatten, dense: {width: 24}, relu, dense: {width: 24}, relu, dense: {width: 3}]}
data: {train: data.h5}
train: {steps: 2, batch: 32, micro_batch: 8, threads: 1}
YAML
check 0 'operations, 2 ranks at a time with 1 thread each' "$WEFT" bench machine job.yaml -n 2 --steps 2 --save real.yaml
holds 'the rates of memory and files are measured' test "$(grep -Ec '^(memory: \{bytes_s: [1-9][-+.e0-9]*\}|files: \{read_bytes_s: [1-9][-+.e0-9]*, save_bytes_s: [1-9][-+.e0-9]*\})$' real.yaml)" = 2
holds 'and no file is left' test -z "$(find . -name '.weft*')"
check 0 'forecast: ' "$WEFT" plan job.yaml --machine real.yaml
check 0 'forecast: ' "$WEFT" plan job.yaml grid.pp=2 --ranks 2 --machine real.yaml
check 0 'forecast: ' "$WEFT" plan job.yaml --ranks 2 --machine real.yaml

# Files: 32 of 60 samples at 1 MB/s; a checkpoint of 2,235 parameters with momentum at 2 MB/s.
files() { sed "s/^files: .*/files: $1/" real.yaml >files.yaml; }
seconds() { "$WEFT" plan job.yaml ${2:-} --machine files.yaml --json | sed -n "s/.*\"$1\": \([-+.e0-9]*\).*/\1/p" | awk '{ printf "%.4g", $1 }'; }
files '{read_bytes_s: 1e6, save_bytes_s: 2e6}'
expected=$(awk -v b="$(stat -c %s data.h5)" 'BEGIN { printf "%.4g", b * 32 / 60 / 1e6 }')
holds "reading a step's samples: $(seconds read_s), expected $expected s" test "$(seconds read_s)" = "$expected"
holds "a save: $(seconds save_bytes) bytes, $(seconds save_s) s" test "$(seconds save_bytes) $(seconds save_s)" = '1.788e+04 0.00894'
check 0 'a checkpoint has 17.9 KB; writing it and reading it back takes 0.00894 s, in the background' "$WEFT" plan job.yaml --machine files.yaml
holds "two ranks of a node read as much: $(seconds read_s '--ranks 2') s" test "$(seconds read_s '--ranks 2')" = "$expected"
files '{save_bytes_s: 2e6, read_bytes_s: 1}'
check 0 'longer than a step: epochs that read from files wait' "$WEFT" plan job.yaml --machine files.yaml
for value in '{read_bytes_s: 1e6}' 1e6 '{read_bytes_s: 1, save_bytes_s: 1, open_s: 0}'; do
    files "$value"
    check 78 'expected {read_bytes_s: B, save_bytes_s: B}' "$WEFT" plan job.yaml --machine files.yaml
done
files '{read_bytes_s: 0, save_bytes_s: 1}'
check 78 'expected a number from 1 to 1e18' "$WEFT" plan job.yaml --machine files.yaml
check 0 'saving cannot be measured' "$WEFT" bench machine job.yaml --steps 1 --save alone.yaml run.dir=/proc/none train.batch=8
holds 'rates that were not measured are left out' test "$(grep -c '^files' alone.yaml)" = 0
copies=$(sed -n 's/^move_byte_s: //p' alone.yaml) memory=$(sed -n 's/^memory: {bytes_s: \(.*\)}/\1/p' alone.yaml)
holds "without copies their rate is that of memory: $copies, $memory" awk -v c="$copies" -v m="$memory" 'BEGIN { exit !(c * m > 0.99 && c * m < 1.01) }'

# Every dense layer takes 1, 2 and 3 ms, all else nothing.
none='[0, 0, 0]'
sed -E "s/(forward|data|weight|update_s|rest_s): \[[^]]*\]/\1: $none/g; s/^(move_byte_s|action_s): .*/\1: 0/
    s/(latency_s|byte_s): [-+.e0-9]+/\1: 0/g
    /dense/s/forward: [^]]*\]/forward: [0.0005, 0.001, 0.002]/
    /dense/s/data: [^]]*\]/data: [0.001, 0.002, 0.004]/
    /dense/s/weight: [^]]*\]/weight: [0.0015, 0.003, 0.006]/" real.yaml >set.yaml
# part GRID NAME : prints a part of the forecast in milliseconds.
part() { "$WEFT" plan job.yaml $1 --machine set.yaml --json | sed -n "s/.*\"forecast\": {.*\"$2\": \([-+.e0-9]*\).*/\1/p" | awk '{ printf "%.4g", 1000 * $1 }'; }
# 4 micro-batches of 3 layers of 6 ms
holds "one rank: $(part '' step_s) ms" test "$(part '' step_s)" = 72
holds "low: $(part '' low_s), high: $(part '' high_s)" test "$(part '' low_s) $(part '' high_s)" = '36 144'
holds "two replicas: $(part '--ranks 2' step_s) ms" test "$(part '--ranks 2' step_s)" = 36
# gpipe: one layer on one stage, two on the other, which takes 4 x 12 ms after the other stage's forward pass of a
# micro-batch and before its backward pass, or the other way round
pp='--ranks 2 grid.pp=2 grid.pipeline_schedule=gpipe'
parts=$(for p in compute_s bubble_s imbalance_s messages_s step_s; do printf '%s ' "$(part "$pp" $p)"; done)
holds "two stages: compute, bubble, imbalance, messages, step: $parts" test "$parts" = '36 9 9 0 54 '
cp set.yaml first.yaml
sed -i 's/^message: .*/message: {latency_s: 0.001, byte_s: 0}/' set.yaml
holds "a message of 1 ms there and back: $(part "$pp" messages_s) ms" test "$(part "$pp" messages_s)" = 2
sed -i 's/ranks: 2, latency_s: 0/ranks: 2, latency_s: 0.004/; s/^rest_s: .*/rest_s: [0.001, 0.001, 0.001]/; s/^update_s: .*/update_s: [0, 0.000001, 0.000001]/' set.yaml
holds "a bucket of 4 ms: $(part '--ranks 2' sums_s) ms" test "$(part '--ranks 2' sums_s)" = 4
holds "rest: $(part '' rest_s) ms" test "$(part '' rest_s)" = 1
# 64 x 24 + 24 x 24 + 24 x 3 weights and 51 biases, each tensor filled up to a multiple of 16
holds "update: $(part '' update_s) ms" test "$(part '' update_s)" = 2.272

# A run compares the forecast with its own time; the parts of the time are all of it.
check 0 'ms a step (run.machine)' "$WEFT" train -n 2 job.yaml run.machine=set.yaml run.name=run grid.pp=2 train.steps=4
holds "the forecast of compute: $(grep compute out | tail -n 1)" grep -Eq '^    compute +36\.000 +[0-9.]+ +[-+][0-9.]+ %$' out
sum=$(grep '^  time ' out | grep -o '[0-9.]* %' | awk '{ s += $1 } END { print s }')
holds "the parts are $sum % of the time" awk -v s="$sum" 'BEGIN { exit !(s > 99 && s < 101) }'
check 78 'set.yaml: was measured with 2 ranks at a time, and this plan has 4' "$WEFT" train -n 4 job.yaml run.machine=set.yaml run.name=no
holds 'and no folder is left' test ! -e runs/no
printf '{"step":4,"st' >>runs/run/ledger.jsonl
check 0 'resuming from' "$WEFT" train -n 2 job.yaml run.name=run grid.pp=2 train.steps=5
holds "a torn line does not join the next one: $(cat runs/run/ledger.jsonl)" test "$(grep -c '^{"step":.*}$' runs/run/ledger.jsonl)" = 2
check 0 'forecast: 72 ms a step' "$WEFT" plan job.yaml run.machine=set.yaml run.name=plan train.steps=9 --machine first.yaml

# A machine that is described: each part of an operation takes 1 ms. A micro-batch has three dense layers, of which two have gradients
# of inputs, and a loss with one: 4 forward parts, 3 of inputs, 3 of weights.
cat >rates.yaml <<'YAML'
weft_machine: 1
host: "described"
ranks: 1
nodes: 4
memory_bytes: 1e9
rates: {flops_s: 1e18, bytes_s: 1e18, call_s: 0.001}
network: {latency_s: 0.001, byte_s: 0}
YAML
ms() { "$WEFT" plan job.yaml $1 --machine rates.yaml --json | sed -n "s/.*\"forecast\": {.*\"$2\": \([-+.e0-9]*\).*/\1/p" | awk '{ printf "%.4g", 1000 * $1 }'; }
holds "described: $(ms '' step_s) ms" test "$(ms '' step_s)" = 40
holds "low: $(ms '' low_s), high: $(ms '' high_s)" test "$(ms '' low_s) $(ms '' high_s)" = '32 50'
holds "a message of 1 ms between nodes, there and back: $(ms "$pp" messages_s) ms" test "$(ms "$pp" messages_s)" = 2
# Three replicas on nodes of two ranks: the first node reads two thirds of 24 samples.
sed 's/^ranks: 1/ranks: 2/; $a message: {latency_s: 0, byte_s: 0}\nfiles: {read_bytes_s: 1e6, save_bytes_s: 1e6}' rates.yaml >files.yaml
expected=$(awk -v b="$(stat -c %s data.h5)" 'BEGIN { printf "%.4g", b * 16 / 60 / 1e6 }')
holds "the first node's part: $(seconds read_s '--ranks 3 train.batch=24') s" test "$(seconds read_s '--ranks 3 train.batch=24')" = "$expected"
# Replicas on two nodes gather the parameters of each bucket before passes, which wait for messages of 10 ms; with zero 2 they are gathered after the update.
sed -i 's/^network: .*/network: {latency_s: 0.01, byte_s: 0}/' rates.yaml
check 0 'parameters gathered in buckets: ' "$WEFT" plan job.yaml --ranks 2 grid.zero=3 --machine rates.yaml
gathered=$(ms '--ranks 2 grid.zero=3 grid.bucket_mb=0.0001' messages_s)
holds "passes wait $gathered ms for gathers" awk -v s="$gathered" 'BEGIN { exit !(s > 20) }'
holds 'and with zero 2 for none' test "$(ms '--ranks 2 grid.zero=2 grid.bucket_mb=0.0001' messages_s)" = 0
sed -i 's/^network: .*/network: {latency_s: 0.001, byte_s: 0}/' rates.yaml
# With the key `overlap`, ranks compute more slowly while messages are on their way to or from their node. Two micro-batches on two stages: on
# stage 1, a message of 1 ms is on its way during the first forward pass and during the last backward pass. Each of the two passes does 2/3 ms
# of its work in this time, so the step is 2/3 ms longer. With one micro-batch, stages only wait while messages are on their way.
slower() { sed "\$a overlap: $2" rates.yaml >slower.yaml; "$WEFT" plan job.yaml $1 --machine slower.yaml --json | sed -n "s/.*\"forecast\": {.*\"$3\": \([-+.e0-9]*\).*/\1/p" | awk '{ printf "%.4g", 1000 * $1 }'; }
holds "two micro-batches: $(slower "$pp train.batch=16" '{compute: 1.0}' step_s) ms" test "$(slower "$pp train.batch=16" '{compute: 1.0}' step_s)" = 20
holds "slower computing: $(slower "$pp train.batch=16" '{compute: 1.5}' step_s) ms" test "$(slower "$pp train.batch=16" '{compute: 1.5}' step_s)" = 20.67
holds 'nothing overlaps' test "$(slower "$pp train.batch=8" '{compute: 1.5}' step_s)" = "$(ms "$pp train.batch=8" step_s)"
for value in '{compute: 0.9}' '{compute: 101}' '{compute: x}' '{compute: [1]}'; do
    sed "\$a overlap: $value" rates.yaml >broken.yaml
    check 78 'broken.yaml:8:20: expected a factor from 1 to 100' "$WEFT" plan job.yaml --machine broken.yaml
done
for value in '{}' 1.5 '[1.5]' '{compute: 1, sums: 1}'; do
    sed "\$a overlap: $value" rates.yaml >broken.yaml
    check 78 'broken.yaml:8:10: expected {compute: F}' "$WEFT" plan job.yaml --machine broken.yaml
done
sed '$a overlap: {messages: 1}' rates.yaml >broken.yaml
check 78 'broken.yaml:8:11: unknown key' "$WEFT" plan job.yaml --machine broken.yaml
# Two ranks exchange halves of a bucket, and then their sums: two messages of a millisecond, as two thirds of a wait are on the wire.
holds "sums between nodes: $(ms '--ranks 2' sums_s) ms" awk -v s="$(ms '--ranks 2' sums_s)" 'BEGIN { exit !(s > 1 && s < 3) }'
sed -i 's/^network: .*/network: {latency_s: 0, byte_s: 1e-6}/' rates.yaml
# There is a bucket for each tensor, and sums take seconds. The first sum begins 3 ms before the end of the last pass, which gets 1.5 ms longer.
sed 's/byte_s: 1e-6/byte_s: 1e-3/; $a overlap: {compute: 1.5}' rates.yaml >slower.yaml
more=$("$WEFT" plan job.yaml --ranks 2 grid.bucket_mb=0.0001 --machine slower.yaml --json | sed -n 's/.*"messages_s": \([-+.e0-9]*\).*/\1/p' | awk '{ printf "%.4g", 1000 * $1 }')
holds "sums make computing $more ms longer" test "$more" = 1.5
one=$(ms '--ranks 2' sums_s)
sed -i 's/^ranks: 1/ranks: 2/; s/^nodes: 4/nodes: 2/; $a message: {latency_s: 0, byte_s: 0}' rates.yaml
four=$(ms '--ranks 4' sums_s)
holds "two nodes of two ranks, each a half of the sum on a shared connection: $four ms, of one rank each: $one" test "$one" = "$four"
# Messages of 768 bytes take 1 ms and follow each other on the connection of a node: the second replica's first message arrives 2 ms after
# it was sent, and its later ones, which are sent at other times than the first replica's, after 1 ms.
sed -i 's/byte_s: 1e-6/byte_s: 1.302083333e-6/' rates.yaml
holds "two replicas share a connection: $(ms "${pp/2/4} train.batch=64" messages_s) ms" test "$(ms "${pp/2/4} train.batch=64" messages_s)" = 3
# Sums of the later chunks are on the same connections as messages of the earlier ones. (A node has one rank, so replicas share none.)
sed 's/^ranks: 2/ranks: 1/; s/^nodes: 2/nodes: 4/; s/byte_s: 1.302083333e-6/byte_s: 1e-6/' rates.yaml >apart.yaml
sed 's/\[flatten,/[flatten, dense: {width: 24}, relu,/' job.yaml >deep.yaml
messages() { "$WEFT" plan deep.yaml grid.pp=2 grid.pipeline_schedule=interleaved $1 --machine apart.yaml --json | sed -n 's/.*"messages_s": \([-+.e0-9]*\).*/\1/p'; }
one=$(messages '--ranks 2') two=$(messages '--ranks 4 train.batch=64')
holds "messages take $one s without sums, $two s with sums" awk -v a="$one" -v b="$two" 'BEGIN { exit !(a > 0 && b > a + 1e-4) }'
check 78 'rates.yaml: has 2 nodes of 2 ranks, and this plan has 8 ranks' "$WEFT" plan job.yaml --ranks 8 train.batch=64 --machine rates.yaml
grep -v '^network' rates.yaml >alone.yaml
check 78 'between nodes: add the key `network`' "$WEFT" plan job.yaml --ranks 4 --machine alone.yaml
# Exchanges of a tensor-parallel group: on a node by the key `message`, between nodes by `network`, never one instead of the other.
sed 's/width: 3}/width: 4}/' job.yaml | sed 's/^model: {/&classes: 4, /' >sliced.yaml
check 0 '' "$WEFT" plan sliced.yaml --ranks 2 grid.tp=2 --machine alone.yaml
grep -v '^message' rates.yaml >remote.yaml
check 78 'on a node: add the key `message`' "$WEFT" plan sliced.yaml --ranks 2 grid.tp=2 --machine remote.yaml
check 78 'between nodes: add the key `network`' "$WEFT" plan sliced.yaml --ranks 4 grid.tp=4 --machine alone.yaml
sed 's/, call_s: 0.001//' rates.yaml >broken.yaml
check 78 'broken.yaml:6:8: expected {flops_s: F, bytes_s: B, call_s: S}' "$WEFT" plan job.yaml --machine broken.yaml
sed 's/^network: .*/network: {latency_s: 0, latency_s: 1}/' rates.yaml >broken.yaml
check 78 "broken.yaml:7:25: 'latency_s' is given twice, first in line 7" "$WEFT" plan job.yaml --machine broken.yaml
for ranks in -1 0 1.5 many; do
    sed "s/^ranks: .*/ranks: $ranks/" rates.yaml >broken.yaml
    check 78 'broken.yaml:3:8: expected a whole number from 1 to 1048576' "$WEFT" plan job.yaml --machine broken.yaml
done

# Operations that sleep for these times: no less than the 40 ms of the forecast.
check 0 'operations sleep (--pretend rates.yaml)' "$WEFT" bench step job.yaml --pretend rates.yaml --steps 2 --warmup 0
holds "$(cat out)" awk '{ sub(/.*: step /, ""); exit !($1 >= 0.04) }' out
check 0 'grid.rank_map: auto: 0 of 2 processes play another rank' "$WEFT" bench step job.yaml -n 2 grid.rank_map=auto --pretend rates.yaml --steps 1 --warmup 0
check 78 'has no forward time of flatten' "$WEFT" bench step job.yaml train.micro_batch=16 --pretend set.yaml

# The choice: two replicas take 36 ms and a sum, two stages at least 54 ms.
check 0 'chosen: grid.dp=2 grid.pp=1 grid.tp=1 grid.zero=0 grid.recompute=none' "$WEFT" plan job.yaml --ranks 2 --choose --machine set.yaml
holds 'tensor groups were not measured' grep -q '^not forecast, and perhaps faster: [0-9]*, the first because set.yaml: has no' out
check 0 '2 ranks: ' "$WEFT" plan job.yaml grid.pp=2 --choose --machine set.yaml
check 64 '--svg and --choose exclude each other' "$WEFT" plan job.yaml --ranks 2 --choose --machine set.yaml --svg no.svg
check 64 '--top needs --choose: forecast all grids' "$WEFT" plan job.yaml --top 3
check 0 'chosen: grid.dp=2' timeout 60 mpirun -n 2 "$WEFT" plan job.yaml --choose --machine set.yaml
holds 'one of the two ranks prints' test "$(grep -c chosen out)" = 1
sed 's/ranks: 2, latency_s: 0.004/ranks: 2, latency_s: 1/' set.yaml >slow.yaml
check 0 'chosen: grid.dp=1 grid.pp=2' "$WEFT" plan job.yaml --ranks 2 --choose --machine slow.yaml
keys=$(sed -n 's/^chosen: //p' out)
first=$(awk '/^[~ ] *1 / { print $(/^~/ ? 3 : 2) }' out)
check 0 "forecast: $first ms a step" "$WEFT" plan job.yaml --ranks 2 $keys --machine slow.yaml
check 0 '"fit": 1' "$WEFT" plan job.yaml --ranks 1 --choose --machine set.yaml --json
# Half of the copy for checkpoints, 1.2 MB of parameters, less than all: a run does without the copy, and so does the choice.
sed 's/width: 24/width: 512/g' job.yaml >wide.yaml
check 0 '"fit": 1' "$WEFT" plan wide.yaml --ranks 1 --choose --machine rates.yaml --json
less=$(($(grep -o '"bytes": [0-9]*' out | grep -o '[0-9]*') - 600000))
check 0 'chosen: grid.dp=1 grid.pp=1 grid.tp=1 grid.zero=0 grid.recompute=none' "$WEFT" plan wide.yaml --ranks 1 --choose --machine rates.yaml train.memory=$less
check 78 'need more than' "$WEFT" plan wide.yaml --ranks 1 --choose --machine rates.yaml train.memory=$((less - 1000000))
sed 's/layers: \[/layers: [batch_norm, /' job.yaml >synced.yaml
check 0 ' other bits' "$WEFT" plan synced.yaml --ranks 2 train.sync_batch_norm=true --choose --any-bits --machine rates.yaml
check 78 ' give other bits (--any-bits)' "$WEFT" plan synced.yaml --ranks 2 train.sync_batch_norm=true --choose --machine rates.yaml
check 78 'need more than 4.0 KB a rank, the smallest ' "$WEFT" plan job.yaml --ranks 2 --choose --machine set.yaml train.memory=4kb
least=$(grep -o 'the smallest [0-9.]* KB' err | grep -o '[0-9.]*')
check 0 'chosen: ' "$WEFT" plan job.yaml --ranks 2 --choose --machine set.yaml train.memory="$(awk -v k="$least" 'BEGIN { print k + 1 }')kb"
check 78 'train.micro_batch' "$WEFT" plan job.yaml --ranks 2 --choose --machine set.yaml train.micro_batch=0
check 64 'needs times' "$WEFT" plan job.yaml --ranks 2 --choose

sed 's/^ranks: 2/ranks: 4/' set.yaml >four.yaml
check 78 'no time of sums over 4 ranks: add the keys `rates` and `message`, or measure it with weft bench machine -n 4' "$WEFT" plan job.yaml --ranks 4 --machine four.yaml
check 78 'was measured with fp32, cpu auto, update sgd, and this plan has fp32, cpu auto, update adamw with EMA' "$WEFT" plan job.yaml optim.name=adamw train.ema=0.9 --machine set.yaml
check 78 'for shared memory only' "$WEFT" plan job.yaml --ranks 2 grid.transport=mpi --machine set.yaml
check 78 'has no forward time of flatten x=16x1x8x8:fixed y=16x64: measure this configuration' "$WEFT" plan job.yaml train.micro_batch=16 --machine set.yaml
check 78 'measured with train.threads 1, and this plan has 2' "$WEFT" plan job.yaml train.threads=2 --machine set.yaml
sed '/^message/d' set.yaml >alone.yaml
check 78 'alone.yaml: has no time of messages on a node: add the key `message`' "$WEFT" plan job.yaml $pp --machine alone.yaml
check 66 'none.yaml' "$WEFT" plan job.yaml --machine none.yaml
sed 's/^threads: 1/threads: many/' set.yaml >broken.yaml
check 78 'broken.yaml:9:10: expected a whole number' "$WEFT" plan job.yaml --machine broken.yaml
sed 's/^host/hast/' set.yaml >broken.yaml
check 78 'broken.yaml:4:1: unknown key' "$WEFT" plan job.yaml --machine broken.yaml
sed 's/^rest_s: .*/rest_s: [2, 1, 3]/' set.yaml >broken.yaml
check 78 'broken.yaml:13:9: the three times must ascend' "$WEFT" plan job.yaml --machine broken.yaml
sed '/^action_s/d' set.yaml >broken.yaml
check 78 'broken.yaml: key `action_s` is missing' "$WEFT" plan job.yaml --machine broken.yaml
sed 's/^weft_machine: 1/weft_machine: 2/' set.yaml >broken.yaml
check 78 'reads version 1' "$WEFT" plan job.yaml --machine broken.yaml
printf 'operations: [{key: a, forward: [1, 2]}]\n' >broken.yaml
check 78 'broken.yaml:1:32: expected a list of three times' "$WEFT" plan job.yaml --machine broken.yaml
check 78 'on CPUs only' "$WEFT" bench machine job.yaml train.device=cuda
finish
