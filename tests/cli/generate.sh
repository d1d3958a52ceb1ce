#!/usr/bin/env bash
# A tiny model of bytes memorises a text and continues it; the same seed gives the same text. With another vocabulary the output is
# token ids. Then come the refusals. A line has 45 bytes and a sample 32, so samples begin at every position of a line, and so does
# the text generated after a full window.
. "$(dirname "$0")/common.bash"

for ((i = 0; i < 300; ++i)); do echo "the quick brown fox jumps over the lazy dog$((i % 10))"; done >text
check 0 'wrote text.h5' "$WEFT" data import text text -o text.h5 --test test.h5
cat >a.yaml <<'YAML'
model: {name: gpt2, layers: 1, width: 32, heads: 2, context: 32}
data: {train: text.h5, test: test.h5}
train: {steps: 120, batch: 16, micro_batch: 8, threads: 1, log_every: 40}
optim: {name: adamw, lr: 0.01, clip: 1, lr_schedule: cosine, warmup_steps: 10}
YAML
check 66 'no checkpoint' "$WEFT" generate a.yaml
check 0 'tokens/s' timeout 240 "$WEFT" train -n 2 a.yaml
holds 'the vocabulary is said' grep -q ' 256 different tokens; 379 samples of 32 tokens' both
holds 'figures are of tokens' grep -q '"tokens_per_s":' runs/a/metrics.jsonl
check 0 '"tokens": 1344' "$WEFT" eval a.yaml --json
check 0 ' tokens/s' "$WEFT" eval a.yaml

# The likeliest text is the one that was learned, with the requested length.
check 0 'the quick brown fox jumps over' "$WEFT" generate a.yaml --prompt 'the quick ' --tokens 60 --temperature 0
holds 'the window has moved on' grep -q 'fox jumps over the lazy dog' out
holds 'a prompt of 10 bytes, 60 more, a line end' test "$(tail -c 1 out | tr '\n' '.')" = .
holds 'the bytes are counted' test "$(wc -c <out)" -ge 70 -a "$(wc -c <out)" -le 71
check 0 '' "$WEFT" generate a.yaml --tokens 100
cp out first
check 0 '' "$WEFT" generate a.yaml --tokens 100 --seed 1 --checkpoint runs/a/checkpoints/step-00000120.h5
holds 'the same seed, the same text' cmp -s first out
check 0 '' "$WEFT" generate a.yaml --tokens 100 --temperature 2
cp out wild
check 0 '' "$WEFT" generate a.yaml --tokens 100 --temperature 2 --seed 2
holds 'another seed, another text' test "$(cksum <wild)" != "$(cksum <out)"
check 0 '' "$WEFT" generate a.yaml --tokens 60 --temperature 2 --seed 5 --top-k 1
cp out surest
check 0 '' "$WEFT" generate a.yaml --tokens 60 --temperature 0
holds 'of one token, the likeliest' cmp -s surest out
check 0 '' "$WEFT" generate a.yaml --tokens 60 --temperature 0 grid.pp=2 train.batch=64
holds 'whatever grid trained' cmp -s surest out

# With another vocabulary, prompts and output are numbers.
check 0 'wrote raw.h5' "$WEFT" data import tokens text -o raw.h5 --bits 16 --vocab 32000
sed 's/text.h5/raw.h5/; s/test.h5/raw.h5/' a.yaml >raw.yaml
check 0 '' timeout 240 "$WEFT" train raw.yaml train.steps=3 train.batch=4 train.micro_batch=4
raw="$WEFT generate raw.yaml"
check 0 '7 8 ' $raw --prompt '7, 8' --tokens 5
holds 'two and five numbers' test "$(wc -w <out)" = 7
check 64 'expected token ids' $raw --prompt word
check 64 '--prompt is missing: expected token ids' $raw
check 64 'has token 32000, but the model'"'"'s are 0 to 31999' $raw --prompt 32000

check 64 '--temperature -1: expected a number from 0' "$WEFT" generate a.yaml --temperature -1
check 64 '--temperature nan: expected a number from 0' "$WEFT" generate a.yaml --temperature nan
check 64 '--tokens 0: expected a whole number from 1' "$WEFT" generate a.yaml --tokens 0
check 64 '--tokens 1.5: expected a whole number' "$WEFT" generate a.yaml --tokens 1.5
check 64 '--top-k 257: the model has 256 tokens' "$WEFT" generate a.yaml --top-k 257
check 64 'leave -n out' "$WEFT" generate -n 2 a.yaml
check 64 'start it without mpirun' timeout 240 mpirun --oversubscribe -n 2 "$WEFT" generate a.yaml
check 66 'none.h5' "$WEFT" generate a.yaml --checkpoint none.h5
check 65 'text.h5' "$WEFT" generate a.yaml --checkpoint text.h5
check 65 'wte.weight' "$WEFT" generate a.yaml model.width=48
holds 'nothing was printed before the checkpoint was refused' test ! -s out
{ printf '\0\0\010\003\0\0\0\014\0\0\0\004\0\0\0\004'; head -c 192 /dev/zero; } >images
{ printf '\0\0\010\001\0\0\0\014'; for i in 1 2 3 4; do printf '\0\001\002'; done; } >labels
check 0 '' "$WEFT" data import idx images labels -o images.h5
echo '{model: {name: mlp}, data: {train: images.h5}}' >mlp.yaml
check 78 'images.h5 holds no tokens' "$WEFT" generate mlp.yaml --checkpoint runs/a/checkpoints/best.h5
finish
