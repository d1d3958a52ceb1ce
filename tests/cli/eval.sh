#!/usr/bin/env bash
# weft eval: the loss uses the labels without the transformations of training; figures of each class; names of any width. The messages
# of a run about its time and place, and the log in its folder.
# usage: eval.sh     (WEFT=build/weft)
. "$(dirname "$0")/images.bash"
. "$(dirname "$0")/common.bash"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
make_images

# Two runs differ only in label smoothing, with a learning rate of 0: their training losses differ, those of evaluations do not. A grid
# with slices of the classes gives the same.
figure() { sed -n "s/.*\"$1\": *\([-0-9.e]*\).*/\1/p" "$2" | head -n 1; }
for smoothing in 0 0.3; do
    check 0 '' "$WEFT" train images.yaml run.name=smooth-$smoothing train.label_smoothing=$smoothing data.test=images.h5 train.steps=1 \
        optim.lr=1e-30 checkpoint.best_metric=eval_loss
done
check 0 '' mpi 2 train images.yaml run.name=smooth-sliced train.label_smoothing=0.3 data.test=images.h5 train.steps=1 optim.lr=1e-30 grid.tp=2
grep -h '"loss"' runs/smooth-0/metrics.jsonl >plain; grep -h '"loss"' runs/smooth-0.3/metrics.jsonl >smooth
holds 'the training losses differ' test "$(figure loss plain)" != "$(figure loss smooth)"
for run in 0 0.3 sliced; do grep -h eval_loss runs/smooth-$run/metrics.jsonl >eval-$run; done
holds 'there is an evaluation' test -n "$(figure eval_loss eval-0)"
holds 'those of evaluations are the same' test "$(figure eval_loss eval-0)" = "$(figure eval_loss eval-0.3)"
near() { awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; exit !(d < 1e-5 && d > -1e-5) }'; }
holds 'and so where ranks have slices of the classes' near "$(figure eval_loss eval-0)" "$(figure eval_loss eval-sliced)"
for smoothing in 0 0.3; do
    check 0 '' "$WEFT" eval images.yaml data.test=images.h5 --checkpoint runs/smooth-0.3/checkpoints/best.h5 --json \
        train.label_smoothing=$smoothing
    holds 'weft eval says the same' test "$(figure eval_loss out)" = "$(figure eval_loss eval-0)"
done
check 0 '' "$WEFT" ckpt info runs/smooth-0.3/checkpoints/best.h5 --json
holds 'best.h5 goes by it' grep -q eval_loss out


# Names of classes are padded by their width on a terminal, so that the numbers are aligned.
noise_idx 60 8 5 plain.h5
names='Straße,花,rosé,花より団子と月見の会,an ordinary flower'
check 0 wrote "$WEFT" data import idx images labels --classes "$names" -o named.h5
cat >named.yaml <<'YAML'
model: {name: mlp, hidden: [16]}
data:  {train: named.h5, test: named.h5}
train: {steps: 20, batch: 10, micro_batch: 10, threads: 1}
optim: {lr: 0.1}
YAML
check 0 '' "$WEFT" train named.yaml
check 0 'confusion' "$WEFT" eval named.yaml --per-class
sed -n '/^confusion/,$ { /^confusion/d; p }' out >matrix
holds 'a row for each class, and a head' test "$(wc -l <matrix)" = 6
widths() { while IFS= read -r line; do printf '%s\n' "$line" | LC_ALL=C.UTF-8 wc -L; done <"$1" | sort -u | wc -l; }
holds 'all rows are as wide' test "$(widths matrix)" = 1
sed -n '/class .*samples .*recall/,/^$/ { /^$/d; p }' out >classes
holds 'so are those of each class' test "$(widths classes)" = 1
holds 'there is one for each' test "$(wc -l <classes)" = 6

# Samples, recall and precision of each class, computed from the matrix by awk.
tail -n 5 matrix | awk '
    { for (c = 1; c <= 5; ++c) { n[NR, c] = $(NF - 5 + c); row[NR] += n[NR, c]; column[c] += n[NR, c] } }
    function share(a, b) { return b ? sprintf("%.2f %%", 100 * a / b) : "-" }
    END { for (c = 1; c <= 5; ++c) print row[c], column[c], share(n[c, c], row[c]), share(n[c, c], column[c]) }' >want
