#!/usr/bin/env bash
# The command line: help of every verb, versions, usage errors, the man page and completion.
here=$(cd "$(dirname "$0")/../.." && pwd)
. "$(dirname "$0")/common.bash"

check 0 'weft train' "$WEFT" --help
check 0 'weft train' "$WEFT" -h
check 0 'HDF5 1' "$WEFT" --version
check 0 'oneDNN' "$WEFT" --version
check 0 "weft $(cat "$OLDPWD/VERSION" 2>/dev/null || true)" "$WEFT" --version
check 0 'train.batch' "$WEFT" help
check 64 'missing command' "$WEFT"

"$WEFT" --help | grep '^  weft ' | cut -c8-30 | sed 's/ *$//' >verbs
holds 'verbs are listed' grep -qx train verbs
while read -r verb; do
    # shellcheck disable=SC2086
    check 0 "weft $verb " "$WEFT" $verb --help
    holds "help of $verb is on stdout only" test ! -s err
    holds "no case of weft $verb: a test runs each verb" \
        grep -rqE --include=*.sh --include=*.bash --exclude=usage.sh -- "(WEFT\"|weft) $verb( |\$)" "$here/tests"
done <verbs
check 0 'optim.lr' "$WEFT" train --help
check 0 'optim.lr' "$WEFT" eval config.yaml -h

check 64 "did you mean weft train?" "$WEFT" trian
check 64 'unknown command' "$WEFT" xyzzy
check 64 "did you mean weft data info?" "$WEFT" data inof
check 64 "did you mean weft data import cifar?" "$WEFT" data import cifra
check 64 'missing command after weft data' "$WEFT" data
check 64 'missing command after weft data' "$WEFT" data import
check 0 'data import cifar' "$WEFT" data --help
check 64 'unknown command: weft --versoin' "$WEFT" --versoin
check 64 'unknown command: weft -n; options come after the command, as in weft train CONFIG -n 2' "$WEFT" -n 2 train a.yaml
check 64 'unknown command: weft --config; options come after the command' "$WEFT" --config a.yaml
check 64 'unknown command: weft a.yaml; a configuration comes after the command, as in weft train a.yaml' "$WEFT" a.yaml
check 64 'missing configuration file' "$WEFT" train
check 64 'configuration file comes first' "$WEFT" train train.batch=3
check 64 'unknown option --jsn; did you mean --json?' "$WEFT" data info --jsn x.h5
check 64 '-o OUT is missing' "$WEFT" data import idx a b
check 64 '-o OUT is missing' "$WEFT" data import text a
check 64 '--bits 8: expected auto|16|32|64' "$WEFT" data import tokens a -o b --bits 8
printf 'abcdefgh' >numbers.raw
check 64 'give it: --bits 16, 32 or 64' "$WEFT" data import tokens numbers.raw -o b
check 64 'needs --test OUT' "$WEFT" data import text a -o b --test-share 0.2
check 64 'number from 0 to 1' "$WEFT" data import text a -o b --test c --test-share 2
check 64 'whole number from 1 to 2147483647: size of the vocabulary' "$WEFT" data import tokens a -o b --bits 16 --vocab 1.5
check 64 'images file and a labels file' "$WEFT" data import idx a
check 64 'needs a value' "$WEFT" data import idx a b -o
check 64 'given twice' "$WEFT" data import idx a b -o c -o d
check 64 'takes no value' "$WEFT" data info --json=yes x.h5
check 64 'two checkpoint files' "$WEFT" ckpt diff a
check 64 'number of ranks' "$WEFT" train -n two a.yaml
check 64 'number of ranks' "$WEFT" train -n 0 a.yaml
check 64 'number of ranks' "$WEFT" train a.yaml -n
check 64 'given twice' "$WEFT" train -n 2 -n 3 a.yaml
check 64 'unknown option --gpus: that is weft train -n here' "$WEFT" train --gpus 4 a.yaml
check 64 'unknown option --nproc-per-node: that is weft train -n here' "$WEFT" train --nproc-per-node=4 a.yaml
# All options of other programs are named at once, each with this verb's option.
check 64 'unknown option --lr: keys stand after the configuration: optim.lr=VALUE' "$WEFT" train a.yaml --lr 0.1 --epochs 3 --momentum -0.9 -b 32 --foo --gpus=2
for text in '--epochs: keys stand after the configuration: train.epochs=VALUE' '--momentum: keys' '-b: write train.batch=VALUE' '--foo; --help lists all' '--gpus: that is weft train -n'; do
    holds "at once: $text" grep -qF -- "unknown option $text" both
