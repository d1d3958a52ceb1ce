#!/usr/bin/env bash
# weft run in a Slurm job of three hosts, one of them spare: srun starts the ranks; a killed rank, and a host that dies in the middle of
# a step, change no bit and do not end the job.
# usage: slurm_run.sh     (WEFT=build/weft; needs root; a minute on two idle cores)
hosts=3
. "$(dirname "$0")/slurm.bash"
start_slurm
make_images
cat >lenet.yaml <<'YAML'
model: {name: lenet}
data:  {train: images.h5}
train: {steps: 3000, batch: 32, micro_batch: 4, threads: 1}
optim: {lr: 0.02, momentum: 0.9}
checkpoint: {every_steps: 20}
YAML
last=checkpoints/step-00003000.h5
check 0 '' timeout 300 "$WEFT" train lenet.yaml run.name=alone
cat >job.sh <<'SH'
#!/usr/bin/env bash
exec "$WEFT" run --nnodes 2 --log-dir logs -- weft train lenet.yaml run.name=spare
SH
# A rank of another host is stopped before its first step, in a set-up that takes seconds: another start continues.
printf 'run: {name: deep}\nmodel:\n  layers: [flatten, %s dense: {width: 10}]\ndata: {train: images.h5}\ntrain: {steps: 2, batch: 32, threads: 1}\n' \
    "$(yes 'relu,' | head -n 30000 | tr '\n' ' ')" >deep.yaml
sed 's/lenet.yaml.*/deep.yaml/; s/ --log-dir logs//' job.sh >deep.sh
on_n2() { "$cluster/hosts.sh" on n2 'pgrep -f "[w]eft train deep.yaml"'; }
for after in 1 0.5 0.2 0; do # earlier if the start is over by then
    rm -rf runs/deep
    id=$(sbatch --parsable --nodes=2 --ntasks-per-node=1 --no-kill --no-requeue -o deep.log deep.sh)
    until victim=$(on_n2) || is "$id" JobState COMPLETED; do :; done
    sleep "$after"
    "$cluster/hosts.sh" on n2 "kill -STOP $victim" || true
    until_true 180 is "$id" JobState COMPLETED || { scontrol show job "$id"; cat deep.log; }
    if grep -q 'while ranks start' deep.log; then break; fi
done
holds "it is named: $(cat deep.log)" grep -q 'start 1: while ranks start: rank 1 on n2 (process .*) is stopped, or its host' deep.log
holds 'and another start goes on' grep -q 'start 2: 2 ranks on' deep.log
until_true 60 idle
newest() { ls runs/spare/checkpoints/step-*.h5 2>/dev/null | tail -n 1; }
another() { [ -n "$(newest)" ] && [ "$(newest)" != "$1" ]; }
says() { holds "it says '$1': $(cat log)" grep -qF -- "$1" log; }
id=$(sbatch --parsable --nodes=3 --ntasks-per-node=1 --no-kill --no-requeue -o log job.sh)
soon another ''
says 'start 1: 2 ranks on n1,n2'
"$cluster/hosts.sh" on n2 'kill -KILL $(pgrep -f "[w]eft train lenet.yaml")'
soon grep -q 'start 2: 2 ranks on n1,n2, from step' log
at=$(newest)
soon another "$at"
"$cluster/hosts.sh" kill n2
soon grep -q 'start 3: 2 ranks on n1,n3, from step' log
says 'no answer from n2'
until_true 280 is "$id" JobState COMPLETED || { scontrol show job "$id"; cat log; }
check 0 '' "$WEFT" ckpt diff runs/alone/$last runs/spare/$last
finish
