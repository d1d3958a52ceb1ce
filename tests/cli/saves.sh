#!/usr/bin/env bash
# Runs are stopped or killed while tensors are sent for a checkpoint, which takes many steps if replicas or tensor-parallel groups have
# parts of them. A run resumed from the newest checkpoint, or from the one before if that is damaged, ends with the same bits.
# cores: 1
. "$(dirname "$0")/images.bash"
. "$(dirname "$0")/common.bash"
make_images
rm images.h5
noise_idx 352 28 10 images.h5 # 22 steps make an epoch
# lenet has enough tensors that sending them takes several steps
sed -i 's/^model:.*/model: {name: lenet}/' images.yaml
steps=46
# begin NAME WORDS... : starts four ranks in the background, with a checkpoint every 20 steps
begin() {
    local name=$1
    shift
    background log "$WEFT" train -n 4 images.yaml run.name="$name" run.dir=runs train.steps=$steps train.batch=16 checkpoint.every_steps=20 \
        checkpoint.keep=0 "$@"
    run=$!
}
# Runs are stopped at the end of an epoch, two or four steps after a checkpoint has begun: a hook waits there while the file hold exists.
cat >hook.sh <<'SH'
read -r event
case $event in *"\"step\": $1,"*) : >held; while [ -e hold ]; do sleep 0.02; done;; esac
SH
hold_at() { hold=(run.hook="sh hook.sh $1" run.hook_s=200 run.hook_on=[epoch] run.hook_wait=true); : >hold; rm -f held; }
last() { echo "runs/$1/checkpoints/step-000000$steps.h5"; }
# one byte in the middle of the tensors is changed; the last half is cut off
altered() {
    local at byte
    at=$(($(stat -c %s "$1") / 2))
    byte=$(od -An -tu1 -j "$at" -N 1 "$1")
    printf '%b' "\\x$(printf %02x $((255 - byte)))" | dd of="$1" bs=1 seek="$at" conv=notrunc 2>/dev/null
}
halved() { truncate -s $(($(stat -c %s "$1") / 2)) "$1"; }
for grid in "grid.zero=0" "grid.zero=1" "grid.zero=2" "grid.zero=3" "grid.tp=2 grid.zero=1"; do
    read -ra words <<<"$grid"
    begin "quiet" "${words[@]}"
    holds "$grid: a run that nothing happens to" wait "$run"
    hold_at 22
    begin stopped "${words[@]}" "${hold[@]}"
    holds "$grid: it waits at the step" soon test -e held
    rc=0
    kill -TERM "$(rank_pid 'images.yaml run.name=stopped ' 0)"; rm hold # a signal to weft could reach the ranks after their last step
    wait "$run" || rc=$?
    holds "$grid: it stops with 75, not $rc" test "$rc" = 75
    hold_at 44
    begin killed "${words[@]}" "${hold[@]}"
    holds "$grid: it waits at the step" soon test -e held
    kill -KILL "$(rank_pid 'images.yaml run.name=killed ' 3)"; rm hold
    ! wait "$run" || true
    for name in stopped killed; do
        begin "$name" "${words[@]}"
        holds "$grid: $name: it goes on" wait "$run"
        holds "$grid: $name: from a checkpoint" grep -q 'resuming from' log
        check 0 '' "$WEFT" ckpt diff "$(last quiet)" "$(last "$name")"
        check 0 '' "$WEFT" ckpt check "runs/$name"
        holds "$grid: $name: no orphan" test -z "$(ls runs/$name/checkpoints/*.part 2>/dev/null)"
    done
    for damage in altered halved; do
        rm "$(last killed)"
        $damage runs/killed/checkpoints/step-00000040.h5
        begin killed "${words[@]}"
        holds "$grid: $damage: it goes on" wait "$run"
        holds "$grid: $damage: from the one before" grep -q 'resuming from.*step-00000020' log
        check 0 '' "$WEFT" ckpt diff "$(last quiet)" "$(last killed)"
        check 0 '' "$WEFT" ckpt check runs/killed
    done
    rm -rf runs
done
finish