done
holds 'a line for each of the six, and none for a value' test "$(wc -l <both)" = 6
while IFS='|' read -r words text; do
    # shellcheck disable=SC2086
    check 64 "$text" "$WEFT" $words
done <<'WORDS'
train a.yaml -b 32|unknown option -b: write train.batch=VALUE after the configuration
train a.yaml -b32|unknown option -b32: write train.batch=VALUE after the configuration
train a.yaml -j 4|unknown option -j: write data.workers=VALUE after the configuration
train a.yaml -v|unknown option -v: there is one log level
train a.yaml -N 2|unknown option -N: that is weft run --nnodes here
train a.yaml -q|unknown option -q
train a.yaml -z|unknown option -z; --help lists all
train a.yaml -n2|unknown option -n2; write the value as a separate word: -n 2
train a.yaml -np 2|unknown option -np: that is weft train -n here
train a.yaml -x PATH|unknown option -x: it is an option of mpirun
train a.yaml --model resnet18|unknown option --model: write model.name=VALUE after the configuration
train a.yaml --out x|unknown option --out: write run.dir=VALUE after the configuration
train a.yaml --deepspeed x.json|unknown option --deepspeed: write grid.zero=VALUE after the configuration
train a.yaml --patience 3|train.early_stop=N ends a run, and optim.patience=N lowers its learning rate
train a.yaml --checkpoint x.h5|unknown option --checkpoint: write checkpoint.resume=VALUE
train a.yaml --weights x.h5|unknown option --weights: write model.init_from=VALUE
eval a.yaml --weights x.h5|unknown option --weights: that is --checkpoint here
eval a.yaml --ckpt x.h5|unknown option --ckpt: that is --checkpoint here
eval a.yaml --lr 3|unknown option --lr: keys stand after the configuration: optim.lr=VALUE
predict a.yaml --model x.h5|unknown option --model: that is --checkpoint here
generate a.yaml --max-new-tokens 5|unknown option --max-new-tokens: that is --tokens here
generate a.yaml --top_p 0.9|unknown option --top_p: weft generate samples only by --temperature and --top-k
generate a.yaml --top_k 9|unknown option --top_k: that is --top-k here
run --epochs 3 -- weft train a.yaml|unknown option --epochs: write train.epochs=VALUE after the CONFIG of weft train
run --rdzv_conf x -- weft train a.yaml|unknown option --rdzv_conf: MPI numbers the ranks
data import csv a.csv --sep ;|unknown option --sep: that is --schema here
data import csv a.csv -oout.h5|unknown option -oout.h5; write the value as a separate word: -o out.h5
data import folder a --workers 4|unknown option --workers: that is --threads here
data import text a --val-split .1|unknown option --val-split: that is --test-share here
data import imagefolder a|unknown command: weft data import imagefolder; that is weft data import folder here
data import json a|unknown command: weft data import json; convert it to CSV (weft data import csv)
data import parquet a|unknown command: weft data import parquet; convert it to CSV
data import npz a|unknown command: weft data import npz; write the arrays with h5py
data import mnist a|unknown command: weft data import mnist; that is weft data import idx here
ckpt convert a|unknown command: weft ckpt convert; that is weft ckpt import here
ckpt prune a|unknown command: weft ckpt prune; that is weft ckpt shrink here
sbatch a.yaml --ntasks=4|unknown option --ntasks: that is --ntasks-per-node here: its value times --nodes is the number of ranks
sbatch a.yaml -N 2|unknown option -N: that is --nodes here
sbatch a.yaml -p gpu|unknown option -p: that is --partition here
sbatch a.yaml --qos=long|unknown option --qos: that is --more here: as in --more '--qos=long --constraint=ib'
ckpt export x.h5 --format onnx|unknown option --format: that is --onnx here
predict a.yaml --image x.png|unknown option --image: weft predict takes files as words after the configuration
info a|unknown command: weft info; that is weft data info here
-V|unknown command: weft -V; weft --version prints it
data check a b c|c: expected one data file, or two
WORDS
check 64 'unknown option --epochs: keys stand after the configuration: train.epochs=VALUE' "$WEFT" train a.yaml --epochs 3
check 64 'unknown option --batch-size: write train.batch=VALUE after the configuration' "$WEFT" train a.yaml --batch-size 3
check 64 'unknown option --n: that is -n here' "$WEFT" train a.yaml --n 2
check 64 'unknown option -p: that is weft sbatch --partition here' "$WEFT" train a.yaml -p gpu
check 66 'cannot open the configuration file: No such file or directory; CONFIG is a YAML file' "$WEFT" train no-such.py
check 64 'unknown option --master_addr: MPI numbers the ranks' "$WEFT" train a.yaml --master_addr x
check 64 'unknown option --config: the configuration is the first word' "$WEFT" train --config a.yaml
check 64 'unknown command: weft fit; that is weft train here' "$WEFT" fit a.yaml
check 64 'unknown command: weft evaluate; that is weft eval here' "$WEFT" evaluate a.yaml
check 66 'no-such.h5' "$WEFT" data info no-such.h5
check 66 'no-such.h5' "$WEFT" data check no-such.h5
check 66 'no-such.h5' "$WEFT" ckpt info no-such.h5

