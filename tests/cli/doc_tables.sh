#!/usr/bin/env bash
# Compares the program's tables with the manual: pages generated from tables are up to date, and every row of every table has a line in
# the page that describes it. A table without a page fails, too.
# usage: doc_tables.sh     (WEFT=build/weft; DOCS: another tree whose pages are tested)
here=$(cd "$(dirname "$0")/../.." && pwd)
docs=${DOCS:-$here}/docs
. "$here/tests/cli/common.bash"

"$here/tools/docs/tables.sh" "$WEFT" .
for page in commands tables; do
    holds "docs/$page.md is what the program gives: make doc-tables" cmp "$page.md" "$docs/$page.md"
    holds "each row of $page.md has its meaning" test -z "$(grep '|  |$' "$page.md")"
done

"$WEFT" help --tables >rows
holds 'rows have three fields, the first two of which are not empty' test -z "$(awk -F'\t' 'NF != 3 || $1 == "" || $2 == ""' rows)"
# pages_of TABLE : prints the pages of which one must have each row; "help": only `weft help`.
pages_of() {
    case $1 in
    verb | key) (cd "$docs" && ls ./*.md | grep -vE '/(commands|tables)[.]md') ;;
    check) echo doctor.md ;;
    format | family) echo exchange.md ;;
    layer | model.activation) echo layers.md ;;
    train.loss | model.name | model.stem) echo models.md ;;
    optim.name | optim.groups.roles | optim.lr_adjust) echo optimizers.md ;;
    optim.lr_schedule | optim.decay_shape | optim.anneal_strategy) echo learning-rate.md ;;
    grid.pipeline_schedule) echo pipelines.md ;;
    grid.mode) echo servers.md ;;
    data.predict | data.refresh) echo fields.md ;;
    data.augment | data.filter) echo augmentation.md ;;
    data.predict) echo fields.md ;;
    model.norm | model.up | model.down) echo field-models.md ;;
    # their few words are in the help of the key, which has a line of its own
    data.layout | data.shuffle | grid.transport | grid.sums | grid.zero | grid.recompute | model.size | \
        model.positions | model.freeze_norm | train.precision | train.device | train.cpu | train.cuda_graphs | train.auc | \
        train.reproducible | train.on_bad | run.hook_on | checkpoint.best_metric | checkpoint.resume) echo help ;;
    esac
}
# has_line NAME PAGE... : a row of a table, code or an example names it.
has_line() {
    local name=$1
    shift
    (cd "$docs" && grep -hE '^\||`|^    |^weft ' "$@" 2>/dev/null) | grep -qE -- "(^|[^A-Za-z0-9_])$name([^A-Za-z0-9_]|\$)"
}
quoted() { sed 's/[][\.*^$+?(){}|/]/\\&/g' <<<"$1"; }
tables=$(cut -f1 rows | sort -u)
for table in $tables; do
    # shellcheck disable=SC2046
    set -- $(pages_of "$table")
    holds "tests/cli/doc_tables.sh knows the pages of the table $table" test $# -gt 0
    [ $# -gt 0 ] && [ "$1" != help ] || continue
    while IFS= read -r name; do
        case $table in
        verb) line=$(quoted "weft $name") ;;
        key) line=$(quoted "${name#*.}") ;;
        *) line=$(quoted "$name") ;;
        esac
        holds "$table $name has a line in docs/: $(echo "$*" | cut -c1-60)" has_line "$line" "$@"
    done < <(awk -F'\t' -v table="$table" '$1 == table { print $2 }' rows)
done
# Every key that a page names exists.
awk -F'\t' '$1 == "key" { print $2 }' rows | sort >keys
(cd "$docs" && grep -ohE '`(run|model|data|train|optim|grid|checkpoint)[.][a-z][a-z0-9_]*' ./*.md) | tr -d '`' | grep -v '[.][ch]$' | sort -u >named
holds "keys that pages name and nobody has: $(comm -23 named keys | tr '\n' ' ')" test -z "$(comm -23 named keys)"
holds 'pages name many' test "$(wc -l <named)" -gt 80
holds 'a row that no page has is noticed' test "$(has_line 'xyzzy' layers.md && echo found)" = ''
finish
