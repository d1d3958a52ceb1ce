#!/usr/bin/env bash
# Sparse tables in whole runs: the same checkpoint, to the bit, on every grid and any number of servers; resuming with another number;
# mode geo; refusals; files with tables; and ranks that die.
# cores: 0.3
# usage: tables.sh     (WEFT=build/weft)
. "$(dirname "$0")/common.bash"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

check 0 'wrote grow.h5' "$WEFT" data make criteo-like -o grow.h5 --samples 192 --test test.h5 --test-samples 40 --threads 1
check 0 'wrote small.h5' "$WEFT" data make criteo-like -o small.h5 --samples 192 --rows 300 --test small-test.h5 --test-samples 40 --threads 1
cat >job.yaml <<'Y'
run: {seed: 1}
model: {name: wide_deep, width: 4, hidden: [8]}
data: {train: grow.h5, test: test.h5}
train: {steps: 4, batch: 48, micro_batch: 6, threads: 1, loss: sigmoid}
optim: {name: adagrad, lr: 0.05}
checkpoint: {best: false, keep: 0}
Y
# ranks N NAME WORDS... : runs on N ranks
ranks() {
    if [ "$1" = 1 ]; then check 0 'done after' "$WEFT" train job.yaml "run.name=$2" "${@:3}"
    else check 0 'done after' mpi "$1" train job.yaml "run.name=$2" "${@:3}"; fi
}
# grids WORDS... -- GRID... : a model of these words gives the same file on one rank and on each grid; a grid is a number of ranks and
# further words
model=0
grids() {
    local words=() grid i=0
    while [ "$1" != -- ]; do words+=("$1"); shift; done
    shift
    model=$((model + 1))
    ranks 1 "$model" "${words[@]}"
    for grid in "$@"; do
        i=$((i + 1))
        # shellcheck disable=SC2086
        ranks ${grid%% *} "$model.$i" "${words[@]}" $(printf '%s' "${grid#* }" | sed 's/^[0-9]*$//')
        same 4 "$model" "$model.$i"
    done
}

# ---- the same bits ----
# (6 replicas take 2 of 8 micro-batches each, so that some have none; 2 take 3 of 6 each, as subtrees of 2 and 1)
grids -- 2 '4 grid.pp=2' '7 grid.servers=1' '4 grid.servers=2 grid.zero=1'
grids model.name=dlrm 'model.bottom=[6]' optim.name=adam optim.clip=0.5 train.micro_batch=4 -- '3 grid.zero=1' '6 grid.servers=3' '3 grid.pp=2 grid.servers=1'
grids model.name=deepfm optim.name=sgd 'optim.groups=[{roles: table, name: adagrad_row, lr: 0.05}]' optim.clip=0.5 train.micro_batch=8 data.train=small.h5 data.test=small-test.h5 -- '4 grid.servers=2' 2

# ---- a table equals a dense layer if each sample is one of five words ----
awk 'BEGIN { srand(3); for (i = 0; i < 96; ++i) { c = int(rand() * 5); printf "%d,k%d", rand() < 0.3 + c / 9, c; for (k = 0; k < 5; ++k) printf ",%d", k == c; print "" } }' >words.csv
{ printf 'header: false\ncolumns:\n  y: label\n  c: category\n'; for k in 0 1 2 3 4; do echo "  n$k: number"; done; } >words.yaml
check 0 'wrote words.h5' "$WEFT" data import csv words.csv --schema words.yaml -o words.h5 --threads 1
cat >table.yaml <<'Y'
run: {seed: 1}
model: {layers: [bag: {width: 3, init: zero}, dense: {width: 1, name: out}]}
data: {train: words.h5}
train: {epochs: 4, batch: 12, micro_batch: 1, threads: 1, loss: sigmoid, log_every: 1}
optim: {name: sgd, lr: 0.5}
Y
sed 's/bag: {width: 3, init: zero}/dense: {width: 3, init: zero, bias: false, name: d}/' table.yaml >dense.yaml
for of in table dense; do
    check 0 'done after' "$WEFT" train $of.yaml run.name=$of
    { grep -o '"loss":[^,]*' runs/$of/metrics.jsonl; "$WEFT" ckpt info "$(at $of 32)" | grep /params/out; } >$of.bits
