#!/bin/sh
# full_tmp.sh "KEPT ..." COMMAND ...: run a command for which /tmp and /var/tmp are full; folders KEPT stay as they are.
# To be called by `unshare --mount`, so that nobody else sees it.
set -e
kept=$1
shift
mount --rbind /tmp /mnt
for full in /tmp /var/tmp; do
    mount -t tmpfs -o size=16k tmpfs "$full"
done
for folder in $kept; do
    case $folder in
        /tmp/*) mkdir -p "$folder" && mount --rbind "/mnt/${folder#/tmp/}" "$folder" ;;
    esac
done
for full in /tmp /var/tmp; do
    head -c 1000000 /dev/zero > "$full/filler" 2> /dev/null || true
done
# The working folder is still that of the old /tmp.
cd "$PWD"
exec "$@"
