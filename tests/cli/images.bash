# Tests source this file before common.bash, which leaves the folder. Its functions make images of
# noise, and the configuration of a small perceptron for them. The noise is a list of numbers that
# gzip has compressed: it looks random and is the same on every machine.

# noises : prints the file noise again and again.
noises() { while cat noise; do :; done; }
# noise_idx COUNT SIDE CLASSES OUT : makes the data set OUT of COUNT grey images of SIDE x SIDE
# pixels, with random labels. COUNT is below 65536, SIDE below 256. Leaves the files noise, images
# and labels.
noise_idx() {
    local count side
    count=$(printf '\\%o\\%o' $(($1 / 256)) $(($1 % 256))) side=$(printf '\\%o' "$2")
    seq 1 60000 | gzip -n9 >noise
    { printf "\0\0\10\3\0\0$count\0\0\0$side\0\0\0$side"; noises | head -c $(($1 * $2 * $2)); } >images
    { printf "\0\0\10\1\0\0$count"; noises | tr -dc "\\0-\\$(printf %o $(($3 - 1)))" | head -c "$1"; } >labels
    check 0 wrote "$WEFT" data import idx images labels -o "$4"
}
# make_images : makes images.h5, 200 images of 28x28 pixels in 10 classes, and images.yaml.
make_images() {
    noise_idx 200 28 10 images.h5
    cat >images.yaml <<'YAML'
model: {name: mlp, hidden: [24, 16, 16]}
data:  {train: images.h5}
train: {steps: 1000000, batch: 32, micro_batch: 4, threads: 1, log_every: 1}
optim: {lr: 0.01, momentum: 0.9}
YAML
}
