#!/bin/sh
# Writes the public interface of every published library into the folder $1: one file per crate, one line per item.
#
# The lists are made from rustdoc's JSON, which is unstable: RUSTC_BOOTSTRAP lets the stable rustdoc write it. Only rustdoc gets the
# variable, so that no dependency is built anew.
set -eu
cd "$(dirname "$0")/../.."
mkdir -p "$1" target/api-tools
printf '#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec rustdoc "$@"\n' >target/api-tools/rustdoc
chmod +x target/api-tools/rustdoc
RUSTDOC="$PWD/target/api-tools/rustdoc" RUSTDOCFLAGS="-Z unstable-options --output-format json" \
	cargo doc --workspace --features pointsman-cli/lab --locked --no-deps --quiet
for crate in pointsman pointsman-report pointsman-table pointsman-transport pointsman-trees; do
	json="target/doc/$(echo "$crate" | tr - _).json"
	target/tools/bin/cargo-public-api --rustdoc-json "$json" -sss >"$1/$crate.txt"
done