check 64 'starts no ranks: leave -n out' "$WEFT" plan -n 2 a.yaml
check 64 '-n needs a value' "$WEFT" train a.yaml -n
check 64 'a whole number from 1 to 65536' "$WEFT" bench comm -n 1.5
check 64 'above 0, at most 3600' "$WEFT" bench io --seconds 0
check 64 'expected cpu|cuda' "$WEFT" bench comm --device gpu
check 64 'between commas is empty' "$WEFT" data import idx a b -o c --classes a,,b
check 0 'optim.eps' "$WEFT" help
holds 'help names the optimizers that use a constant' grep -qE '[ ,]adam,.*: added' out
check 0 'muon: 0.95' "$WEFT" help
check 0 'conv2d          2-d convolution' "$WEFT" help --layers
check 0 "$(printf 'optim.name\tmuon\t')" "$WEFT" help --tables
check 0 '' "$WEFT" help
holds 'help fits 100 columns' test "$(awk 'length > 100' out | wc -l)" = 0
holds 'modules have said the words of all keys' test "$(grep -cE '^ +(WORD|list of WORD|\[WORD, \.\.\.\]|PATH);' out)" = 0

check 0 '.TH WEFT 1' "$WEFT" help --man
check 0 'complete -o filenames -F _weft weft' "$WEFT" help --completion
"$WEFT" help --completion >weft.bash
holds 'bash reads the completion' bash -n weft.bash
COMP_WORDS=(weft tr) COMP_CWORD=1 COMPREPLY=()
. ./weft.bash
_weft
holds 'bash completes a verb' test "${COMPREPLY[*]}" = train
# Every flag that a verb's help names is in the man page under the verb, and completed.
"$WEFT" help --man | sed 's/\\-/-/g' >manual
tried=0
while read -r verb; do
    read -r -a COMP_WORDS <<<"weft $verb -"
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
    _weft
    awk -v verb="$verb" '/^\.B weft / { on = $0 == ".B weft " verb } on && /^\.B -/ { print $2 }' manual >man.flags
    # shellcheck disable=SC2086
    for flag in $("$WEFT" $verb --help | sed -n 's/^  \(-[^ ]*\).*/\1/p'); do
        holds "the man page names $flag of $verb" grep -qx -- "$flag" man.flags
        holds "completion names $flag of $verb" grep -qwF -- "$flag" <<<" ${COMPREPLY[*]} "
        tried=$((tried + 1))
    done
done <verbs
holds "that were many flags: $tried" test "$tried" -gt 40
if [ -e /dev/full ]; then check 74 'standard output' sh -c '"$0" help >/dev/full' "$WEFT"; fi
check 0 '' env TERM=xterm "$WEFT" help
holds 'no colour in a file' sh -c '! grep -q "$(printf "\033")" out'
finish
