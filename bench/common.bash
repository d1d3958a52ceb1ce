# Sourced by the scripts of this folder: the program, a folder that goes when the script ends, medians, and the rate in the
# line of JSON that `weft bench step --json` prints.
weft=${WEFT:-build/weft}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT
median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
rate() { sed -n 's/.*"[a-z]*_per_s":\([0-9.]*\).*/\1/p'; }
