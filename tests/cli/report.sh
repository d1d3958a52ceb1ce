#!/usr/bin/env bash
# weft report: one page about one run or several, from hostile names and torn files, too; it is well-formed, asks for nothing from
# elsewhere, and equal files give equal pages.
. "$(dirname "$0")/common.bash"

mkdir -p 'a<b>&"c' two empty
for step in $(seq 3000); do
    echo "{\"step\":$step,\"epoch\":1,\"loss\":$((3000 - step)).5,\"lr\":0.1,\"samples_per_s\":100,\"grad_norm\":null}"
done >'a<b>&"c/metrics.jsonl'
printf '{"step":10,"epoch":1,"loss":7,"new metric":3}\n{"step":20,"epoch":1,"eval_loss":0.25,"top1":0.5}\n{"step":20,"event":"hook","why":"x"}\n{"step":30,"lo' >two/metrics.jsonl
printf '{"step":20,"steps":20,"ranks":2,"measured":{"compute":0.75,"bubble":0.25},"forecast":{"compute":0.6,"bubble":0.2}}\n' >two/ledger.jsonl
echo 'model: <script>alert(1)</script>' >two/config.yaml

check 0 'wrote page.html' "$WEFT" report 'a<b>&"c' two -o page.html
holds "size: $(wc -c <page.html)" test "$(wc -c <page.html)" -lt 200000
holds 'names are escaped' grep -q 'a&lt;b&gt;&amp;&quot;c' page.html
holds 'no script' test -z "$(grep -io '<script\|src=\|href=\|url(\|@import' page.html)"
holds 'a policy against requests' grep -q "default-src 'none'" page.html
holds 'addresses: only the namespace of XML' test "$(grep -oE 'https?://[^" ]*' page.html)" = http://www.w3.org/1999/xhtml
holds 'curves of both runs' test "$(grep -c '<figcaption>loss</figcaption>' page.html)" = 1 -a "$(grep -c '<polyline class="l s1"' page.html)" = 1
holds 'a new metric has a curve' grep -q '<figcaption>new metric</figcaption>' page.html
holds 'the ledger with its forecast' grep -q '<td>compute</td><td>750.000</td><td>75.0 %</td><td>600.000</td><td>+25.0 %</td>' page.html
holds 'a torn line is said' grep -q '<p>two/metrics.jsonl: a line is torn and left out</p>' page.html
holds 'the best evaluation' grep -q '<td>0.25</td>' page.html
holds 'points of 3,000 steps are reduced' test "$(grep -o 'points="[^"]*"' page.html | head -n 1 | wc -w)" -lt 2600
if command -v xmllint >/dev/null; then holds 'well-formed' xmllint --noout page.html; fi
cp page.html before.html
check 0 '' "$WEFT" report 'a<b>&"c' two -o page.html
holds 'the same page again' cmp page.html before.html

printf '{"step":24,"steps":4,"ranks":1,"measured":{"compute":1}}\n{"step":30,"st' >>two/ledger.jsonl
check 0 '' "$WEFT" report two -o torn.html
holds 'a torn line of the ledger is said' grep -q '<p>two/ledger.jsonl: a line is torn and left out</p>' torn.html
holds 'the last step is the last trained one' grep -q '<td>two</td><td>24</td>' torn.html
check 66 'empty/metrics.jsonl' "$WEFT" report empty
check 64 'folders of runs' "$WEFT" report
echo '{"step":1,"loss":}' >>empty/metrics.jsonl
check 65 'line 1 of empty/metrics.jsonl' "$WEFT" report empty
printf 'garbage\n' >two/ledger.jsonl
check 65 'line 1 of two/ledger.jsonl: byte 0' "$WEFT" report two
check 64 'is one of the files that are read' "$WEFT" report two -o two/metrics.jsonl
printf '\377\n' >two/log.txt; rm two/ledger.jsonl
check 0 '' "$WEFT" report two -o page.html
holds 'bytes that are not UTF-8' grep -q '<pre>?' page.html
printf '{"step":1e300,"loss":1}\n' >two/metrics.jsonl
check 65 'is no step' "$WEFT" report two
finish