done
holds 'five rows, as five columns' grep -q '/tables/bag1/rows#0000  *5x3' <("$WEFT" ckpt info "$(at table 32)")
holds 'their ids are one number each' grep -qE '/tables/bag1/ids#0000 +5 +[0-9a-f]{16}$' <("$WEFT" ckpt info "$(at table 32)")
holds 'in JSON, too' grep -qF '/tables/bag1/ids#0000","shape":[5],' <("$WEFT" ckpt info --json "$(at table 32)")
holds 'losses and the layer behind it are the same to the bit' test "$(wc -l <table.bits)" = 34 -a "$(cat table.bits)" = "$(cat dense.bits)"

# ---- resuming with other servers and ranks ----
ranks 3 moved1 grid.servers=1 checkpoint.every_steps=1
counted 4 3 grid.servers=1
ranks 5 moved2 grid.servers=3 checkpoint.every_steps=2 "checkpoint.resume=$(at moved1 1)"
ranks 2 moved3 checkpoint.every_steps=3 "checkpoint.resume=$(at moved2 2)"
holds 'it goes on, and does not begin again' grep -q 'resuming from runs/moved2/checkpoints/step-00000002.h5' both
ranks 1 moved4 "checkpoint.resume=$(at moved3 3)"
same 4 1 moved4
check 0 'loss' "$WEFT" eval job.yaml run.name=1
grep -o '^loss  *[0-9.]*' both | tail -1 >one
check 0 'loss' mpi 2 eval job.yaml run.name=1.3
holds 'evaluated alike on two ranks' grep -qFf one both

# ---- weft run counts servers ----
check 0 'done after' timeout 100 "$WEFT" run -- "$WEFT" train job.yaml run.name=supervised grid.servers=1 grid.dp=2
same 4 1 supervised
check 78 'grid.dp is 2 with grid.servers 1, but 2 ranks were started: start 3' mpi 2 train job.yaml run.name=bad grid.servers=1 grid.dp=2

# ---- mode geo: neither the number of servers nor timing changes the result ----
geo=(grid.mode=geo grid.geo_steps=2 optim.name=sgd train.steps=5)
ranks 3 geo1 "${geo[@]}" grid.servers=1
ranks 5 geo3 "${geo[@]}" grid.servers=3
same 5 geo1 geo3
# a rank that is suspended from time to time
sed 's/steps: 4/steps: 400/' job.yaml >slow.yaml
slow=(slow.yaml grid.mode=geo grid.geo_steps=7 optim.name=sgd optim.lr=0.01 train.log_every=50)
check 0 'done after' mpi 3 train "${slow[@]}" grid.servers=1 run.name=even
background uneven mpi 4 train "${slow[@]}" grid.servers=2 run.name=uneven
job=$!
code=0; stop_in_turn $job slow.yaml || code=$?
holds "a rank that stands still is waited for (exit $code)" test $code = 0
same 400 even uneven
# sync points after every step, of one rank: plain training except for rounding
losses() { sed -n 's/.*"loss": *\([0-9.]*\).*/\1/p' "runs/$1/metrics.jsonl" | cut -c1-5 | head -4; }
ranks 2 single grid.mode=geo grid.geo_steps=1 optim.name=sgd grid.servers=1
ranks 1 plain optim.name=sgd
holds 'as plain training' test -n "$(losses plain)" -a "$(losses plain)" = "$(losses single)"
ranks 3 frozen "${geo[@]}" grid.servers=1 'model.freeze=[embedding]'
holds 'a frozen table has no rows' grep -q 'tables: 0 rows on 1 server' both

