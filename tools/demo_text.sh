#!/usr/bin/env bash
# Trains a small GPT on a text on two ranks, evaluates it, generates a continuation of a few words, and prints what to try next.
# usage: demo_text.sh WEFT [key=value ...]
set -eu
weft=$1; shift
n=1; while [ -e "runs/gpt-$n" ]; do n=$((n + 1)); done
name=gpt-$n
say() { printf '\n$ %s\n' "$*"; "$@"; }
say "$weft" train -n 2 jobs/gpt-text.yaml run.name=$name "$@"
say "$weft" generate jobs/gpt-text.yaml run.name=$name "$@" --prompt "In the beginning" --tokens 600
cat <<TEXT

What to try next:
  $weft generate jobs/gpt-text.yaml run.name=$name --prompt "And it came to pass" --seed 2 --temperature 0.6
  $weft train -n 2 jobs/gpt-text.yaml model.positions=learned run.name=learned
  $weft train -n 2 jobs/gpt-text.yaml grid.pp=2 run.name=stages      the same bits, as a pipeline
Your own text: $weft data import text FILE -o train.h5 --test test.h5
TEXT
