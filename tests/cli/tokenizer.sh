#!/usr/bin/env bash
# A text with GPT-2's tokenizer: the data set, its hash, a model that continues text; another tokenizer is refused.
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
check 0 "wrote copy.h5" "$WEFT" data import hdf5 train.h5 -o copy.h5
check 0 "small, $hash" "$WEFT" data info copy.h5
check 0 '"vocab": 1001' "$WEFT" data info test.h5 --json
gzip -k text
check 0 'wrote other-test.h5' "$WEFT" data import text text.gz --tokenizer small/ranks.tiktoken -o other.h5 --test other-test.h5
cp both log
check 0 "$hash" "$WEFT" data info other.h5
holds 'the log has the id of the end of text' grep -qF 'ranks.tiktoken: lacks <|endoftext|>, which gets the first free id, 1000' log
holds 'no warning about its pattern' sh -c '! grep -q pattern log'
{ printf '\xef\xbb\xbf'; cat small/ranks.tiktoken; printf '%s 1000\n' "$(printf .s | base64)"; } >dot.tiktoken
check 0 'dot.tiktoken: lacks <|endoftext|>, which gets the first free id, 1001' "$WEFT" data import text text --tokenizer dot.tiktoken -o dot.h5
holds 'another pattern is warned of' grep -qF "token 1000 consists of several words of GPT-2's pattern" both
holds 'the same tokens' test "$(tokens other.h5)" = "$(tokens train.h5)"
cp -r small marked
{ printf '\xef\xbb\xbf'; cat small/vocab.json; } >marked/vocab.json
{ printf '\xef\xbb\xbf'; cat small/merges.txt; } >marked/merges.txt
check 0 '' "$WEFT" data import text text --tokenizer marked -o marked.h5 --test marked-test.h5
holds 'no line about an end of text or a pattern' sh -c '! grep -q "free id\|pattern" both'
check 0 "$hash" "$WEFT" data info marked.h5
check 0 '' "$WEFT" data import text text --tokenizer small --special -o special.h5
check 0 '' "$WEFT" data import text text --tokenizer small -o all.h5
# No file of the tokenizer is overwritten.
cp -r small marks
ln -s merges.txt marks/link
for out in vocab.json merges.txt; do
    for word in text tokens; do
        check 64 "marks/$out: is one of the files that are read" "$WEFT" data import $word text --tokenizer marks -o marks/$out --force
        check 64 "is one of the files that are read" "$WEFT" data import $word text --tokenizer marks -o no.h5 --test ./marks/$out --force
    done
