#!/usr/bin/env bash
# weft plan --input: the plan for data that do not exist equals, to the byte, the plan for a file of the same shape.
. "$(dirname "$0")/common.bash"

big_endian() { for v in "$@"; do printf '\\x%02x\\x%02x\\x%02x\\x%02x' $((v >> 24 & 255)) $((v >> 16 & 255)) $((v >> 8 & 255)) $((v & 255)); done; }
{ printf "$(big_endian 2051 60 28 28)"; head -c $((60 * 784)) /dev/zero; } >x.idx
{ printf "$(big_endian 2049 60)"; for ((i = 0; i < 60; ++i)); do printf "\\x0$((i % 5))"; done; } >y.idx
seq 1 3000 >text
check 0 'wrote images.h5' "$WEFT" data import idx x.idx y.idx -o images.h5
check 0 'wrote text.h5' "$WEFT" data import text text -o text.h5

cat >lenet.yaml <<'YAML'
model: {name: lenet}
data: {train: none.h5, test: none.h5}
train: {epochs: 3, batch: 20, micro_batch: 5, threads: 1}
YAML
cat >gpt.yaml <<'YAML'
model: {name: gpt2, layers: 2, width: 32, heads: 4, context: 64}
data: {train: none.h5}
train: {steps: 7, batch: 8, micro_batch: 2, threads: 1}
optim: {name: adamw}
YAML
cat >mse.yaml <<'YAML'
model: {layers: [flatten, dense: {width: 20}, relu, dense: {width: 1}]}
data: {train: none.h5}
train: {epochs: 1, batch: 20, micro_batch: 5, threads: 1, loss: mse}
YAML

# The program's memory is measured, so this memory and the total differ between any two processes.
plain() { sed -E 's/"(program_bytes|bytes)": [0-9.e+]*/"\1": 0/g' out; }
# same INPUT CONFIG FILE MORE...: compares the JSON of --input with that of the file.
same() {
    local input=$1 config=$2 file=$3
    shift 3
    check 0 '"parameters"' "$WEFT" plan "$config" --json data.train="$file" data.test="$file" "$@"
    plain >with_file
    # shellcheck disable=SC2086
    check 0 '"parameters"' "$WEFT" plan "$config" --json $input "$@"
    plain >without
    holds "$config $input $*: the same plan" cmp with_file without
}
images='--input 1x28x28 --samples 60 model.classes=5'
same "$images" lenet.yaml images.h5
same "$images" lenet.yaml images.h5 --ranks 4
same "$images" lenet.yaml images.h5 --ranks 4 grid.pp=2 --stage 1
same "$images" lenet.yaml images.h5 --ranks 2 grid.tp=2
same "$images" lenet.yaml images.h5 --ranks 2 grid.zero=2 grid.transport=mpi
same '--input 1x28x28 --samples 60 model.classes=1' mse.yaml images.h5
context=$("$WEFT" data info --json text.h5 model.context=64 | grep -o '"samples": [0-9]*' | cut -d' ' -f2)
words="--input tokens --samples $context model.vocab=256"
same "$words" gpt.yaml text.h5
same "$words" gpt.yaml text.h5 --ranks 4 grid.pp=2 grid.dp=2
same "$words" gpt.yaml text.h5 --ranks 2 grid.tp=2

# Data sets and checkpoints that the configuration names are not overwritten.
cp images.h5 kept.h5
cp text.h5 init.h5
for key in data.train data.test model.init_from; do
    check 64 'init.h5: is one of the files that are read' "$WEFT" plan lenet.yaml data.train=images.h5 data.test=images.h5 "$key=$PWD/init.h5" --svg init.h5
done
printf 'data: {train: [images.h5, %s/kept.h5]}\nmodel: {name: lenet}\ntrain: {batch: 20, micro_batch: 5}\n' "$PWD" >two.yaml
check 64 'kept.h5: is one of the files that are read' "$WEFT" plan two.yaml --svg ./kept.h5
check 64 'kept.h5: is one of the files that are read' "$WEFT" sbatch two.yaml -o kept.h5 --force
holds 'they are as before' sh -c 'cmp images.h5 kept.h5 && cmp text.h5 init.h5'
rm init.h5 kept.h5 two.yaml

