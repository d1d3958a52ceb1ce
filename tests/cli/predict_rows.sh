#!/usr/bin/env bash
# weft predict for tables: its output gives the loss of weft eval, for data sets and for text, with labels and without, whatever servers
# the training had; ids without a trained row; classes; refusals.
# usage: predict_rows.sh     (WEFT=build/weft)
. "$(dirname "$0")/common.bash"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
awk 'BEGIN { srand(5); for (i = 0; i < 300; ++i) { c = int(rand() * 9)
    printf "%s,%d,%s,%.3f\n", rand() < 0.1 + c / 10 ? "yes" : "no", i % 7, c == 4 ? "" : "word " c, 9 * rand() } }' >rows.csv
head -200 rows.csv >train.csv
{ tail -100 rows.csv | head -99; echo 'no,3,a word that training has not seen,1'; } >test.csv
cat >rows.yaml <<'Y'
header: false
columns:
  answer: {type: label, one: yes, zero: no}
  n:      {type: number, scale: standard}
  word:   {type: category, ids: sorted}
  x:      {type: number, transform: log}
  bucket: {type: category, of: x, hash: 50}
Y
cat >job.yaml <<'Y'
run: {seed: 1}
model: {name: wide_deep, width: 4, hidden: [8]}
data: {train: train.h5, test: test.h5}
train: {epochs: 3, batch: 50, micro_batch: 25, threads: 1, loss: sigmoid}
optim: {name: adagrad, lr: 0.1}
Y
check 0 'wrote test.h5' "$WEFT" data import csv train.csv --schema rows.yaml -o train.h5 --test test.h5 --test-files test.csv --threads 1
check 0 'done after' timeout -k 5 60 mpirun --oversubscribe --bind-to none -n 3 "$WEFT" train job.yaml grid.servers=1
check 0 '"eval_loss"' "$WEFT" eval job.yaml --json
loss=$(sed -n 's/.*"eval_loss": \([0-9.]*\).*/\1/p' out)
predict() { "$WEFT" predict job.yaml "$@"; }
check 0 '' predict test.h5; cp out set.out
holds 'a line a row' [ "$(wc -l <set.out)" = 100 ]
own=$(paste -d, set.out test.csv | awk -F, '{ sum -= log($2 == "yes" ? $1 : 1 - $1) } END { printf "%.9f", sum / NR }')
holds "the loss of what is predicted, $own, is that of weft eval, $loss" awk "BEGIN { d = $own - $loss; exit !(d < 1e-7 && d > -1e-7) }"
check 0 '' predict test.csv; holds 'text is what its data set is' cmp out set.out
cut -d, -f2- test.csv | gzip >plain.csv.gz
check 0 '' predict plain.csv.gz; holds 'labels are not needed' cmp out set.out
cat test.csv test.csv test.csv >three.csv
check 0 'wrote three.h5' "$WEFT" data import csv train.csv --schema rows.yaml -o thrice.h5 --test three.h5 --test-files three.csv --threads 1
check 0 '' predict three.h5; sed -n '255,258p' out >some
check 0 '' predict three.h5 --samples 254-257; holds 'four rows, of two batches' cmp out some
check 0 '"file": "three.h5", "row": 257, "probability": 0.' predict three.h5 --samples 257 --json
check 64 '--samples: chooses samples of data sets, and test.csv is a text' predict test.csv --samples 1
check 0 '"file": "test.csv", "row": 99, "probability": 0.' predict test.csv --json
check 0 '' predict test.csv test.h5 grid.mode=geo grid.servers=2; holds 'servers that trained do not count' cmp out <(cat set.out set.out)
check 0 'loss' "$WEFT" eval job.yaml grid.mode=geo optim.name=sgd
check 0 'loss' "$WEFT" eval job.yaml grid.mode=stale grid.staleness=2
check 0 '' "$WEFT" train job.yaml run.name=softmax train.loss=softmax
check 0 ': ' predict test.csv run.name=softmax train.loss=softmax --json --top 1
holds 'classes have names' grep -q '"row": 0, "classes": \[{"class": "\(no\|yes\)", "index": [01], "probability": 0\.[5-9]' out