# ---- files ----
check 0 'wrote wide.h5' "$WEFT" data make criteo-like -o wide.h5 --samples 15000 --threads 1
big=(data.train=wide.h5 train.batch=3000 train.micro_batch=750 train.steps=5)
ranks 1 big "${big[@]}" checkpoint.every_steps=4
check 0 '/optim/sum_of_squares/tables/embedding#0001' "$WEFT" ckpt info "$(at big 5)"
check 0 'good' "$WEFT" ckpt check "$(at big 5)"
ranks 5 big3 "${big[@]}" grid.servers=3 "checkpoint.resume=$(at big 4)"
holds 'three servers have a third each' grep -qE 'tables: 67382 rows on 3 servers \(the fullest has 22[0-9]{3}, ' both
same 5 big big3
ranks 4 big4 "${big[@]}" "checkpoint.resume=$(at big 4)"
holds 'no rank has a whole table' grep -qE 'tables: 67382 rows on 4 ranks \(the fullest has 1[67][0-9]{3}, ' both
same 5 big big4
check 65 'has sparse tables, such as embedding, which an export as safetensors takes none of' "$WEFT" ckpt export "$(at big 5)" -o big.safetensors
check 65 'has sparse tables, such as embedding, which an export as ONNX takes none of' "$WEFT" ckpt export "$(at big 5)" --onnx -o big.onnx
holds 'nothing is written' sh -c '! ls big.safetensors big.onnx 2>/dev/null'
check 65 'missing in the file: /optim/m/deep.0.weight' mpi 2 train job.yaml optim.name=adam "checkpoint.resume=$(at moved1 1)" run.name=bad
holds 'state that is missing is no damage' sh -c '! grep damaged both'
check 65 'table embedding: the checkpoint has a row for id ' mpi 2 train job.yaml model.vocab=50 grid.servers=1 "checkpoint.resume=$(at moved1 1)" run.name=bad
cp "$(at big 5)" bad.h5
printf '\377' | dd of=bad.h5 bs=1 seek=$(($(wc -c <bad.h5) * 3 / 10)) conv=notrunc 2>/dev/null
check 65 'the checksum of tensor /tables/embedding/rows#0000 does not match' "$WEFT" ckpt check bad.h5
check 65 'bad.h5' "$WEFT" ckpt diff "$(at big 5)" bad.h5
check 65 '/tables/embedding/rows#0000' mpi 3 train job.yaml "${big[@]}" grid.servers=1 checkpoint.resume=bad.h5 run.name=bad
ranks 1 rows 'model.freeze=[wide, "deep*"]' optim.name=sgd checkpoint.every_steps=1 train.steps=2
check 65 'tensor /tables/embedding/ids#0000' "$WEFT" ckpt diff "$(at rows 1)" "$(at rows 2)"

# ---- memory ----
full=(data.train=wide.h5 model.width=32 train.memory=7.5MB grid.servers=1)
sed 's/steps: 4/steps: 100/' job.yaml >long.yaml
check 71 ' rows on this rank use ' mpi 3 train long.yaml "${full[@]}" run.name=full
holds 'one message, which names the table once' test "$(grep -c 'weft: error.*table embedding: [0-9]* rows on ' both)" = 1
holds 'no second message' test "$(grep -c 'weft: error' both)" = 1
dlrm=(model.name=dlrm 'model.bottom=[32]')
check 0 'done after' "$WEFT" train long.yaml data.train=wide.h5 model.width=32 "${dlrm[@]}" checkpoint.every_steps=99 run.name=fat
check 71 ': 0 rows on this rank use ' mpi 3 train long.yaml "${full[@]}" "${dlrm[@]}" "checkpoint.resume=$(at fat 99)" run.name=full

