#!/usr/bin/env bash
# Tables of text: importing the Adult data, the messages about them, and refusals, which leave no file.
# usage: csv.sh     (WEFT=build/weft)
here=$(cd "$(dirname "$0")/../.." && pwd)
. "$(dirname "$0")/common.bash"
adult=$here/datasets/adult
csv() { "$WEFT" data import csv "$@"; }

check 0 'wrote test.h5' csv "$adult/adult.data.gz" --schema "$adult/adult.yaml" -o train.h5 --test test.h5 --test-files "$adult/adult.test.gz"
check 0 'fields    10: workclass, education' "$WEFT" data info train.h5
holds 'as many with the larger income as there are' grep -q '>50K  *7841 samples' out
check 0 '"id_rows": 330' "$WEFT" data info test.h5 --json
check 0 'good, 16281 samples' "$WEFT" data check test.h5
gunzip -c "$adult/adult.data.gz" | head -2000 >a.csv
gunzip -c "$adult/adult.data.gz" | tail -n +2001 >b.csv
sed 's/, scale: standard//' "$adult/adult.yaml" >raw.yaml
check 0 '' csv "$adult/adult.data.gz" --schema raw.yaml -o raw.h5 --threads 1
check 0 'wrote joined.h5' csv a.csv b.csv --schema raw.yaml -o joined.h5 --threads 3
holds 'two files are one' cmp joined.h5 raw.h5
check 64 'already there' csv a.csv --schema "$adult/adult.yaml" -o joined.h5
check 0 '' csv a.csv --schema "$adult/adult.yaml" -o share.h5 --test share-test.h5 --test-share 0.2
check 0 '400 samples' "$WEFT" data info share-test.h5
check 0 'good, 1600 samples' "$WEFT" data check share.h5

check 64 'needs --test OUT' csv a.csv --schema "$adult/adult.yaml" -o no.h5 --test-files b.csv
check 64 '--schema YAML is missing' csv a.csv -o no.h5
sed '7s/, <=50K/, poor/' a.csv >label.csv
check 65 "label.csv: line 7, column 15 (income): label 'poor' is neither '>50K' (1) nor '<=50K' (0)" csv label.csv --schema "$adult/adult.yaml" -o no.h5
sed '9s/^[0-9]*, /"/' a.csv >quote.csv
check 65 'quote.csv: line 9, column 1 (age): a quote is opened here and not closed' csv quote.csv --schema "$adult/adult.yaml" -o no.h5
cut -d, -f1-14 a.csv >short.csv
check 65 "short.csv: line 1: its first record has 14 values, but the schema's column income is the 15th" csv short.csv --schema "$adult/adult.yaml" -o no.h5
printf 'y,w\n1,a\0c\n0,b\0\n' >zero.csv
printf 'header: true\ncolumns: {y: label, w: category}\n' >zero.yaml
check 65 'zero.csv: line 3, column 2 (w): a value ends with a zero byte' csv zero.csv --schema zero.yaml -o no.h5
sed 's/: category/: {type: category, hash: 100}/' zero.yaml >zero-hash.yaml
check 0 'wrote zero.h5' csv zero.csv --schema zero-hash.yaml -o zero.h5
sed 's/separator: ","/header: true/; /^header: false/d' "$adult/adult.yaml" >header.yaml
check 65 'a.csv: line 1: the header has no column age' csv a.csv --schema header.yaml -o no.h5
sed 's/age: .*/age: {type: numbr}/' "$adult/adult.yaml" >typo.yaml
check 78 'typo.yaml:9:15: expected one of: ignore, label, number, category' csv a.csv --schema typo.yaml -o no.h5
check 66 'missing.yaml' csv a.csv --schema missing.yaml -o no.h5

# a layer that is too small for the data is named: films with four genres
mkdir ml
for i in $(seq 40); do printf '%d\t%d\t%d\t%d\n' "$i" $((i % 2 + 1)) $((i % 5 + 1)) "$i"; done >ml/u.data
printf '1|A|d||u|1|1|1|1%s\n2|B|d||u|1|0|0|0%s\n' "$(printf '|0%.0s' $(seq 15))" "$(printf '|0%.0s' $(seq 15))" >ml/u.item
check 0 'wrote ml.h5' "$WEFT" data import movielens ml -o ml.h5
cat >concat.yaml <<'Y'
model: {layers: [bag: {width: 2, mode: concat, ids: 3}, dense: {width: 1}]}
data: {train: ml.h5}
train: {epochs: 1, batch: 20, threads: 1, loss: sigmoid}
Y
check 65 'has 4 ids in field 2, but `ids` of the layer is 3: raise `ids` in model.layers' "$WEFT" train concat.yaml