tail -n 5 classes | awk '{ k = NF; b = $k == "%" ? $(k - 1) " %" : $k; k -= $k == "%" ? 2 : 1
    a = $k == "%" ? $(k - 1) " %" : $k; k -= $k == "%" ? 2 : 1; print $(k - 1), $k, a, b }' >got
holds 'the figures of each class are those of the matrix' cmp want got
holds 'there are as many samples' test "$(awk '{ n += $1 } END { print n }' got)" = 60
check 0 '"per_class": [' "$WEFT" eval named.yaml --per-class --json
holds 'JSON has the whole names' grep -q '"class": "花より団子と月見の会"' out
check 0 '' "$WEFT" eval named.yaml --json
holds 'and no figures of classes unasked' test "$(grep -c per_class out)" = 0
check 0 "$(printf '    1  花                  ')" "$WEFT" data info named.h5

# The whole time of an evaluation is reported as eval: 60 samples are evaluated, 2 are trained on.
check 0 'eval' "$WEFT" train named.yaml run.name=timed train.steps=1 train.batch=2 train.micro_batch=1 model.hidden=[512,512]
share() { grep '^  time ' out | grep -o "$1 [0-9.]*" | cut -d' ' -f2; }
holds 'more time goes to the evaluation than to one step forward' awk -v e="$(share eval)" -v f="$(share forward)" 'BEGIN { exit !(e > f + 0) }'

# The log names the hosts of the ranks.
host=$(uname -n)
check 0 "1 rank on 1 host: $host (1 rank, " "$WEFT" train named.yaml run.name=one train.steps=1
cores=$(sed -n 's/^1 rank on 1 host: .* (1 rank, \([0-9]*\) cores\{0,1\}.*)$/\1/p' err)
holds 'a core has one hardware thread or more' test "$cores" -ge 1 -a "$cores" -le "$(env -u OMP_NUM_THREADS nproc)"
check 0 "2 ranks on 1 host: $host (2 ranks, " "$WEFT" train -n 2 named.yaml run.name=two train.steps=1 train.micro_batch=5

# The log of a run has its messages and figures; a later start appends to it, and a fresh run keeps the old one under another name.
log=runs/named/log.txt
holds 'a log begins with its start' grep -q '^---- .*, weft .* on .*, after step 0$' $log
holds 'it says where the ranks are' grep -q "^1 rank on 1 host: $host" $log
holds 'it has the steps' grep -q 'step 20/20  loss ' $log
holds 'it has evaluations' grep -q '^evaluation after step 20: loss ' $log
holds 'it has the summary' grep -q '^done after ' $log
check 0 '' "$WEFT" train named.yaml train.steps=24
holds 'the next start adds to it' grep -q ', after step 20$' $log
holds 'the first stays' grep -q 'step 20/20  loss ' $log
check 75 'stopped early' "$WEFT" train named.yaml run.name=stopped train.steps=1000000 run.max_time=1s
holds 'it has what was said last' grep -q '^stopped early with a checkpoint' runs/stopped/log.txt
check 0 '' "$WEFT" train named.yaml run.fresh=true
holds 'a fresh run keeps the earlier log' test "$(grep -c ', after step' runs/named/earlier-1/log.txt)" = 2
holds 'and begins its own' test "$(grep -c ', after step' $log)" = 1
mkdir -p runs/full && head -c 16777216 /dev/zero | tr '\0' '\n' >runs/full/log.txt
check 0 '' "$WEFT" train named.yaml run.name=full train.steps=2
holds 'a log of 16 MB becomes the older part' test "$(stat -c %s runs/full/log.txt.1)" = 16777216 -a "$(stat -c %s runs/full/log.txt)" -lt 100000
mkdir -p runs/pipe && mkfifo runs/pipe/log.txt
check 74 'runs/pipe/log.txt: opening failed' timeout 60 "$WEFT" train named.yaml run.name=pipe train.steps=2

finish
