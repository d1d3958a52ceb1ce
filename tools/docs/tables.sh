#!/usr/bin/env bash
# Prints the pages of docs/ that are generated from the program's tables: commands.md and tables.md.
# usage: tables.sh WEFT FOLDER      (make doc-tables writes docs/; tests/cli/doc_tables.sh compares)
set -eu
weft=$1 folder=$2
rows=$(mktemp)
trap 'rm -f "$rows"' EXIT
"$weft" help --tables >"$rows"

# rows_of TABLE FORMAT : prints a line of a Markdown table for each row; NAME and HELP are replaced.
rows_of() {
    awk -F'\t' -v table="$1" -v form="$2" '
        $1 == table {
            line = form; help = $3
            gsub(/\|/, "\\|", help); gsub(/&/, "\\\\&", help)
            gsub(/NAME/, $2, line); gsub(/HELP/, help, line); print line
        }' "$rows"
}
# section TITLE TABLE PAGE TEXT : prints a heading and a table, with a link to PAGE.
section() {
    printf '\n## %s\n\n| %s | more: [%s](%s.md) |\n|---|---|\n' "$1" "$4" "$3" "$3"
    rows_of "$2" '| `NAME` | HELP |'
}

{
    cat <<'TEXT'
# Commands, checks, formats, curves, schedules

    $ weft --help            the commands; weft VERB --help says more of one
    $ weft help              all keys of a configuration
    $ weft help --tables     what this page and its neighbour are made of

The program's own tables, as `make doc-tables` writes them. [Tables](tables.md) has layers, models,
losses and rules. A title in code is the key that takes its rows as values.

## Commands

| command | |
|---|---|
TEXT
    rows_of verb '| `weft NAME` | HELP |'
    section 'Checks of weft doctor' check doctor check
    section 'Files of tensors that weft ckpt import reads' format exchange format
    section 'Families of names in such files' family exchange family
    section '`optim.lr_schedule`: curves' optim.lr_schedule learning-rate curve
    section '`grid.pipeline_schedule`' grid.pipeline_schedule pipelines schedule
} >"$folder/commands.md"
{
    cat <<'TEXT'
# Layers, models, losses, rules

    $ weft help --layers                     layers with their attributes
    $ weft help --tables | grep '^layer'     what this page is made of

The program's own tables, as `make doc-tables` writes them. The title of a section is the key that
takes its rows as values. [Commands](commands.md) has verbs, checks, formats, curves and schedules.
TEXT
    section '`model.layers`: kinds of layer' layer layers layer
    section '`model.name`: models' model.name models model
    section '`train.loss`' train.loss models loss
    section '`optim.name`: update rules' optim.name optimizers rule
} >"$folder/tables.md"
