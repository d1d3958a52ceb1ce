#!/usr/bin/env bash
# Two hosts: with a slow link between them the ledger of a run has the time of the messages as sums of its replicas, or as messages of
# its stages; that is most of the time, although it was little without the limit. The parts of all ranks add up.
# usage: ledger.sh     (WEFT=build/weft; needs root; half a minute)
hosts=2
. "$(dirname "$0")/cluster.bash"
make_images
cat >job.yaml <<'YAML'
model: {name: mlp, hidden: [512, 512]}
data:  {train: images.h5}
train: {steps: 12, batch: 96, micro_batch: 12, threads: 1}
optim: {lr: 0.01}
checkpoint: {resume: "no", every_steps: 0}
YAML

# share RUN PART : this part's fraction of the time of a step, without evaluations and saves.
share() {
    grep -o '"measured":{[^}]*' "runs/$1/ledger.jsonl" | sed 's/"measured":{//' | tr -d '"' | tr ',' '\n' |
        awk -F: -v part="$2" '$1 != "eval" && $1 != "checkpoint" { all += $2; if ($1 == part) it = $2 } END { print it / all }'
}
above() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > b) }'; }
# compare PART RATE KEY=VALUE... : the part's fraction without a limit, and with this one.
compare() {
    local part=$1 rate=$2 free limited
    shift 2
    check 0 'done after' across 2 1 slot "$WEFT" train job.yaml run.name="free-$part" "$@"
    "$cluster/hosts.sh" link "$rate"
    check 0 'done after' across 2 1 slot "$WEFT" train job.yaml run.name="limited-$part" "$@"
    "$cluster/hosts.sh" link off
    free=$(share "free-$part" "$part") limited=$(share "limited-$part" "$part")
    holds "$part at $rate: $limited of the time, without a limit $free" above "$limited" 0.5
    holds "$part at $rate: more than without a limit" above "$limited" "$free"
}
compare sums 100mbit         # 2.7 MB of gradients
compare messages 5mbit grid.pp=2    # 25 kB of activations a micro-batch, and as many gradients
finish
