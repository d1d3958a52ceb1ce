#!/usr/bin/env bash
# Compares the model of recommender.sh with other programs, alternately: one server and two ranks in modes sync, geo and async with
# PaddlePaddle's parameter server with two workers, and two ranks without a server with TorchRec. Prints a table in Markdown: medians of
# samples/s of all ranks, of the peak memory of all processes (PSS), and of each round's ratios.
# usage: PADDLE=python TORCHREC=python bench/recommender_servers.sh [BATCH ...]     10, 512 and 4096
#   PADDLE, TORCHREC: see peer_paddle.py and peer_torchrec.py for what they need; a peer whose python is not named is left out
#   TEXT: a folder that peer_paddle.py --export has written    TIME, ROUNDS, SAMPLES, DATA, KEPT: see recommender.bash
set -eu
. "$(dirname "$0")/recommender.bash"
[ $# -gt 0 ] || set -- 10 512 4096
[ "${PADDLE:-}${TORCHREC:-}" ] || { echo "recommender_servers.sh: set PADDLE or TORCHREC, or both" >&2; exit 64; }
text=${TEXT:-$tmp/text}
paddle="${PADDLE:-} $(dirname "$0")/peer_paddle.py"
torchrec="${TORCHREC:-} $(dirname "$0")/peer_torchrec.py"
[ ! "${PADDLE:-}" ] || [ -e "$text" ] || $paddle "$data" --export "$text" --samples "$samples"

beside_paddle() { # BATCH
    weft_run "$1" weft-geo 3 grid.servers=1 grid.mode=geo grid.geo_steps=100
    peer_run "$1" paddle-geo $paddle "$text" --mode geo
    weft_run "$1" weft-async 3 grid.servers=1 grid.mode=async grid.geo_steps=100
    peer_run "$1" paddle-async $paddle "$text" --mode async
    weft_run "$1" weft-sync 3 grid.servers=1
}
beside_torchrec() { # BATCH
    weft_run "$1" weft-collective 2
    peer_run "$1" torchrec-column $two $torchrec "$data" --sharding column_wise
    peer_run "$1" torchrec-data $two $torchrec "$data" --sharding data_parallel
    peer_run "$1" torchrec-threads $torchrec "$data" --threads 2
}
for _ in $(seq "$rounds"); do
    for batch in "$@"; do
        [ ! "${PADDLE:-}" ] || beside_paddle "$batch"
        [ ! "${TORCHREC:-}" ] || beside_torchrec "$batch"
    done
done

# Medians of the ratios of column $3, round by round.
ratio() { paste -d' ' "$kept/$1" "$kept/$2" | awk -v c="$3" 'NF == 4 { print $c / $(c + 2) }' | median; }
row() { # BATCH WEFT PEER WORDS PEER'S WORDS
    echo "$(column "$2.$1" 1) $(column "$3.$1" 1) $(ratio "$2.$1" "$3.$1" 1) $(column "$2.$1" 2) $(column "$3.$1" 2) $(ratio "$2.$1" "$3.$1" 2)" |
        awk -v b="$1" -v w="$4" -v p="$5" '{ printf "| %d | %s | %s | %.0f | %.0f | %.2f | %d | %d | %.2f |\n", b, w, p, $1, $2, $3, $4, $5, $6 }'
}
echo "| batch | weft | peer | samples/s | peer's | ratio | MiB | peer's | ratio |"
echo "|---|---|---|---|---|---|---|---|---|"
paddle_rows() { # BATCH
    row "$1" weft-geo paddle-geo "geo" "Paddle, geo"
    row "$1" weft-async paddle-async "async" "Paddle, async"
    echo "| $1 | sync | Paddle, sync | $(column "weft-sync.$1" 1) | fails | | $(column "weft-sync.$1" 2) | | |"
}
torchrec_rows() { # BATCH
    row "$1" weft-collective torchrec-column "no server" "TorchRec, column_wise"
    row "$1" weft-collective torchrec-data "no server" "TorchRec, data_parallel"
    row "$1" weft-collective torchrec-threads "no server" "TorchRec, 1 process, 2 threads"
}
for batch in "$@"; do
    [ ! "${PADDLE:-}" ] || paddle_rows "$batch"
    [ ! "${TORCHREC:-}" ] || torchrec_rows "$batch"
done
[ "${PADDLE:-}" ] || exit 0
echo
echo "sync in Paddle: $($paddle "$text" --mode sync --batch 512 --seconds 5 2>/dev/null || true)"
