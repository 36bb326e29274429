#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# redis.sh DIRECTORY always|no REQUESTS - a server whose log of commands is made durable (or not), its load, its end.
set -eu
dir=$1
rm -rf "$dir/appendonlydir" "$dir/socket"
redis-server --port 0 --unixsocket "$dir/socket" --save '' --appendonly yes --appendfsync "$2" --dir "$dir" --logfile "$dir/redis.log" &
until [ -S "$dir/socket" ]; do sleep 0.02; done
redis-benchmark -s "$dir/socket" -t set -n "$3" -c 4 -P 16 -d 2000 -q
redis-cli -s "$dir/socket" shutdown nosave
wait
