#!/usr/bin/env bash
# weft topo measures the links between ranks, prints and saves them; finds rings, trees and places, also from another machine's file;
# grid.rank_map changes which process plays which rank, and no bit.
. "$(dirname "$0")/common.bash"

check 0 '2 ranks on 1 node' "$WEFT" topo show -n 2 --save here.json
holds "rates: $(sed -n '/alone/,/^$/p' out | tr '\n' '|')" grep -Eq '^    0 +- +[0-9.]+$' out
check 0 'rate while all ranks send' "$WEFT" topo show --from here.json
"$WEFT" topo show --from here.json --json >again.json
holds 'the file again' cmp here.json again.json

# Two nodes of two ranks, dealt in turn; a link within a node is four times as fast as one between nodes.
cat >far.json <<'JSON'
{"weft_topology": 1, "hosts": ["a", "b"], "node": [0, 1, 0, 1], "cpus": ["0", "0", "1", "1"],
 "latency_s": [[0, 1, 1, 1], [1, 0, 1, 1], [1, 1, 0, 1], [1, 1, 1, 0]],
 "bytes_s": [[0, 1e9, 4e9, 1e9], [1e9, 0, 1e9, 4e9], [4e9, 1e9, 0, 1e9], [1e9, 4e9, 1e9, 0]],
 "together_bytes_s": [[0, 1e9, 4e9, 1e9], [1e9, 0, 1e9, 4e9], [4e9, 1e9, 0, 1e9], [1e9, 4e9, 1e9, 0]]}
JSON
check 0 'slowest link, of tensor groups 1 GB/s, between replicas 4 GB/s' "$WEFT" topo find --from far.json --grid 2x1x2 --save places.yaml
holds "found: $(grep found: out)" grep -q 'found: slowest link, of tensor groups 4 GB/s, between replicas 1 GB/s' out
holds "places: $(tail -n 1 places.yaml)" test "$(tail -n 1 places.yaml)" = '[0, 2, 1, 3]'
check 64 'expected a grid of 4 ranks' "$WEFT" topo find --from far.json --grid 2x1x3
check 66 'none.json' "$WEFT" topo find --from none.json
check 78 'expected a mapping' "$WEFT" topo show --from <(echo '[]')

{ printf '\0\0\010\003\0\0\0\074\0\0\0\010\0\0\0\010'; head -c $((60 * 64)) "$WEFT"; } >x.idx
{ printf '\0\0\010\001\0\0\0\074'; for i in $(seq 60); do printf "\\00$((i % 3))"; done; } >y.idx
check 0 '' "$WEFT" data import idx x.idx y.idx -o data.h5
cat >job.yaml <<'YAML'
model: {layers: [flatten, dense: {width: 24}, relu, dense: {width: 3}]}
data: {train: data.h5, test: data.h5}
train: {steps: 3, batch: 32, micro_batch: 8, threads: 1}
grid: {pp: 2}
YAML
last=checkpoints/step-00000003.h5
check 0 '' "$WEFT" train -n 4 job.yaml run.name=plain
check 0 'rank_map' "$WEFT" train -n 4 job.yaml run.name=mapped grid.rank_map=places.yaml
check 0 'to the bit' "$WEFT" ckpt diff runs/plain/$last runs/mapped/$last
check 0 '' "$WEFT" train -n 4 job.yaml run.name=auto grid.rank_map=auto
check 0 'to the bit' "$WEFT" ckpt diff runs/plain/$last runs/auto/$last
check 78 'places.yaml:2:1: expected a list with a process for each of 2 ranks' "$WEFT" train -n 2 job.yaml run.name=no grid.rank_map=places.yaml
finish
