#!/usr/bin/env bash
# A text through GPT-2's tokenizer: the data set, its hash, a model that goes on with text; another tokenizer is refused.
# usage: tokenizer.sh     (WEFT=build/weft)
here=$(cd "$(dirname "$0")/../.." && pwd)
. "$(dirname "$0")/common.bash"
cp -r "$here/tests/golden/tokenizer" small
for i in $(seq 200); do printf "It's the rank %d of a step, and the model's own <|endoftext|> file.\n\n  Straße %d\n" $i $((i * i)); done >text
tokens() { "$WEFT" data info "$1" --json | sed -n 's/.*"tokens": \([0-9]*\).*/\1/p'; }

check 0 'wrote train.h5' "$WEFT" data import text text --tokenizer small -o train.h5 --test test.h5
holds 'no array is left' test ! -e train.h5.tokens
check 0 'tokenizer small, hash ' "$WEFT" data info train.h5
hash=$(grep -o 'hash [0-9a-f]*' out)
check 0 '"vocab": 1001' "$WEFT" data info test.h5 --json
gzip -k text
check 0 'wrote other-test.h5' "$WEFT" data import text text.gz --tokenizer small/ranks.tiktoken -o other.h5 --test other-test.h5
check 0 "$hash" "$WEFT" data info other.h5
holds 'the same tokens' test "$(tokens other.h5)" = "$(tokens train.h5)"
cp -r small marked
{ printf '\xef\xbb\xbf'; cat small/vocab.json; } >marked/vocab.json
check 0 '' "$WEFT" data import text text --tokenizer marked -o marked.h5 --test marked-test.h5
check 0 "$hash" "$WEFT" data info marked.h5
check 0 '' "$WEFT" data import text text --tokenizer small --special -o special.h5
check 0 '' "$WEFT" data import text text --tokenizer small -o all.h5
printf it >short
check 65 'short: tokens in it: 1, for training: 1; at least 2 are needed, one and the one after it' \
    "$WEFT" data import text short --tokenizer small -o no.h5
holds 'nothing is left of it' test -z "$(ls no.h5* 2>/dev/null)"
holds 'an end of text is one token' test "$(tokens special.h5)" -lt "$(tokens all.h5)"

cat >job.yaml <<'YAML'
run:   {name: r}
model: {name: gpt2, layers: 1, width: 32, heads: 2, context: 32}
data:  {train: train.h5, test: test.h5}
train: {steps: 2, batch: 8, micro_batch: 4, threads: 1}
optim: {name: adam, lr: 0.01}
YAML
check 0 '' "$WEFT" train job.yaml
check 0 'Straße, it' "$WEFT" generate job.yaml --tokenizer small --prompt 'Straße, it' --tokens 8
check 0 '' "$WEFT" generate job.yaml --tokenizer small --tokens 8
check 64 'expected token numbers' "$WEFT" generate job.yaml --prompt 'Straße'
check 0 '5 9 ' "$WEFT" generate job.yaml --prompt '5,9' --tokens 4
cp -r small another
sed 's/"<|endoftext|>"/"<|endofmind|>"/' small/vocab.json >another/vocab.json
check 64 'was made with small' "$WEFT" generate job.yaml --tokenizer another --prompt it
check 64 'has no <|endoftext|>' "$WEFT" data import text text --tokenizer another --special -o no.h5
check 0 '' "$WEFT" data import text text --tokenizer another -o mind.h5 --test mind-test.h5
check 65 'mind-test.h5: its tokens are those of the tokenizer another' "$WEFT" train job.yaml run.name=no data.test=mind-test.h5
check 0 '' "$WEFT" eval job.yaml
mind='mind.h5: its tokens are those of the tokenizer with hash'
check 65 "$mind" "$WEFT" eval job.yaml data.train=mind.h5 data.test=mind-test.h5
check 65 "$mind" "$WEFT" train job.yaml run.name=no data.train=mind.h5 data.test=mind-test.h5 checkpoint.resume=runs/r/checkpoints/best.h5
check 65 "$mind" "$WEFT" train job.yaml run.name=no data.train=mind.h5 data.test=mind-test.h5 model.init_from=runs/r/checkpoints/best.h5
check 0 'beginning with' "$WEFT" train job.yaml run.name=begun model.init_from=runs/r/checkpoints/best.h5
cut -c 1-4000 small/vocab.json >another/vocab.json
check 65 'another/vocab.json: byte ' "$WEFT" data import text text --tokenizer another -o no.h5
check 66 'none' "$WEFT" data import text text --tokenizer none -o no.h5
check 66 'nothing' "$WEFT" data import text nothing --tokenizer small -o no.h5
check 64 'all.h5: is already there' "$WEFT" data import text text --tokenizer small -o all.h5
head -c 200 text.gz >cut.gz
check 65 'cut.gz' "$WEFT" data import text cut.gz --tokenizer small -o no.h5
# What is wrong with the files to write is said before a long text is encoded.
check 64 'all.h5: is already there' "$WEFT" data import text cut.gz --tokenizer small -o no.h5 --test all.h5
check 64 'give two names' "$WEFT" data import text cut.gz --tokenizer small -o no.h5 --test no.h5
check 64 'between 0 and 1' "$WEFT" data import text cut.gz --tokenizer small -o no.h5 --test no-test.h5 --test-share 1
holds 'nothing is left of them' test ! -e no.h5 -a ! -e no.h5.tokens.part
finish