sed '7s/^\([a-z]*\),[0-9]*/\1,many/' test.csv >bad.csv
check 65 "bad.csv: line 7, column 2 (n): 'many' is no number" predict bad.csv
holds 'rows before it are answered' [ "$(wc -l <out)" = 6 ]
cut -d, -f1-2 test.csv >narrow.csv
check 65 'narrow.csv: line 1: its first record has 2 values' predict narrow.csv
sed 's/bucket:/pail:/' rows.yaml >other.yaml
check 65 'train.h5: was not imported with the schema other.yaml: its fields differ' predict test.csv --schema other.yaml
check 0 '' predict test.csv --schema rows.yaml; holds 'the schema may be named' cmp out set.out
check 66 'none.csv' predict none.csv
grep -v bucket rows.yaml >fewer.yaml
check 0 'wrote fewer.h5' "$WEFT" data import csv test.csv --schema fewer.yaml -o fewer.h5 --threads 1
check 65 'fewer.h5: samples have 1 fields of ids, but those of train.h5 have 2' predict fewer.h5
check 65 'fewer.h5: samples have 1 fields of ids, but those of train.h5 have 2' "$WEFT" eval job.yaml data.test=fewer.h5
check 0 'wrote more.h5' "$WEFT" data import csv rows.csv --schema rows.yaml -o more.h5 --threads 1
check 65 'more.h5: is not the data set that the checkpoint was trained on' predict test.csv data.train=more.h5
# another vocabulary: the same number of other words; more words; in a list
head -60 rows.csv | sed 's/word 0/word new/' >own.csv
check 0 'wrote own.h5' "$WEFT" data import csv own.csv --schema rows.yaml -o own.h5 --threads 1
other='own.h5: its ids (below 60; 0: any) are from another vocabulary than those of train.h5 (below 60); import both in one call'
check 65 "$other" predict own.h5
check 65 "$other" "$WEFT" eval job.yaml data.test=own.h5
check 65 "$other" "$WEFT" train job.yaml run.name=other data.test=own.h5
holds 'nothing was trained' test ! -e runs/other
check 65 'their vocabularies differ' "$WEFT" train job.yaml run.name=other 'data.train=[train.h5, own.h5]'
check 65 'own.h5: its ids (below 60; 0: any) are from another vocabulary than those that runs/job/' "$WEFT" eval job.yaml data.train=own.h5 data.test=own.h5
check 0 'wrote few.h5' "$WEFT" data import csv test.csv --schema rows.yaml -o few.h5 --threads 1
check 65 'few.h5: its ids (below 61; 0: any) are from another vocabulary than those of train.h5 (below 60)' "$WEFT" eval job.yaml data.test=few.h5
# the hash of the vocabularies is known on one side only
LC_ALL=C sed 's/vocabulary_hash/vocabulary_none/g' test.h5 >unknown.h5
only='cannot check that its ids have the vocabulary of'
check 0 "unknown.h5: $only train.h5, since only train.h5 has the vocabulary's hash" "$WEFT" data check train.h5 unknown.h5
check 0 "unknown.h5: $only train.h5" predict unknown.h5
check 0 "unknown.h5: $only train.h5" "$WEFT" eval job.yaml data.test=unknown.h5
check 0 "unknown.h5: $only train.h5" "$WEFT" train job.yaml run.name=known 'data.train=[train.h5,unknown.h5]'
grep -v '^data' job.yaml >bare.yaml
check 0 "unknown.h5: $only the training of runs/job/checkpoints/best.h5, since only the checkpoint" "$WEFT" eval bare.yaml run.name=job data.test=unknown.h5
check 0 '' "$WEFT" eval bare.yaml run.name=job data.test=test.h5
holds 'nothing is said of two that are known' sh -c '! grep -q "cannot check" both'
# hashed ids have no vocabulary
sed 's/ids: sorted/hash: 20/' rows.yaml >hash.yaml
for set in train test; do check 0 'wrote' "$WEFT" data import csv $set.csv --schema hash.yaml -o hash-$set.h5 --threads 1; done
check 0 'done after' "$WEFT" train job.yaml run.name=hash data.train=hash-train.h5 data.test=hash-test.h5
check 0 'loss' "$WEFT" eval job.yaml run.name=hash data.train=hash-train.h5 data.test=hash-test.h5
# columns that two imports have standardised differently, and columns with other names
alike='were transformed, scaled or standardised in another way than those of hash-train.h5'
check 0 "hash-test.h5: its columns $alike" "$WEFT" data check hash-train.h5 hash-test.h5
holds 'they are not said to go together' sh -c '! grep -q "go together" both'
check 0 "hash-test.h5: its columns $alike" predict run.name=hash data.train=hash-train.h5 hash-test.h5
check 0 "hash-test.h5: its columns were transformed, scaled or standardised by its import, but another import" \
    "$WEFT" eval job.yaml run.name=hash data.train=hash-test.h5 data.test=hash-test.h5
