#!/usr/bin/env bash
# A wrong configuration ends in exit 78 with file, line and column, at once, without MPI, whatever starts it.
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
    check 78 'no training data' "$WEFT" $verb nodata.yaml
    check 78 "command line: train.batch=1e3: '1e3' is not a whole number" "$WEFT" $verb good.yaml train.batch=1e3
    check 78 'command line: grid.tp=0: 0 is out of range' "$WEFT" $verb good.yaml grid.tp=0
    check 66 'missing.yaml: cannot open' "$WEFT" $verb missing.yaml
done
# what no mode, or another one, has a use for
check 78 'grid.staleness=3: only grid.mode: stale has a use for it' "$WEFT" train good.yaml grid.staleness=3
check 78 'grid.staleness=0: only' "$WEFT" train good.yaml grid.staleness=0 grid.mode=geo
check 78 'grid.geo_steps=3: only grid.mode: stale, geo or async has' "$WEFT" train good.yaml grid.geo_steps=3
check 66 'none.h5' "$WEFT" train good.yaml grid.geo_steps=100 grid.staleness=1
check 78 'run.order_log is set, too' "$WEFT" train good.yaml run.order_log=a run.replay=b
holds 'nothing was written' test ! -e runs

# Before MPI: with -n 2 no mpirun is needed to find the fault, and under a launcher one rank alone tells it.
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

# At once: no library that a run needs is set up for it, so that it takes little more processor time than the version.
spent() { # WORDS... : hundredths of a second of 20 calls
    local TIMEFORMAT='%U %S'
    { time for _ in $(seq 20); do "$WEFT" "$@" >/dev/null 2>&1 || true; done; } 2>&1 | awk '{ print int(100 * ($1 + $2)) }'
}
check 78 '' "$WEFT" train typo.yaml
took=$(spent train typo.yaml)
holds "quick: $took hundredths of a second for 20 calls" test "$took" -lt $(($(spent help) * 10 + 100))
finish
