#!/usr/bin/env bash
# Prints the results of mutate.sh as tables: the score of each module, each test with what it alone reaches, mutants that live.
# usage: report.sh FOLDER      FOLDER: BUILD/mutants
set -eu
cd "$1"
table() { # HEAD... : reads rows divided by tabs
    local rule='|' head
    for head in "$@"; do rule="$rule---|"; done
    (IFS='|'; echo "|$*|")
    echo "$rule"
    sed 's/|/\\|/g; s/\t/ | /g; s/^/| /; s/$/ |/'
}
# NUMBER FILE LINE CHANGE CODE VERDICT TEST HOW; the last result of a mutant counts. Open: it survived, and tests were left out.
awk -F'\t' -v OFS='\t' '
    NR == FNR { verdict[$1] = $2 == "survived" && $6 > 0 ? "open" : $2; test[$1] = $3; how[$1] = $4; next }
    $1 in verdict { print $1, $2, $3, $6, $7, verdict[$1], test[$1], how[$1] }' results mutants >all

echo "## Score"
echo
awk -F'\t' -v OFS='\t' '
    { split($2, part, "/"); m = part[2]; ++count[m]; ++count["all"]; ++n[m, $6]; ++n["all", $6] }
    function row(m) { print m, count[m], n[m, "killed"] + 0, n[m, "survived"] + 0, n[m, "open"] + 0, n[m, "unreached"] + 0,
            sprintf("%.0f %%", 100 * n[m, "killed"] / count[m]),
            sprintf("%.0f %%", 100 * n[m, "killed"] / (count[m] - n[m, "unreached"] + (count[m] == n[m, "unreached"]))) }
    END { for (m in count) if (m != "all") row(m); if (count["all"]) row("all") }' all |
    table module mutants killed survived open "not reached" score "of those reached"
echo
echo "## Tests"
echo
awk -F'\t' '$6 == "killed" { ++n[$7] } END { for (t in n) print t, n[t] }' all >killers
(cd lines && cat *) | sort | uniq -c | awk '$1 == 1 { print $2 }' >alone
while read -r test seconds busy; do
    file=lines/${test/\//.}
    [ -e "$file" ] || continue
    printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$test" "$seconds" "$busy" "$(wc -l <"$file")" "$(comm -12 "$file" alone | wc -l)" \
        "$(awk -v t="$test" '$1 == t { n = $2 } END { print n + 0 }' killers)"
done <seconds | sort -t$'\t' -k5,5n -k3,3nr | table test seconds "processor seconds" "lines reached" "reached by it alone" "mutants killed first"
echo
echo "## Mutants that live"
echo
awk -F'\t' -v OFS='\t' '$6 != "killed" { sub(/^src\//, "", $2); print $2 ":" $3, $6 == "unreached" ? "not reached" : $6, $4, "`" $5 "`" }' all | table place result change code
