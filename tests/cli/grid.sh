#!/usr/bin/env bash
# Grids, cuts and schedules that are impossible: one message from one rank, exit code 78, at once; nothing is written, and no process is
# left.
. "$(dirname "$0")/common.bash"

# 60 images of 8x8, three classes
{ printf '\0\0\010\003\0\0\0\074\0\0\0\010\0\0\0\010'; head -c $((60 * 64)) /dev/zero | tr '\0' '\100'; } >x.idx
{ printf '\0\0\010\001\0\0\0\074'; for i in $(seq 60); do printf "\\00$((i % 3))"; done; } >y.idx
check 0 '' "$WEFT" data import idx x.idx y.idx -o data.h5
cat >job.yaml <<X
run: {name: r, seed: 1}
model: {name: mlp, hidden: [8]}
data: {train: data.h5, test: data.h5}
train: {steps: 3, batch: 12, micro_batch: 6, threads: 1}
optim: {name: sgd, lr: 0.01}
X

# refused TEXT OVERRIDE... : two ranks end by themselves with 78 and one message that contains TEXT, and leave no process.
gone() { ! own "$WEFT train .*job.yaml" >/dev/null; }
refused() {
    local text=$1
    shift
    check 78 "$text" timeout -k 2 240 "$WEFT" train -n 2 job.yaml "$@"
    holds "one message: $*" test "$(grep -c 'error:' both)" = 1
    holds "no rank is left: $*" soon gone
}

# the grid and the ranks
refused 'command line: grid.pp=3: ' grid.pp=3
refused 'start 4, or leave grid.dp out' grid.dp=2 grid.pp=2
refused 'grid.dp is 3, but 2 ranks were started' grid.dp=3
# the batch
refused '5 does not divide train.batch (12)' grid.dp=2 train.micro_batch=5
# the cut
refused '18 chunks (grid.pp x grid.chunks) are more than the 2 layers' grid.pp=2 grid.pipeline_schedule=interleaved grid.chunks=9
refused "no layer is named 'nowhere'" grid.pp=2 'grid.cuts=[nowhere]'
refused 'names 2 layers, but 2 stages of 1 chunk need 1' grid.pp=2 'grid.cuts=[fc1,fc2]'
refused '1f1b has 1 chunk a stage, not 2: interleaved, ' grid.pp=2 grid.chunks=2

refused "zb-v has 2 chunks a stage, not 1" grid.pp=2 grid.pipeline_schedule=zb-v grid.chunks=1
refused 'names 1 layer, but 2 stages of 2 chunks need 3' grid.pp=2 grid.pipeline_schedule=dualpipe-v 'grid.cuts=[fc2]'
refused '4 chunks (grid.pp x grid.chunks) are more than the 2 layers' grid.pp=2 grid.pipeline_schedule=zb-v

# schedules
rows() { printf 'stage,task,chunk,micro\n'; printf '%s\n' "$@"; }
first='0,forward,0,0 0,send_forward,0,0 0,receive_backward,0,0 0,backward,0,0
       0,forward,0,1 0,send_forward,0,1 0,receive_backward,0,1 0,backward,0,1'
forwards='1,receive_forward,1,0 1,forward,1,0 1,receive_forward,1,1 1,forward,1,1'
backwards='1,backward,1,0 1,send_backward,1,0 1,backward,1,1 1,send_backward,1,1'
rows $first $forwards $backwards >dead.csv
rows $first $forwards ${backwards% *} >lost.csv
rows 0,forward,0,0 0,forward,0,2 >micro.csv
rows 0,forwards,0,0 >word.csv
refused 'a deadlock' grid.pp=2 grid.pipeline_schedule=file:dead.csv
refused 'lack send_backward of chunk 1, micro 1' grid.pp=2 grid.pipeline_schedule=file:lost.csv
refused 'micro.csv:3: ' grid.pp=2 grid.pipeline_schedule=file:micro.csv
refused "word.csv:2: unknown task 'forwards'" grid.pp=2 grid.pipeline_schedule=file:word.csv
{ echo stages,0,0,1; rows 0,forward,0,0; } >stages.csv
refused 'stages.csv:1: gives the stages of 3 chunks, but there are 4: 2 stages of 2' grid.pp=2 grid.chunks=2 grid.pipeline_schedule=file:stages.csv
refused "'zero' is none of" grid.pp=2 grid.pipeline_schedule=zero
check 66 'nowhere.csv: cannot be opened' timeout 240 "$WEFT" train -n 2 job.yaml grid.pp=2 grid.pipeline_schedule=file:nowhere.csv
holds 'nothing was written' test ! -e runs

# a valid grid gives the same numbers as one rank
rows 0,forward,0,0 0,forward,0,1 0,backward,0,0 0,backward,0,1 1,forward,1,0 1,forward,1,1 1,backward,1,0 1,backward,1,1 >good.csv
check 0 '' timeout 240 "$WEFT" train -n 2 job.yaml --map run.name=two grid.pp=2 grid.pipeline_schedule=file:good.csv 'grid.cuts=[fc2]'
holds 'the map of ranks has its title' grep -Eq '^  rank  dp  pp  tp  host +CPUs' err
for r in 0 1; do
    holds "rank $r is stage $r on this host and its CPUs" grep -Eq "^  $r +0 +$r +0 +$(uname -n) +[0-9][0-9, -]*\$" err
done
holds 'the log has the map' grep -Eq '^  1 +0 +1 +0 ' runs/two/log.txt
check 0 '' timeout 240 "$WEFT" train job.yaml run.name=one
check 0 'train.micro_batch=6 would leave none' timeout 240 "$WEFT" train -n 2 job.yaml run.name=padded grid.dp=2 train.micro_batch=12
check 0 '' "$WEFT" ckpt diff runs/one/checkpoints/step-00000003.h5 runs/two/checkpoints/step-00000003.h5
finish
