#!/usr/bin/env bash
# Pictures per second of `weft data import folder` (--short 256), compared with Pillow in two processes that do the same: decode, scale
# the short side to 256 (bilinear), crop the centre, write planes. Runs alternate, ROUNDS times; prints medians and their ratio.
# usage: PYTHON=/path/to/python bench/import.sh      COUNT=2000 pictures of 500x375  ROUNDS=5  THREADS=2  FOLDER=/tmp
#        PYTHON needs Pillow and numpy. PICTURES=FOLDER takes that folder's classes instead of making some.
set -eu
. "$(dirname "$0")/common.bash"
python=${PYTHON:-python3} count=${COUNT:-2000} rounds=${ROUNDS:-5} threads=${THREADS:-2}
at=$(mktemp -d "${FOLDER:-/tmp}/weft-import-XXXXXX")
trap 'rm -rf "$at" "$tmp"' EXIT
pictures=${PICTURES:-$at/pictures}
[ -n "${PICTURES:-}" ] || "$python" - "$pictures" "$count" <<'PY'
import os, sys, numpy
from PIL import Image, ImageFilter
out, count = sys.argv[1], int(sys.argv[2])
rng = numpy.random.default_rng(1)
for i in range(count):
    w, h = (500, 375) if i % 4 else (375, 500)
    small = rng.integers(0, 256, (h // 12 + 1, w // 12 + 1, 3), dtype=numpy.uint8)
    smooth = numpy.asarray(Image.fromarray(small).resize((w, h), Image.BICUBIC)).astype(int)
    noisy = numpy.clip(smooth + rng.normal(0, 10, (h, w, 3)), 0, 255).astype(numpy.uint8)
    folder = os.path.join(out, "class%d" % (i % 10))
    os.makedirs(folder, exist_ok=True)
    Image.fromarray(noisy).filter(ImageFilter.GaussianBlur(0.7)).save(os.path.join(folder, "%05d.jpg" % i), quality=92)
PY
cat >"$tmp/peer.py" <<'PY'
import os, sys, time, numpy
from concurrent.futures import ProcessPoolExecutor
from PIL import Image
root, out, processes = sys.argv[1], sys.argv[2], int(sys.argv[3])
files = sorted(os.path.join(d, f) for d, _, names in os.walk(root) for f in names)
def work(part):
    with open(out + str(part), "wb") as file:
        for path in files[part::processes]:
            image = Image.open(path).convert("RGB")
            w, h = image.size
            size = (256, 256 * h // w) if w <= h else (256 * w // h, 256)
            image = image.resize(size, Image.BILINEAR)
            left, top = round((size[0] - 256) / 2), round((size[1] - 256) / 2)
            square = numpy.asarray(image.crop((left, top, left + 256, top + 256)))
            file.write(numpy.ascontiguousarray(square.transpose(2, 0, 1)).tobytes())
        os.fsync(file.fileno())
with ProcessPoolExecutor(processes) as pool:
    list(pool.map(abs, range(processes)))
    begin = time.time()
    list(pool.map(work, range(processes)))
    print("%.1f" % (len(files) / (time.time() - begin)))
PY
files=$(find -L "$pictures" -type f | wc -l)
cat $(find -L "$pictures" -type f | head -n 20000) >/dev/null
for _ in $(seq "$rounds"); do
    "$python" "$tmp/peer.py" "$pictures" "$at/peer." "$threads" >>"$tmp/pillow"
    rm -f "$at"/peer.*
    begin=$(date +%s.%N)
    "$weft" data import folder "$pictures" -o "$at/out.h5" --threads "$threads" >/dev/null 2>"$tmp/err" || { cat "$tmp/err" >&2; exit 1; }
    awk -v n="$files" -v a="$begin" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f\n", n / (b - a) }' >>"$tmp/weft"
    rm -f "$at/out.h5"
done
w=$(median <"$tmp/weft") p=$(median <"$tmp/pillow")
echo "$files pictures, $threads threads or processes, median of $rounds"
awk -v w="$w" -v p="$p" 'BEGIN { printf "weft    %7.1f images/s\npillow  %7.1f images/s\nratio   %7.2f\n", w, p, w / p }'
