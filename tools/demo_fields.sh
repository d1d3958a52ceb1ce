#!/usr/bin/env bash
# Makes trajectories of shallow water, trains a unet to predict the state six hours later on two ranks, compares it with persistence and
# climatology, integrates it over 40 steps, and draws fields.
# usage: demo_fields.sh WEFT [key=value ...]
set -eu
weft=$1; shift
data=datasets/shallow-water
n=1; while [ -e "runs/emulator-$n" ]; do n=$((n + 1)); done
name=emulator-$n
say() { printf '\n$ %s\n' "$*"; "$@"; }
[ -e $data/train ] || say "$weft" data make shallow-water -o $data/train --members 24 --steps 100
[ -e $data/test ] || say "$weft" data make shallow-water -o $data/test --members 2 --first 1000 --steps 100
say "$weft" data info jobs/emulator.yaml
say "$weft" train -n 2 jobs/emulator.yaml run.name=$name "$@"
say "$weft" eval jobs/emulator.yaml run.name=$name "$@"
say "$weft" predict jobs/emulator.yaml run.name=$name --samples 0-0 --rollout 40 --truth -o runs/$name/rollout.nc --png runs/$name/drawn "$@"
cat <<TEXT

runs/$name/drawn shows fields of the rollout beside the true ones; runs/$name/rollout.nc holds them: xarray, ncview and HDF5 tools open it.
What to try next:
  $weft train -n 2 jobs/emulator.yaml grid.pp=2 run.name=stages        the same bits, as a pipeline
  $weft train -n 2 jobs/emulator.yaml train.rollout=2 run.name=steps   a loss over two steps, the second on the first one's output
  $weft report runs/$name -o emulator.html                             curves, times, memory
Your own fields: docs/fields.md.
TEXT
