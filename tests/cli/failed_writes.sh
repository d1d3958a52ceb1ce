#!/usr/bin/env bash
# System calls that change a file fail, one after the other, while HDF5 writes. Whatever HDF5 leaves unfinished, weft ends with its exit
# code 74 or continues, and no file with a final name is truncated. Needs strace.
. "$(dirname "$0")/common.bash"
if ! strace -f -o /dev/null true 2>/dev/null; then
    echo '  skipped: strace is not there or may not trace'
    exit 0
fi
{ printf '\0\0\010\003\0\0\0\074\0\0\0\010\0\0\0\010'; head -c $((60 * 64)) "$WEFT"; } >x.idx
{ printf '\0\0\010\001\0\0\0\074'; for i in $(seq 60); do printf "\\00$((i % 3))"; done; } >y.idx
check 0 '' "$WEFT" data import idx x.idx y.idx -o data.h5
cat >job.yaml <<'X'
run: {name: r}
model: {name: mlp, hidden: [8]}
data: {train: data.h5, test: data.h5}
train: {steps: 4, batch: 12, micro_batch: 6, threads: 1}
checkpoint: {every_steps: 2, background: false}
X
check 0 '' timeout 60 "$WEFT" train job.yaml
last=runs/r/checkpoints/step-00000004.h5
check 0 '' "$WEFT" ckpt export $last -o p.safetensors
good=$(cksum <"$last")

# broken CALL ERROR NUMBER COMMAND... : makes the call with this number fail; the command's exit code is in rc.
broken() {
    rc=0
    timeout -k 1 60 strace -f -qq -y -o trace -e "trace=$1" -e "inject=$1:error=$2:when=$3" "${@:4}" >out 2>&1 </dev/null || rc=$?
}
# each CALL MOST CODES DESCRIPTION COMMAND... : makes the 1st to MOST-th call fail; the exit code must be one of CODES. An import that
# ends with 0 has written the same bytes as an undisturbed one.
each() {
    local n
    rm -f new.h5*
    case $4 in data*) "${@:5}" >out 2>&1 && mv new.h5 whole.h5 ;; esac
    for n in $(seq "$2"); do
        rm -rf new.h5* runs/new
        broken "$1" $([ $((n % 2)) = 1 ] && echo ENOSPC || echo EIO) "$n" "${@:5}"
        if ! grep -q INJECTED trace; then break; fi
        case " $3 " in
        *" $rc "*) passed=$((passed + 1)) ;;
        *) failed=$((failed + 1)); echo "FAILED: $1 number $n of $4: exit code $rc"; sed 's/^/  | /' out ;;
        esac
        if [ $rc != 0 ] && ! grep -q 'error:' out; then failed=$((failed + 1)); echo "FAILED: $1 number $n of $4: no message"; fi
        case $rc$4 in 0data*) cmp new.h5 whole.h5 || { failed=$((failed + 1)); echo "FAILED: $1 number $n of $4: other bytes, exit code 0"; } ;; esac
        if [ -e new.h5 ] && [ "$4" != train ]; then "$WEFT" "${check[@]}" new.h5 >out 2>&1 || { failed=$((failed + 1)); echo "FAILED: $1 number $n of $4: a torn file"; }; fi
    done
    holds "$1 of $4 was met" test "$n" -gt 1
}
check=(data check)
each ftruncate 4 '74' 'data import idx' "$WEFT" data import idx x.idx y.idx -o new.h5
each pwrite64 12 '0 74' 'data import idx' "$WEFT" data import idx x.idx y.idx -o new.h5
printf 'columns:\n  y: label\n  t: number\n  c: category\n' >schema.yaml
{ echo y,t,c; for i in $(seq 40); do echo "$((i % 2)),$i,w$i"; done; } >rows.csv
each pwrite64 12 '0 74' 'data import csv' "$WEFT" data import csv rows.csv --schema schema.yaml -o new.h5
each fsync 3 '74' 'data import idx' "$WEFT" data import idx x.idx y.idx -o new.h5
each ftruncate 4 '74' 'data import text' "$WEFT" data import text job.yaml -o new.h5
each ftruncate 4 '74' 'data import hdf5' "$WEFT" data import hdf5 data.h5 -o new.h5
check=(ckpt check)
each ftruncate 4 '74' 'ckpt import' "$WEFT" ckpt import p.safetensors -o new.h5
each pwrite64 12 '0 74' 'ckpt import' "$WEFT" ckpt import p.safetensors -o new.h5
each pwrite64 12 '0 74' 'ckpt shrink' "$WEFT" ckpt shrink $last --method l1 --sparsity 0.5 -o new.h5
each ftruncate 8 '0 74' train "$WEFT" train job.yaml run.name=new
each pwrite64 24 '0 74' train "$WEFT" train job.yaml run.name=new
each fsync 12 '0 74' train "$WEFT" train job.yaml run.name=new
# Closing fails for each file that a run writes until its first checkpoint: the exit code fits, a message appears if bytes may be lost,
# and there is a whole checkpoint at the end. The numbers of the calls are about those of an undisturbed run.
rm -rf runs/new
broken close EIO 65535 "$WEFT" train job.yaml run.name=new
closes=$(awk 'NR == 1 { main = $1 } $1 == main { n++ } $1 == main && /runs\/new\/(config|checkpoints\/step-0*2.h5)/ { print n }' trace)
met=0 said=0
for n in $(seq "$(head -1 <<<"$closes")" "$(tail -1 <<<"$closes")"); do
    rm -rf runs/new
    broken close EIO "$n" "$WEFT" train job.yaml run.name=new
    met=$((met + $(grep -c 'runs/new/.*INJECTED' trace || true)))
    said=$((said + $(grep -c 'runs/new/.*Input/output error' out || true)))
    case $rc in
    0) check 0 'to the bit' "$WEFT" ckpt diff $last runs/new/checkpoints/step-00000004.h5 ;;
    *) holds "close $n ends the run with 74 ($rc), and says why" test $rc = 74 -a "$(grep -c 'error: .*Input/output error' out)" = 1 ;;
    esac
done
holds "$met closes of the run's files have failed, and $said messages name them" test "$met" -ge 8 -a "$said" -ge 4
# Later saves of a run succeed after a failed one: HDF5's remaining state does them no harm.
for n in 1 2 3; do
    rm -rf runs/new
    broken ftruncate ENOSPC $n "$WEFT" train job.yaml run.name=new
    case $rc in
    0) check 0 'equal' "$WEFT" ckpt diff $last runs/new/checkpoints/step-00000004.h5 ;;
    *) holds "ftruncate $n ends the run with 74 ($rc)" test $rc = 74; check 0 '' timeout 60 "$WEFT" train job.yaml run.name=new ;;
    esac
done
holds 'what was there is as it was' test "$good" = "$(cksum <"$last")"
finish
