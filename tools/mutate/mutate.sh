#!/usr/bin/env bash
# Measures what the tests of some modules notice: compiles mutants of their C files into a copy of src/ (mutate.c) and runs, for each
# mutant, the tests that reach its lines, the quickest first, until one fails (try.sh). Which lines a test reaches comes from a build
# with gcov (measure.sh). Everything is in BUILD/mutants; a second call goes on where the first one stopped, as long as the sources are the same.
# Files there: mutants (mutate.c's table), lines/ and seconds (measure.sh), results (try.sh), report.md (report.sh).
# usage: mutate.sh [NUMBER...]     NUMBER: tries only these mutants, again
# environment: MUTANTS  number of mutants (default 200)         SEED       of the draw (default 1)
#              MUTATE   modules to change                       TEST_DIRS  modules whose test programs run (default: MUTATE)
#              JOBS     mutants side by side (default 2)        SKIP       tests to leave out: an extended regular expression
set -eu
cd "$(dirname "$0")/../.."
export BUILD=${BUILD:-build} MUTATE=${MUTATE:-pipeline parallel checkpoint} WEFT_CUDA=no
TEST_DIRS=${TEST_DIRS:-$MUTATE}
root=$PWD out=$PWD/$BUILD/mutants cover=$BUILD/mutants/coverage tree=$BUILD/mutants/tree
make=("${MAKE:-make}" --no-print-directory -j"${JOBS:-2}" WERROR=)
mkdir -p "$out/lines" "$tree"

tests=() # MODULE/test_X
for dir in $TEST_DIRS; do
    for source in tests/"$dir"/test_*.c; do
        name=${source#tests/}
        [[ -n ${SKIP:-} && $name =~ $SKIP ]] || tests+=("${name%.c}")
    done
done
libraries() { printf "$1/lib/%s.a " $MUTATE; }

# One call of make compiles the modules with gcov's counters, the next one everything else without.
echo "mutate: building ${#tests[@]} tests with gcov"
CCACHE_DISABLE=1 "${make[@]}" BUILD="$cover" OPT="-O0 -g" CFLAGS=--coverage $(libraries "$cover") >"$out/log" 2>&1 || { tail "$out/log"; exit 1; }
mpi=$(sed -n 's/^DEPS_CPPFLAGS :=//p' "$cover/probe.mk")
cc $mpi -c -o "$cover/dump_at_exit.o" tools/mutate/dump_at_exit.c
"${make[@]}" BUILD="$cover" LDFLAGS="--coverage -Wl,--wrap=_exit,--wrap=MPI_Abort $root/$cover/dump_at_exit.o" \
    "${tests[@]/#/$cover/tests/}" >"$out/log" 2>&1 || { tail "$out/log"; exit 1; }

# Only src/ is a copy; mutate.c writes the mutants over it.
for part in *; do
    [ "$part" = src ] || [ "$part" = "${BUILD%%/*}" ] || ln -sfn "$root/$part" "$tree/$part"
done
cp -rpu src "$tree/"
mapfile -t files < <(for module in $MUTATE; do find "$cover/obj/src/$module" -name '*.o'; done | sed "s#^$cover/obj/##; s#\.o\$#.c#" | grep -v '_absent\.c$' | sort)
cc -O1 -o "$out/mutate" tools/mutate/mutate.c tools/mutate/sites.c
for file in "${files[@]}"; do mkdir -p "$out/draft/${file%/*}"; done
touch "$out/errors"
echo "mutate: building ${MUTANTS:-200} mutants"
while :; do
    "$out/mutate" "${SEED:-1}" "${MUTANTS:-200}" "$out/draft" "$out/errors" "${files[@]}" >"$out/mutants"
    for file in "${files[@]}"; do cmp -s "$out/draft/$file" "$tree/$file" || cp "$out/draft/$file" "$tree/$file"; done
    cp -u tools/mutate/number.c "$tree/src/base/mutant_number.c"
    "${make[@]}" -k -C "$tree" BUILD=build $(libraries build) >"$out/log" 2>&1 && break
    sed -n 's/^\(src\/[^:]*:[0-9]*\):[0-9]*: error:.*/\1/p' "$out/log" | cat - "$out/errors" | sort -u >"$out/more"
    ! cmp -s "$out/more" "$out/errors" || { tail "$out/log"; exit 1; }
    mv "$out/more" "$out/errors"
done
"${make[@]}" -C "$tree" BUILD=build "${tests[@]/#/build/tests/}" >"$out/log" 2>&1 || { tail "$out/log"; exit 1; }

echo "mutate: measuring the tests"
touch "$out/seconds" "$out/results"
export OUT=$out COVER=$cover
printf '%s\n' "${tests[@]}" | xargs -P "${JOBS:-2}" -n 1 tools/mutate/measure.sh

if [ $# -gt 0 ]; then
    numbers=("$@")
else
    mapfile -t numbers < <(cut -f1 "$out/mutants" | grep -vxFf <(cut -f1 "$out/results") || true)
fi
echo "mutate: trying ${#numbers[@]} mutants"
[ ${#numbers[@]} = 0 ] || printf '%s\n' "${numbers[@]}" | xargs -P "${JOBS:-2}" -n 1 tools/mutate/try.sh
tools/mutate/report.sh "$out" >"$out/report.md"
cat "$out/report.md"
