#!/usr/bin/env bash
# weft verify: grids that agree, grids that differ, runs that fail, wrong arguments, and an interrupt. No file is left.
. "$(dirname "$0")/common.bash"

{ printf '\0\0\010\003\0\0\0\074\0\0\0\010\0\0\0\010'; for i in $(seq 240); do printf 'abcdefghi\0jklmno'; done; } >x.idx
{ printf '\0\0\010\001\0\0\0\074'; for i in $(seq 60); do printf "\\00$((i % 3))"; done; } >y.idx
check 0 'wrote data.h5' "$WEFT" data import idx x.idx y.idx -o data.h5
cat >a.yaml <<'YAML'
run: {dir: all/runs}
model: {name: mlp, hidden: [16, 16]}
data: {train: data.h5, test: data.h5, normalize: false}
train: {epochs: 5, batch: 24, micro_batch: 3}
optim: {lr: 0.1, momentum: 0.9}
YAML
mkdir all
verify() { timeout 240 "$WEFT" verify a.yaml "$@"; }
clean() { holds "nothing is left $1" test -z "$(ls all)"; }

check 0 'the same to the bit: 12 tensors and the losses of 2 steps on 3 runs' verify --steps 2
holds 'two runs are the same as the first' test "$(grep -c ' same$' out)" = 2
clean 'of runs that agree'

# Eight micro-batches over five replicas: two each, the last two of ten are padding.
check 0 'the same to the bit' verify --grids 1x1x1,5x1x1 --steps 3
check 0 'the same to the bit' verify --grids 2x2x1,1x1x1 --steps 2 --transports mpi
# Sums by messages in rounds: a power of two of ranks, and seven, whose last block is of three; whole sums, shards, pushes, gathers.
check 0 'the same to the bit' verify --grids 1x1x1,4x1x1,7x1x1 --zero 0,1,2,3 --transports mpi --steps 2 grid.sums=halving
# Any number of ranks of a tensor group.
check 0 'the same to the bit' verify --grids 1x1x1,1x1x2,1x1x4,2x1x2 --steps 3 model.hidden=[16]
check 78 'grid.tp=3: 3 is no power of two' "$WEFT" plan a.yaml --ranks 3 grid.tp=3 model.hidden=[16]
check 78 'train.sum_slices to 4' "$WEFT" plan a.yaml --ranks 4 grid.tp=4 model.hidden=[16] train.sum_slices=2
check 78 'train.sum_slices=6: 6 is no power of two' "$WEFT" plan a.yaml train.sum_slices=6
# Any number of threads: convolutions, products, and loops that several threads share; also after resuming with other threads and replicas.
sed 's/name: mlp.*}/name: lenet}/; s/epochs: 5, //; s/micro_batch: 3/micro_batch: 12/' a.yaml >lenet.yaml
check 0 'the same to the bit' timeout 240 "$WEFT" verify lenet.yaml --grids 1x1x1 --threads 1,2,4 --steps 3
holds 'three numbers of threads are the same' test "$(grep -c '^1x1x1, threads [124] ' out)" = 3
check 78 'train.threads' verify --grids 1x1x1 --threads 1,none
short() { timeout 120 "$WEFT" train lenet.yaml "$@"; }
check 0 'step 4/4' short run.dir=threads run.name=whole train.micro_batch=4 train.threads=1 train.steps=4
check 0 'step 2/2' short -n 4 run.dir=threads run.name=halves train.micro_batch=4 train.threads=2 train.steps=2
check 0 'step 4/4' short -n 3 run.dir=threads run.name=halves train.micro_batch=4 train.threads=3 train.steps=4
check 0 '' "$WEFT" ckpt diff threads/whole/checkpoints/step-00000004.h5 threads/halves/checkpoints/step-00000004.h5
check 0 '"same": true, "first_tensor": null' verify --grids 1x1x1,1x2x1 --schedules gpipe --steps 1 --json

# Numbers of micro-batches that are no power of two on a replica, dealt out as subtrees: 6, 7, 8 (with padding on three) and 15.
for batch in 6 8 15; do
    check 0 'the same to the bit' verify --grids 1x1x1,2x1x1,3x1x1,5x1x1 --steps 2 train.batch=$batch train.micro_batch=1
done
check 0 'the same to the bit' verify --grids 1x1x1,2x1x1,3x1x1 --zero 0,1,2,3 --steps 2 train.batch=7 train.micro_batch=1
check 0 'the same to the bit' verify --grids 1x1x1,3x1x1,4x1x1 --zero 0,1 --transports mpi --steps 2 train.batch=24 train.micro_batch=2 \
    grid.sums=halving grid.bucket_mb=0.0005
check 0 'the same to the bit' verify --grids 1x1x1,3x2x1 --schedules gpipe,1f1b,zero-bubble --steps 2 train.batch=15 train.micro_batch=1

# One sum over two replicas of 6 micro-batches each is another tree than that of 12 on one: the bits must differ, and do.
check 65 'differ: first in tensor /params/' verify --grids 1x1x1,2x1x1 train.micro_batch=2 --steps 1 train.reproducible=same_grid
holds 'the grids are named' grep -qF 'grid 1x1x1 and grid 2x1x1 differ' err
holds 'its line says so' grep -q '^2x1x1 .* differs$' out
clean 'of runs that differ'

# A run that fails ends it all with the run's own exit code, and shows what the run said.
check 78 'more than the 3 layers' verify --grids 1x1x1,1x9x1 --steps 1
holds 'the grid is named' grep -qF 'grid 1x9x1: its run failed, exit code 78' err
clean 'of a run that failed'
check 66 'none.h5' verify data.train=none.h5

check 64 "'2x1' is no grid" verify --grids 1x1x1,2x1
check 64 "'0x1x1' is no grid" verify --grids 0x1x1
check 64 'more than 65536 ranks' verify --grids 1x1x1,99999x99999x1
check 64 'nothing to compare' verify --grids 1x1x1
check 64 'between commas is empty' verify --schedules gpipe,
check 64 '--steps 0: expected a whole number' verify --steps 0
check 78 "did you mean 'gpipe'?" verify --schedules gpip,1f1b
check 78 'grid.dp is given twice' verify grid.dp=2
check 74 'choose another run.dir' verify run.dir=none/runs
check 64 'run it without mpirun' env OMPI_COMM_WORLD_SIZE=1 OMPI_COMM_WORLD_RANK=0 "$WEFT" verify a.yaml
check 64 'started by mpirun, which cannot be run' env PATH=/none "$WEFT" verify a.yaml --grids 2x1x1,1x1x1

# An interrupt: no ranks, no folder, and the exit code that a signal gives.
background out,err "$WEFT" verify a.yaml --grids 2x1x1,1x1x1 --steps 1000000; process=$!
trains() { ls all/*/run/metrics.jsonl >/dev/null 2>&1; }
holds 'it trains' soon trains
name=$(ls all)
kill -INT $process
rc=0
wait $process || rc=$?
holds "an interrupt gives exit code 130, not $rc" test $rc = 130
clean 'of a run that was interrupted'
gone() { [ -z "$(pgrep -f "all/$name/config.yaml")" ]; }
holds 'its ranks are gone' soon gone
finish
