#!/bin/sh
# Installs the programs that only `make test-all` needs, on Debian and Ubuntu, where they are missing.
set -eu
packages=""
for pair in mlir-opt-19:mlir-19-tools aarch64-linux-gnu-gcc:gcc-aarch64-linux-gnu qemu-aarch64:qemu-user; do
    command -v "${pair%%:*}" >/dev/null 2>&1 || packages="$packages ${pair##*:}"
done
[ -z "$packages" ] && exit 0
echo "installing$packages"
apt-get update -qq
# shellcheck disable=SC2086
apt-get install -y -qq --no-install-recommends $packages
