#!/usr/bin/env bash
# `make docs`: all pages, the man page and the public headers become HTML without warnings and without broken links; broken links to
# pages and headings are found; without doxygen a message says so.
# cores: 1
here=$(cd "$(dirname "$0")/../.." && pwd)
. "$here/tests/cli/common.bash"
mkdir -p none
for tool in bash env dirname cat; do ln -s "$(command -v "$tool")" "none/$tool"; done
check 1 'apt-get install --no-install-recommends doxygen' env PATH="$PWD/none" bash "$here/tools/docs/docs.sh" "$WEFT" out
if ! command -v doxygen >/dev/null; then
    echo 'skipped: no doxygen here: apt-get install --no-install-recommends doxygen'
    finish
    exit
fi
has() { grep -qF -- "$2" "site/html/$1"; } # PAGE TEXT
check 0 html/index.html "$here/tools/docs/docs.sh" "$WEFT" site
[ "$failed" = 0 ] || finish
# The root's page has a special name; every other page is named by its path.
for page in $(cd "$here" && find docs datasets/README.md bench -name '*.md'); do
    name=${page%.md}
    holds "$page is a page of the HTML" test -s "site/html/p_${name//[^A-Za-z0-9]/_}.html"
done
# Pages are named by their last part, or by their path if two have the same last part.
for header in $(cd "$here/include" && find * -name '*.h'); do
    name=${header%.h}; name=${name//_/__}
    twins=$(find "$here/include" -name "${header##*/}" | wc -l)
    [ "$twins" = 1 ] && name=${name##*/} || name=${name//\//_2}
    holds "$header is described" test -s "site/html/${name}_8h.html"
done
holds 'a function has its comment' has train_8h.html 'Returns the norm of the newest step'
holds 'the man page has a key' has p_man.html '<b>optim.lr</b>'
holds 'a link between pages' has p_docs_zero.html 'href="p_docs_determinism.html"'

# Another tree, with faults that must be found.
mkdir tree
cp -a "$here"/{README.md,CHANGELOG.md,VERSION,LICENSE,docs,include,tools,bench,tests} tree
mkdir -p tree/datasets/adult; cp "$here/datasets/README.md" tree/datasets; cp "$here/datasets/adult/README.md" tree/datasets/adult
echo '[gone](nowhere.md)' >>tree/docs/zero.md
check 1 'a page links to docs/nowhere.md, which is no file' tree/tools/docs/docs.sh "$WEFT" other
sed -i '$d' tree/docs/zero.md; echo '[gone](pipelines.md#no-such-heading)' >>tree/docs/zero.md
check 1 'p_docs_zero.html: p_docs_pipelines.html#p_docs_pipelines_no-such-heading leads nowhere' tree/tools/docs/docs.sh "$WEFT" other
sed -i '$d' tree/docs/zero.md; echo '<nonsense>' >>tree/docs/zero.md
check 1 'nonsense' tree/tools/docs/docs.sh "$WEFT" other
finish
