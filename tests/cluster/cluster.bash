# Sourced by the tests of this folder, which set `hosts` first: runs the test again on this number of hosts of one machine, in a shared
# folder, with a tiny data set of images and one of text.
case $0 in /*) self=$0;; *) self=$PWD/$0;; esac
cluster=${self%/*}
WEFT=${WEFT:-build/weft}
case $WEFT in /*) ;; *) WEFT=$PWD/$WEFT;; esac
export WEFT
[ "${CLUSTER_HOSTS:-}" ] || exec "$cluster/hosts.sh" "$hosts" "$self" "$@"
. "$cluster/../cli/common.bash"

# across HOSTS RANKS MAP COMMAND... : starts RANKS ranks on each of the first HOSTS hosts; MAP slot: neighbours share a host, node: they
# do not. HOSTS 1, RANKS 1: without MPI.
across() {
    local hosts=$1 ranks=$2 map=$3 list
    shift 3
    [ $((hosts * ranks)) -gt 1 ] || { timeout 300 "$@"; return; }
    list=$(seq -f "n%g:$ranks" -s , "$hosts")
    timeout 300 mpirun -n $((hosts * ranks)) --host "$list" --map-by "$map" --bind-to none "$@"
}

# 96 images of 28x28 in 10 classes: the output of gzip for a list of numbers looks random and is the same everywhere.
make_images() {
    seq 1 60000 | gzip -n9 >noise
    { printf '\0\0\10\3\0\0\0\140\0\0\0\34\0\0\0\34'; head -c $((96 * 28 * 28)) noise; } >images
    { printf '\0\0\10\1\0\0\0\140'; tr -dc '\0-\11' <noise | head -c 96; } >labels
    check 0 "wrote" "$WEFT" data import idx images labels -o images.h5
}
# A detector, and 48 scenes composed of these images.
make_detector() {
    check 0 "wrote" "$WEFT" data make scenes images.h5 -o scenes.h5 --samples 48 --side 64
    cat >yolo.yaml <<'YAML'
model: {name: yolov5n, width_multiple: 0.05}
data:  {train: scenes.h5, test: scenes.h5, letterbox: 64, mosaic: 0.5, augment: [flip], normalize: false}
train: {steps: 5, batch: 16, micro_batch: 2, threads: 1, loss: yolo, ema: 0.99}
optim: {lr: 0.08, momentum: 0.9, warmup_steps: 2, warmup_bias_lr: 0.8, warmup_momentum: 0.8}
checkpoint: {resume: "no"}
YAML
}
make_text() {
    seq 1 3001 >text
    check 0 "wrote" "$WEFT" data import text text -o text.h5 --test text-test.h5
}