# Numbers and ids: published parameter counts of models, and the lines about their tables.
cat >ids.yaml <<'YAML'
model: {name: wide_deep}
train: {batch: 64, threads: 1, loss: sigmoid}
YAML
check 0 '10,430,825 trained parameters, 10,000,010 of them in tables;' "$WEFT" plan ids.yaml --input 13+26 model.vocab=1000001
check 0 '1,000,001 rows x 10, ids hashed, fields 0 to 25' "$WEFT" plan ids.yaml --input 13+26 model.vocab=1000001
check 0 '475,985 trained parameters, and a table row for each new id;' "$WEFT" plan ids.yaml --input 13+26 model.name=dlrm
check 64 'expected channels x height x width, like 3x224x224, tokens, or numbers and fields of ids' "$WEFT" plan ids.yaml --input 13+
check 78 'bag needs data with ids, and the data has none' "$WEFT" plan ids.yaml --input 13
check 0 '' "$WEFT" help
holds 'the help of model.vocab asks for no 0' sh -c "tr -s ' \n' ' ' <out | grep -qF 'Unset: the number that the data set gives'"
check 78 'model.vocab=0: 0 is out of range: must be at least 1' "$WEFT" plan ids.yaml --input 13+26 model.vocab=0
check 78 'set train.loss: sigmoid' "$WEFT" plan ids.yaml --input 13+26 model.name=deepfm train.loss=softmax model.classes=2
check 78 'model.classes=3: is 3, but train.loss sigmoid has 2' "$WEFT" plan ids.yaml --input 13+26 model.classes=3