# ---- refusals ----
refused() { check 78 "$2" mpi "$1" train job.yaml run.name=refused "${@:3}"; }
geo=(grid.mode=geo optim.name=sgd grid.servers=1)
refused 2 'grid.servers=2: 2 of 2 ranks as servers leave nobody to compute' grid.servers=2
refused 3 'optim.name=adam: grid.mode: geo exchanges parameters but no optimizer state' "${geo[@]/sgd/adam}"
refused 3 'optim.clip=1: in this grid.mode no gradient is summed' "${geo[@]}" optim.clip=1
refused 3 'grid.pp=2: in this grid.mode' "${geo[@]}" grid.pp=2
refused 3 'grid.zero=1: in this grid.mode' "${geo[@]}" grid.zero=1
refused 2 'set grid.servers' grid.mode=geo optim.name=sgd
refused 2 'grid.zero=2: sparse tables' grid.zero=2
refused 2 'grid.tp=2: layer embedding has sparse tables' grid.tp=2
sed 's/^model:.*/model: {layers: [bag: {width: 2}, concat: {input: [bag1, data]}, dense: {width: 4}, batch_norm: {}, dense: {width: 1}]}/' job.yaml >norm.yaml
check 78 'train.sync_batch_norm=true: is not supported for models with sparse tables' mpi 2 train norm.yaml train.sync_batch_norm=true run.name=refused
{ printf '\0\0\010\003\0\0\0\074\0\0\0\010\0\0\0\010'; head -c $((60 * 64)) /dev/zero | tr '\0' '\100'; } >x.idx
{ printf '\0\0\010\001\0\0\0\074'; for i in $(seq 60); do printf "\\00$((i % 2))"; done; } >y.idx
check 0 '' "$WEFT" data import idx x.idx y.idx -o pictures.h5
sed -e 's/^data:.*/data: {train: pictures.h5}/' -e 's/, loss: sigmoid//' job.yaml >pictures.yaml
check 78 'bag needs data with ids' mpi 2 train pictures.yaml run.name=refused
sed 's/^model:.*/model: {name: mlp, hidden: [8]}/' pictures.yaml >mlp.yaml
check 78 'grid.servers=1: the model has no sparse table' mpi 2 train mlp.yaml grid.servers=1 run.name=refused
holds 'nothing was written' test ! -e runs/refused
ids=$("$WEFT" data info small.h5 | sed -n 's/^  ids .* at byte \([0-9]*\)$/\1/p')
cp small.h5 beyond.h5
printf '\377' | dd of=beyond.h5 bs=1 seek=$((ids + 7)) conv=notrunc 2>/dev/null
check 65 'beyond.h5: sample 0, field 0: its id is 18374686479671' mpi 3 train job.yaml data.train=beyond.h5 data.test=small-test.h5 grid.servers=1 run.name=beyond
check 65 'beyond.h5: sample 0, field 0' mpi 2 train job.yaml data.train=beyond.h5 data.test=small-test.h5 run.name=beyond
sed 's/^model:.*/model: {layers: [bag: {width: 2, vocab: 50}, dense: {width: 1}]}/' job.yaml >narrow.yaml
check 65 'is out of range, its ids are below 50' "$WEFT" train narrow.yaml run.name=beyond
check 65 'test.h5: may have any ids (no attribute id_rows), but those of small.h5 are below 300' "$WEFT" train job.yaml data.train=small.h5 run.name=beyond

# ---- ranks that die ----
sed 's/steps: 4/steps: 100000000/' job.yaml >endless.yaml
lines() { [ "$(wc -l <"runs/dies$1/metrics.jsonl")" -gt 3 ]; } 2>/dev/null
nobody() { [ -z "$(rank_pids endless.yaml)" ]; }
for victim in 1 2; do
    background out timeout -k 5 120 mpirun --oversubscribe --bind-to none -n 3 "$WEFT" train endless.yaml grid.servers=1 train.log_every=10 "run.name=dies$victim"
    job=$!
    holds 'it trains' soon lines $victim
    kill -KILL "$(rank_pid endless.yaml "$victim")"
    begun=$SECONDS code=0
    wait $job || code=$?
    holds "rank $victim's death ends the job in seconds, not with $code after $((SECONDS - begun))" test $code != 0 -a $code != 124 -a $((SECONDS - begun)) -lt 30
    holds 'no rank is left' soon nobody
done
finish