done
check 64 'is one of the files that are read' "$WEFT" data import tokens text --tokenizer marks/ranks.tiktoken -o marks/ranks.tiktoken --force
cp text all.h5.part
cp text ids.h5.tokens.part
check 64 'all.h5.part: is one of the files that are read, but would be replaced on the way to all.h5' "$WEFT" data import text all.h5.part -o all.h5 --force
check 64 'ids.h5.tokens.part: is one of' "$WEFT" data import text ids.h5.tokens.part --tokenizer small -o ids.h5
holds 'the tokenizer and the texts are as before' sh -c 'diff -r -x link small marks && cmp text all.h5.part && cmp text ids.h5.tokens.part'
rm all.h5.part ids.h5.tokens.part
printf it >short
check 65 'short: has 1 token; no.h5 would get 1, and at least 2 are needed (an input and the next token)' \
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
check 64 'expected token ids' "$WEFT" generate job.yaml --prompt 'Straße'
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
# The user names the tokenizer of an array of tokens; the bytes of a text are a vocabulary, too. If one of two vocabularies is unknown,
# one line says so; different ones are refused.
h5dump -d /tokens -b LE -o ids.bin train.h5 >/dev/null && h5dump -d /tokens -b LE -o ids-test.bin test.h5 >/dev/null
ids() { "$WEFT" data import tokens "$1.bin" --bits 16 -o "$2.h5" "${@:3}"; }
check 0 'wrote' ids ids named --tokenizer small
check 0 "tokenizer small, $hash" "$WEFT" data info named.h5
check 0 '"vocab": 1001' "$WEFT" data info named.h5 --json
check 0 'wrote' ids ids-test named-test --tokenizer small/ranks.tiktoken --vocab 1100
check 0 '"vocab": 1100' "$WEFT" data info named-test.h5 --json
check 0 'wrote' ids ids unknown --vocab 1001
check 0 'wrote' ids ids-test unknown-test --vocab 1001
check 0 'tokenizer unknown' "$WEFT" data info unknown.h5
printf 'no tokenizer of weft' >sp.model
printf 'another one' >sp2.model
check 0 'sp.model: line 1' ids ids sp --tokenizer sp.model --vocab 1001
holds 'the file is known by its bytes' grep -qF 'using a hash of the file as' both
check 0 'tokenizer sp.model, hash file-' "$WEFT" data info sp.h5
check 0 '' ids ids-test sp2 --tokenizer sp2.model --vocab 1001
check 66 'nothing' ids ids no --tokenizer nothing
check 66 'vocab.json' ids ids no --tokenizer .
seq -s ' ' 995 1005 | tr ' ' '\n' | while read -r n; do printf "\\x$(printf %02x $((n % 256)))\\x$(printf %02x $((n / 256)))"; done >wide.bin
check 65 'there are 1001 in the vocabulary (0 to 1000); correct --tokenizer or --vocab' ids wide no --tokenizer small
check 0 'wrote bytes.h5' "$WEFT" data import text text -o bytes.h5 --test bytes-test.h5
check 0 'tokenizer bytes' "$WEFT" data info bytes.h5
check 0 '"tokenizer_hash": "bytes"' "$WEFT" data info bytes.h5 --json
check 0 'go together: one tokenizer made the tokens of both' "$WEFT" data check train.h5 named-test.h5 model.vocab=1100
check 0 'go together: one tokenizer made the tokens of both' "$WEFT" data check bytes.h5 bytes-test.h5
check 0 'neither names the tokenizer of its tokens' "$WEFT" data check unknown.h5 unknown-test.h5
some="and those of train.h5 are those of the tokenizer small ($hash): the two cannot be compared"
check 0 "unknown-test.h5: its tokens are of an unknown tokenizer, $some" "$WEFT" data check train.h5 unknown-test.h5
holds 'it does not say that they go together' sh -c '! grep -q "go together" both'
check 0 'sp.h5: its tokens are those of the tokenizer sp.model (hash file-' "$WEFT" data check train.h5 sp.h5
check 65 'sp2.h5: its tokens are those of the tokenizer sp2.model (hash file-' "$WEFT" data check sp.h5 sp2.h5
check 65 'bytes-test.h5: its tokens are bytes, but those of train.h5 are those of the tokenizer small' "$WEFT" data check train.h5 bytes-test.h5
check 0 "unknown-test.h5: its tokens are of an unknown tokenizer, $some" "$WEFT" train job.yaml run.name=un data.test=unknown-test.h5
check 65 'bytes-test.h5: its tokens are bytes, but' "$WEFT" train job.yaml run.name=no data.test=bytes-test.h5
best=runs/r/checkpoints/best.h5
then="and those of the training of $best are those of the tokenizer with $hash: the two cannot be compared"
unknown() { "$WEFT" "$1" job.yaml data.train=unknown.h5 data.test=unknown-test.h5 "${@:2}"; }
check 0 "unknown.h5: its tokens are of an unknown tokenizer, $then" unknown eval
check 0 "unknown.h5: its tokens are of an unknown tokenizer, $then" unknown train run.name=on checkpoint.resume=$best
check 0 "unknown.h5: its tokens are of an unknown tokenizer, $then" unknown train run.name=in model.init_from=$best
check 0 "unknown.h5: its tokens are of an unknown tokenizer, $then" unknown generate --prompt 5,9 --tokens 2
check 64 "--tokenizer another has hash" unknown generate --tokenizer another --prompt it
check 65 'mind-test.h5: its tokens are those of the tokenizer with hash' "$WEFT" eval job.yaml data.train=unknown.h5 data.test=mind-test.h5
check 65 'bytes.h5: its tokens are bytes, but those of the tokenizer with hash' "$WEFT" eval job.yaml data.train=bytes.h5 data.test=bytes-test.h5 model.vocab=1001
check 0 '' unknown train run.name=u
check 0 '' unknown train run.name=u train.steps=3
holds 'nothing is said of two unknown ones' sh -c '! grep -q "unknown tokenizer" both'
check 0 'and those of unknown.h5 are of an unknown tokenizer: the two' unknown generate run.name=u --tokenizer small --prompt it --tokens 2
check 0 "and those of the training of runs/u/checkpoints/best.h5 are of an unknown tokenizer" "$WEFT" eval job.yaml run.name=u
check 0 'resuming from' "$WEFT" train job.yaml run.name=u train.steps=4
holds 'nothing is said of the very data' sh -c '! grep -q "unknown tokenizer" both'
check 0 '' "$WEFT" train job.yaml run.name=b data.train=bytes.h5 data.test=bytes-test.h5
check 64 'bytes.h5 was made with bytes as tokens: leave --tokenizer out' \
    "$WEFT" generate job.yaml run.name=b data.train=bytes.h5 --tokenizer small --prompt it
