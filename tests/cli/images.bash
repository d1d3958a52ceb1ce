# Sourced before common.bash: 200 images of 28x28 in 10 classes, and lenet on them. What gzip makes of a list of numbers looks
# random and is the same everywhere.
make_images() {
    seq 1 60000 | gzip -n9 >noise
    { printf '\0\0\10\3\0\0\0\310\0\0\0\34\0\0\0\34'; cat noise noise | head -c $((200 * 28 * 28)); } >images
    { printf '\0\0\10\1\0\0\0\310'; tr -dc '\0-\11' <noise | head -c 200; } >labels
    check 0 wrote "$WEFT" data import idx images labels -o images.h5
    cat >lenet.yaml <<'YAML'
model: {name: lenet}
data:  {train: images.h5}
train: {steps: 1000000, batch: 32, micro_batch: 4, threads: 1, log_every: 1}
optim: {lr: 0.01, momentum: 0.9}
YAML
}