# Messages for tables depend on the mode.
# modes MODE WORDS... -- TEXT... : the plan with 2 servers contains all texts before `not` and none after it.
modes() {
    local words=() text
    while [ "$1" != -- ]; do words+=("$1"); shift; done
    shift
    check 0 'there is room for' "$WEFT" plan ids.yaml --input 13+26 --samples 640 --ranks 4 grid.servers=2 "${words[@]}"
    while [ $# -gt 0 ] && [ "$1" != not ]; do holds "${words[*]}: $1" grep -qE -- "$1" both; shift; done
    for text in "${@:2}"; do holds "${words[*]}: not $text" sh -c "! grep -qE -- '$text' both"; done
}
server='rows on a server$'
modes grid.mode=sync -- "$server" '^mode sync' 'commands of rank 0 +8 messages, 704 B' ' ids +2 messages' 'rows to ranks +2' 'gradients of rows +2' 'gradients summed over 2 replicas' \
    'hashes of parameters and state every 100 steps' not 'sync point'
modes grid.mode=stale grid.staleness=3 grid.geo_steps=7 -- "$server" '^mode stale: .* made 3 steps later: .* of 6 steps.*; sync points every 7 steps' 'commands of rank 0 +8' \
    'gradients of rows +2' 'gradients summed over 2 replicas' 'at sync points whose step is a multiple of 100' not 'steps and before'
modes grid.mode=geo grid.geo_steps=5 optim.name=sgd optim.momentum=0 -- "$server" '^mode geo: .*sync points every 5 steps' 'in a step +ids new since the sync point +6' 'in a step +rows to ranks +2' \
    'at a sync point +changes of rows, with ids +8' 'changes of parameters summed over 2 replicas at a sync point' 'only with dp=2 and grid.geo_steps=5' not 'gradients (of|summed)' 'steps and before'
modes grid.mode=async grid.geo_steps=7 optim.name=adagrad -- "$server" '^mode async: .*sync points every 7 steps' 'parameters to ranks +2' ' ids +6' 'gradients of rows, with ids +8' \
    'gradients of parameters +4' 'at a sync point +synchronisation' 'same order of requests' not 'summed over' 'steps and before' 'all to all'
check 0 '"mode": "geo"' "$WEFT" plan ids.yaml --json --input 13+26 --ranks 4 grid.servers=2 grid.mode=geo grid.geo_steps=5 optim.momentum=0
holds 'sync points and their sums' grep -qE '"sync_point_steps": 5,' out
holds 'sums of sync points' sh -c "tr -d '\n' <out | grep -qE '\"sums\": *\{ *\"at\": \"sync point\"'"
holds 'and so are changes of rows' sh -c "tr -d '\n' <out | grep -qE '\"changes of rows, with ids\", *\"at\": \"sync point\", *\"count\": 8'"
# Without --ranks the number of ranks is the configuration's, servers included.
check 0 '"mode": "async"' "$WEFT" plan ids.yaml --json --input 13+26 grid.servers=2 grid.dp=2 grid.mode=async optim.name=adagrad
check 0 '"mode": "async"' "$WEFT" plan ids.yaml --json --input 13+26 grid.servers=1 grid.mode=async optim.name=adagrad
check 64 '5 ranks without grid.servers 2 are no multiple of grid.pp 2 x grid.tp 1: use --ranks 4 or 6' "$WEFT" plan ids.yaml --input 13+26 --ranks 5 grid.servers=2 grid.pp=2
check 0 '"mode": "async"' "$WEFT" plan ids.yaml --json --input 13+26 --ranks 4 grid.servers=2 grid.mode=async optim.name=adagrad
holds 'no sums' sh -c '! grep -q "\"sums\"" out'
holds 'not the same bits' grep -q '"same_bits_on_every_grid": false' out

# Text and picture agree, too, except for the table of memory, whose last columns are measured.
text() { grep -v -E '^  (stage [0-9]+|of all)? .*MB' out; }
check 0 'memory of one rank' "$WEFT" plan lenet.yaml data.train=images.h5 data.test=images.h5 grid.pp=2 --svg a.svg
text >with_file
check 0 'memory of one rank' "$WEFT" plan lenet.yaml --input 1x28x28 --samples=60 model.classes=5 grid.pp=2 --svg b.svg
text >without
holds 'the same text' cmp with_file without
holds 'the same picture' cmp a.svg b.svg

# No data set is opened or created; without a number of samples an epoch has one batch.
check 66 'none.h5: no such file' "$WEFT" plan lenet.yaml
check 0 '3 steps, 1 per epoch' "$WEFT" plan lenet.yaml --input 1x28x28 model.classes=5
check 0 '300000 steps, 100000 per epoch' "$WEFT" plan lenet.yaml --input 1x28x28 model.classes=5 --samples 2000000
echo 'model: {name: gpt2, size: 124m}' >gpt2.yaml
check 0 '"parameters": 124439808' "$WEFT" plan gpt2.yaml --input tokens --json train.batch=8
if command -v strace >/dev/null; then
    check 0 '' strace -f -e trace=openat -o opened "$WEFT" plan lenet.yaml --input 1x28x28 model.classes=5
    holds 'no .h5 is opened' test "$(grep -c '\.h5' opened)" = 0
else
    echo "  skipped: no strace here, so what is opened is not watched"
fi
holds 'nothing is left' test "$(ls -- *.h5 | wc -l)" = 2

check 64 'set model.classes' "$WEFT" plan lenet.yaml --input 1x28x28
check 64 'the number of values in a target is unknown; set model.classes' "$WEFT" plan mse.yaml --input 1x28x28
check 64 'set model.vocab' "$WEFT" plan gpt.yaml --input tokens
check 64 '--input 28x28: expected channels x height x width' "$WEFT" plan lenet.yaml --input 28x28 model.classes=5
check 64 '--input 0x28x28: expected' "$WEFT" plan lenet.yaml --input 0x28x28 model.classes=5
check 64 '--samples needs --input' "$WEFT" plan lenet.yaml --samples 5
check 64 '--samples 0: expected a whole number from 1' "$WEFT" plan lenet.yaml --input 1x28x28 model.classes=5 --samples 0
sed '/^data/d' lenet.yaml >nodata.yaml
check 78 'give the shape of a sample: --input 3x224x224' "$WEFT" plan nodata.yaml
check 0 'memory of one rank' "$WEFT" plan nodata.yaml --input 1x28x28 model.classes=5
check 0 '--samples N' "$WEFT" plan --help
finish
