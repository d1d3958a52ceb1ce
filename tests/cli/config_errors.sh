#!/usr/bin/env bash
# A wrong configuration ends with exit code 78 and file, line and column, at once and before MPI is started, whatever starts weft.
. "$(dirname "$0")/common.bash"

good='model: {name: lenet}
data: {train: none.h5}'
printf '%s\n' "$good" >good.yaml
printf '%s\ntrain:\n  bach: 64\n' "$good" >typo.yaml
printf '%s\ntrain: {batch: 32x}\n' "$good" >number.yaml
printf 'model: {name: lente}\ndata: {train: none.h5}\n' >model.yaml
printf 'data: {train: none.h5}\n' >bare.yaml
printf 'model: {name: lenet}\n' >nodata.yaml

for verb in train eval plan; do
    check 78 "typo.yaml:4:3: unknown key 'bach' in train; did you mean 'batch'?" "$WEFT" $verb typo.yaml
    check 78 "number.yaml:3:16: train.batch: '32x' is not a whole number" "$WEFT" $verb number.yaml
    check 78 "model.yaml:1:9: model.name: there is no model 'lente'; did you mean 'lenet'?" "$WEFT" $verb model.yaml
    check 78 'no model: set model.name' "$WEFT" $verb bare.yaml
    check 78 "set model.name to one of unet, " "$WEFT" $verb bare.yaml model.layers=3
    [ $verb = eval ] && needs='no test data: set data.test' || needs='no training data: set data.train'
    check 78 "$needs" "$WEFT" $verb nodata.yaml
    check 78 "command line: train.batch=1e3: '1e3' is not a whole number" "$WEFT" $verb good.yaml train.batch=1e3
    check 78 'command line: grid.tp=0: 0 is out of range' "$WEFT" $verb good.yaml grid.tp=0
    check 66 'missing.yaml: cannot open' "$WEFT" $verb missing.yaml
done
# Keys of other programs get the name of weft's key; all errors are reported together.
cat >foreign.yaml <<'YAML'
model: {name: resnet, pretrained: true}
data: {train: none.h5, batch_size: 32}
train: {learning_rate: 0.1, amp: true, loss: CELoss, max_epochs: 3}
optim: {scheduler: cosine, warmup: 5, lr_schedule: CosineAnnealingLR}
optimizer: {name: sgd}
save_every: 5
lr: 0.1
YAML
check 78 'foreign.yaml:1:23: unknown key '\''pretrained'\'' in model: that is model.init_from here' "$WEFT" train foreign.yaml
while read -r text; do
    holds "among all that is wrong: $text" grep -qF -- "$text" both
done <<'TEXTS'
foreign.yaml:1:9: model.name: there is no model 'resnet'; did you mean one of resnet18, 
foreign.yaml:2:24: unknown key 'batch_size' in data: that is train.batch here: samples of a step, over all ranks together
foreign.yaml:3:9: unknown key 'learning_rate' in train: that is optim.lr here
foreign.yaml:3:29: unknown key 'amp' in train: that is train.precision here
foreign.yaml:3:46: train.loss: 'CELoss' is none of: softmax, 
foreign.yaml:3:54: unknown key 'max_epochs' in train: that is train.epochs here
foreign.yaml:4:9: unknown key 'scheduler' in optim: that is optim.lr_schedule here
foreign.yaml:4:28: unknown key 'warmup' in optim: that is optim.warmup_steps here: or optim.warmup_epochs
that is cosine here: with optim.warmup_steps and optim.lr_end
foreign.yaml:5:1: unknown section 'optimizer': that is optim here
foreign.yaml:6:1: unknown section 'save_every': that is checkpoint.every_steps here
foreign.yaml:7:1: unknown section 'lr'; did you mean 'optim.lr'?
TEXTS
holds 'each of the thirteen on a line' test "$(grep -c foreign.yaml both)" = 13
{ echo 'train:'; seq -f '  bogus%g: 1' 30; } >many.yaml
check 78 "unknown key 'bogus20' in train" "$WEFT" train many.yaml
holds 'twenty at most, and how many more' test "$(grep -c bogus both) $(tail -1 both)" = '20 and 10 more'
check 78 "command line: finetune=x: unknown section 'finetune': that is model.init_from here" "$WEFT" train good.yaml bs=3 finetune=x
holds 'all words of the command line' grep -qF 'bs=3: unknown section '\''bs'\'': that is train.batch here' both
printf 'model: resnet18\ndata: {train: none.h5}\n' >short.yaml
check 78 'short.yaml:1:8: model: expected keys, not a single value; write model: {name: resnet18}' "$WEFT" train short.yaml
printf 'model: resnet34d\ndata: x.h5\noptim: none-such\ngrid: 4\n' >short.yaml
check 78 'short.yaml:1:8: model: expected keys, not a single value; write model: {name: resnet34d}' "$WEFT" train short.yaml
for text in 'write data: {train: x.h5}' "optim.name: 'none-such' is none of: sgd, adam" '4:7: grid: expected keys, one per line' \
    "there is no model 'resnet34d'; did you mean one of resnet18, resnet34"; do
    holds "values are checked, too: $text" grep -qF "$text" both
