#!/usr/bin/env bash
# Runs the tests affected by changes since a commit, within about the given number of seconds: first changed tests, then those of the
# modules whose sources, headers or tests have changed, then those of the modules that include these modules' headers, then the scripts
# of tests/cli if the program has changed; the quickest first, by the times in BUILD/test-times. Prints the tests that are left out, and
# the changed files that no test is chosen by.
# usage: check_changed.sh [COMMIT]      COMMIT: default HEAD; SECONDS_MOST in the environment: default 60; BUILD: default build
set -u
cd "$(dirname "$0")/.." || exit 70
build=${BUILD:-build} most=${SECONDS_MOST:-60} commit=${1:-HEAD}
mapfile -t changed < <({ git diff --name-only "$commit" --; git ls-files -o --exclude-standard; } | sort -u)
[ ${#changed[@]} -gt 0 ] || { echo "nothing has changed since $commit"; exit 0; }

tests=() # in order, some of them twice
program=0
add_module() { # MODULE : prints its test programs
    local source
    [ "$1" != cuda ] || return 0
    for source in tests/"$1"/test_*.c tests/"$1"/*.sh; do
        [ ! -e "$source" ] || tests+=("$source")
    done
}
includers() { # MODULE : prints the modules whose sources or tests include its public headers
    grep -rlE "^#include \"$1[./]" src tests --include=*.c --include=*.h --include=*.cu | sed -n 's#^[a-z]*/\([a-z]*\)/.*#\1#p' | sort -u
}
unknown=()
for file in "${changed[@]}"; do
    case $file in
        tests/cluster/* | tests/crash/* | tests/matrix/*) echo "left out: $file, which its own target runs";;
        tests/cuda/*) echo "left out: $file: make check-cuda-emulated runs the tests of GPUs, and on a GPU make check-cuda";;
        tests/*/test_*.c | tests/cli/*.sh) [ ! -e "$file" ] || tests+=("$file");;
        src/* | include/* | tests/*/* | *.md) ;;
        *) unknown+=("$file");;
    esac
done
[ ${#unknown[@]} = 0 ] || echo "no test is chosen by ${unknown[*]}: make test runs all"
mapfile -t modules < <(printf '%s\n' "${changed[@]}" | sed -n 's#^src/\([a-z]*\)/.*#\1#p; s#^tests/\([a-z]*\)/.*#\1#p; s#^include/\([a-z]*\)[./].*#\1#p' | sort -u)
for module in "${modules[@]}"; do
    program=1
    [ "$module" = cli ] || add_module "$module"
done
dependents=" " # test sources of modules that include headers of what has changed
own=${#tests[@]}
for module in $(for m in "${modules[@]}"; do [ ! -d "src/$m" ] || includers "$m"; done | sort -u); do
    case " ${modules[*]} cli " in *" $module "*) ;; *) add_module "$module";; esac
done
dependents+="${tests[*]:own} "
case " ${changed[*]} " in *.md\ *) tests+=(tests/cli/docs.sh tests/cli/doc_tables.sh);; esac
[ $program = 0 ] || add_module cli

# seconds TEST : prints its time in the last run; 5 if it is unknown.
seconds() { awk -v t="$1" '$1 == t { s = $2 } END { print s == "" ? 5 : s }' "$build/test-times" 2>/dev/null || echo 5; }
declare -A seen=()
chosen=() left=() spent=0
while read -r rank cost test; do
    [ -z "${seen[$test]:-}" ] || continue
    seen[$test]=1
    if [ "$rank" = 0 ] || awk -v a="$spent" -v b="$cost" -v m="$most" 'BEGIN { exit !(a + b <= m) }'; then
        spent=$(awk -v a="$spent" -v b="$cost" 'BEGIN { print a + b }')
        case $test in *.c) chosen+=("$build/${test%.c}");; *) chosen+=("$test");; esac
    else
        left+=("$test (${cost} s)")
    fi
done < <(for t in "${tests[@]}"; do
             case $t in *.sh) name=$t;; *) name=${t#tests/};; esac
             rank=1
             case " ${changed[*]} " in *" $t "*) rank=0;; esac
             case $dependents in *" $t "*) [ $rank = 0 ] || rank=2;; esac
             case $t in tests/cli/*) [ $rank = 0 ] || rank=3;; esac
             echo "$rank $(seconds "${name%.c}") $t"
         done | sort -k1,1n -k2,2n)
if [ ${#chosen[@]} = 0 ]; then echo "no test belongs to what has changed"; exit 0; fi
"${MAKE:-make}" --no-print-directory -j"$(nproc)" "$build/weft" $(printf '%s\n' "${chosen[@]}" | grep "^$build/") || exit 1
TEST_TIMES=$build/test-times WEFT=$build/weft WEFT_EMULATED=$build/emulated/weft tests/run.sh "${chosen[@]}"
code=$?
[ ${#left[@]} = 0 ] || { echo "left out, ${#left[@]} tests:"; printf '%s\n' "${left[@]}" | paste -sd, | sed 's/,/, /g' | fold -sw 120; }
exit $code
