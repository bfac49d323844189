#!/usr/bin/env bash
# Boots stock kernels under qemu's software emulation, loads every controller there, moves verified data over two subflows
# under some of them, and prints a table kernel x controller. Exit code 1 if something does not hold.
#
#   KERNELS    Debian packages of kernels; one that only depends on another stands for that
#   TRANSFERS  controllers that data is moved under
#   MANYPATH   a binary built with the feature `kernel`; built here if not given
set -euo pipefail
cd "$(dirname "$0")/../.."

# Debian 12's own kernel, Linux 6.1.
KERNELS=${KERNELS:-linux-image-cloud-amd64}
TRANSFERS=${TRANSFERS:-'lia mpcc-latency'}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/manypath/kernels
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# What runs in the guest besides manypath, all of it from the host: socat because it uses the C library, which busybox does not,
# and goes on to listen when a connection has come, which most others do not.
needed=(qemu-system-x86_64 busybox socat cpio)
packages=(qemu-system-x86 busybox-static socat cpio)

needs() {
    command -v "${needed[@]}" >/dev/null 2>&1 && [ "$(command -v "${needed[@]}" | wc -l)" = ${#needed[@]} ] && return
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        echo "installing: ${packages[*]}" >&2
        apt-get -qq -y --no-install-recommends install "${packages[@]}" >&2 && return
    fi
    echo "missing for make test-kernels: apt-get install ${packages[*]}" >&2
    exit 2
}

# The package that a name stands for: a metapackage depends on the one of today.
package() {
    local depends
    depends=$(apt-cache depends "$1" 2>/dev/null | awk '$1 == "Depends:" && $2 ~ /^linux-image-[0-9]/ { print $2; exit }')
    echo "${depends:-$1}"
}

# Fetches a kernel once, unpacks it, and prints the folder.
fetch() {
    local name folder
    name=$(package "$1")
    folder=$cache/$name
    if ! [ -d "$folder" ]; then
        mkdir -p "$cache"
        (cd "$work" && apt-get -qq -o APT::Sandbox::User=root download "$name" >&2) || {
            echo "cannot fetch $name: is it a package of this system (apt-cache search linux-image), and is apt-get update fresh?" >&2
            exit 2
        }
        dpkg-deb -x "$work/$name"_*.deb "$work/unpacked"
        mv "$work/unpacked" "$folder"
    fi
    echo "$folder"
}

# Copies a program and the libraries that it needs into the guest.
install_program() {
    local program=$1 target=$2 library
    install -D "$program" "$root/$target"
    ldd "$program" | grep -o '/[^ ]*' | while read -r library; do
        [ -e "$root$library" ] || install -D "$library" "$root$library"
    done
}

# The guest's file system, as an archive that the kernel unpacks into memory.
initramfs() {
    local folder=$1 module
    root=$work/root
    rm -rf "$root"
    mkdir -p "$root"/{bin,dev,proc,sys,tmp,run,etc}
    install "$(command -v busybox)" "$root/bin/busybox"
    install -m 755 tools/kernels/init "$root/init"
    install -m 644 tools/kernels/two.toml "$root/two.toml"
    install_program "$(command -v socat)" bin/socat
    install_program "$work/manypath" bin/manypath
    module=$(find "$folder" -name 'tun.ko*' | sed -n 1p)
    case $module in
    *.ko) cp "$module" "$root/" ;;
    *.xz) xz -dc "$module" >"$root/tun.ko" ;;
    *.zst) zstd -qdc "$module" >"$root/tun.ko" ;;
    esac
    printf '%s\n' $controllers >"$root/controllers"
    printf '%s\n' $TRANSFERS >"$root/transfers"
    (cd "$root" && find . | cpio --quiet -o -H newc | gzip -1) >"$work/initramfs"
}

# Runs a kernel and prints what it says.
boot() {
    local folder=$1 image
    image=$(find "$folder" -name 'vmlinuz*' | sed -n 1p)
    # What takes longer than this hangs. Software emulation on a busy machine is too slow for the kernel's test of its timer.
    timeout 1800 qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp 2 -m 1G -nographic -no-reboot -nodefaults \
        -serial stdio -kernel "$image" -initrd "$work/initramfs" \
        -append 'console=ttyS0 quiet panic=-1 oops=panic no_timer_check' </dev/null
}

needs
if [ -z "${MANYPATH:-}" ]; then
    tools/needs.sh kernel
    cargo build --quiet --features kernel --bin manypath
    MANYPATH=${CARGO_TARGET_DIR:-target}/debug/manypath
fi
# Symbols would be half of the guest's memory.
strip -o "$work/manypath" "$MANYPATH"
controllers=$(basename -a -s .bpf.c crates/kernel/bpf/*.bpf.c | tr _ -)

status=0
: >"$work/all"
for kernel in $KERNELS; do
    folder=$(fetch "$kernel")
    initramfs "$folder"
    echo "booting $(package "$kernel")" >&2
    boot "$folder" | tr -d '\r' | tee "$work/log" | sed -n 's/^RESULT //p' >"$work/results" || true
    cat "$work/results" >>"$work/all"
    loaded=$(grep -c '^load .* ok$' "$work/results" || true)
    moved=$(grep -c '^transfer .* ok' "$work/results" || true)
    if ! grep -q '^unloaded$' "$work/results" || ! grep -q '^done$' "$work/results" ||
        [ "$loaded" != "$(wc -w <<<"$controllers")" ] || [ "$moved" != "$(wc -w <<<"$TRANSFERS")" ]; then
        echo "$kernel: not all is well; what the guest said:" >&2
        cat "$work/log" >&2
        status=1
    fi
done

# A column for every kernel.
awk '
    $1 == "kernel" { column++; name[column] = $2 }
    $1 == "load" { if (!($2 in row)) { row[$2] = ++rows; controller[rows] = $2 }; cell[row[$2], column] = $3 == "ok" ? "loads" : "FAILS" }
    $1 == "transfer" { text = $3; for (i = 4; i <= NF; i++) text = text " " $i; cell[row[$2], column] = cell[row[$2], column] ", " text }
    END {
        printf "%-14s", "controller"; for (c = 1; c <= column; c++) printf "  %-40s", "Linux " name[c]; print ""
        for (r = 1; r <= rows; r++) {
            printf "%-14s", controller[r]; for (c = 1; c <= column; c++) printf "  %-40s", cell[r, c]; print ""
        }
    }' "$work/all"
exit $status