check 0 '' "$WEFT" eval job.yaml
holds 'nothing is said of one import' sh -c '! grep -q warning both'
# the same column raw, by log, by a range, and standardised; [0, 1] changes nothing
numbers() { printf 'header: false\nothers: ignore\ncolumns:\n  answer: {type: label, one: yes, zero: no, at: 1}\n  n: {type: number, at: 2%s}\n' "$1"; }
numbers '' >raw.yaml; numbers ', transform: log' >log.yaml; numbers ', scale: [1, 4]' >range.yaml
numbers ', scale: standard' >standard.yaml; numbers ', scale: [0, 1]' >same.yaml
for is in raw log range standard same; do
    check 0 '' "$WEFT" data import csv train.csv --schema $is.yaml -o $is.h5 --threads 1
done
for pair in 'raw log' 'raw range' 'raw standard' 'standard raw' 'standard log' 'range log'; do
    check 0 "${pair#* }.h5: its columns were transformed, scaled or standardised in another way than those of ${pair% *}.h5" \
        "$WEFT" data check ${pair% *}.h5 ${pair#* }.h5
    holds "$pair do not go together" sh -c '! grep -q "go together" both'
done
check 0 'raw.h5 and same.h5 go together' "$WEFT" data check raw.h5 same.h5
check 0 'log.h5 and log.h5 go together' "$WEFT" data check log.h5 log.h5
sed 's/wide_deep, width: 4/mlp/; s/adagrad/adam/' job.yaml >one.yaml
one() { "$WEFT" "$1" one.yaml "${@:2}"; }
check 0 'raw.h5: its columns were transformed' one train data.train=standard.h5 data.test=raw.h5
check 0 'raw.h5: its columns were transformed' one train run.name=list 'data.train=[standard.h5,raw.h5]' data.test=standard.h5
check 0 'raw.h5: its columns were transformed' one predict data.train=standard.h5 raw.h5
said='raw.h5: its columns were transformed, scaled or standardised by its import, but another import for the training of'
check 0 "$said" one eval data.train=raw.h5 data.test=raw.h5
check 0 "$said" one train run.name=more train.epochs=4 data.train=raw.h5 data.test=raw.h5 checkpoint.resume="$(at one 12)"
check 0 "model.init_from: $said" one train run.name=init data.train=raw.h5 data.test=raw.h5 model.init_from=runs/one/checkpoints/best.h5
# words may have zero bytes
sed 's/word /word_/' train.csv | tr _ '\0' >zero.csv
check 0 'wrote zero.h5' "$WEFT" data import csv zero.csv --schema rows.yaml -o zero.h5 --threads 1
check 0 'done after' "$WEFT" train job.yaml run.name=zero data.train=zero.h5 data.test=zero.h5
check 0 '' predict run.name=zero data.train=zero.h5 zero.h5; cp out zero.out
check 0 '' predict run.name=zero data.train=zero.h5 zero.csv; holds 'words with zero bytes are found' cmp out zero.out
# a text that has neither the label nor a column after it
sed 's/at: 2/at: 5/; s/at: 1/at: 4/' raw.yaml >far.yaml
cut -d, -f1-2 test.csv >narrow.csv
check 65 "narrow.csv: line 1: its first record has 2 values, but the schema's column n is the 5th" one predict data.train=raw.h5 narrow.csv --schema far.yaml
sed 's/  n: /  m: /' hash.yaml >named.yaml
check 0 'wrote' "$WEFT" data import csv train.csv --schema named.yaml -o named.h5 --threads 1
named="number 0 of its columns is 'm', but 'n' in hash-train.h5"
check 65 "named.h5: $named" "$WEFT" data check hash-train.h5 named.h5
check 65 "named.h5: $named" "$WEFT" train job.yaml run.name=other 'data.train=[hash-train.h5,named.h5]' data.test=hash-test.h5
check 65 "named.h5: its columns and fields have, in their order, 'm' as number 0, but 'n' as number 0 for the training of" \
    "$WEFT" eval job.yaml run.name=hash data.train=named.h5 data.test=named.h5
check 0 "model.init_from: named.h5: its columns and fields have, in their order, 'm' as number 0" "$WEFT" train job.yaml run.name=named data.train=named.h5 \
    data.test=named.h5 model.init_from=runs/hash/checkpoints/best.h5
# one column in another unit: metres and kilometres next to a column of much larger numbers; `rare` is 1 in one row of forty
units() { awk -v seed=$2 -v rows=$3 -v to=$4 -v first=$5 'BEGIN { srand(seed); print "answer,large,far,rare,same"; for (i = 0; i < rows; ++i)
    printf "%s,%d,%.6g,%d,%.3f\n", i % 3 ? "no" : "yes", 1e6 * rand(), (first + 2000 * rand()) * to, rand() < 1 / 40, 5 + rand() }' >$1.csv; }
printf 'columns:\n  answer: {type: label, one: yes, zero: no}\n  large: number\n  far: number\n  rare: number\n  same: number\n' >units.yaml
units metres 1 300 1 0; units again 2 90 1 0; units km 3 120 0.001 0; units nine 4 9 0.001 0; units near 5 100 1 900
for set in metres again km nine near; do check 0 '' "$WEFT" data import csv $set.csv --schema units.yaml -o $set.h5 --threads 1; done
of() { awk -F, -v c=$2 'NR > 1 { v = $c + 0; if (NR == 2 || v < a) a = v; if (NR == 2 || v > b) b = v } END { printf "%.6g to %.6g", a, b }' $1.csv; }
far="its column 'far' is $(of km 3), mean"
check 0 "km.h5: $far" "$WEFT" data check metres.h5 km.h5
holds 'they do not go together' sh -c '! grep -q "go together" both'
check 0 "nine.h5: its column 'far' is $(of nine 3), mean" "$WEFT" data check metres.h5 nine.h5
check 0 "again.h5: its column 'far' is $(of again 3), mean" "$WEFT" data check km.h5 again.h5
check 0 'metres.h5 and again.h5 go together' "$WEFT" data check metres.h5 again.h5
check 0 'metres.h5 and near.h5 go together' "$WEFT" data check metres.h5 near.h5
check 0 "km.h5: $far" one train run.name=unit data.train=metres.h5 data.test=km.h5
check 0 '' one train run.name=unit run.fresh=true data.train=metres.h5 data.test=again.h5
holds 'nothing is said of one unit' sh -c '! grep -q warning both'
check 0 "km.h5: $far" one train run.name=unit2 'data.train=[metres.h5,km.h5]' data.test=again.h5
then="and that of the training of runs/unit/checkpoints/best.h5 is"
check 0 "km.h5: $far" one eval run.name=unit data.train=km.h5 data.test=km.h5
holds 'it is compared with the training' grep -q "$then" both
check 0 '' one eval run.name=unit data.train=metres.h5 data.test=again.h5
holds 'nothing is said of the same unit' sh -c '! grep -q warning both'
for rows in km.h5 km.csv; do
    check 0 "$rows: $far" one predict run.name=unit data.train=metres.h5 $rows
    holds 'it is compared with the training' grep -q "$then" both
done
check 0 '' one predict run.name=unit data.train=metres.h5 again.csv
holds 'nothing is said of more rows' sh -c '! grep -q warning both'
check 0 "km.h5: $far" one train run.name=unit3 train.epochs=4 data.train=km.h5 data.test=km.h5 checkpoint.resume="$(at unit 18)"
check 0 "model.init_from: km.h5: $far" one train run.name=unit4 data.train=km.h5 data.test=km.h5 model.init_from=runs/unit/checkpoints/best.h5
# a table that is not weft's has no names
if command -v h5copy >/dev/null; then
    for set in metres km; do rm -f plain-$set.h5; h5copy -i $set.h5 -o plain-$set.h5 -s /dense -d /x; h5copy -i $set.h5 -o plain-$set.h5 -s /y -d /y; done
    check 0 'plain-km.h5: its column number 1 (from 0) is' "$WEFT" data check plain-metres.h5 plain-km.h5
else
    echo "  skipped: tables without names: there is no h5copy"
fi
check 65 'hash-test.h5: its ids (below 70; 0: any)' "$WEFT" eval job.yaml data.test=hash-test.h5
check 0 'wrote clicks.h5' "$WEFT" data make criteo-like -o clicks.h5 --samples 20 --threads 1
check 65 'clicks.h5: samples are' predict clicks.h5
finish
