#!/usr/bin/env bash
# Measures what the tests of some modules notice: compiles mutants of their C files into a copy of src/ (mutate.c) and runs, for each
# mutant, the tests that reach its lines, the quickest first, until one fails (try.sh). Which lines a test reaches comes from a build
# with gcov (measure.sh). Everything is in BUILD/mutants; a second call goes on where the first one stopped, as long as the sources are the same.
# Files there: mutants (mutate.c's table), lines/ and seconds (measure.sh), results (try.sh), report.md (report.sh).
# usage: mutate.sh [NUMBER...]     NUMBER: tries only these mutants, with all tests again; else those that no test has killed yet
# environment: MUTANTS  number of mutants (default 200)         SEED       of the draw (default 1)
#              MUTATE   modules to change                       TEST_DIRS  modules whose test programs run (default: MUTATE)
#              ALSO     more tests: MODULE/test_X, cli/X.sh
#              JOBS     mutants side by side (default 2)        SKIP       tests to leave out: an extended regular expression
#              MOST     processor seconds of the longest test that runs (default: all run)
#              SLOW     multiplies the time limits, on a busy machine (default 1)
set -eu
cd "$(dirname "$0")/../.."
export BUILD=${BUILD:-build} MUTATE=${MUTATE:-pipeline parallel checkpoint} WEFT_CUDA=no
TEST_DIRS=${TEST_DIRS:-$MUTATE}
root=$PWD out=$PWD/$BUILD/mutants cover=$BUILD/mutants/coverage tree=$BUILD/mutants/tree
make=("${MAKE:-make}" --no-print-directory -j"${JOBS:-2}" WERROR=)
mkdir -p "$out/lines" "$tree"

tests=() # MODULE/test_X, cli/X.sh
for dir in $TEST_DIRS; do
    for source in tests/"$dir"/test_*.c; do
        name=${source#tests/}
        [[ -n ${SKIP:-} && $name =~ $SKIP ]] || tests+=("${name%.c}")
    done
done
for name in ${ALSO:-}; do
    if [ -e "tests/$name.c" ] || [ -e "tests/$name" ] || [[ $name == fuzz/replay_* ]]; then tests+=("$name")
    else echo "mutate: ALSO: no test $name"; exit 64
    fi
done
programs() { # BUILD : what make builds there
    local test
    for test in "${tests[@]}"; do
        case $test in *.sh) echo "$1/weft";; *) echo "$1/tests/$test";; esac
    done | sort -u
}
libraries() { printf "$1/lib/%s.a " $MUTATE; }

# One call of make compiles the modules with gcov's counters, the next one everything else without.
echo "mutate: building ${#tests[@]} tests with gcov"
CCACHE_DISABLE=1 "${make[@]}" BUILD="$cover" OPT="-O0 -g" CFLAGS=--coverage $(libraries "$cover") >"$out/log" 2>&1 || { tail "$out/log"; exit 1; }
mpi=$(sed -n 's/^DEPS_CPPFLAGS :=//p' "$cover/probe.mk")
cc $mpi -c -o "$cover/dump_at_exit.o" tools/mutate/dump_at_exit.c
"${make[@]}" BUILD="$cover" LDFLAGS="--coverage -Wl,--wrap=_exit,--wrap=MPI_Abort $root/$cover/dump_at_exit.o" \
    $(programs "$cover") >"$out/log" 2>&1 || { tail "$out/log"; exit 1; }

# Only src/ is a copy; mutate.c writes the mutants over it.
for part in *; do
    [ "$part" = src ] || [ "$part" = "${BUILD%%/*}" ] || ln -sfn "$root/$part" "$tree/$part"
done
cp -rpu src "$tree/"
(cd "$tree" && find src -type f -not -name mutant_number.c) | while read -r file; do [ -e "$file" ] || rm "$tree/$file"; done
mapfile -t files < <(for module in $MUTATE; do find "$cover/obj/src/$module" -name '*.o'; done | sed "s#^$cover/obj/##; s#\.o\$#.c#" | grep -v '_absent\.c$' | sort)
cc -O1 -o "$out/mutate" tools/mutate/mutate.c tools/mutate/sites.c
for file in "${files[@]}"; do mkdir -p "$out/draft/${file%/*}"; done
touch "$out/errors"
echo "mutate: building ${MUTANTS:-200} mutants"
while :; do
    "$out/mutate" "${SEED:-1}" "${MUTANTS:-200}" "$out/draft" "$out/errors" "${files[@]}" >"$out/more"
    cmp -s "$out/more" "$out/mutants" || rm -f "$out/results" "$out/lived"
    mv "$out/more" "$out/mutants"
    for file in "${files[@]}"; do cmp -s "$out/draft/$file" "$tree/$file" || cp "$out/draft/$file" "$tree/$file"; done
    cp -u tools/mutate/number.c "$tree/src/base/mutant_number.c"
    "${make[@]}" -k -C "$tree" BUILD=build $(libraries build) >"$out/log" 2>&1 && break
    sed -n 's/^\(src\/[^:]*:[0-9]*\):[0-9]*: error:.*/\1/p' "$out/log" | cat - "$out/errors" | sort -u >"$out/more"
    ! cmp -s "$out/more" "$out/errors" || { tail "$out/log"; exit 1; }
    mv "$out/more" "$out/errors"
done
"${make[@]}" -C "$tree" BUILD=build $(programs build) >"$out/log" 2>&1 || { tail "$out/log"; exit 1; }

echo "mutate: measuring the tests"
touch "$out/seconds" "$out/results" "$out/lived"
export OUT=$out COVER=$cover
printf '%s\n' "${tests[@]}" | xargs -P "${JOBS:-2}" -n 1 tools/mutate/measure.sh
awk '{ last[$1] = $0 } END { for (test in last) print last[test] }' "$out/seconds" >"$out/more"
mv "$out/more" "$out/seconds"

if [ $# -gt 0 ]; then
    numbers=("$@")
    grep -vE "^($(IFS='|'; echo "$*")) " "$out/lived" >"$out/more" || true
    mv "$out/more" "$out/lived"
else
    mapfile -t numbers < <(cut -f1 "$out/mutants" | grep -vxFf <(awk -F'\t' '$2 == "killed" { print $1 }' "$out/results") || true)
fi
echo "mutate: trying ${#numbers[@]} mutants"
[ ${#numbers[@]} = 0 ] || printf '%s\n' "${numbers[@]}" | xargs -P "${JOBS:-2}" -n 1 tools/mutate/try.sh
tools/mutate/report.sh "$out" >"$out/report.md"
cat "$out/report.md"