done
check 78 "command line: model=resnet18: 'model' is a section: write model.name=resnet18" "$WEFT" train bare.yaml model=resnet18
check 78 "command line: model=resnet34d: there is no model 'resnet34d'; did you mean one of" "$WEFT" train bare.yaml model=resnet34d
check 78 "'optim' is a section: write optim.name=none-such: 'none-such' is none of" "$WEFT" train good.yaml optim=none-such
check 78 "'model' is a section: name a key of it" "$WEFT" train good.yaml 'model={layers: [relu]}'
check 78 "'grid' is a section: name a key of it, as in grid.KEY=VALUE" "$WEFT" train good.yaml grid=4
check 78 "unknown key 'patience' in train: that is train.early_stop here" "$WEFT" train good.yaml train.patience=3
check 78 "; weft has nothing like it" "$WEFT" train good.yaml optim.name=rmsprop
# Files that are not YAML are recognised: tabs, TOML, INI, HDF5.
printf 'model: {name: lenet}\ntrain:\n\tbatch: 3\n' >tab.yaml
check 78 'tab.yaml:3:1: a tab indents this line: YAML allows only spaces' "$WEFT" train tab.yaml
printf 'train:\n  batch: 3\n \tsteps: 3\n' >tab.yaml
check 78 'tab.yaml:3:1: a tab indents this line' "$WEFT" train tab.yaml
printf '# a job\n\n[train]\nbatch = 3\n' >job.toml
check 78 'job.toml:3:1: looks like TOML or INI; a configuration is YAML, as in train: {batch: 64}' "$WEFT" train job.toml
printf 'batch = 3\nlr = 0.1\n' >job.ini
check 78 'job.ini:1:1: looks like TOML or INI' "$WEFT" train job.ini
printf '[train, model]\n' >list.yaml
check 78 'list.yaml:1:1: expected sections (run:, model:, ...), not a list' "$WEFT" train list.yaml
printf '\x89HDF\r\n\x1a\n' >net.h5
check 78 'net.h5: is an HDF5 file, where a configuration is expected' "$WEFT" eval net.h5
model_named() { # NAME TEXT
    check 78 "there is no model '$1'$2" "$WEFT" plan good.yaml model.name="$1"
}
model_named resnet '; did you mean one of resnet18, '
model_named llama2 "; did you mean 'llama'?"
model_named gpt2-xl ': that is gpt2 here: with model.size'
model_named resnet152 '; did you mean one of resnet18'
model_named ResNet-50 "; did you mean 'resnet50'?"
model_named mistral-7b ': that is llama here'
model_named alexnet ': `weft help` lists the models'
model_named xyzzy '; there are mlp, lenet'
printf 'model: {classes: 3, layers: [Conv2d: {channels: 3, kernel: 3}]}\ndata: {train: none.h5}\n' >layer.yaml
check 78 "there is no layer 'Conv2d'; did you mean 'conv2d'?" "$WEFT" plan layer.yaml --input 3x8x8
printf 'model: {classes: 3, layers: [flatten, Linear: {width: 3}]}\ndata: {train: none.h5}\n' >layer.yaml
check 78 "there is no layer 'Linear': that is dense here" "$WEFT" plan layer.yaml --input 3x8x8
printf 'model: {classes: 3, layers: [conv2d: {out_channels: 3}]}\ndata: {train: none.h5}\n' >layer.yaml
check 78 "conv2d takes no attribute 'out_channels': that is channels here" "$WEFT" plan layer.yaml --input 3x8x8

# keys that apply to no mode or only to another mode
check 78 'grid.staleness=3: only grid.mode: stale uses it' "$WEFT" train good.yaml grid.staleness=3
check 78 'grid.staleness=0: only' "$WEFT" train good.yaml grid.staleness=0 grid.mode=geo
check 78 'grid.geo_steps=3: only grid.mode: stale, geo or async uses it' "$WEFT" train good.yaml grid.geo_steps=3
check 66 'none.h5' "$WEFT" train good.yaml grid.geo_steps=100 grid.staleness=1
check 78 'run.order_log is set, too' "$WEFT" train good.yaml run.order_log=a run.replay=b
holds 'nothing was written' test ! -e runs

# Errors are found before MPI: -n 2 needs no mpirun to find them, and under a launcher one rank prints the message.
check 78 'typo.yaml:4:3' env PATH=/nowhere "$WEFT" train -n 2 typo.yaml
check 78 'typo.yaml:4:3' "$WEFT" bench step typo.yaml
check 64 'mpirun' env PATH=/nowhere "$WEFT" train -n 2 good.yaml
if command -v mpirun >/dev/null; then
    check 78 'typo.yaml:4:3' timeout 240 mpirun --allow-run-as-root --oversubscribe -n 2 "$WEFT" train typo.yaml
    holds 'one rank told it' test "$(grep -c 'typo.yaml:4:3' both)" = 1
    check 64 'leave -n out' timeout 240 mpirun --allow-run-as-root -n 1 "$WEFT" train -n 2 good.yaml
    check 66 'missing.yaml' timeout 240 mpirun --allow-run-as-root --oversubscribe -n 2 "$WEFT" train missing.yaml
    holds 'one rank told it' test "$(grep -c 'missing.yaml: cannot' both)" = 1
    check 66 'none.h5' timeout 240 "$WEFT" train -n 2 good.yaml
    holds 'one rank told it' test "$(grep -c 'none.h5: no such file' both)" = 1
fi

# Errors are found quickly: no library that a run needs is initialised, so the command takes little more processor time than --version.
spent() { # WORDS... : hundredths of a second of processor time for 20 calls
    local TIMEFORMAT='%U %S'
    { time for _ in $(seq 20); do "$WEFT" "$@" >/dev/null 2>&1 || true; done; } 2>&1 | awk '{ print int(100 * ($1 + $2)) }'
}
check 78 '' "$WEFT" train typo.yaml
took=$(spent train typo.yaml)
holds "quick: $took hundredths of a second for 20 calls" test "$took" -lt $(($(spent help) * 10 + 100))
finish
