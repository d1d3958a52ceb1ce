#!/usr/bin/env bash
# weft data make shallow-water, burgers and kolmogorov: the same bytes for any number of ranks and threads, messages and exit codes.
# cores: 2
. "$(dirname "$0")/common.bash"
small="--size 16x32 --members 3 --steps 4"
check 0 "wrote water: 3 members of 4 frames, 16x32" "$WEFT" data make shallow-water -o water $small --orography 500 --threads 1
check 0 "wrote water2: 3 members" timeout 100 "$WEFT" data make shallow-water -n 2 -o water2 $small --orography 500
check 0 "wrote fluid: 3 members of 4 frames" "$WEFT" data make kolmogorov -o fluid $small --spin-up 1 --threads 1
check 0 "wrote fluid2: 3 members" timeout 100 "$WEFT" data make kolmogorov -n 2 -o fluid2 $small --spin-up 1 --threads 2
check 0 "wrote fronts: 3 members" "$WEFT" data make burgers -o fronts $small --threads 1 --labels
check 0 "wrote deep/fronts2: 3 members" "$WEFT" data make burgers -o deep/fronts2 $small --threads 3 --labels
for i in 0 1 2; do
    holds "two ranks write the same water, member $i" cmp water/member-00$i.nc water2/member-00$i.nc
    holds "two ranks and threads write the same fluid, member $i" cmp fluid/member-00$i.nc fluid2/member-00$i.nc
    holds "three threads write the same fronts, member $i" cmp fronts/member-00$i.nc deep/fronts2/member-00$i.nc
done
check 0 "wrote later: 1 members" "$WEFT" data make shallow-water -o later --size 16x32 --members 1 --first 2 --steps 4 --orography 500
check 0 'regime: class 1 vortex has' "$WEFT" data check fronts/member-000.nc 'data.variables={inputs: [u, v], targets: [{name: regime, classes: 3}]}'
holds "a later member of the same seed is the same" cmp later/member-002.nc water/member-002.nc
holds "members differ" sh -c '! cmp -s water/member-000.nc water/member-001.nc'
holds "no other file is left" test "$(ls water2 | wc -l)" = 3

check 64 "water: holds members already, such as member-00" "$WEFT" data make shallow-water -o water $small
check 0 "wrote water: 1 members" "$WEFT" data make shallow-water -o water --size 16x32 --members 1 --steps 1 --force
holds "members of the earlier set are gone" test "$(ls water)" = member-000.nc
touch file
check 64 "file: is no folder" "$WEFT" data make burgers -o file $small
check 64 "powers of two" "$WEFT" data make burgers -o no --size 48x64
check 64 "16 points at least" "$WEFT" data make shallow-water -o no --size 8x64
check 64 "expected rows and columns" "$WEFT" data make shallow-water -o no --size 64
check 64 "16 rows has 5 waves at most" "$WEFT" data make kolmogorov -o no --size 16x16 --waves 6
check 64 "--interval 0" "$WEFT" data make burgers -o no --interval 0
check 64 "--members 0" "$WEFT" data make burgers -o no --members 0
check 64 "flags only" "$WEFT" data make burgers more -o no
check 64 "-o" "$WEFT" data make burgers
check 65 "dry/member-000.nc: the flow breaks down before frame 0; choose a larger --depth" \
    timeout 100 "$WEFT" data make shallow-water -n 2 -o dry $small --depth 600 --orography 3000
holds "nothing is left of it" test -z "$(ls dry)"
holds "nothing was made by refused commands" test ! -e no
finish