# the input is not overwritten through any of its names
ln a.csv same.csv
cp a.csv before.csv
for out in a.csv same.csv; do check 64 "$out: is one of the files that are read" csv a.csv --schema raw.yaml -o "$out" --force; done
check 64 'same.csv: is one of the files' csv b.csv --schema raw.yaml -o no.h5 --test same.csv --test-files a.csv --force
check 64 'joined.h5: is one of the files' "$WEFT" data import hdf5 joined.h5 --x /dense -o joined.h5 --force
check 64 'a.csv: is one of the files' "$WEFT" data import text a.csv -o a.csv --force
check 64 'a.csv: is one of the files' "$WEFT" data import idx b.csv a.csv -o a.csv --force
check 64 'a.csv: is one of the files' "$WEFT" data import cifar a.csv -o a.csv --force
check 64 'ml/u.data: is one of the files' "$WEFT" data import movielens ml/u.data -o ml/u.data --force
check 64 'ml/u.data: is one of the files' "$WEFT" data import movielens ml -o ml/u.data --force
check 64 'raw.yaml: is one of the files' csv a.csv --schema raw.yaml -o ./raw.yaml --force
check 64 'concat.yaml: is one of the files' "$WEFT" plan concat.yaml --svg concat.yaml
check 64 'ml.h5: is one of the files' "$WEFT" plan concat.yaml data.train=ml.h5 --svg ml.h5
check 64 'concat.yaml: is one of the files' "$WEFT" sbatch concat.yaml -o concat.yaml --force
holds 'it is as it was' cmp a.csv before.csv

holds 'nothing is left half written' test -z "$(ls no.h5* ./*.part 2>/dev/null)"
# 65,000 columns: no verb compares each name with all others (that took 12 s), and a checkpoint holds the range of each column
wide() { awk -v seed=$1 -v scale=$2 'BEGIN { srand(seed); printf "y"; for (i = 0; i < 65000; ++i) printf ",column_%d", i
    for (r = 0; r < 8; ++r) { printf "\n%d", r % 2; for (i = 0; i < 65000; ++i) printf ",%.3f", (5 + rand()) * (i == 64321 ? scale : 1) } print "" }'; }
wide 1 1 >wide.csv
wide 2 1000 >metres.csv
{ printf 'columns:\n  y: label\n'; seq -f '  column_%.0f: number' 0 64999; } >wide.yaml
quick() { (ulimit -t 5 && exec "$WEFT" "$@"); }
check 0 'wrote wide.h5' quick data import csv wide.csv --schema wide.yaml -o wide.h5 --threads 1
check 0 'wrote metres.h5' quick data import csv metres.csv --schema wide.yaml -o metres.h5 --threads 1
check 0 "metres.h5: its column 'column_64321' is 5" quick data check wide.h5 metres.h5
cat >wide_model.yaml <<'Y'
model: {name: mlp, hidden: [1]}
data: {train: wide.h5, test: wide.h5}
train: {epochs: 1, batch: 8, micro_batch: 8, threads: 1}
Y
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
check 0 'done after' "$WEFT" train wide_model.yaml
check 0 "metres.h5: its column 'column_64321' is 5" "$WEFT" eval wide_model.yaml data.train=metres.h5 data.test=metres.h5
holds 'only this column differs' sh -c '! grep -q "more columns" both'
sed 's/,y$//; 1s/column_64999/column_0/' wide.csv >twice.csv
check 65 'twice.csv: line 1, column 65001: the header has column column_0 twice' quick data import csv twice.csv --schema wide.yaml -o no.h5 --threads 1
sed '$s/.*/  column_0: number/' wide.yaml >twice.yaml
check 78 "twice.yaml:65002:3: 'column_0' is given twice, first in line" quick data import csv wide.csv --schema twice.yaml -o no.h5
tail -n 8 wide.csv >bare.csv
{ echo 'header: false'; cat wide.yaml; } >bare.yaml
check 0 'wrote bare.h5' quick data import csv bare.csv --schema bare.yaml -o bare.h5 --threads 1
check 0 'wide.h5 and bare.h5 go together' quick data check wide.h5 bare.h5
sed 's/column_64999: number/column_64999: {type: number, at: 8}/' bare.yaml >place.yaml
check 78 'another column has this position: column_6' quick data import csv bare.csv --schema place.yaml -o no.h5
{ printf 'columns:\n  y: label\n  column_0: number\n'; seq -f '  view_%.0f: {type: number, of: column_0}' 0 59999; echo 'others: ignore'; } >views.yaml
check 0 'wrote views.h5' quick data import csv wide.csv --schema views.yaml -o views.h5 --threads 1
check 0 'columns   60001: column_0, view_0' quick data info views.h5
finish
