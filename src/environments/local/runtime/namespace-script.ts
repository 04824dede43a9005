/**
 * What the first process of a namespace sandbox does before it becomes the init, in the words of a POSIX shell and util-linux. It
 * refuses to mount over a link: a link in the image would lead to a place of the host.
 *
 * Arguments: root, overlay options (empty = the root is mounted already), hostname, working folder, number of files, a pair of
 * source and target for each, the same of folders that cannot be written to, then the init with its arguments. Descriptor 4 holds the init's variables as a script; descriptor 3 gets
 * `ready` when everything stands.
 */
export const namespaceScript = `
set -eu
root=$1 options=$2 hostname=$3 workdir=$4 count=$5; shift 5
plain() { if [ -L "$1" ]; then echo "$1 is a link in the image" >&2; exit 91; fi; }
folder() { plain "$1"; [ -d "$1" ] || mkdir "$1"; }
if [ -n "$options" ]; then mount -t overlay -o "$options" overlay "$root"; else mount --rbind "$root" "$root"; fi
hostname "$hostname" 2>/dev/null || :
for d in proc dev sys etc; do folder "$root/$d"; done
mount -t proc -o nosuid,nodev,noexec proc "$root/proc"
mount -t sysfs -o nosuid,nodev,noexec,ro sysfs "$root/sys" 2>/dev/null || :
mount -t tmpfs -o nosuid,mode=755,size=65536k tmpfs "$root/dev"
for d in null zero full random urandom tty; do
  : >"$root/dev/$d"; mount --bind "/dev/$d" "$root/dev/$d"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts "$root/dev/pts"
mount -t tmpfs -o nosuid,nodev,noexec,mode=1777,size=65536k shm "$root/dev/shm"
ln -s pts/ptmx "$root/dev/ptmx"; ln -s /proc/self/fd "$root/dev/fd"
ln -s fd/0 "$root/dev/stdin"; ln -s fd/1 "$root/dev/stdout"; ln -s fd/2 "$root/dev/stderr"
while [ "$count" -gt 0 ]; do
  target=$root$2; folder "\${target%/*}"; rm -f "$target"; : >"$target"
  mount --bind "$1" "$target"; count=$((count - 1)); shift 2
done
count=$1; shift
while [ "$count" -gt 0 ]; do
  target=$root; rest=\${2#/}
  while [ -n "$rest" ]; do
    target=$target/\${rest%%/*}; folder "$target"
    case $rest in */*) rest=\${rest#*/} ;; *) rest= ;; esac
  done
  mount --bind "$1" "$target"; mount -o remount,bind,ro,nosuid,nodev "$target"
  count=$((count - 1)); shift 2
done
ip link set lo up 2>/dev/null || :
cd "$root"
mount --no-mtab --move . /
exec chroot . /bin/sh -c '. /proc/self/fd/4; exec 4<&-; mkdir -p "$1" && cd "$1" && shift && echo ready >&3 && exec 3>&- && exec "$@"' init "$workdir" "$@"
`;
