#!/usr/bin/env bash
# weft topo describes nodes, measures the links between ranks, prints, draws and saves them; finds rings, trees and places, also from another machine's file;
# grid.rank_map changes which process plays which rank, and no bit.
. "$(dirname "$0")/common.bash"

check 0 '2 ranks on 1 node' "$WEFT" topo show -n 2 --save here.json
holds "rates: $(sed -n '/alone/,/^$/p' out | tr '\n' '|')" grep -Eq '^    0 +- +[0-9.]+$' out
check 0 'rate while all ranks send' "$WEFT" topo show --from here.json
"$WEFT" topo show --from here.json --json >again.json
holds 'the file again' cmp here.json again.json

holds "hardware: $(grep -c core out)" grep -Eq '^ +cores? [0-9].*CPUs' out
check 0 '' "$WEFT" topo show --from here.json --svg here.svg --html here.html
for f in here.svg here.html; do
    holds "$f asks for nothing from elsewhere" test -z "$(grep -io '<script\|src=\|href=\|url(\|@import' $f)"
    holds "$f: addresses: only namespaces of XML" test "$(grep -oE 'https?://[^" ]*' $f | sort -u | grep -vE '^http://www.w3.org/(1999/xhtml|2000/svg)$')" = ''
    if command -v xmllint >/dev/null; then holds "$f is well-formed" xmllint --noout $f; fi
done
holds 'a policy against requests' grep -q "default-src 'none'" here.html
holds 'heat maps of both' test "$(grep -c 'rate of a pair alone' here.svg)" = 1 -a "$(grep -c 'rate while all ranks send' here.html)" -ge 1
cp here.html before.html
check 0 '' "$WEFT" topo show --from here.json --html here.html
holds 'the same page again' cmp here.html before.html

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
check 0 'hardware not described' "$WEFT" topo show --from far.json --html far.html
holds 'such a page, too' grep -q 'hardware not described' far.html
check 64 'expected a grid of 4 ranks' "$WEFT" topo find --from far.json --grid 2x1x3
holds 'a wrong grid is refused before anything is printed' test ! -s out
check 64 '--from and -n exclude each other' "$WEFT" topo show -n 2 --from far.json
check 64 '--from and -n exclude each other' "$WEFT" topo find -n 2 --from far.json
check 0 'a, b: hardware not described' "$WEFT" topo show --from far.json
check 66 'none.json' "$WEFT" topo find --from none.json
sed 's/"latency_s"/"lateness"/' far.json >broken.json
check 78 'broken.json:2:2: unknown key' "$WEFT" topo show --from broken.json
sed '1s/"node": /"node": [0, 0, 0, 1], &/' far.json >twice.json
check 78 "twice.json:1:65: 'node' is given twice, first in line 1" "$WEFT" topo show --from twice.json

# hwloc's XML of another node: four cores, two NUMA nodes, and a hostile name.
cat >node.xml <<'XML'
<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
  <object type="Machine" os_index="0" cpuset="0x0000000f" complete_cpuset="0x0000000f" allowed_cpuset="0x0000000f" nodeset="0x00000003" complete_nodeset="0x00000003" allowed_nodeset="0x00000003" gp_index="1">
XML
for p in 0 1; do
    set_of=$((3 << 2 * p)) node_of=$((1 << p))
    sets="cpuset=\"0x0000000$(printf %x $set_of)\" complete_cpuset=\"0x0000000$(printf %x $set_of)\" nodeset=\"0x0000000$node_of\" complete_nodeset=\"0x0000000$node_of\""
    echo "<object type=\"Package\" os_index=\"$p\" $sets gp_index=\"$((10 + p))\"><info name=\"CPUModel\" value=\"A &lt;b&gt; &amp; c\"/>"
    echo "<object type=\"NUMANode\" os_index=\"$p\" $sets gp_index=\"$((20 + p))\" local_memory=\"68719476736\"/>"
    for c in $((2 * p)) $((2 * p + 1)); do
        core=$(printf %x $((1 << c))) in="nodeset=\"0x0000000$node_of\" complete_nodeset=\"0x0000000$node_of\""
        echo "<object type=\"Core\" os_index=\"$((c % 2))\" cpuset=\"0x0000000$core\" complete_cpuset=\"0x0000000$core\" $in gp_index=\"$((30 + c))\">"
        echo "<object type=\"PU\" os_index=\"$c\" cpuset=\"0x0000000$core\" complete_cpuset=\"0x0000000$core\" $in gp_index=\"$((40 + c))\"/></object>"
    done
    echo '</object>'
done >>node.xml
echo '</object></topology>' >>node.xml
check 0 'NUMA node 1, 64 GiB (CPUs 2-3)' "$WEFT" topo show --from node.xml --save node.json --html node.html --svg node.svg
holds 'its cores' grep -q 'cores 0-1 (CPUs 2-3)' out
holds 'names are escaped' test "$(grep -c 'A &lt;b&gt; &amp; c' node.html)" -ge 1 -a "$(grep -c 'A &lt;b&gt; &amp; c' node.svg)" -ge 1
cp out xml.out
check 0 'A <b> & c' "$WEFT" topo show --from node.json
holds 'the file says the same' cmp out xml.out
# 70 ranks on the first core: the list in the title ends, the number does not. Cores with the same first ranks are two lines.
zeros=$(seq -s, 70 | sed 's/[0-9][0-9]*/0/g')
sed -e "s/\"node\": \[\], \"cpus\": \[\]/\"node\": [$zeros], \"cpus\": [${zeros//0/\"0\"}]/" node.json >full.json
check 0 '70 ranks on 1 node' "$WEFT" topo show --from full.json --svg full.svg
holds "the number of ranks on a core: $(grep -o '[0-9]* ranks<' full.svg)" grep -q '>70 ranks<' full.svg
holds 'the list of the first ones' grep -q '62 63 [.][.][.]</title>' full.svg
shared=$(seq -s, 20 | sed 's/[0-9][0-9]*/"0-1"/g')
sed -e "s/\"node\": \[\], \"cpus\": \[\]/\"node\": [${zeros:0:43}], \"cpus\": [$shared,\"0\",\"1\"]/" node.json >shared.json
check 0 '22 ranks on 1 node' "$WEFT" topo show --from shared.json
holds "cores that differ in their last ranks: $(grep core out)" test "$(grep -c 'core [01] (CPUs [01]): ranks 0 .* [.][.][.]' out)" = 2
# A core in no socket.
sed 's/"number": 1, "parent": 5, "cpus": "3"/"number": 7, "parent": -1, "cpus": "4"/' node.json >loose.json
check 0 'core 7 (CPUs 4)' "$WEFT" topo show --from loose.json --html loose.html
holds "its socket: $(grep -o '<td>7</td>.*' loose.html)" grep -q '<td>7</td><td>-</td><td>4</td>' loose.html
check 78 'has no measured links' "$WEFT" topo find --from node.xml
head -c 900 node.xml >cut.xml
check 78 'cut.xml: is no XML of hwloc' "$WEFT" topo show --from cut.xml
# hwloc 2.9 crashes on this one: an error, whatever another version does
sed '0,/"PU"/s/"PU" os_index="0" cpuset="[^"]*" complete_cpuset="[^"]*"/"PU" os_index="0" cpuset="0x00000001"/' node.xml >crash.xml
rc=0; "$WEFT" topo show --from crash.xml >out 2>err || rc=$?
holds "crash.xml: exit $rc" test "$rc" -lt 100
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
check 78 'places.yaml:2:1: expected a list with a process for each of 2 ranks' "$WEFT" plan job.yaml --ranks 2 grid.rank_map=places.yaml
finish
