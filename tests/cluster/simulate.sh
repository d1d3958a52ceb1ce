#!/usr/bin/env bash
# jobs/slurm-simulate.sh under Slurm, on two hosts of one machine: a simulation writes a file every four seconds while a chain of four jobs
# trains. The chain begins a minute after the simulation, learns new files at the start of epochs, stops before its time limit, and the
# second link goes on with the files that the checkpoint records.
# usage: simulate.sh     (WEFT=build/weft; needs root; three minutes, most of them Slurm's time limits)
hosts=2
. "$(dirname "$0")/slurm.bash"
start_slurm

check 0 'wrote waves: 8 members' "$WEFT" data make shallow-water -o waves --size 16x16 --members 8 --steps 8
mkdir sim
cat >simulation.sh <<'SH2'
#!/bin/sh
#SBATCH --job-name=simulation
#SBATCH --ntasks=1
#SBATCH --output=simulation.log
for member in waves/member-*.nc; do
    name=${member#waves/}
    cp "$member" "sim/$name.part" && touch -d '1 minute ago' "sim/$name.part" && mv "sim/$name.part" "sim/$name"
    case $name in member-000.nc | member-001.nc) ;;
    member-002.nc) until [ -s runs/a/metrics.jsonl ]; do sleep 1; done ;; # the other files appear while the chain trains
    *) sleep 4 ;;
    esac
done
SH2
# The hook makes an epoch take two seconds.
cat >a.yaml <<'YAML'
run: {name: a, hook: sleep 2, hook_on: [epoch], hook_wait: true}
data:
  train: sim/*.nc
  variables: {inputs: [h, u, v], targets: [h, u, v]}
  window: {inputs: [0], targets: [1]}
model: {layers: [conv2d: {channels: 4, kernel: 3, pad: same}, silu, conv2d: {channels: 3, kernel: 3, pad: same}]}
train: {loss: mse, batch: 2, micro_batch: 1, epochs: 40, threads: 1, log_every: 100}
optim: {name: sgd, lr: 1e-3}
YAML
cp -p waves/member-000.nc sim/ # the script is planned for the files that are there
check 0 '' "$WEFT" sbatch a.yaml --nodes 2 --ntasks-per-node 1 --time 2m --chain 4 -o chain.sh
simulate() { bash "$cluster/../../jobs/slurm-simulate.sh" "$@"; }
check 64 'usage' simulate simulation.sh
CHAIN=chain.sh check 64 'names its configuration already' simulate simulation.sh a.yaml
CHAIN=missing.sh check 1 'missing.sh' simulate simulation.sh
CHAIN=chain.sh MINUTES=1 check 0 'the simulation is job' simulate simulation.sh
simulation=$(sed -n 's/^the simulation is job //p' both)
begin=$(sed -n 's/^job \([0-9]*\) begins the training.*/\1/p' both)
until_true 30 is "$simulation" JobState RUNNING
until_true 300 is "$begin" JobState COMPLETED || cat "slurm-$begin.out"
holds 'the training begins a minute after the simulation' grep -q '^link 4 of 4 is job' "slurm-$begin.out"
link() { sed -n "s/^link $1 of 4 is job //p" "slurm-$begin.out"; }
first=$(link 1) second=$(link 2)
# Slurm sends its signal half a minute to a minute after the start of a link, and 40 epochs take 80 seconds at least.
until_true 600 is "$(link 4)" JobState COMPLETED || { scontrol show job; cat ./*.log; }
holds 'the first link stopped before its time limit' grep -q '^stopped early with a checkpoint' "a-$first.log"
holds 'new files were learnt while it trained' grep -q 'epoch [0-9]*: [1-9] new files*; the training set has' "a-$first.log"
holds 'the second link continued with the recorded files' grep -q 'data.train: the [4-8] files that' "a-$second.log"
holds 'all files were learnt' grep -q 'the training set has 8 files and 56 samples' "a-$first.log" "a-$second.log"
finish