check 0 'It is' "$WEFT" generate job.yaml run.name=b data.train=bytes.h5 --prompt 'It is' --tokens 2
# A tokenizer of 256 tokens gives no bytes: prompt and output are numbers.
for n in $(seq 100); do printf '\101\0\102\0\377\0'; done >few.bin
check 0 '' ids few few --tokenizer sp.model
check 0 '' "$WEFT" train job.yaml run.name=few data.train=few.h5 data.test=few.h5
check 0 '65 66 ' "$WEFT" generate job.yaml run.name=few data.train=few.h5 --prompt 65,66 --tokens 2
# The word bytes is the tokenizer of a text's bytes: for an array, a text, and a model that does not say its own.
printf "$(od -An -v -tx1 text | tr -d '\n' | sed 's/ \(..\)/\\x\1\\0/g')" >text16.bin
check 0 'wrote of-bytes.h5' "$WEFT" data import tokens text16.bin --bits 16 --tokenizer bytes -o of-bytes.h5 --test of-bytes-test.h5
check 0 'tokenizer bytes' "$WEFT" data info of-bytes.h5
check 0 'go together: one tokenizer made the tokens of both' "$WEFT" data check bytes.h5 of-bytes-test.h5
check 65 'there are 256 in the vocabulary (0 to 255); correct --tokenizer' ids wide no --tokenizer bytes
check 0 'wrote text-bytes.h5' "$WEFT" data import text text --tokenizer bytes -o text-bytes.h5 --test no-bytes.h5
holds 'it is the same file' cmp text-bytes.h5 bytes.h5
check 64 'bytes: has no <|endoftext|>' "$WEFT" data import text text --tokenizer bytes --special -o no.h5
by_bytes() { "$WEFT" generate job.yaml run.name="$1" data.train="$2.h5" --prompt 'It is' --tokens 9 --tokenizer "${3:-bytes}"; }
check 0 'It is' by_bytes b bytes
check 64 '--tokenizer bytes has hash bytes, but train.h5 was made with small' by_bytes r train
check 0 'wrote' ids text16 plain --vocab 300
check 0 '' "$WEFT" train job.yaml run.name=p data.train=plain.h5 data.test=plain.h5
check 0 'It is' by_bytes p plain
check 65 '--tokenizer small has 1001 tokens, but the model of runs/p/checkpoints/best.h5 has 300' by_bytes p plain small
check 0 'wrote' ids text16 less --tokenizer small --vocab 300
check 0 '' "$WEFT" train job.yaml run.name=l data.train=less.h5 data.test=less.h5
check 0 'It is' by_bytes l less small # the same tokenizer, whose larger tokens do not occur
# torch.save writes a zip archive whose first member is NAME/data.pkl
printf 'PK\3\4\0\0\10\10\0\0%12s\0\0\0\0\12\0\0\0t/data.pklPK' '' >t.pt
check 65 "t.pt: is a file of torch.save, which only weft ckpt import reads; for data, load its tensor" "$WEFT" data import tokens t.pt -o no.h5
printf 'PK\3\4\0\0\10\10\0\0%12s\0\0\0\0\12\0\0\0t/data.npyPK' '' >t.npz
check 65 't.npz: is packed by zip' "$WEFT" data import tokens t.npz -o no.h5
cut -c 1-4000 small/vocab.json >another/vocab.json
check 65 'another/vocab.json: byte ' "$WEFT" data import text text --tokenizer another -o no.h5
check 66 'none' "$WEFT" data import text text --tokenizer none -o no.h5
check 66 'nothing' "$WEFT" data import text nothing --tokenizer small -o no.h5
check 64 'all.h5: is already there' "$WEFT" data import text text --tokenizer small -o all.h5
head -c 200 text.gz >cut.gz
check 65 'cut.gz' "$WEFT" data import text cut.gz --tokenizer small -o no.h5
# Errors of the output files are reported before a long text is encoded.
check 64 'all.h5: is already there' "$WEFT" data import text cut.gz --tokenizer small -o no.h5 --test all.h5
check 64 'give two paths' "$WEFT" data import text cut.gz --tokenizer small -o no.h5 --test no.h5
check 64 'between 0 and 1' "$WEFT" data import text cut.gz --tokenizer small -o no.h5 --test no-test.h5 --test-share 1
holds 'nothing is left of them' test ! -e no.h5 -a ! -e no.h5.tokens.part
finish
