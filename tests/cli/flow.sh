#!/usr/bin/env bash
# From raw files to figures with the executable: import, inspect, plan, train on two ranks, evaluate, check checkpoints. Then each step
# with input that must be refused.
. "$(dirname "$0")/common.bash"

# 96 images of 6x6 in IDX: class k has bright pixels at k, k+4, k+8, ...
big_endian() { for v in "$@"; do printf '\\x%02x\\x%02x\\x%02x\\x%02x' $((v >> 24 & 255)) $((v >> 16 & 255)) $((v >> 8 & 255)) $((v & 255)); done; }
{
    printf "$(big_endian 2051 96 6 6)"
    for ((i = 0; i < 96; ++i)); do
        row=
        for ((p = 0; p < 36; ++p)); do row+=$(printf '\\x%02x' $(((p % 4 == i % 4) * 200 + (i * 7 + p * 13) % 50))); done
        printf "$row"
    done
} >images
{
    printf "$(big_endian 2049 96)"
    for ((i = 0; i < 96; ++i)); do printf "\\x0$((i % 4))"; done
} >labels

check 0 'wrote a.h5' "$WEFT" data import idx images labels -o a.h5 --classes 'no,ne,so,se'
before=$(cksum <a.h5)
check 64 'a.h5: is already there' "$WEFT" data import idx images labels -o a.h5
holds 'nothing was written over' test "$before" = "$(cksum <a.h5)"
check 0 'wrote a.h5' "$WEFT" data import idx images labels -o a.h5 --classes no,ne,so,se --force
check 65 '' "$WEFT" data import idx labels images -o b.h5
holds 'no file is left of a failed import' test ! -e b.h5
check 0 '96' "$WEFT" data info a.h5
check 0 '"samples": 96' "$WEFT" data info --json a.h5
check 0 'a.h5: good, 96 samples' "$WEFT" data check a.h5

seq 1 3001 >text # an even number of bytes
check 0 'wrote text-test.h5' "$WEFT" data import text text -o text.h5 --test text-test.h5
check 64 'text.h5: is already there' "$WEFT" data import text text -o text.h5
check 0 'text.h5: tokens data set, 48 samples' "$WEFT" data info text.h5
check 0 '"context": 32, "vocab": 256' "$WEFT" data info --json text-test.h5 model.context=32
check 65 'set a smaller model.context' "$WEFT" data check text-test.h5 model.size=1558m model.context=9999
check 0 'text-test.h5: good' "$WEFT" data check text-test.h5
check 0 'wrote raw.h5' "$WEFT" data import tokens text -o raw.h5 --bits 16 --vocab 20000
check 65 'text: token 0 is 2609, but there are 2000 in the vocabulary' "$WEFT" data import tokens text -o r.h5 --bits 16 --vocab 2000
holds 'no file is left of a failed import' test ! -e r.h5
check 0 '"file": "raw.h5"' "$WEFT" bench io raw.h5 --seconds 0.05 --json
check 64 'is a second one' "$WEFT" bench io raw.h5 text.h5

cat >a.yaml <<'YAML'
model: {name: mlp, hidden: [16]}
data: {train: a.h5, test: a.h5}
train: {epochs: 6, batch: 16, micro_batch: 4, threads: 1}
optim: {lr: 0.1, momentum: 0.9}
YAML
check 0 '"parameters": 660' "$WEFT" plan a.yaml --json
check 0 'fc' "$WEFT" plan a.yaml

# How OpenMP's threads wait: they spin briefly, not at all if there are too few cores, and as the user has set it if so.
many=$(($(nproc) * 2 + 2))
if OMP_DISPLAY_ENV=verbose "$WEFT" --version 2>&1 | grep -q GOMP_SPINCOUNT; then
    if [ "$(nproc)" -ge 2 ]; then
        check 0 "GOMP_SPINCOUNT = '1000'" env OMP_DISPLAY_ENV=verbose "$WEFT" plan a.yaml train.threads=2
    fi
    check 0 "GOMP_SPINCOUNT = '0'" env OMP_DISPLAY_ENV=verbose "$WEFT" plan a.yaml train.threads=$many
    check 0 "GOMP_SPINCOUNT = '77'" env GOMP_SPINCOUNT=77 OMP_DISPLAY_ENV=verbose "$WEFT" plan a.yaml train.threads=2
fi
holds 'plan writes nothing' test ! -e runs
check 66 'no checkpoint' "$WEFT" eval a.yaml
check 0 'top-1' timeout 240 "$WEFT" train -n 2 a.yaml
holds 'the resolved configuration is there' grep -q 'lr: 0.1' runs/a/config.yaml
holds 'metrics are there' grep -q '"loss"' runs/a/metrics.jsonl
holds 'each line of training has all its numbers' bash -c "! grep -q null runs/a/metrics.jsonl"
check 0 '"top1": 1,' "$WEFT" eval a.yaml --json
holds 'figures alone on stdout' test "$(wc -l <out)" = 1
check 0 'confusion' "$WEFT" eval a.yaml
check 0 ' 3 se' "$WEFT" eval a.yaml --checkpoint runs/a/checkpoints/step-00000036.h5
check 66 'none.h5' "$WEFT" eval a.yaml --checkpoint none.h5
check 65 '' "$WEFT" eval a.yaml --checkpoint a.h5
check 65 '' "$WEFT" eval a.yaml 'model.hidden=[8]'

last=runs/a/checkpoints/step-00000036.h5
check 0 '36' "$WEFT" ckpt info $last
check 0 '"step"' "$WEFT" ckpt info --json $last
check 0 '' "$WEFT" ckpt check $last runs/a/checkpoints/best.h5
check 0 '' "$WEFT" ckpt diff $last $last
check 0 '' timeout 240 "$WEFT" train a.yaml run.name=alone
check 0 '' "$WEFT" ckpt diff $last runs/alone/checkpoints/step-00000036.h5
check 0 '' timeout 240 "$WEFT" train a.yaml run.name=other run.seed=2
check 65 'differ' "$WEFT" ckpt diff $last runs/other/checkpoints/step-00000036.h5
head -c 3000 $last >torn.h5
check 65 'torn.h5' "$WEFT" ckpt check torn.h5

# A run's folder and several names: each file is judged separately from the one before it.
check 0 'a run resumes from step-00000036.h5' "$WEFT" ckpt check runs/a
check 0 'best.h5: good: step' "$WEFT" ckpt check runs/a/checkpoints
mkdir empty
check 66 'empty: holds no checkpoint' "$WEFT" ckpt check empty
cp -r runs/a runs/b
cp torn.h5 runs/b/checkpoints/step-00000048.h5
cp torn.h5 runs/b/checkpoints/step-00000060.h5.part
check 65 'step-00000048.h5: bad: ' "$WEFT" ckpt check runs/b
holds 'an unfinished one is named' grep -qx 'runs/b/checkpoints/step-00000060.h5.part: unfinished, never loaded' out
holds 'what a run goes on from' grep -qx 'runs/b/checkpoints: a run resumes from step-00000036.h5' out
holds 'one message' test "$(cat err)" = "weft: error: runs/b/checkpoints: 1 of 3 checkpoints is not good"
check 65 '2 of 3 arguments are not good' "$WEFT" ckpt check torn.h5 runs/b $last
holds 'the last name is judged, too' grep -q "^$last: good: step 36" out
check 66 '2 of 3 arguments are not good' "$WEFT" ckpt check torn.h5 nowhere.h5 runs/a
finish
