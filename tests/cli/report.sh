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
echo '{"weft_topology": 1, "hosts": ["<b>node"], "node": [0, 0], "cpus": ["0", "1"]}' >two/topo.json

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
holds 'the nodes of the run that has them' test "$(grep -c '<h2>Nodes of' page.html)" = 1 -a "$(grep -c '<td>&lt;b&gt;node</td>' page.html)" = 2
holds 'points of 3,000 steps are reduced' test "$(grep -o 'points="[^"]*"' page.html | head -n 1 | wc -w)" -lt 2600
if command -v xmllint >/dev/null; then holds 'well-formed' xmllint --noout page.html; fi
cp page.html before.html
check 0 '' "$WEFT" report 'a<b>&"c' two -o page.html
holds 'the same page again' cmp page.html before.html

printf '{"step":24,"steps":4,"ranks":1,"measured":{"compute":1}}\n{"step":30,"st' >>two/ledger.jsonl
check 0 '' "$WEFT" report two -o torn.html
holds 'a torn line of the ledger is said' grep -q '<p>two/ledger.jsonl: a line is torn and left out</p>' torn.html
holds 'the last step is the last trained one' grep -q '<td>two</td><td>24</td>' torn.html
check 66 'empty/metrics.jsonl: there is no such file: empty is no folder of a run' "$WEFT" report empty
check 64 'folders of runs' "$WEFT" report
echo '{"step":1,"loss":}' >>empty/metrics.jsonl
check 65 'line 1 of empty/metrics.jsonl' "$WEFT" report empty
echo '{"weft_topology": 1}' >two/topo.json
check 78 'two/topo.json:1:1: key' "$WEFT" report two
check 64 'is one of the files that are read' "$WEFT" report two -o two/topo.json
rm two/topo.json
printf 'garbage\n' >two/ledger.jsonl
check 65 'line 1 of two/ledger.jsonl: byte 0' "$WEFT" report two
check 64 'is one of the files that are read' "$WEFT" report two -o two/metrics.jsonl
printf '\377\n' >two/log.txt; rm two/ledger.jsonl
check 0 '' "$WEFT" report two -o page.html
holds 'bytes that are not UTF-8' grep -q '<pre>?' page.html
printf '{"step":1,"loss":2,"auc":null}\n{"step":2,"loss":null,"auc":null}\n{"step":3,"lr":1}\n' >two/metrics.jsonl
check 0 '' "$WEFT" report two -o page.html
holds 'a last loss that is not finite' grep -q '<td>two</td><td>3</td><td>not finite</td>' page.html
holds 'lines without a value' test "$(grep -o '<p>two: [a-z]* has no finite value in [0-9]* lines*' page.html | tr '\n' ';')" = \
    '<p>two: loss has no finite value in 1 line;<p>two: auc has no finite value in 2 lines;'
holds 'no curve without values' test "$(grep -o '<figcaption>[a-z]*' page.html | tr '\n' ' ')" = '<figcaption>loss <figcaption>lr '
for run in $(seq 13); do mkdir -p "r$run"; echo '{"step":1,"loss":1}' >"r$run/metrics.jsonl"; done
check 0 '' "$WEFT" report r1 r2 r3 r4 r5 r6 r7 r8 r9 r10 r11 r12 r13 -o page.html
holds 'thirteen curves that differ' test "$(grep -o 'polyline class="[^"]*"' page.html | sort -u | wc -l)" = 13
# Values whose difference, or whose range, is not a number of ordinary size; a page without end is cut.
for values in '1 1.0000000000000002' '0.01 0.010000000000000002' '-1e16 -1.0000000000000002e16' '1e308 -1e308' '1e-320 2e-320' '0 5e-324' '5e-324 5e-324'; do
    printf '{"step":1,"loss":%s}\n{"step":2,"loss":%s}\n' $values >two/metrics.jsonl
    check 0 '' bash -c 'ulimit -f 1000; exec "$0" report two -o page.html' "$WEFT"
    holds "$values: a finite curve with ticks" test "$(grep -c 'class="grid"' page.html)" -ge 1 -a -z "$(grep -o '"-*\(nan\|inf\)' page.html)"
done
printf '{"step":1e300,"loss":1}\n' >two/metrics.jsonl
check 65 'is no step' "$WEFT" report two

# A run of 10,000 steps with all sections, compared with another: the page stays small.
mkdir long short
awk 'BEGIN { for (s = 1; s <= 10000; ++s) printf "{\"step\":%d,\"epoch\":1,\"loss\":%.6f,\"lr\":0.1,\"samples_per_s\":%d,\"grad_norm\":%.5f,\"train_top1\":%.4f,\"time_s\":0.5,\"time_compute\":%.4f,\"time_messages\":0.05,\"time_sums\":%.4f,\"time_other\":0.1}\n", s, 9 / (1 + s % 100 + s / 50), 900 + s % 77, s % 13, s / 10000, 0.5 + s % 7 / 20, s % 9 / 30 }' >long/metrics.jsonl
head -n 500 long/metrics.jsonl >short/metrics.jsonl
ranks=$(for r in $(seq 0 63); do printf '%s{"rank":%d,"stage":%d,"compute":0.%d,"bubble":0.01,"other":0.002}' "$([ $r = 0 ] || echo ,)" $r $((r / 4)) $((100 + r)); done)
cost=$(for k in $(seq 16); do printf '%s0.00%d,0.002,0.003' "$([ $k = 1 ] || echo ,)" $((k % 5 + 1)); done)
for run in long short; do
    cat >$run/ledger.jsonl <<JSON
{"start":1700000000,"startup_s":3,"step":0,"earlier_step":0,"earlier_end":0,"versions":"weft 0.0\nMPI <4>"}
{"start":1700001000,"startup_s":3,"step":200,"earlier_step":250,"earlier_end":1700000900,"versions":"weft 0.0\nMPI <4>$(printf %2000s long)"}
{"step":500,"steps":300,"ranks":64,"end":1700002000,"measured":{"compute":2,"bubble":0.5,"other":0.25},"memory":{"rank":5,"planned":1e6,"measured":2e6,"peak":3e6},"path":{"stage 3":1.5,"stage 4":0.9,"other":0.35},"schedule":{"name":"1f1b","stages":16,"chunks":1,"micros":512,"cost":[$cost]},"rank":[$ranks]}
JSON
    printf 'run:\n  name: %s\ntrain:\n  batch: 32\n  steps: 9\nmodel:\n  layers:\n    - %s\n' $run $run >$run/config.yaml
done
check 0 '' "$WEFT" report long short -o page.html
holds "size: $(wc -c <page.html)" test "$(wc -c <page.html)" -lt 1000000
for heading in Outcome Curves Time Starts Schedule 'Memory of the rank that uses most' 'Versions of the last start' 'Configuration and log'; do
    holds "section $heading" grep -q "<h2>$heading</h2>" page.html
done
holds 'each rank has a bar' test "$(grep -c '>rank [0-9]*, stage [0-9]*</text>' page.html)" = 128
holds 'parts of the critical path' grep -q '<td>stage 3</td><td>1500.000</td><td>54.5 %</td>' page.html
holds 'the schedule in part' grep -q 'Only 31 of 512 micro-batches are drawn' page.html
holds 'steps that were lost' grep -q '<td>1</td><td>250</td><td>50</td>' page.html
holds 'memory and the plan' grep -q '<td>5</td><td>1.0</td><td>2.0</td><td>+100.0 %</td><td>3.0</td>' page.html
holds 'keys that differ, and no other' test "$(sed -n '/key that differs/,/<\/table>/p' page.html | grep -o '<td>[a-z]*\.[a-z]*</td>' | tr -d '\n')" = '<td>run.name</td><td>model.layers</td>'
holds 'versions are escaped' grep -q 'MPI &lt;4&gt;' page.html
holds 'no script' test -z "$(grep -io '<script\|src=\|href=\|url(\|@import' page.html)"
if command -v xmllint >/dev/null; then holds 'well-formed' xmllint --noout page.html; fi
sed -i 's/"name":"1f1b"/"name":"file"/' short/ledger.jsonl
check 0 '' "$WEFT" report short -o page2.html
holds 'a schedule from a file is not drawn' grep -q 'The schedule file of 16 stages and 1 chunks is not drawn' page2.html

# A key whose value is "-" is no missing key: its difference is written once, whichever run has it.
printf 'run:\n  name: -\ntrain:\n  batch: -\n' >two/config.yaml
printf 'run:\n  name: a\n' >r1/config.yaml
printf '{"step":1,"loss":1}\n' >two/metrics.jsonl
for runs in 'two r1' 'r1 two'; do
    check 0 '' "$WEFT" report $runs -o page3.html
    holds "$runs: each key that differs once" test "$(sed -n '/key that differs/,/<\/table>/p' page3.html | grep -o '<td>[a-z]*\.[a-z]*</td>' | sort | tr -d '\n')" = '<td>run.name</td><td>train.batch</td>'
done

# A browser that shows the page, light and dark: it says nothing about refused requests, and no two texts of a picture overlap. The
# second page is a copy with a script, which lists texts that overlap.
look() { timeout 100 chromium --headless=new --no-sandbox --disable-gpu --hide-scrollbars --window-size=1200,4000 --user-data-dir="$dir/browser" --enable-logging=stderr "$@"; }
if command -v chromium >/dev/null; then
    for scheme in 0 1; do
        look --blink-settings=preferredColorScheme=$scheme --screenshot="$dir/look$scheme.png" "file://$dir/page.html" >seen 2>&1 || true
        holds "a picture of scheme $scheme" test -s look$scheme.png
        holds "no request is refused: $(grep -i refused seen)" test -z "$(grep -i refused seen)"
    done
    holds 'dark and light differ' test "$(cmp look0.png look1.png >/dev/null 2>&1; echo $?)" = 1
    cat >overlaps <<'HTML'
<script>
const bad = [];
for (const svg of document.querySelectorAll('svg')) {
    const box = [...svg.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()]);
    const all = svg.getBoundingClientRect();
    box.forEach(([a, p], i) => {
        if (p.left < all.left - 1 || p.right > all.right + 1) bad.push(a + ' is cut');
        for (const [b, q] of box.slice(i + 1))
            if (p.left < q.right - 1 && q.left < p.right - 1 && p.top < q.bottom - 3 && q.top < p.bottom - 3) bad.push(a + ' and ' + b);
    });
}
if (document.documentElement.scrollWidth > innerWidth) bad.push('wider than the window');
document.body.textContent = 'overlaps: ' + bad.join('; ') + '.';
</script>
HTML
    sed -e '/Content-Security-Policy/,/>/d' -e '/<\/body>/{
        r overlaps
        d
    }' page.html >with_script.html
    look --dump-dom "file://$dir/with_script.html" >seen 2>/dev/null || true
    holds "texts: $(grep -o 'overlaps: .*' seen | head -c 300)" grep -q 'overlaps: \.' seen
else echo '  skipped: the look of the page: there is no chromium'; fi
finish
